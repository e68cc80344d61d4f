//! Which host names of a cluster on Azure external-dns publishes, and to which address they point. Pure.

use std::net::IpAddr;

use crate::api::hypershift::{AzurePlatform, ClusterSpec, PrivateType, Topology};
use crate::api::markers::EXTERNAL_LABEL;
use crate::api::{AzurePrivateLinkService, ConditionType, Status};
use crate::controllers::private_endpoint::served::refused_for;
use crate::hypershift::conditions;
use crate::observer::external_services::{self, CLAIMED, External, Host, routed_host};

/// All external Services that a control plane can have.
pub const ALL: [External; 2] = external_services::all(EXTERNAL_LABEL);

/// Where the host names may point: to an address.
pub type Target = external_services::Target<IpAddr>;

/// The host name that a control plane gives a Service. `Err` if it is not a DNS name, and counts as none.
///
/// A cluster with a public side publishes there.
pub fn host(external: External, spec: &ClusterSpec) -> Result<Host, String> {
    let azure = spec.azure();
    let private = azure.and_then(AzurePlatform::private_type);
    match (azure.and_then(|azure| azure.topology), private) {
        (Some(Topology::Public | Topology::PublicAndPrivate), _) => Ok(Host::None),
        (Some(Topology::Private), Some(PrivateType::PrivateLink)) => routed_host(external, spec),
        _ => Ok(Host::NotOurs),
    }
}

/// The target, by what the custom resource `private-router` reports of the Private Endpoint.
///
/// A cluster that role `ho` refuses has no available Private Endpoint either, but its names may have been published
/// before.
pub fn target(cr: Option<&AzurePrivateLinkService>) -> Target {
    let Some(cr) = cr.filter(|cr| cr.metadata.deletion_timestamp.is_none()) else {
        return Target::Gone;
    };
    if CLAIMED.into_iter().any(|reason| refused_for(cr, reason)) {
        return Target::Refused;
    }
    let status = cr.status.clone().unwrap_or_default();
    let available = conditions::get(&status.conditions, ConditionType::AzurePrivateEndpointAvailable);
    let address = status.private_endpoint_ip.and_then(|ip| ip.parse().ok());
    match address {
        Some(address) if available.is_some_and(|c| c.status == Status::True.as_str()) => Target::At(address),
        _ => Target::Unsure,
    }
}

#[cfg(test)]
mod tests;
