//! What the HO role does for a custom resource under deletion: connections, Private Link Service, own NAT subnet. Pure.
//!
//! It works from names and from the recorded intent; no other object has to exist any more. The intent may be forged,
//! so it counts only where name, scope and a fresh read agree.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::ownership;
use super::plan::{PrivateLinkServiceInputs, Settings, disconnect, recorded_elsewhere};
use super::revocation;
use super::subnet::Leftover;
use crate::api::markers::{CPO_FINALIZER, HO_INTENT, SERVICES};
use crate::api::{AzurePrivateLinkService, Reason, held_by};
use crate::azure::id::{ResourceId, same};
use crate::azure::kinds::private_link_service::{OwnedPrivateLinkService, nat_subnet};
use crate::azure::plan::{Step, Verb, Why, ensure_absent};
use crate::azure::resource::{Kind, Observed};
use crate::controllers::decision::Decision;
use crate::controllers::facts::{Facts, Needs};
use crate::controllers::identity::{DeletedCluster, Identity};
use crate::controllers::intent::{self, HoIntent};
use crate::hypershift::problem::Problem;
use crate::names;
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
    let decision = decide(cr, inputs, facts, settings, now)?;
    revocation::revoke_during_teardown(decision, cr, inputs, facts, settings)
}

fn decide(
    cr: &AzurePrivateLinkService,
    inputs: &PrivateLinkServiceInputs,
    facts: &Facts,
    settings: &Settings,
    now: Timestamp,
) -> Result<Decision, Needs> {
    // No condition is written either: the present refusal keeps the other role from what is not the cluster's.
    let Some(identity) = cluster_of(inputs) else {
        return Ok(Decision::default());
    };
    let waited = deleting_for(cr, now);
    if let Some(wait) = other_role_at_work(cr, waited) {
        let problem = Problem::new(Reason::Deleting, "the guest's side is being deleted first");
        return Ok(Decision::stuck(problem.requeue_after(wait)));
    }
    if never_made(cr) {
        return Ok(Decision::default());
    }
    let recorded: Option<HoIntent> = intent::read(cr.annotations().get(HO_INTENT));
    let mut recorded = recorded.unwrap_or_else(|| HoIntent::of(identity));
    let id = match service_to_delete(cr, identity, settings) {
        Ok(Some(id)) => id,
        Ok(None) => return Ok(Decision::default()),
        Err(problem) => return Ok(Decision::stuck(problem)),
    };
    let mut decision = Decision::default();
    let observed = facts.read(Kind::PrivateLinkService, &id)?;
    let desired = ownership::owned(id.clone(), identity, inputs, settings);
    let desired = ownership::prove(desired, cr, inputs, facts, settings)?;
    let step = delete_service(&desired, observed, &mut decision);
    let service_gone = step.gone() || step.left();
    let mut own_services = services(&id, identity);
    // A service that stays never releases its addresses.
    own_services.retain(|service| !step.left() || *service != id);
    let shown = shown_subnet(&step).or_else(|| inputs.shown_subnet.clone());
    decision.steps.push(step);
    let leftover = Leftover {
        identity,
        services: &own_services,
        made: recorded.nat_subnet_made,
        vouched: is_vouched(identity, inputs),
        shown: shown.as_ref(),
        given: &inputs.given_subnets,
        waited,
    };
    if inputs.sibling_stays {
        decision.shared = cr.spec.nat_subnet_id.is_none();
        return Ok(decision);
    }
    let balancer = balancer(cr).filter(|_| service_gone);
    let Some(subnet) = subnet_of(&recorded, shown.clone(), balancer, leftover, facts, settings)? else {
        decision.not_found = leftover.name().filter(|_| cr.spec.nat_subnet_id.is_none());
        return Ok(decision);
    };
    if service_gone && inputs.sibling_deleting {
        decision.requeue = Some(Requeue::new(SIBLING_POLL, Requeue::POLL));
        let step = Step::needs(Kind::Subnet, subnet, "the cluster's other custom resource to go");
        decision.steps.push(step);
    } else if service_gone {
        decision.steps.push(leftover.remove(subnet, facts)?);
    } else {
        // Only an existing service shows which subnet it uses.
        (recorded.link_service, recorded.nat_subnet) = (Some(id.to_string()), Some(subnet.to_string()));
        decision.intent = Some(intent::write(&recorded));
        decision
            .steps
            .push(Step::needs(Kind::Subnet, subnet, "the Private Link Service to go"));
    }
    Ok(decision)
}

/// Whether the HostedCluster has the infra id, whatever was recorded.
fn is_vouched(identity: &Identity, inputs: &PrivateLinkServiceInputs) -> bool {
    let has_it = |own: &Identity| same(&own.infra_id, &identity.infra_id);
    inputs.identity.is_ok() || inputs.own.as_ref().is_some_and(has_it)
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

/// The step that deletes the service. Its connections are deleted first.
fn delete_service(desired: &OwnedPrivateLinkService, observed: &Observed, decision: &mut Decision) -> Step {
    let mut step = ensure_absent(desired, observed);
    if step.verb == Verb::Delete && disconnect(observed, decision) {
        (step.verb, step.why) = (Verb::Wait, Why::Needs("its connections to go"));
    }
    step
}

/// How often a sibling that is deleted too is checked.
const SIBLING_POLL: Duration = Duration::from_secs(2);

/// For how long the custom resource has been under deletion.
fn deleting_for(cr: &AzurePrivateLinkService, now: Timestamp) -> Duration {
    let since = cr.metadata.deletion_timestamp.as_ref().map_or(now, |time| time.0);
    Duration::try_from(now.duration_since(since)).unwrap_or_default()
}

/// While the other role's finalizer stands, deletion waits for it this long.
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
fn service_to_delete(
    cr: &AzurePrivateLinkService,
    identity: &Identity,
    settings: &Settings,
) -> Result<Option<ResourceId>, Problem> {
    let name = names::link_service(&cr.name_any(), &identity.cluster_id);
    let Ok(id) = names::in_group(
        Kind::PrivateLinkService,
        &settings.subscription,
        &settings.resource_group,
        &name,
    ) else {
        return Ok(None);
    };
    Ok(Some(recorded_elsewhere(cr, &id, settings)?.unwrap_or(id)))
}

/// The NAT subnet of the cluster's name: as recorded, as the service showed it, or in the load balancer's network.
fn subnet_of(
    recorded: &HoIntent,
    shown: Option<ResourceId>,
    balancer: Option<ResourceId>,
    leftover: Leftover<'_>,
    facts: &Facts,
    settings: &Settings,
) -> Result<Option<ResourceId>, Needs> {
    let recorded = recorded.nat_subnet.as_deref();
    let recorded = recorded.and_then(|id| ResourceId::parse_as(Kind::Subnet, id).ok());
    match recorded.or(shown).filter(|id| leftover.may_be(id, settings)) {
        Some(known) => Ok(Some(known)),
        None => balancer.map_or(Ok(None), |id| leftover.beside(&id, facts, settings)),
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
