//! Whom the HostedCluster no longer lets connect, of a custom resource that is stuck: nothing else is known or allowed then, but
//! a service that stands lets nobody in whom its owner has revoked. Pure.

use super::ownership;
use super::plan::{Settings, Surroundings, recorded_elsewhere};
use crate::api::AzurePrivateLinkService;
use crate::azure::link_service::access::Narrowed;
use crate::azure::plan::{Step, Why, toward};
use crate::azure::resource::{Kind, Owned, Seen};
use crate::controllers::decision::Decision;
use crate::controllers::facts::{Facts, Needs};
use crate::names;

/// The same decision; one that is stuck, and not because the cluster is paused, takes those off that may connect no longer.
pub(super) fn revoke(
    mut decision: Decision,
    cr: &AzurePrivateLinkService,
    around: &Surroundings,
    facts: &Facts,
    settings: &Settings,
) -> Result<Decision, Needs> {
    if decision.paused || !is_stuck(&decision) {
        return Ok(decision);
    }
    for step in steps(cr, around, facts, settings)? {
        decision.steps.retain(|other| other.id != step.id);
        decision.steps.push(step);
    }
    Ok(decision)
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
