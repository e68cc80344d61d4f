//! Whether the Private Endpoint of HyperShift's guest side still leads to the Private Link Service. Pure.
//!
//! HyperShift never replaces the endpoint. A recreated service stays without it, and only this role reports that.

use std::time::Duration;

use kube::ResourceExt;

use crate::api::markers::CPO_INTENT;
use crate::api::{AzurePrivateLinkService, Reason};
use crate::azure::arm::id::ResourceId;
use crate::azure::cloud::Observed;
use crate::azure::kinds::Kind;
use crate::azure::kinds::private_link_service::connected_endpoints;
use crate::controllers::azure::{Facts, Needs};
use crate::hypershift::problem::Problem;

/// The first wait before a Private Link Service is read again while a person has to delete HyperShift's endpoint of an
/// earlier service. Later waits are longer.
const ENDPOINT_POLL: Duration = Duration::from_secs(30);

/// The problem of a ready service if the guest's endpoint is not among its connections.
pub(super) fn not_connected(
    cr: &AzurePrivateLinkService,
    service: &ResourceId,
    facts: &Facts,
) -> Result<Option<Problem>, Needs> {
    let Some(endpoint) = endpoint_of_hypershift(cr) else {
        return Ok(None);
    };
    let missing = lacks(facts.read(Kind::PrivateLinkService, service)?, &endpoint)
        && lacks(facts.fresh_read(Kind::PrivateLinkService, service)?, &endpoint);
    if !missing {
        return Ok(None);
    }
    let text = format!(
        "no connection from the {} {}: it leads to a service that is gone; delete it, and HyperShift's guest side makes another",
        Kind::PrivateEndpoint.label(),
        endpoint.name()
    );
    Ok(Some(
        Problem::new(Reason::EndpointNotConnected, text).requeue_after(ENDPOINT_POLL),
    ))
}

/// Whether an existing service has no connection of the endpoint.
fn lacks(service: &Observed, endpoint: &ResourceId) -> bool {
    let body = service.found();
    body.is_some_and(|body| !connected_endpoints(body).contains(endpoint))
}

/// The endpoint in the status, if HyperShift's guest side serves the custom resource and not our CPO role.
fn endpoint_of_hypershift(cr: &AzurePrivateLinkService) -> Option<ResourceId> {
    let served_by_cpo = cr.annotations().contains_key(CPO_INTENT);
    let id = cr
        .status
        .as_ref()?
        .private_endpoint_id
        .as_ref()
        .filter(|_| !served_by_cpo)?;
    ResourceId::parse_as(Kind::PrivateEndpoint, id).ok()
}
