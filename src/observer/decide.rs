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

/// What a control plane and its Service mean.
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

/// Decides for a control plane and its router Service. `cloud` is the Azure cloud that this process serves.
pub fn decide(service: Option<&Service>, found: &HostedControlPlane, cloud: &str, now: Timestamp) -> Verdict {
    let Some(service) = service else {
        return Verdict::Wait("there is no router Service", None);
    };
    let marked = service.annotations().get(INTERNAL_LOAD_BALANCER_ANNOTATION);
    if marked.map(String::as_str) != Some(INTERNAL_LOAD_BALANCER_VALUE) {
        return Verdict::Ignore("the Service is not internal");
    }
    if service.metadata.deletion_timestamp.is_some() || found.metadata.deletion_timestamp.is_some() {
        return Verdict::Ignore("the control plane is being deleted");
    }
    if !service
        .owner_references()
        .iter()
        .any(|owner| Some(&owner.uid) == found.metadata.uid.as_ref())
    {
        return Verdict::Wait("the HostedControlPlane does not own the Service", None);
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

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const VNET: &str = "/subscriptions/11111111-1111-4111-8111-111111111111/resourcegroups/net/providers/microsoft.network/virtualNetworks/v";

    fn service() -> Service {
        serde_json::from_value(
            json!({"metadata": {"name": "private-router", "namespace": "clusters-example",
            "annotations": {INTERNAL_LOAD_BALANCER_ANNOTATION: "true"},
            "ownerReferences": [{"apiVersion": "v", "kind": "HostedControlPlane", "name": "example", "uid": "hcp"}]},
            "status": {"loadBalancer": {"ingress": [{"hostname": "x"}, {"ip": "10.1.0.4"}]}}}),
        )
        .unwrap()
    }

    fn control_plane() -> HostedControlPlane {
        serde_json::from_value(json!({"metadata": {"name": "example", "namespace": "clusters-example", "uid": "hcp",
            "annotations": {CLUSTER_ANNOTATION: "clusters/example"}},
            "spec": {"clusterID": "id", "infraID": "infra", "dns": {"baseDomain": "example.com"},
                "services": [{"service": "OAuthServer", "servicePublishingStrategy":
                    {"type": "Route", "route": {"hostname": "oauth-example.apps.example.com"}}}],
                "platform": {"type": "Azure", "azure": {"location": "East US", "resourceGroup": "guest",
                    "subscriptionID": "11111111-1111-4111-8111-111111111111", "vnetID": VNET, "subnetID": format!("{VNET}/subnets/default"),
                    "topology": "Private", "private": {"type": "PrivateLink"}}}}}))
        .unwrap()
    }

    fn verdict(service: &Service, control_plane: &HostedControlPlane) -> Verdict {
        decide(Some(service), control_plane, "AzurePublicCloud", Timestamp::UNIX_EPOCH)
    }

    fn wanted() -> AzurePrivateLinkService {
        match verdict(&service(), &control_plane()) {
            Verdict::Want(cr) => *cr,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ids_and_region_are_normalised() {
        let spec = wanted().spec;
        assert_eq!(spec.location, "eastus");
        assert!(
            spec.guest_vnet_id
                .contains("/resourceGroups/net/providers/Microsoft.Network/"),
            "{}",
            spec.guest_vnet_id
        );
        assert_eq!(spec.load_balancer_ip.as_deref(), Some("10.1.0.4"));
        assert_eq!(spec.base_domain.as_deref(), Some("apps.example.com"));
    }

    #[test]
    fn base_domain_falls_back_to_that_of_the_cluster() {
        let mut plain = control_plane();
        plain.spec.services.clear();
        let Verdict::Want(cr) = verdict(&service(), &plain) else {
            panic!()
        };
        assert_eq!(cr.spec.base_domain.as_deref(), Some("example.com"));
    }

    fn changed(change: impl FnOnce(&mut Service, &mut HostedControlPlane)) -> Verdict {
        let (mut service, mut control_plane) = (service(), control_plane());
        change(&mut service, &mut control_plane);
        verdict(&service, &control_plane)
    }

    #[rstest]
    #[case::not_internal(changed(|s, _| s.metadata.annotations = None), "ignore")]
    #[case::public(changed(|_, c| c.spec.platform.azure.as_mut().unwrap().topology = Some(Topology::Public)), "ignore")]
    #[case::swift(changed(|_, c| c.spec.platform.azure.as_mut().unwrap().private.as_mut().unwrap().kind = Some(PrivateType::Other)), "ignore")]
    #[case::not_azure(changed(|_, c| c.spec.platform.kind = Some(PlatformType::Other)), "ignore")]
    #[case::other_cloud(changed(|_, c| c.spec.platform.azure.as_mut().unwrap().cloud = Some("AzureChinaCloud".into())), "unfit")]
    #[case::no_address(changed(|s, _| s.status = None), "wait")]
    #[case::foreign_service(changed(|s, _| s.metadata.owner_references = None), "wait")]
    #[case::paused(changed(|_, c| c.spec.paused_until = Some("true".into())), "wait")]
    #[case::bad_id(changed(|_, c| c.spec.platform.azure.as_mut().unwrap().vnet_id = Some("x".into())), "unfit")]
    fn a_control_plane_that_is_not_ready_makes_nothing(#[case] verdict: Verdict, #[case] expected: &str) {
        let word = match verdict {
            Verdict::Ignore(_) => "ignore",
            Verdict::Wait(..) => "wait",
            Verdict::Unfit(_) => "unfit",
            Verdict::Want(_) => "want",
        };
        assert_eq!(word, expected);
    }

    #[test]
    fn immutable_values_are_carried_over_and_the_rest_follows() {
        let (current, mut next) = (wanted(), wanted());
        assert_eq!(patch(&current, &next), None);
        next.spec.base_domain = Some("other.example.com".into());
        next.spec.location = "westus".into();
        assert_eq!(patch(&current, &next), None);
        next.spec.load_balancer_ip = Some("10.1.0.5".into());
        next.spec.nat_subnet_id = Some("nat".into());
        assert_eq!(
            patch(&current, &next).unwrap()["spec"],
            json!({"loadBalancerIP": "10.1.0.5", "natSubnetID": "nat"})
        );
    }

    #[test]
    fn removed_subscriptions_are_removed() {
        let (mut current, next) = (wanted(), wanted());
        current.spec.additional_allowed_subscriptions = Some(vec!["a".into()]);
        assert_eq!(
            patch(&current, &next).unwrap()["spec"],
            json!({"additionalAllowedSubscriptions": null})
        );
    }
}
