//! Whom the HostedCluster no longer lets connect: a service that stands lets in nobody whom its owner has revoked, whatever
//! else is to be done for the custom resource, or cannot be done. Pure.

use super::ownership;
use super::plan::{Settings, Surroundings, recorded_elsewhere};
use crate::api::AzurePrivateLinkService;
use crate::azure::link_service::access::Narrowed;
use crate::azure::plan::{Step, Why, toward};
use crate::azure::resource::{Kind, Owned, Seen};
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
    let name = names::link_service(&cr.metadata.name.clone().unwrap_or_default(), &own.cluster_id);
    let (subscription, group) = (&settings.subscription, &settings.resource_group);
    let Ok(here) = names::in_group(Kind::LinkService, subscription, group, &name) else {
        return Ok(Vec::new());
    };
    let elsewhere = recorded_elsewhere(cr, &here, settings).ok().flatten();
    let places: Vec<_> = std::iter::once(here).chain(elsewhere).collect();
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
