//! Whom the HostedCluster no longer lets connect: a service that stands lets in nobody whom its owner has revoked, whatever
//! else is to be done for the custom resource, or cannot be done. Pure.

use kube::ResourceExt;

use super::ownership;
use super::plan::{PrivateLinkServiceInputs, Settings, recorded_elsewhere};
use crate::api::AzurePrivateLinkService;
use crate::api::markers::SERVICES;
use crate::azure::id::ResourceId;
use crate::azure::plan::{Step, Verb, Why, ensure_present};
use crate::azure::private_link_service::access::Narrowed;
use crate::azure::resource::Kind;
use crate::azure::scope::Scope;
use crate::controllers::decision::Decision;
use crate::controllers::facts::{Facts, Needs, together};
use crate::names;

/// The same decision, unless the service lets in too many: then they are taken off first, and nothing else is written or has to be
/// recorded before. Not while the cluster is paused.
pub(super) fn revoke(
    mut decision: Decision,
    cr: &AzurePrivateLinkService,
    inputs: &PrivateLinkServiceInputs,
    facts: &Facts,
    settings: &Settings,
) -> Result<Decision, Needs> {
    let stuck = is_stuck(&decision);
    if inputs.paused.is_some() || !(stuck || is_known(&decision)) {
        return Ok(decision);
    }
    let steps = steps(cr, inputs, facts, settings)?;
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

/// The same while the cluster goes: what is deleted besides goes on, or a refusal of this one write would keep the whole service. Not
/// of a service that is deleted itself.
pub(super) fn revoke_meanwhile(
    decision: Decision,
    cr: &AzurePrivateLinkService,
    inputs: &PrivateLinkServiceInputs,
    facts: &Facts,
    settings: &Settings,
) -> Result<Decision, Needs> {
    if decision.problem.is_some() {
        return revoke(decision, cr, inputs, facts, settings);
    }
    let is_deleted = |step: &Step| step.kind == Kind::PrivateLinkService && step.verb == Verb::Delete;
    if inputs.paused.is_some() || !is_known(&decision) || decision.steps.iter().any(is_deleted) {
        return Ok(decision);
    }
    let mut decision = decision;
    let narrowing = steps(cr, inputs, facts, settings)?.into_iter().filter(Step::writes);
    for step in narrowing {
        decision.steps.retain(|other| other.id != step.id);
        decision.steps.push(step);
    }
    Ok(decision)
}

/// Whether the service was looked at, and is there or may be.
fn is_known(decision: &Decision) -> bool {
    let service = decision.step(Kind::PrivateLinkService);
    service.is_some_and(|step| step.found.is_some() || step.why.error().is_some())
}

/// Whether nothing but a change from outside gets it to write the service.
fn is_stuck(decision: &Decision) -> bool {
    let subnet = decision.step(Kind::Subnet);
    let subnet_is = |step: &Step| step.left() || step.why.error().is_some();
    decision.problem.is_some() || subnet.is_some_and(subnet_is)
}

/// Where the service stands as a rule, here or where it was recorded; and the further groups that this process manages, for whoever is
/// to be kept from connecting may have taken the record off. No other custom resource than HyperShift's two has a service.
fn places(cr: &AzurePrivateLinkService, cluster_id: &str, settings: &Settings) -> (Vec<ResourceId>, Vec<ResourceId>) {
    let of = cr.name_any();
    if !SERVICES.contains(&of.as_str()) {
        return Default::default();
    }
    let name = names::link_service(&of, cluster_id);
    let in_group =
        |subscription, group: &str| names::in_group(Kind::PrivateLinkService, subscription, group, &name).ok();
    let here = in_group(&settings.subscription, &settings.resource_group);
    let recorded = here
        .as_ref()
        .and_then(|here| recorded_elsewhere(cr, here, settings).ok()?);
    let first: Vec<ResourceId> = here.into_iter().chain(recorded).collect();
    let also = settings.also_manage.iter().filter_map(|scope| match scope {
        Scope::Group(subscription, group) => in_group(subscription, group),
        _ => None,
    });
    let further = also.filter(|id| !first.contains(id)).collect();
    (first, further)
}

/// One step for each place in which the service lets in too many, or may and cannot be read. Where it is found nobody looks for another.
fn steps(
    cr: &AzurePrivateLinkService,
    inputs: &PrivateLinkServiceInputs,
    facts: &Facts,
    settings: &Settings,
) -> Result<Vec<Step>, Needs> {
    let (Some(own), Some(allowed)) = (&inputs.own, inputs.connecting.allowed()) else {
        return Ok(Vec::new());
    };
    let narrow = |id: &ResourceId| {
        let owned = ownership::owned(id.clone(), own, inputs, settings);
        let owned = ownership::prove(owned, cr, inputs, facts, settings)?;
        let desired = Narrowed {
            owned,
            allowed: allowed.clone(),
        };
        Ok(ensure_present(&desired, facts.read(Kind::PrivateLinkService, id)?))
    };
    let (first, further) = places(cr, &own.cluster_id, settings);
    let mut steps = together(first.iter().map(narrow))?;
    if !steps.iter().any(|step| step.found.is_some() && !step.left()) {
        // What cannot be read there holds up nothing.
        let further = together(further.iter().map(narrow))?;
        steps.extend(further.into_iter().filter(Step::writes));
    }
    // One that is absent is not made, and one that failed is put for this alone.
    let needed = |step: &Step| !(step.why == Why::Absent || step.left() || step.ready().is_some());
    steps.retain(|step| needed(step) && step.why != Why::Failed);
    Ok(steps)
}
