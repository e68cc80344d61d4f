//! What the HO role does for a custom resource that goes: connections, Private Link Service, our NAT subnet. Pure.
//!
//! Works from names and from what was recorded; no other object has to exist still. What was recorded may have been
//! forged, so it counts only where name, scope and a fresh look agree.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::plan::{PATIENCE, Settings, Surroundings, disconnect, recorded_elsewhere};
use crate::api::markers::{CPO_FINALIZER, HO_INTENT};
use crate::api::{AzurePrivateLinkService, Reason};
use crate::azure::id::{ResourceId, location, same};
use crate::azure::link_service::LinkService;
use crate::azure::plan::{Step, Verb, Why, away};
use crate::azure::resource::{Kind, Progress, progress};
use crate::azure::subnet::{NatSubnet, used_by_others};
use crate::controllers::decision::{Decision, Problem};
use crate::controllers::facts::{Facts, Needs};
use crate::controllers::identity::Identity;
use crate::controllers::intent::{self, HoIntent};
use crate::names;

/// Steps away. When nothing of ours is left the custom resource may go.
pub fn teardown(
    cr: &AzurePrivateLinkService,
    around: &Surroundings,
    facts: &Facts,
    settings: &Settings,
    now: Timestamp,
) -> Result<Decision, Needs> {
    if let Some(wait) = other_role_at_work(cr, now) {
        let problem = Problem::new(Reason::Deleting, "the guest's side is being deleted first");
        return Ok(Decision::stuck(problem.again(wait)));
    }
    let recorded: Option<HoIntent> = intent::read(cr.annotations().get(HO_INTENT));
    let Some(identity) = identity(around, recorded.as_ref()) else {
        return Ok(Decision::default());
    };
    if around.identity.is_err() && around.claimed_elsewhere {
        let text = "the recorded cluster id or infra id belongs to another HostedCluster";
        return Ok(Decision::stuck(Problem::new(Reason::DuplicateIdentity, text)));
    }
    let frontend = recorded.as_ref().map(|r| r.frontend.clone()).unwrap_or_default();
    let want = match leaving(cr, &identity, frontend, settings) {
        Ok(Some(want)) => want,
        Ok(None) => return Ok(Decision::default()),
        Err(problem) => return Ok(Decision::stuck(problem)),
    };
    let mut decision = Decision::default();
    let seen = facts.look(Kind::LinkService, &want.id)?;
    let mut step = away(&want, seen);
    if step.verb == Verb::Delete && disconnect(seen, &mut decision) {
        (step.verb, step.why) = (Verb::Wait, Why::Needs("its connections to go"));
    }
    let service_gone = step.gone() || step.left();
    decision.steps.push(step);
    if let Some(id) = our_subnet(recorded.as_ref(), &identity, around, settings) {
        decision.steps.push(if service_gone {
            remove_subnet(id, facts)?
        } else {
            Step::needs(Kind::Subnet, id, "the Private Link Service to go")
        });
    }
    Ok(decision)
}

fn other_role_at_work(cr: &AzurePrivateLinkService, now: Timestamp) -> Option<Duration> {
    let since = cr.metadata.deletion_timestamp.as_ref()?.0;
    let waited = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    let stands = cr.finalizers().iter().any(|f| f == CPO_FINALIZER);
    PATIENCE.checked_sub(waited).filter(|rest| stands && !rest.is_zero())
}

/// What the cluster's own objects say; what was recorded only where they are gone.
fn identity(around: &Surroundings, recorded: Option<&HoIntent>) -> Option<Identity> {
    let recorded = || {
        recorded.map(|r| Identity {
            name: r.cluster.clone(),
            cluster_id: r.cluster_id.clone(),
            infra_id: r.infra_id.clone(),
        })
    };
    around.identity.as_ref().ok().cloned().or_else(recorded)
}

/// The service as far as it must be known to be deleted; none if its name could never have been used.
fn leaving(
    cr: &AzurePrivateLinkService,
    identity: &Identity,
    frontend: String,
    settings: &Settings,
) -> Result<Option<LinkService>, Problem> {
    let name = names::link_service(&cr.name_any(), &identity.cluster_id);
    let Ok(id) = names::in_group(
        Kind::LinkService,
        &settings.subscription,
        &settings.resource_group,
        &name,
    ) else {
        return Ok(None);
    };
    let id = recorded_elsewhere(cr, &id, settings)?.unwrap_or(id);
    Ok(Some(LinkService {
        nat_subnet: id.clone(),
        id,
        location: location(&cr.spec.location),
        marks: names::link_service_marks(&identity.name, &identity.cluster_id),
        frontend,
        subscriptions: BTreeSet::new(),
    }))
}

/// The NAT subnet that was recorded as ours, if this custom resource is the last that uses it.
fn our_subnet(
    recorded: Option<&HoIntent>,
    identity: &Identity,
    around: &Surroundings,
    settings: &Settings,
) -> Option<ResourceId> {
    let id = ResourceId::parse_as(Kind::Subnet, recorded?.nat_subnet.as_deref()?).ok()?;
    let named = same(id.name(), &names::nat_subnet(&identity.infra_id));
    (named && settings.allows_subnet(&id) && !around.sibling_stays).then_some(id)
}

/// Our NAT subnet goes, unless others came to use it.
fn remove_subnet(id: ResourceId, facts: &Facts) -> Result<Step, Needs> {
    let seen = facts.look(Kind::Subnet, &id)?;
    let step = away(&NatSubnet { id, prefix: None }, seen);
    let settled = seen.found().filter(|body| progress(body) == Progress::Settled);
    Ok(match settled.and_then(used_by_others) {
        Some(used) if step.verb == Verb::Delete => step.leave(used),
        _ => step,
    })
}

#[cfg(test)]
mod tests;
