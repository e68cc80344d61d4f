//! Decides whether a Service of a control plane on AWS needs a custom resource, which one, and what an existing one has
//! to change. Pure.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service};
use kube::ResourceExt;
use serde_json::{Map, json};

use crate::api::hypershift::{AwsPlatform, ClusterSpec};
use crate::api::{AWSEndpointService, AWSEndpointServiceSpec, HostedControlPlane, ResourceTag};
use crate::aws::region::Region;
use crate::hypershift::aws::load_balancer_name;
use crate::observer::verdict::{self, Admission, SpecChange, check_control_plane, check_service, pause_complaint};

/// The most tags that the definition lets a spec have.
const MOST_TAGS: usize = 25;
/// The longest key of a tag that the definition allows.
const KEY: usize = 128;
/// The longest value of a tag that the definition allows.
const VALUE: usize = 256;

/// The decision on a control plane and one of its Services.
pub type Verdict = verdict::Verdict<DesiredResource>;

/// A custom resource that should exist.
#[derive(Debug, Clone, PartialEq)]
pub struct DesiredResource {
    /// The custom resource as it would be created.
    pub resource: AWSEndpointService,
    /// The problems of values that are left out.
    pub complaints: Vec<String>,
}

/// Whether the cluster is on AWS and reached by a private path.
pub fn is_private(spec: &ClusterSpec) -> bool {
    spec.aws().is_some_and(|aws| aws.access().is_private())
}

/// The decision on a control plane as a whole, in a process that serves `region`. `problem` is why the control plane is
/// not the only one of its namespace: the custom resources name none, so that a second one would be served by them too.
///
/// A public cluster that is not served here needs no report.
pub fn admission(spec: &ClusterSpec, problem: Option<String>, region: &Region) -> Admission {
    let Some(aws) = spec.aws() else {
        return Admission::Ignored;
    };
    match problem.or_else(|| other_region(aws, region)) {
        None => Admission::Admitted,
        Some(problem) if is_private(spec) => Admission::Refused(problem),
        Some(_) => Admission::Ignored,
    }
}

/// The problem of a cluster that is not in this region.
fn other_region(aws: &AwsPlatform, region: &Region) -> Option<String> {
    let named = Region::parse(aws.region.as_deref().unwrap_or_default());
    match named {
        Ok(named) if named == *region => None,
        Ok(named) => Some(format!(
            "CloudMismatch: the cluster is in {named}, this process serves {region}"
        )),
        Err(_) => Some(format!(
            "CloudMismatch: platform.aws.region is no known region, this process serves {region}"
        )),
    }
}

/// Decides on a control plane that is served and a Service through which it publishes.
pub fn decide(service: Option<&Service>, found: &HostedControlPlane, region: &Region, now: Timestamp) -> Verdict {
    let Some(aws) = found.spec.aws().filter(|_| is_private(&found.spec)) else {
        return Verdict::Ignore("the cluster is public, or not on AWS");
    };
    if let Err(verdict) = check_control_plane(found, now) {
        return verdict;
    }
    let Some(service) = service else {
        return Verdict::Wait("there is no Service", None);
    };
    if let Err(verdict) = check_service(service, found) {
        return verdict;
    }
    let Some(load_balancer) = load_balancer_name::of_service(host_names(service), region) else {
        let why = "the Service has no host name of a load balancer of the region yet";
        return Verdict::Wait(why, None);
    };
    let (resource_tags, complaint) = tags(&aws.resource_tags);
    let spec = AWSEndpointServiceSpec {
        network_load_balancer_name: load_balancer,
        resource_tags,
        ..AWSEndpointServiceSpec::default()
    };
    let mut resource = AWSEndpointService::new(&service.name_any(), spec);
    resource.metadata.namespace = found.namespace();
    let complaints = complaint.into_iter().chain(pause_complaint(&found.spec));
    Verdict::Desired(Box::new(DesiredResource {
        resource,
        complaints: complaints.collect(),
    }))
}

/// The host names of the Service's load balancers.
fn host_names(service: &Service) -> impl Iterator<Item = &str> {
    let balancer = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    let points: &[LoadBalancerIngress] = balancer.and_then(|b| b.ingress.as_deref()).unwrap_or_default();
    points.iter().filter_map(|point| point.hostname.as_deref())
}

/// The tags that the definition takes, and what is wrong with the others.
fn tags(given: &[ResourceTag]) -> (Vec<ResourceTag>, Option<String>) {
    let fits = |tag: &&ResourceTag| is_tag_text(&tag.key, KEY) && is_tag_text(&tag.value, VALUE);
    let usable: Vec<ResourceTag> = given.iter().filter(fits).take(MOST_TAGS).cloned().collect();
    let left_out = given.len() - usable.len();
    let complaint = (left_out > 0)
        .then(|| format!("platform.aws.resourceTags: {left_out} that AWSEndpointServices cannot have are left out"));
    (usable, complaint)
}

/// Whether the definition takes this as a tag's key or value.
fn is_tag_text(text: &str, most: usize) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_.:/=+@-".contains(c);
    (1..=most).contains(&text.len()) && text.chars().all(allowed)
}

/// The change that gives `current` the desired load balancer and tags; its other fields are role `ho`'s.
pub fn change(current: &AWSEndpointService, desired: &DesiredResource) -> SpecChange {
    let (now, new) = (&current.spec, &desired.resource.spec);
    let mut spec = Map::new();
    // It was derived from a host name, which may be in any case.
    if !now
        .network_load_balancer_name
        .eq_ignore_ascii_case(&new.network_load_balancer_name)
    {
        spec.insert("networkLoadBalancerName".into(), json!(new.network_load_balancer_name));
    }
    if now.resource_tags != new.resource_tags {
        let tags = (!new.resource_tags.is_empty()).then_some(&new.resource_tags);
        spec.insert("resourceTags".into(), json!(tags));
    }
    if spec.is_empty() {
        return SpecChange::None;
    }
    let metadata = json!({"resourceVersion": current.metadata.resource_version});
    SpecChange::Patch(json!({"metadata": metadata, "spec": spec}))
}

#[cfg(test)]
mod tests;
