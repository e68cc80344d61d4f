//! Whether an existing Private Link Service with the expected name is this cluster's, by what Azure shows of it. Pure.
//!
//! Most services are proven by their owner tags. One that HyperShift's own operator made is proven by the frontend that
//! it forwards to: that of the cluster's Service. A missing frontend proves nothing: Azure keeps a frontend that a
//! service forwards to, so a read that does not show it is old.

use serde_json::Value;

use super::basis::{Basis, Stop};
use super::frontend::{self, FrontendMatch};
use crate::azure::arm::id::{ResourceId, same};
use crate::azure::kinds::Kind;
use crate::azure::kinds::private_link_service::{OwnedPrivateLinkService, frontends};
use crate::azure::owner_tags::{Stamp, Stamped};
use crate::engine::failure::Class;
use crate::engine::resource::Owned;
use crate::hypershift::azure::names;
use crate::hypershift::identity::Identity;

/// The service with this id as it is if the cluster owns it. Nothing is proven yet.
pub(super) fn owned(id: ResourceId, identity: &Identity, basis: Basis<'_>) -> OwnedPrivateLinkService {
    OwnedPrivateLinkService {
        id,
        owner_tags: names::private_link_service_tags(&identity.name, &identity.cluster_id),
        stamp: Stamp {
            tag: names::MANAGEMENT_CLUSTER_TAG.to_owned(),
            own: basis.settings.management_cluster.clone(),
            former: basis.inputs.adopt_from.clone(),
        },
        frontend: None,
        proven: false,
    }
}

/// The service, `proven` if it is known or shown to be the cluster's. A proof that cannot be read just now stops the
/// decision.
pub(super) fn prove(mut desired: OwnedPrivateLinkService, basis: Basis<'_>) -> Result<OwnedPrivateLinkService, Stop> {
    desired.proven = basis.facts.proven.contains(&desired.id);
    let Some(body) = basis.facts.read(Kind::PrivateLinkService, &desired.id)?.found() else {
        return Ok(desired);
    };
    if !desired.is_owned(body) && desired.stamp.on(body) != Stamped::Other {
        desired.proven = forwards_to_service(body, basis)?;
    }
    Ok(desired)
}

/// Whether it forwards only to the frontend of the custom resource's Service, which may be under deletion.
fn forwards_to_service(body: &Value, basis: Basis<'_>) -> Result<bool, Stop> {
    let [only] = frontends(body)[..] else {
        return Ok(false);
    };
    let name = only.rsplit('/').next().unwrap_or_default();
    let service = basis.inputs.service.as_ref();
    if service.is_some_and(|service| frontend::is_named_after(name, service)) {
        return Ok(true);
    }
    // Matching by name has failed. Matching by address, for other providers, needs the identity.
    if basis.settings.frontend_match == FrontendMatch::Name || basis.inputs.identity.is_err() {
        return Ok(false);
    }
    match frontend::find(basis) {
        Ok(frontend) => Ok(same(&frontend.id, only)),
        // What Azure refuses for good must not hold up a deletion for ever.
        Err(Stop::Blocked(problem)) if !problem.class.is_some_and(Class::is_transient) => Ok(false),
        Err(stop) => Err(stop),
    }
}
