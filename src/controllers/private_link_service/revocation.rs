//! Revoked subscriptions: an existing service lets in nobody whom the HostedCluster's owner has revoked, even if
//! nothing else can be done for the custom resource. Pure.

use kube::ResourceExt;

use super::ownership;
use super::plan::{PrivateLinkServiceInputs, Settings, recorded_elsewhere};
use crate::api::AzurePrivateLinkService;
use crate::api::markers::SERVICES;
use crate::azure::id::ResourceId;
use crate::azure::kinds::private_link_service::access::Narrowed;
use crate::azure::plan::{Step, Verb, Why, ensure_present};
use crate::azure::resource::Kind;
use crate::azure::scope::Scope;
use crate::controllers::decision::Decision;
use crate::controllers::facts::{Facts, Needs, together};
use crate::names;

/// Changes the decision if the service lets in too many: it then removes those first, and writes and records nothing
/// else. Does nothing while the cluster is paused.
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

/// Adds the removal to the decision of a teardown. Other deletions continue, because a refusal of this one write would
/// otherwise keep the whole service. Does nothing if the service itself is deleted.
pub(super) fn revoke_during_teardown(
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

/// Whether the service was read, and exists or may exist.
fn is_known(decision: &Decision) -> bool {
    let service = decision.step(Kind::PrivateLinkService);
    service.is_some_and(|step| step.found.is_some() || step.why.error().is_some())
}

/// Whether only a change from outside can lead to a write of the service.
fn is_stuck(decision: &Decision) -> bool {
    let subnet = decision.step(Kind::Subnet);
    let is_blocked = |step: &Step| step.left() || step.why.error().is_some();
    decision.problem.is_some() || subnet.is_some_and(is_blocked)
}

/// The ids that the service can have: first the usual one and the recorded one, second those in further groups that
/// this process manages, because whoever is revoked may have removed the record. Only HyperShift's two custom resources
/// have a service.
fn possible_ids(
    cr: &AzurePrivateLinkService,
    cluster_id: &str,
    settings: &Settings,
) -> (Vec<ResourceId>, Vec<ResourceId>) {
    let cr_name = cr.name_any();
    if !SERVICES.contains(&cr_name.as_str()) {
        return Default::default();
    }
    let name = names::link_service(&cr_name, cluster_id);
    let in_group =
        |subscription, group: &str| names::in_group(Kind::PrivateLinkService, subscription, group, &name).ok();
    let here = in_group(&settings.subscription, &settings.resource_group);
    let recorded = here
        .as_ref()
        .and_then(|here| recorded_elsewhere(cr, here, settings).ok()?);
    let first: Vec<ResourceId> = here.into_iter().chain(recorded).collect();
    let managed = settings.also_manage.iter().filter_map(|scope| match scope {
        Scope::Group(subscription, group) => in_group(subscription, group),
        _ => None,
    });
    let further = managed.filter(|id| !first.contains(id)).collect();
    (first, further)
}

/// One step for each id under which the service lets in too many, or cannot be read. The further ids are read only if
/// the service is not found under the first.
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
    let (first, further) = possible_ids(cr, &own.cluster_id, settings);
    let mut steps = together(first.iter().map(narrow))?;
    if !steps.iter().any(|step| step.found.is_some() && !step.left()) {
        // A failed read of these blocks nothing.
        let further = together(further.iter().map(narrow))?;
        steps.extend(further.into_iter().filter(Step::writes));
    }
    // An absent service is not made. One whose last operation failed is put only to remove somebody.
    let needed = |step: &Step| !(step.why == Why::Absent || step.left() || step.ready().is_some());
    steps.retain(|step| needed(step) && step.why != Why::Failed);
    Ok(steps)
}
