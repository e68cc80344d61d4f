//! Whether the Private Link Service that stands under our name is this cluster's, by what it hangs on in Azure. Pure.
//!
//! Its tags tell most. Where they do not, because HyperShift's own operator made it, the frontend that it forwards to does: it is
//! that of the cluster's Service. That a frontend is gone proves nothing: Azure keeps one that a service forwards to, so whoever
//! reads that it is gone reads something old.

use serde_json::Value;

use super::frontend::{self, FrontendMatch, ServiceFacts};
use super::plan::{Settings, Surroundings};
use crate::api::AzurePrivateLinkService;
use crate::azure::id::{ResourceId, same};
use crate::azure::link_service::{OwnedLinkService, frontends};
use crate::azure::mark::{Stamp, Stamped};
use crate::azure::resource::{Kind, Owned};
use crate::controllers::facts::{Facts, Needs};
use crate::controllers::identity::Identity;
use crate::names;

/// The service with this id, if it is a cluster's; nothing is proven yet.
pub(super) fn owned(
    id: ResourceId,
    identity: &Identity,
    around: &Surroundings,
    settings: &Settings,
) -> OwnedLinkService {
    OwnedLinkService {
        id,
        marks: names::link_service_marks(&identity.name, &identity.cluster_id),
        stamp: Stamp {
            tag: names::MANAGEMENT_CLUSTER_TAG.to_owned(),
            own: settings.management_cluster.clone(),
            former: around.adopt_from.clone(),
        },
        frontend: None,
        proven: false,
    }
}

/// The same, with what proves it.
pub(super) fn prove(
    want: OwnedLinkService,
    cr: &AzurePrivateLinkService,
    around: &Surroundings,
    facts: &Facts,
    settings: &Settings,
) -> Result<OwnedLinkService, Needs> {
    let known = facts.proven.contains(&want.id);
    let mut want = OwnedLinkService { proven: known, ..want };
    let Some(body) = facts.look(Kind::LinkService, &want.id)?.found() else {
        return Ok(want);
    };
    if !want.ours(body) && want.stamp.on(body) != Stamped::Other {
        want.proven = forwards_to_service(body, cr, around, facts, settings)?;
    }
    Ok(want)
}

/// Whether it forwards to nothing but the frontend of the custom resource's Service, which may be going by now.
fn forwards_to_service(
    body: &Value,
    cr: &AzurePrivateLinkService,
    around: &Surroundings,
    facts: &Facts,
    settings: &Settings,
) -> Result<bool, Needs> {
    let [only] = frontends(body)[..] else {
        return Ok(false);
    };
    let name = only.rsplit('/').next().unwrap_or_default();
    let named = |service: &ServiceFacts| frontend::is_named_after(name, service);
    if around.service.as_ref().is_some_and(named) {
        return Ok(true);
    }
    // Another provider's names tell nothing.
    if settings.frontend_match == FrontendMatch::Name || around.identity.is_err() {
        return Ok(false);
    }
    let found = frontend::find(cr, around, facts, settings)?;
    Ok(found.is_ok_and(|frontend| same(&frontend.id, only)))
}
