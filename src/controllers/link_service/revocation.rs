//! Whom the HostedCluster no longer lets connect: a service that stands lets in nobody whom its owner has revoked, whatever
//! else is to be done for the custom resource, or cannot be done. Pure.

use std::collections::HashSet;

use kube::ResourceExt;

use super::ownership;
use super::plan::{Settings, Surroundings, recorded_elsewhere};
use crate::api::AzurePrivateLinkService;
use crate::api::markers::SERVICES;
use crate::azure::id::ResourceId;
use crate::azure::link_service::access::Narrowed;
use crate::azure::plan::{Step, Why, toward};
use crate::azure::resource::{Kind, Owned, Seen};
use crate::azure::scope::Scope;
use crate::controllers::decision::Decision;
use crate::controllers::facts::{Facts, Needs};
use crate::names;

/// The same decision, unless the service lets in too many: then they are taken off first, and nothing else is written or has to be
/// recorded before. Not while the cluster is paused.
pub(super) fn revoke(
    mut decision: Decision,
    cr: &AzurePrivateLinkService,
    around: &Surroundings,
    facts: &Facts,
    settings: &Settings,
) -> Result<Decision, Needs> {
    let stuck = is_stuck(&decision);
    if around.paused.is_some() || !(stuck || is_known(&decision)) {
        return Ok(decision);
    }
    let steps = steps(cr, around, facts, settings)?;
    let narrows = steps.iter().any(Step::writes);
    if narrows {
        decision.steps.retain(|other| !other.writes());
        decision.intent = None;
    }
    if narrows || stuck {
        decision
            .steps
            .retain(|other| steps.iter().all(|step| other.id != step.id));
        decision.steps.extend(steps);
    }
    Ok(decision)
}

/// Whether the service was looked at, and is there or may be.
fn is_known(decision: &Decision) -> bool {
    let service = decision.step(Kind::LinkService);
    service.is_some_and(|step| step.found.is_some() || step.why.error().is_some())
}

/// Whether nothing but a change from outside gets it to write the service.
fn is_stuck(decision: &Decision) -> bool {
    let subnet = decision.step(Kind::Subnet);
    let subnet_is = |step: &Step| step.left() || step.why.error().is_some();
    decision.problem.is_some() || subnet.is_some_and(subnet_is)
}

/// Where the service may stand: here, or in another group that this process manages, whatever is recorded: whoever is to be
/// kept from connecting may have taken that off. No other custom resource than HyperShift's two has a service.
fn places(cr: &AzurePrivateLinkService, cluster_id: &str, settings: &Settings) -> Vec<ResourceId> {
    let of = cr.name_any();
    if !SERVICES.contains(&of.as_str()) {
        return Vec::new();
    }
    let name = names::link_service(&of, cluster_id);
    let here = (&settings.subscription, settings.resource_group.as_str());
    let also = settings.also_manage.iter().filter_map(|scope| match scope {
        Scope::Group(subscription, group) => Some((subscription, group.as_str())),
        _ => None,
    });
    let ids = std::iter::once(here).chain(also);
    let ids =
        ids.filter_map(|(subscription, group)| names::in_group(Kind::LinkService, subscription, group, &name).ok());
    let mut places: Vec<ResourceId> = ids.collect();
    let recorded = places
        .first()
        .and_then(|here| recorded_elsewhere(cr, here, settings).ok()?);
    places.extend(recorded);
    let mut known = HashSet::new();
    places.retain(|id| known.insert(id.clone()));
    places
}

/// One step for each place in which the service may stand and lets in too many, or cannot be read.
fn steps(
    cr: &AzurePrivateLinkService,
    around: &Surroundings,
    facts: &Facts,
    settings: &Settings,
) -> Result<Vec<Step>, Needs> {
    let (Some(own), Some(allowed)) = (&around.own, around.connecting.allowed()) else {
        return Ok(Vec::new());
    };
    let places = places(cr, &own.cluster_id, settings);
    let looks: Vec<_> = places.iter().map(|id| (Kind::LinkService, id)).collect();
    facts.looks(&looks)?;
    let mut steps = Vec::new();
    for id in places {
        let owned = ownership::owned(id, own, around, settings);
        let owned = ownership::prove(owned, cr, around, facts, settings)?;
        let want = Narrowed {
            owned,
            allowed: allowed.clone(),
        };
        let seen = facts.look(Kind::LinkService, want.id())?;
        let step = toward(&want, seen);
        let nothing_to_do = *seen == Seen::Absent || step.left() || step.settled().is_some();
        if !nothing_to_do && step.why != Why::Failed {
            steps.push(step);
        }
    }
    Ok(steps)
}
