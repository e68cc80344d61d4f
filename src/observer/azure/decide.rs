//! Decides whether a Service and its control plane need a custom resource, which one, and what an existing one has to
//! change. Pure.
//!
//! Nothing here ever deletes a custom resource. That of a deleted Service, or one that OAuth no longer needs, stays
//! until a person deletes it, and its conditions report that there is no load balancer. Then it is not created again.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt;
use serde_json::{Map, Value, json};
use std::net::IpAddr;

use super::spec::{self, DesiredSpec, MOST_SUBSCRIPTIONS};
use crate::api::hypershift::{AzurePlatform, ClusterSpec, PrivateType, PublishingType, Topology};
use crate::api::markers::{CLUSTER_ANNOTATION, INTERNAL_LOAD_BALANCER_ANNOTATION, INTERNAL_LOAD_BALANCER_VALUE, OAUTH};
use crate::api::{AzurePrivateLinkService, HostedControlPlane};
use crate::azure::arm::id::same;
use crate::observer::verdict::{self, SpecChange, check_control_plane, check_service, owner};

/// The decision on a control plane and one of its Services.
pub type Verdict = verdict::Verdict<DesiredResource>;

/// A custom resource that should exist.
#[derive(Debug, Clone, PartialEq)]
pub struct DesiredResource {
    /// The spec, as derived from the control plane.
    pub derived: DesiredSpec,
    /// The custom resource as it would be created.
    pub resource: AzurePrivateLinkService,
}

/// Whether the cluster publishes anything through the Service of this name now.
pub fn published(service: &str, spec: &ClusterSpec) -> bool {
    let balanced = |kind| kind == Some(PublishingType::LoadBalancer);
    let mut oauth = spec
        .services
        .iter()
        .filter(|s| s.service.as_deref() == Some("OAuthServer"));
    service != OAUTH || oauth.any(|s| balanced(s.service_publishing_strategy.kind))
}

/// Decides on a control plane and a Service through which it publishes. `cloud` is the Azure cloud that this process
/// serves.
pub fn decide(service: Option<&Service>, found: &HostedControlPlane, cloud: &str, now: Timestamp) -> Verdict {
    let azure = match private_azure(&found.spec, cloud) {
        Ok(azure) => azure,
        Err(verdict) => return verdict,
    };
    if let Err(verdict) = check_control_plane(found, now) {
        return verdict;
    }
    let Some(service) = service else {
        return Verdict::Wait("there is no Service", None);
    };
    let marked = service.annotations().get(INTERNAL_LOAD_BALANCER_ANNOTATION);
    if marked.map(String::as_str) != Some(INTERNAL_LOAD_BALANCER_VALUE) {
        return Verdict::Ignore("the Service is not internal");
    }
    if let Err(verdict) = check_service(service, found) {
        return verdict;
    }
    let (address, complaint) = match address(service) {
        Ok(found) => found,
        Err(verdict) => return verdict,
    };
    match spec::derive(&found.name_any(), &found.spec, azure, address) {
        Ok(mut derived) => {
            derived.complaints.extend(complaint);
            Verdict::Desired(Box::new(DesiredResource {
                resource: custom_resource(service, found, derived.spec.clone()),
                derived,
            }))
        }
        Err(wrong) => Verdict::Unfit(wrong),
    }
}

/// The Azure part of a control plane that needs a private path in this cloud, or the verdict on one that does not.
fn private_azure<'a>(spec: &'a ClusterSpec, cloud: &str) -> Result<&'a AzurePlatform, Verdict> {
    let azure = spec
        .azure()
        .ok_or(Verdict::Ignore("the HostedControlPlane is not on Azure"))?;
    if !matches!(azure.topology, Some(Topology::Private | Topology::PublicAndPrivate)) {
        return Err(Verdict::Ignore("the cluster is public"));
    }
    if azure.private_type() != Some(PrivateType::PrivateLink) {
        return Err(Verdict::Ignore("the cluster does not use Private Link"));
    }
    let named = azure.cloud_name();
    if named != cloud {
        return Err(Verdict::Unfit(format!(
            "CloudMismatch: the cluster is in {named}, this process serves {cloud}"
        )));
    }
    Ok(azure)
}

