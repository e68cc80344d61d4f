//! Revoked subscriptions: an existing service lets in nobody whom the HostedCluster's owner has revoked, even if
//! nothing else can be done for the custom resource. Pure.

use std::collections::BTreeSet;

use kube::ResourceExt;

use super::basis::{Basis, Stop};
use super::ownership;
use super::service_id;
use super::settings::Settings;
use crate::api::AzurePrivateLinkService;
use crate::api::markers::SERVICES;
use crate::azure::arm::id::{ResourceId, SubscriptionId};
use crate::azure::arm::scope::AzureScope;
use crate::azure::kinds::Kind;
use crate::azure::kinds::private_link_service::narrowed::Narrowed;
use crate::azure::plan::{Step, Why};
use crate::controllers::azure::{Decision, Needs};
use crate::controllers::facts::together;
use crate::engine::plan::{Verb, ensure_present};
use crate::hypershift::azure::names;
use crate::hypershift::identity::Identity;

/// Changes the decision if the service lets in too many: it then removes those first, and writes and records nothing
/// else. Does nothing while the cluster is paused.
pub(super) fn revoke(mut decision: Decision, basis: Basis<'_>) -> Result<Decision, Needs> {
    let stuck = is_stuck(&decision);
    if basis.inputs.paused.is_some() || !(stuck || is_known(&decision)) {
        return Ok(decision);
    }
    let steps = steps(basis)?;
    let narrows = steps.iter().any(Step::writes);
    if narrows {
        decision.steps.retain(|other| !other.writes());
        decision.intent = None;
    }
    if narrows || stuck {
        decision
            .steps
            .retain(|other| steps.iter().all(|step| other.key != step.key));
        decision.steps.extend(steps);
    }
    Ok(decision)
}

/// Adds the removal to the decision of a teardown. Other deletions continue, because a refusal of this one write would
/// otherwise keep the whole service. Does nothing if the service itself is deleted.
pub(super) fn revoke_during_teardown(mut decision: Decision, basis: Basis<'_>) -> Result<Decision, Needs> {
    if decision.problem.is_some() {
        return revoke(decision, basis);
    }
    if basis.inputs.paused.is_some() || !is_known(&decision) || decision.steps.iter().any(deletes_service) {
        return Ok(decision);
    }
    for step in steps(basis)?.into_iter().filter(Step::writes) {
        decision.steps.retain(|other| other.key != step.key);
        decision.steps.push(step);
    }
    Ok(decision)
}

fn deletes_service(step: &Step) -> bool {
    step.kind == Kind::PrivateLinkService && step.verb == Verb::Delete
}

/// Whether the service was read, and exists or may exist.
fn is_known(decision: &Decision) -> bool {
    let service = decision.step(Kind::PrivateLinkService);
    service.is_some_and(|step| step.found.is_some() || step.why.error().is_some())
}

/// Whether only a change from outside can lead to a write of the service.
fn is_stuck(decision: &Decision) -> bool {
    let subnet = decision.step(Kind::Subnet);
    decision.problem.is_some() || subnet.is_some_and(|step| step.left() || step.why.error().is_some())
}

/// The usual id of the service, and the recorded one. Only HyperShift's two custom resources have a service.
fn likely_ids(cr: &AzurePrivateLinkService, cluster_id: &str, settings: &Settings) -> Vec<ResourceId> {
    if !SERVICES.contains(&cr.name_any().as_str()) {
        return Vec::new();
    }
    let Ok(usual) = service_id::usual(cr, cluster_id, settings) else {
        return Vec::new();
    };
    let recorded = service_id::recorded_elsewhere(cr, &usual, settings).unwrap_or_default();
    std::iter::once(usual).chain(recorded).collect()
}

/// The ids that the service can have in further groups that this process manages, because whoever is revoked may have
/// removed the record.
fn further_ids(cr: &AzurePrivateLinkService, cluster_id: &str, settings: &Settings) -> Vec<ResourceId> {
    let cr_name = cr.name_any();
    if !SERVICES.contains(&cr_name.as_str()) {
        return Vec::new();
    }
    let name = names::link_service(&cr_name, cluster_id);
    let managed = settings.also_manage.iter().filter_map(|scope| match scope {
        AzureScope::Group(subscription, group) => {
            names::in_group(Kind::PrivateLinkService, subscription, group, &name).ok()
        }
        _ => None,
    });
    managed.collect()
}

/// One step for each id under which the service lets in too many, or cannot be read. The further ids are read only if
/// the service is not found under the likely ones.
fn steps(basis: Basis<'_>) -> Result<Vec<Step>, Needs> {
    let (Some(own), Some(allowed)) = (&basis.inputs.own, basis.inputs.connecting.allowed()) else {
        return Ok(Vec::new());
    };
    let likely = likely_ids(basis.cr, &own.cluster_id, basis.settings);
    let mut steps = together(likely.iter().map(|id| narrow(id, own, &allowed, basis)))?;
    if !steps.iter().any(|step| step.found.is_some() && !step.left()) {
        let mut further = further_ids(basis.cr, &own.cluster_id, basis.settings);
        further.retain(|id| !likely.contains(id));
        let further = together(further.iter().map(|id| narrow(id, own, &allowed, basis)))?;
        // A failed read of these blocks nothing.
        steps.extend(further.into_iter().filter(Step::writes));
    }
    steps.retain(is_needed);
    Ok(steps)
}

/// The step that lets nobody but the `allowed` ones use the service with this id.
fn narrow(
    id: &ResourceId,
    own: &Identity,
    allowed: &BTreeSet<SubscriptionId>,
    basis: Basis<'_>,
) -> Result<Step, Needs> {
    let owned = match ownership::prove(ownership::owned(id.clone(), own, basis), basis) {
        Ok(owned) => owned,
        // Not proven, so it is left alone until the proof can be read.
        Err(Stop::Blocked(_)) => ownership::owned(id.clone(), own, basis),
        Err(Stop::Needs(needs)) => return Err(needs),
    };
    let desired = Narrowed {
        owned,
        allowed: allowed.clone(),
    };
    Ok(ensure_present(
        &desired,
        basis.facts.read(Kind::PrivateLinkService, id)?,
    ))
}

/// Whether a step has something to do. An absent service is not made. One whose last operation failed is put only to
/// remove somebody.
fn is_needed(step: &Step) -> bool {
    !step.left() && step.ready().is_none() && !matches!(step.why, Why::Absent | Why::Failed)
}
