//! Whether a Service and its control plane want a custom resource, and which. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};
use serde_json::{Map, Value, json};

use crate::api::hypershift::{AzurePlatform, ClusterSpec, PlatformType, PrivateType, PublishingType, Topology};
use crate::api::markers::{CLUSTER_ANNOTATION, INTERNAL_LOAD_BALANCER_ANNOTATION, INTERNAL_LOAD_BALANCER_VALUE};
use crate::api::{AzurePrivateLinkService, AzurePrivateLinkServiceSpec, HostedControlPlane};
use crate::azure::id::{ResourceId, location};
use crate::azure::resource::Kind;
use crate::controllers::identity;

/// What a Service means.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It is none of ours; why.
    Ignore(&'static str),
    /// It will be, but not yet; why, and when to look again if no event tells.
    Wait(&'static str, Option<Duration>),
    /// It cannot be served as things are; what is wrong.
    Unfit(String),
    /// This custom resource shall exist.
    Want(Box<AzurePrivateLinkService>),
}

/// Decides for one Service. `cloud` is the Azure cloud that this process serves.
pub fn decide(service: &Service, control_plane: Option<&HostedControlPlane>, cloud: &str, now: Timestamp) -> Verdict {
    let marked = service.annotations().get(INTERNAL_LOAD_BALANCER_ANNOTATION);
    if marked.map(String::as_str) != Some(INTERNAL_LOAD_BALANCER_VALUE) {
        return Verdict::Ignore("the Service is not internal");
    }
    if service.metadata.deletion_timestamp.is_some() {
        return Verdict::Ignore("the Service is being deleted");
    }
    let Some(found) = control_plane else {
        return Verdict::Wait("no HostedControlPlane owns the Service", None);
    };
    if found.metadata.deletion_timestamp.is_some() {
        return Verdict::Ignore("the HostedControlPlane is being deleted");
    }
    let azure = match private_azure(&found.spec, cloud) {
        Ok(azure) => azure,
        Err(verdict) => return verdict,
    };
    if let Some(problem) = identity::paused(&found.spec, now) {
        return Verdict::Wait("the cluster is paused", problem.again);
    }
    let Some(address) = address(service) else {
        return Verdict::Wait("the Service has no address yet", None);
    };
    match spec(found, azure, address) {
        Ok(spec) => Verdict::Want(Box::new(custom_resource(service, found, spec))),
        Err(wrong) => Verdict::Unfit(wrong),
    }
}

/// The Azure part of a control plane that wants a private path in this cloud.
fn private_azure<'a>(spec: &'a ClusterSpec, cloud: &str) -> Result<&'a AzurePlatform, Verdict> {
    let azure = spec
        .platform
        .azure
        .as_ref()
        .filter(|_| spec.platform.kind == Some(PlatformType::Azure));
    let azure = azure.ok_or(Verdict::Ignore("the HostedControlPlane is not on Azure"))?;
    if !matches!(azure.topology, Some(Topology::Private | Topology::PublicAndPrivate)) {
        return Err(Verdict::Ignore("the cluster is public"));
    }
    if azure.private.as_ref().and_then(|p| p.kind) != Some(PrivateType::PrivateLink) {
        return Err(Verdict::Ignore("the cluster does not use Private Link"));
    }
    let named = azure
        .cloud
        .as_deref()
        .filter(|name| !name.is_empty())
        .unwrap_or("AzurePublicCloud");
    if named != cloud {
        return Err(Verdict::Unfit(format!(
            "CloudMismatch: the cluster is in {named}, this process serves {cloud}"
        )));
    }
    Ok(azure)
}

/// The first address of the Service.
fn address(service: &Service) -> Option<String> {
    let ingress = service.status.as_ref()?.load_balancer.as_ref()?.ingress.as_ref()?;
    ingress
        .iter()
        .find_map(|point| point.ip.clone())
        .filter(|ip| !ip.is_empty())
}

