//! What the HO role does for a custom resource under deletion: connections, Private Link Service, own NAT subnet. Pure.
//!
//! It works from names and from the recorded intent; no other object has to exist any more. The intent may be forged,
//! so it counts only where name, scope and a fresh read agree.

mod leftover;

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use self::leftover::Leftover;
use super::basis::{Basis, Stop};
use super::plan::{PrivateLinkServiceInputs, disconnect};
use super::settings::Settings;
use super::{ownership, revocation, service_id};
use crate::api::markers::{CPO_FINALIZER, HO_INTENT, SERVICES};
use crate::api::{AzurePrivateLinkService, Reason, held_by};
use crate::azure::arm::id::{ResourceId, same};
use crate::azure::cloud::Observed;
use crate::azure::kinds::Kind;
use crate::azure::kinds::private_link_service::nat_subnet;
use crate::azure::plan::{Step, Why};
use crate::controllers::azure::{Decision, Facts, Needs};
use crate::controllers::facts::together;
use crate::engine::plan::{Verb, ensure_absent};
use crate::hypershift::azure::intent::HoIntent;
use crate::hypershift::azure::names;
use crate::hypershift::identity::{DeletedCluster, Identity};
use crate::hypershift::intent;
use crate::hypershift::problem::Problem;
use crate::runtime::requeue::Requeue;

/// The steps that delete what the custom resource has. It is released when nothing of the cluster is left. A service
/// that stays until then lets in nobody who is revoked.
pub fn teardown(
    cr: &AzurePrivateLinkService,
    inputs: &PrivateLinkServiceInputs,
    facts: &Facts,
    settings: &Settings,
    now: Timestamp,
) -> Result<Decision, Needs> {
    let basis = Basis {
        cr,
        inputs,
        facts,
        settings: &settings.to_take_away(),
    };
    let decision = decide(basis, now).or_else(Stop::stuck)?;
    revocation::revoke_during_teardown(decision, basis)
}

fn decide(basis: Basis<'_>, now: Timestamp) -> Result<Decision, Stop> {
    // No condition is written either: the present refusal keeps the other role from what is not the cluster's.
    let Some(identity) = cluster_of(basis.inputs) else {
        return Ok(Decision::default());
    };
    let waited = deleting_for(basis.cr, now);
    if let Some(wait) = other_role_at_work(basis.cr, waited) {
        let problem = Problem::new(Reason::Deleting, "the guest's side is being deleted first");
        return Err(problem.requeue_after(wait).into());
    }
    if never_made(basis.cr) {
        return Ok(Decision::default());
    }
    let Some(id) = service_to_delete(basis, identity)? else {
        return Ok(Decision::default());
    };
    let mut decision = Decision::default();
    let service = delete_service(basis, identity, &id, &mut decision)?;
    let mut services = services(&id, identity);
    // A service that stays never releases its addresses.
    services.retain(|possible| !service.left() || *possible != id);
    let shown = shown_subnet(&service).or_else(|| basis.inputs.shown_subnet.clone());
    let recorded = intent::read(basis.cr.annotations().get(HO_INTENT)).unwrap_or_else(|| HoIntent::of(identity));
    let leftover = Leftover {
        identity,
        services: &services,
        recorded: &recorded,
        vouched: is_vouched(identity, basis.inputs),
        shown: shown.as_ref(),
        given: &basis.inputs.given_subnets,
        waited,
    };
    let remaining = Some(&id).filter(|_| !service.gone() && !service.left());
    decision.steps.push(service);
    add_subnet_step(basis, leftover, remaining, &mut decision)?;
    Ok(decision)
}

/// Adds the step for the NAT subnet. It waits for the service that is `remaining`.
fn add_subnet_step(
    basis: Basis<'_>,
    leftover: Leftover<'_>,
    remaining: Option<&ResourceId>,
    decision: &mut Decision,
) -> Result<(), Needs> {
    let was_given = basis.cr.spec.nat_subnet_id.is_some();
    if basis.inputs.sibling_stays {
        decision.shared = !was_given;
        return Ok(());
    }
    let balancer = balancer(basis.cr).filter(|_| remaining.is_none());
    let Some(subnet) = leftover.find(balancer.as_ref(), basis)? else {
        decision.not_found = leftover.name().filter(|_| !was_given);
        return Ok(());
    };
    let step = if let Some(service) = remaining {
        // Only an existing service shows which subnet it uses.
        let recorded = HoIntent {
            link_service: Some(service.to_string()),
            nat_subnet: Some(subnet.to_string()),
            ..leftover.recorded.clone()
        };
        decision.intent = Some(intent::write(&recorded));
        Step::needs(Kind::Subnet, subnet, "the Private Link Service to go")
    } else if basis.inputs.sibling_deleting {
        decision.requeue = Some(Requeue::new(SIBLING_POLL, Requeue::POLL));
        Step::needs(Kind::Subnet, subnet, "the cluster's other custom resource to go")
    } else {
        leftover.remove(subnet, basis.facts)?
    };
    decision.steps.push(step);
    Ok(())
}

/// Whether the HostedCluster has the infra id, whatever was recorded.
fn is_vouched(identity: &Identity, inputs: &PrivateLinkServiceInputs) -> bool {
    let own = inputs.own.as_ref();
    inputs.identity.is_ok() || own.is_some_and(|own| same(&own.infra_id, &identity.infra_id))
}

/// The NAT subnet that an existing, owned service uses, by the step for it.
pub(super) fn shown_subnet(service: &Step) -> Option<ResourceId> {
    let found = service.found.as_ref().filter(|_| !service.left());
    found.and_then(nat_subnet)
}

