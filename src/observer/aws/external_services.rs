//! Which host names of a cluster on AWS external-dns publishes, and that they point to the endpoint's DNS name. Pure.

use kube::ResourceExt;

use crate::api::hypershift::{AwsPlatform, ClusterSpec, EndpointAccess};
use crate::api::markers::aws::{ENDPOINT_DNS_NAME, EXTERNAL_LABEL};
use crate::api::{AWSEndpointService, ConditionType, Reason, Status};
use crate::aws::region::Region;
use crate::hypershift::aws::ids::endpoint_suffix;
use crate::hypershift::conditions::{get, is_true};
use crate::hypershift::host_names::dns_name;
use crate::observer::external_services::{self, CLAIMED, External, Host, routed_host};

/// All external Services that a control plane can have.
pub const ALL: [External; 2] = external_services::all(EXTERNAL_LABEL);

/// Where the host names may point: to a DNS name.
pub type Target = external_services::Target<String>;

/// The host name that a control plane gives a Service. `Err` if it is not a DNS name, and counts as none.
///
/// A cluster with a public side publishes there.
pub fn host(external: External, spec: &ClusterSpec) -> Result<Host, String> {
    match spec.aws().map(AwsPlatform::access) {
        Some(EndpointAccess::Public | EndpointAccess::PublicAndPrivate) => Ok(Host::None),
        Some(EndpointAccess::Private) => routed_host(external, spec),
        Some(EndpointAccess::Other) | None => Ok(Host::NotOurs),
    }
}

/// The target, by what the custom resource `private-router` reports of the endpoint.
pub fn target(cr: Option<&AWSEndpointService>, region: &Region) -> Target {
    let Some(cr) = cr.filter(|cr| cr.metadata.deletion_timestamp.is_none()) else {
        return Target::Gone;
    };
    if is_claimed(cr) {
        return Target::Refused;
    }
    let conditions = cr.status.as_ref().map(|status| status.conditions.as_slice());
    let available = get(conditions.unwrap_or_default(), ConditionType::AWSEndpointAvailable);
    let published = cr.annotations().get(ENDPOINT_DNS_NAME);
    match published.and_then(|name| endpoint_name(name, region)) {
        Some(name) if available.is_some_and(is_true) => Target::At(name),
        _ => Target::Unsure,
    }
}

/// Whether role `ho` refuses the cluster because another one has what it names.
fn is_claimed(cr: &AWSEndpointService) -> bool {
    let conditions = cr.status.as_ref().map(|status| status.conditions.as_slice());
    let service = get(
        conditions.unwrap_or_default(),
        ConditionType::AWSEndpointServiceAvailable,
    );
    let refused = service.filter(|condition| condition.status == Status::False.as_str());
    refused.is_some_and(|condition| Reason::parse(&condition.reason).is_some_and(|reason| CLAIMED.contains(&reason)))
}

/// The DNS name of an endpoint in this region, in lower case; none if no endpoint there can have it. Anybody in the
/// namespace may have written it, and so lead the names of his own cluster to another endpoint, but nowhere else.
///
/// Format: <https://docs.aws.amazon.com/vpc/latest/userguide/endpoint-service.html>
fn endpoint_name(text: &str, region: &Region) -> Option<String> {
    let end = format!(".{region}.{}", endpoint_suffix(region.partition()));
    dns_name(text).filter(|name| name.ends_with(&end))
}

#[cfg(test)]
mod tests;