/// The spec, with ids and region as the custom resource demands them.
fn spec(
    found: &HostedControlPlane,
    azure: &AzurePlatform,
    address: String,
) -> Result<AzurePrivateLinkServiceSpec, String> {
    let text = |value: &Option<String>, field: &str| {
        value
            .clone()
            .filter(|v| !v.is_empty())
            .ok_or_else(|| format!("platform.azure.{field} is empty"))
    };
    let id = |kind, value: &str, field: &str| {
        ResourceId::parse_as(kind, value)
            .map(|id| id.to_string())
            .map_err(|error| format!("platform.azure.{field}: {error}"))
    };
    let private = azure.private.clone().unwrap_or_default().private_link;
    let nat = private.nat_subnet_id.filter(|text| !text.is_empty());
    let subscriptions = private.additional_allowed_subscriptions;
    Ok(AzurePrivateLinkServiceSpec {
        load_balancer_ip: Some(address),
        subscription_id: text(&azure.subscription_id, "subscriptionID")?.to_ascii_lowercase(),
        resource_group_name: text(&azure.resource_group, "resourceGroup")?,
        location: location(&text(&azure.location, "location")?),
        nat_subnet_id: nat
            .map(|nat| id(Kind::Subnet, &nat, "private.privateLink.natSubnetID"))
            .transpose()?,
        additional_allowed_subscriptions: (!subscriptions.is_empty()).then_some(subscriptions),
        guest_subnet_id: id(Kind::Subnet, &text(&azure.subnet_id, "subnetID")?, "subnetID")?,
        guest_vnet_id: id(Kind::VirtualNetwork, &text(&azure.vnet_id, "vnetID")?, "vnetID")?,
        base_domain: base_domain(&found.name_any(), &found.spec),
    })
}

/// The host name of OAuth without its first label, else the cluster's base domain.
fn base_domain(cluster: &str, spec: &ClusterSpec) -> Option<String> {
    let prefix = format!("oauth-{cluster}.");
    let oauth = spec
        .services
        .iter()
        .filter(|s| s.service.as_deref() == Some("OAuthServer"));
    let mut hosts = oauth.filter_map(|s| {
        let strategy = &s.service_publishing_strategy;
        match strategy.kind {
            Some(PublishingType::Route) => strategy.route.hostname.as_deref(),
            Some(PublishingType::LoadBalancer) => strategy.load_balancer.hostname.as_deref(),
            _ => None,
        }
    });
    let domain = hosts
        .find_map(|host| host.strip_prefix(&prefix))
        .or(spec.dns.base_domain.as_deref());
    domain.filter(|domain| !domain.is_empty()).map(str::to_owned)
}

fn custom_resource(
    service: &Service,
    found: &HostedControlPlane,
    spec: AzurePrivateLinkServiceSpec,
) -> AzurePrivateLinkService {
    let mut wanted = AzurePrivateLinkService::new(&service.name_any(), spec);
    wanted.metadata.namespace = found.namespace();
    let annotation = found.annotations().get(CLUSTER_ANNOTATION);
    wanted.metadata.annotations = annotation.map(|text| [(CLUSTER_ANNOTATION.to_owned(), text.clone())].into());
    wanted.metadata.owner_references = Some(vec![OwnerReference {
        api_version: HostedControlPlane::api_version(&()).into_owned(),
        kind: HostedControlPlane::kind(&()).into_owned(),
        name: found.name_any(),
        uid: found.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }]);
    wanted
}

/// The guarded merge patch that makes `current` what is wanted, if anything may and has to change.
///
/// Values that are immutable once set are carried over.
pub fn patch(current: &AzurePrivateLinkService, wanted: &AzurePrivateLinkService) -> Option<Value> {
    let (now, want) = (&current.spec, &wanted.spec);
    let mut spec = Map::new();
    let mut put = |field: &str, differs: bool, value: Value| {
        if differs {
            spec.insert(field.to_owned(), value);
        }
    };
    put(
        "loadBalancerIP",
        now.load_balancer_ip != want.load_balancer_ip,
        json!(want.load_balancer_ip),
    );
    let lists_differ = now.additional_allowed_subscriptions != want.additional_allowed_subscriptions;
    put(
        "additionalAllowedSubscriptions",
        lists_differ,
        json!(want.additional_allowed_subscriptions),
    );
    put(
        "natSubnetID",
        now.nat_subnet_id.is_none() && want.nat_subnet_id.is_some(),
        json!(want.nat_subnet_id),
    );
    put(
        "baseDomain",
        now.base_domain.is_none() && want.base_domain.is_some(),
        json!(want.base_domain),
    );
    let mut metadata = Map::new();
    if let Some(annotation) = wanted.annotations().get(CLUSTER_ANNOTATION)
        && current.annotations().get(CLUSTER_ANNOTATION) != Some(annotation)
    {
        metadata.insert("annotations".into(), json!({CLUSTER_ANNOTATION: annotation}));
    }
    if spec.is_empty() && metadata.is_empty() {
        return None;
    }
    metadata.insert("resourceVersion".into(), json!(current.metadata.resource_version));
    Some(json!({"metadata": metadata, "spec": spec}))
}