/// The first address of the Service, and what is wrong if it has several; or why there is none.
fn address(service: &Service) -> Result<(String, Option<String>), Verdict> {
    let balancer = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    let points: &[LoadBalancerIngress] = balancer.and_then(|b| b.ingress.as_deref()).unwrap_or_default();
    let addresses = points.iter().filter_map(|point| point.ip.as_deref());
    let mut all: Vec<IpAddr> = addresses.filter_map(|ip| ip.parse().ok()).collect();
    let Some(first) = all.first().copied() else {
        let named = |point: &LoadBalancerIngress| point.hostname.as_ref().is_some_and(|name| !name.is_empty());
        return Err(if points.iter().any(named) {
            Verdict::Unfit("the Service has a host name instead of an address".to_owned())
        } else {
            Verdict::Wait("the Service has no address yet", None)
        });
    };
    all.sort_unstable();
    all.dedup();
    let several = (all.len() > 1).then(|| format!("the Service has {} addresses: only {first} is used", all.len()));
    Ok((first.to_string(), several))
}

fn custom_resource(
    service: &Service,
    found: &HostedControlPlane,
    spec: crate::api::AzurePrivateLinkServiceSpec,
) -> AzurePrivateLinkService {
    let mut desired = AzurePrivateLinkService::new(&service.name_any(), spec);
    desired.metadata.namespace = found.namespace();
    let annotation = found.annotations().get(CLUSTER_ANNOTATION);
    desired.metadata.annotations = annotation.map(|text| [(CLUSTER_ANNOTATION.to_owned(), text.clone())].into());
    desired.metadata.owner_references = Some(vec![owner(found)]);
    desired
}

/// The change that makes `current` as desired, as far as it may be changed. Values that differ only in case are equal;
/// values that are immutable once set are kept.
pub fn change(current: &AzurePrivateLinkService, desired: &DesiredResource) -> SpecChange {
    let controls = |one: &&OwnerReference| one.controller == Some(true);
    let controller = current.owner_references().iter().find(controls).map(|one| &one.uid);
    if controller != desired.resource.owner_references().first().map(|one| &one.uid) {
        return SpecChange::Foreign;
    }
    let spec = spec_change(current, desired);
    let mut metadata = Map::new();
    if let Some(annotation) = desired.resource.annotations().get(CLUSTER_ANNOTATION)
        && current.annotations().get(CLUSTER_ANNOTATION) != Some(annotation)
    {
        metadata.insert("annotations".into(), json!({CLUSTER_ANNOTATION: annotation}));
    }
    if spec.is_empty() && metadata.is_empty() {
        return SpecChange::None;
    }
    metadata.insert("resourceVersion".into(), json!(current.metadata.resource_version));
    SpecChange::Patch(json!({"metadata": metadata, "spec": spec}))
}

fn spec_change(current: &AzurePrivateLinkService, desired: &DesiredResource) -> Map<String, Value> {
    let now = &current.spec;
    let new = &desired.derived.spec;
    let mut spec = Map::new();
    if parsed(now.load_balancer_ip.as_deref()) != parsed(new.load_balancer_ip.as_deref()) {
        spec.insert("loadBalancerIP".into(), json!(new.load_balancer_ip));
    }
    let allowed = now.additional_allowed_subscriptions.as_deref().unwrap_or_default();
    if let Some(list) = new_list(allowed, &desired.derived.subscriptions) {
        // An empty list is refused.
        let list = (!list.is_empty()).then_some(list);
        spec.insert("additionalAllowedSubscriptions".into(), json!(list));
    }
    if now.nat_subnet_id.is_none() && new.nat_subnet_id.is_some() {
        spec.insert("natSubnetID".into(), json!(new.nat_subnet_id));
    }
    if now.base_domain.is_none() && new.base_domain.is_some() {
        spec.insert("baseDomain".into(), json!(new.base_domain));
    }
    spec
}

fn parsed(ip: Option<&str>) -> Option<IpAddr> {
    ip?.parse().ok()
}

/// The list to write, if it is to change. If the desired list is too long, only its revocations are written.
fn new_list(now: &[String], desired: &[String]) -> Option<Vec<String>> {
    if desired.len() > MOST_SUBSCRIPTIONS {
        let left: Vec<String> = now.iter().filter(|one| has(desired, one)).cloned().collect();
        return (left.len() < now.len()).then_some(left);
    }
    let equal = now.iter().all(|one| has(desired, one)) && desired.iter().all(|one| has(now, one));
    (!equal).then(|| desired.to_vec())
}

fn has(list: &[String], one: &str) -> bool {
    list.iter().any(|other| same(other, one))
}

#[cfg(test)]
mod tests;