/// The cluster whose resources are deleted; none if nothing is known to be its own.
fn cluster_of(inputs: &PrivateLinkServiceInputs) -> Option<&Identity> {
    match (&inputs.identity, &inputs.deleted_cluster) {
        (Ok(identity), _) | (Err(_), DeletedCluster::Of(identity)) => Some(identity),
        (Err(_), DeletedCluster::OfAnother | DeletedCluster::Unknown) => None,
    }
}

/// Whether nothing was ever made for it: it has none of the names that get a load balancer, and nothing was recorded.
fn never_made(cr: &AzurePrivateLinkService) -> bool {
    let shown = cr
        .status
        .as_ref()
        .is_some_and(|status| status.private_link_service_id.is_some() || status.internal_load_balancer_id.is_some());
    !SERVICES.contains(&cr.name_any().as_str()) && !cr.annotations().contains_key(HO_INTENT) && !shown
}

/// The step that deletes the service. Adds steps that delete its connections, which are deleted first.
fn delete_service(
    basis: Basis<'_>,
    identity: &Identity,
    id: &ResourceId,
    decision: &mut Decision,
) -> Result<Step, Stop> {
    let observed = basis.facts.read(Kind::PrivateLinkService, id)?;
    let owned = ownership::owned(id.clone(), identity, basis);
    let mut step = ensure_absent(&ownership::prove(owned, basis)?, observed);
    if step.verb == Verb::Delete && disconnect(observed, decision) {
        step.verb = Verb::Wait;
        step.why = Why::Needs("its connections to go");
    }
    Ok(step)
}

/// The time between two checks whether the cluster's other custom resource, which is being deleted too, is gone. The
/// NAT subnet goes with the last of them.
const SIBLING_POLL: Duration = Duration::from_secs(2);

/// For how long the custom resource has been under deletion.
fn deleting_for(cr: &AzurePrivateLinkService, now: Timestamp) -> Duration {
    let since = cr.metadata.deletion_timestamp.as_ref().map_or(now, |time| time.0);
    Duration::try_from(now.duration_since(since)).unwrap_or_default()
}

/// The longest that role `ho` waits with a deletion while the finalizer of role `cpo` stands.
///
/// Rule: W17 in `docs/compatibility.md`.
const GUEST_FIRST: Duration = Duration::from_secs(300);

fn other_role_at_work(cr: &AzurePrivateLinkService, waited: Duration) -> Option<Duration> {
    let is_held = held_by(cr, CPO_FINALIZER);
    GUEST_FIRST
        .checked_sub(waited)
        .filter(|remaining| is_held && !remaining.is_zero())
}

/// The services that the cluster can have had: that of this custom resource, and its siblings' in the same group.
fn services(own: &ResourceId, identity: &Identity) -> Vec<ResourceId> {
    let beside = SERVICES.into_iter().filter_map(|cr| {
        let name = names::link_service(cr, &identity.cluster_id);
        names::in_group(Kind::PrivateLinkService, own.subscription(), own.group(), &name).ok()
    });
    std::iter::once(own.clone()).chain(beside).collect()
}

/// The id of the service to delete; none if its name could never have been used.
fn service_to_delete(basis: Basis<'_>, identity: &Identity) -> Result<Option<ResourceId>, Stop> {
    let Ok(usual) = service_id::usual(basis.cr, &identity.cluster_id, basis.settings) else {
        return Ok(None);
    };
    let elsewhere = service_id::recorded_elsewhere(basis.cr, &usual, basis.settings)?;
    let own: Vec<ResourceId> = elsewhere.into_iter().chain([usual.clone()]).collect();
    if let Some(id) = first_there(basis, &own, |observed| *observed != Observed::Absent)? {
        return Ok(Some(id));
    }
    // Whoever may write the custom resource may have removed or forged the record, and the cluster may have been moved
    // since. A scope that cannot be read for long, or not at all, blocks no deletion in another.
    let others = service_id::in_other_scopes(basis.cr, &identity.cluster_id, basis.settings);
    if let Some(id) = first_there(basis, &others, is_unread_for_now)? {
        return Ok(Some(id));
    }
    // Each in turn is proven to be gone.
    let unproven = own.iter().find(|id| !basis.facts.surely_gone.contains(*id));
    Ok(unproven.or(own.first()).cloned())
}

/// The first service of these that is found, or else that is `likely` there.
fn first_there(
    basis: Basis<'_>,
    ids: &[ResourceId],
    likely: fn(&Observed) -> bool,
) -> Result<Option<ResourceId>, Needs> {
    let observed = together(ids.iter().map(|id| basis.facts.read(Kind::PrivateLinkService, id)))?;
    let first = |is_there: fn(&Observed) -> bool| observed.iter().position(|observed| is_there(observed));
    let found = first(|observed| observed.found().is_some()).or_else(|| first(likely));
    Ok(found.map(|at| ids[at].clone()))
}

fn is_unread_for_now(observed: &Observed) -> bool {
    match observed {
        Observed::ReadFailed(error) => error.class.is_transient() && !error.lasting,
        _ => false,
    }
}

/// The load balancer that the status shows, where the NAT subnet was not given.
fn balancer(cr: &AzurePrivateLinkService) -> Option<ResourceId> {
    let shown = cr.status.as_ref()?.internal_load_balancer_id.as_deref();
    let shown = shown.filter(|_| cr.spec.nat_subnet_id.is_none())?;
    ResourceId::parse_as(Kind::LoadBalancer, shown).ok()
}

#[cfg(test)]
mod tests;
