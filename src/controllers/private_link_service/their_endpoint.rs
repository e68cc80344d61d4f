//! Whether the endpoint of HyperShift's guest side still leads to the service. It is never replaced there, so a service that
//! was made anew stays without it, and nobody but this role says so. Pure.

use std::time::Duration;

use kube::ResourceExt;
use serde_json::Value;

use crate::api::markers::CPO_INTENT;
use crate::api::{AzurePrivateLinkService, Reason};
use crate::azure::id::ResourceId;
use crate::azure::private_link_service::connected_endpoints;
use crate::azure::resource::Kind;
use crate::controllers::decision::Problem;
use crate::controllers::facts::{Facts, Needs};

/// A person has to delete the endpoint.
const AGAIN: Duration = Duration::from_secs(30);

/// What to say of a service that stands, if the guest's endpoint is not among its connections.
pub(super) fn not_connected(
    cr: &AzurePrivateLinkService,
    service: &ResourceId,
    facts: &Facts,
) -> Result<Option<Problem>, Needs> {
    let Some(endpoint) = kept_by_theirs(cr) else {
        return Ok(None);
    };
    let misses = |body: &Value| !connected_endpoints(body).contains(&endpoint);
    let missing = facts
        .read(Kind::PrivateLinkService, service)?
        .found()
        .is_some_and(misses)
        && facts
            .fresh_read(Kind::PrivateLinkService, service)?
            .found()
            .is_some_and(misses);
    let text = format!(
        "no connection from the {} {}: it leads to a service that is gone; delete it, and HyperShift's guest side makes another",
        Kind::PrivateEndpoint.label(),
        endpoint.name()
    );
    Ok(missing.then(|| Problem::new(Reason::EndpointNotConnected, text).again(AGAIN)))
}

/// The endpoint that the status names, where our guest side does not serve the custom resource.
fn kept_by_theirs(cr: &AzurePrivateLinkService) -> Option<ResourceId> {
    let ours = cr.annotations().contains_key(CPO_INTENT);
    let id = cr.status.as_ref()?.private_endpoint_id.as_ref().filter(|_| !ours)?;
    ResourceId::parse_as(Kind::PrivateEndpoint, id).ok()
}
