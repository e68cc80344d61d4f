//! Whether an existing Private Link Service with the expected name is this cluster's, by what Azure shows of it. Pure.
//!
//! Most services are proven by their owner tags. One that HyperShift's own operator made is proven by the frontend that
//! it forwards to: that of the cluster's Service. A missing frontend proves nothing: Azure keeps a frontend that a
//! service forwards to, so a read that does not show it is old.

use serde_json::Value;

use super::frontend::{self, FrontendMatch, ServiceFacts};
use super::plan::{PrivateLinkServiceInputs, Settings};
use crate::api::AzurePrivateLinkService;
use crate::azure::id::{ResourceId, same};
use crate::azure::kinds::private_link_service::{OwnedPrivateLinkService, frontends};
use crate::azure::owner_tags::{Stamp, Stamped};
use crate::azure::resource::{Kind, Owned};
use crate::controllers::facts::{Facts, Needs};
use crate::controllers::identity::Identity;
use crate::names;

/// The service with this id as it is if the cluster owns it. Nothing is proven yet.
pub(super) fn owned(
    id: ResourceId,
    identity: &Identity,
    inputs: &PrivateLinkServiceInputs,
    settings: &Settings,
) -> OwnedPrivateLinkService {
    OwnedPrivateLinkService {
        id,
        owner_tags: names::private_link_service_tags(&identity.name, &identity.cluster_id),
        stamp: Stamp {
            tag: names::MANAGEMENT_CLUSTER_TAG.to_owned(),
            own: settings.management_cluster.clone(),
            former: inputs.adopt_from.clone(),
        },
        frontend: None,
        proven: false,
    }
}

/// The service, `proven` if it is known or shown to be the cluster's.
pub(super) fn prove(
    desired: OwnedPrivateLinkService,
    cr: &AzurePrivateLinkService,
    inputs: &PrivateLinkServiceInputs,
    facts: &Facts,
    settings: &Settings,
) -> Result<OwnedPrivateLinkService, Needs> {
    let known = facts.proven.contains(&desired.id);
    let mut desired = OwnedPrivateLinkService {
        proven: known,
        ..desired
    };
    let Some(body) = facts.read(Kind::PrivateLinkService, &desired.id)?.found() else {
        return Ok(desired);
    };
    if !desired.is_owned(body) && desired.stamp.on(body) != Stamped::Other {
        desired.proven = forwards_to_service(body, cr, inputs, facts, settings)?;
    }
    Ok(desired)
}

/// Whether it forwards only to the frontend of the custom resource's Service, which may be under deletion.
fn forwards_to_service(
    body: &Value,
    cr: &AzurePrivateLinkService,
    inputs: &PrivateLinkServiceInputs,
    facts: &Facts,
    settings: &Settings,
) -> Result<bool, Needs> {
    let [only] = frontends(body)[..] else {
        return Ok(false);
    };
    let name = only.rsplit('/').next().unwrap_or_default();
    let named = |service: &ServiceFacts| frontend::is_named_after(name, service);
    if inputs.service.as_ref().is_some_and(named) {
        return Ok(true);
    }
    // Matching by name has failed. Matching by address, for other providers, needs the identity.
    if settings.frontend_match == FrontendMatch::Name || inputs.identity.is_err() {
        return Ok(false);
    }
    let found = frontend::find(cr, inputs, facts, settings)?;
    Ok(found.is_ok_and(|frontend| same(&frontend.id, only)))
}
