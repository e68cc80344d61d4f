//! What the HO role does for an AWSEndpointService under deletion: connections, then the endpoint service. Pure.
//!
//! It works from the Service, the recorded intent, the spec and the list of the account alike. All but the Service and
//! the list may be forged, so that a service is deleted only if the Service vouches for its load balancer, or its tag
//! names the cluster.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::plan::{Basis, MOST_FORMER};
use super::service;
use crate::api::markers::aws::{CPO_FINALIZER, SERVICES};
use crate::api::markers::{CPO_INTENT, HO_INTENT};
use crate::api::{AWSEndpointService, Reason, held_by};
use crate::controllers::aws::lists::ServicesOf;
use crate::controllers::aws::{Decision, Needs, Step};
use crate::hypershift::aws::intent::HoIntent;
use crate::hypershift::aws::load_balancer_name::of_host_name;
use crate::hypershift::identity::{DeletedCluster, Identity};
use crate::hypershift::intent;
use crate::hypershift::names;
use crate::hypershift::problem::Problem;

/// The longest that role `ho` waits with a deletion while role `cpo` is at work.
///
/// Rule: X9 in `docs/compatibility.md`.
const GUEST_FIRST: Duration = Duration::from_secs(300);

/// The steps that delete what the custom resource has. It is released when nothing of it is left.
pub(super) fn teardown(basis: Basis<'_>, now: Timestamp) -> Result<Decision, Needs> {
    // No condition is written either: the present refusal keeps the other role from what is not the cluster's.
    let Some(identity) = cluster_of(basis) else {
        return Ok(Decision::default());
    };
    if let Some(wait) = other_role_at_work(basis.cr, now) {
        let problem = Problem::new(Reason::Deleting, "the guest's side is being deleted first");
        return Ok(Decision::stuck(problem.requeue_after(wait)));
    }
    let mut decision = Decision::default();
    let named = load_balancers(basis);
    for load_balancer in &named {
        let step = service::remove(basis, identity, load_balancer, &mut decision)?;
        decision.steps.push(step);
    }
    add_unnamed(basis, identity, &named, &mut decision)?;
    Ok(decision)
}

/// Adds the steps for the cluster's endpoint services that nothing names. They are searched once all that is named is
/// surely gone, because the custom resource is released then, and whoever may write it may have named something else.
fn add_unnamed(
    basis: Basis<'_>,
    identity: &Identity,
    named: &BTreeSet<String>,
    decision: &mut Decision,
) -> Result<(), Needs> {
    let is_over = |step: &Step| step.left() || basis.facts.surely_gone.contains(&step.key);
    // Under a name that no Service of HyperShift has, no endpoint service was ever made.
    if !SERVICES.contains(&basis.cr.name_any().as_str()) || !decision.steps.iter().all(is_over) {
        return Ok(());
    }
    let services = ServicesOf {
        scope: basis.settings.account.clone(),
        cluster_id: identity.cluster_id.clone(),
    };
    let rows = match basis.facts.endpoint_services(&services)? {
        Ok(rows) => rows,
        Err(error) => {
            let problem = Problem::unread(Reason::DeletionFailed, "the endpoint services", error);
            let problem = problem.requeue_after(error.delay(1));
            decision.requeue = problem.requeue();
            decision.problem = Some(problem);
            return Ok(());
        }
    };
    let owned = rows
        .iter()
        .filter_map(|row| service::owned_by_tag(basis, identity, row));
    let others = &basis.inputs.named_by_others;
    let is_others = |name: &String| others.iter().any(|other| other.eq_ignore_ascii_case(name));
    let is_other = |name: &String| !named.contains(name) && !is_others(name);
    for load_balancer in owned.filter(is_other).take(MOST_FORMER) {
        let step = service::remove(basis, identity, &load_balancer, decision)?;
        decision.steps.push(step);
    }
    Ok(())
}

/// The names of all load balancers that may have the cluster's endpoint service.
fn load_balancers(basis: Basis<'_>) -> BTreeSet<String> {
    let Basis {
        cr, inputs, settings, ..
    } = basis;
    let service = inputs.service.iter();
    let service = service.flat_map(|service| {
        let reported = service.host_names.iter();
        let reported = reported.filter_map(|host_name| of_host_name(host_name, &settings.region));
        reported.chain([names::load_balancer(&service.uid)])
    });
    let all = named_load_balancers(cr).chain(service);
    all.filter(|name| !name.is_empty()).collect()
}

/// The names of load balancers in the intent and in the spec.
pub(super) fn named_load_balancers(cr: &AWSEndpointService) -> impl Iterator<Item = String> {
    let recorded: Option<HoIntent> = intent::read(cr.annotations().get(HO_INTENT));
    let recorded = recorded.into_iter().flat_map(recorded_load_balancers);
    // Under a name that no Service of HyperShift has, nothing was ever made by the spec alone.
    let named = Some(&cr.spec.network_load_balancer_name).filter(|_| SERVICES.contains(&cr.name_any().as_str()));
    recorded.chain(named.cloned())
}

/// The names in an intent: no more than this role records, because each is read.
fn recorded_load_balancers(known: HoIntent) -> impl Iterator<Item = String> {
    let former = known.former_load_balancers.into_iter().take(MOST_FORMER);
    std::iter::once(known.load_balancer).chain(former)
}

/// The cluster whose resources are deleted; none if nothing is known to be its own.
fn cluster_of<'a>(basis: Basis<'a>) -> Option<&'a Identity> {
    match (&basis.inputs.identity, &basis.inputs.deleted_cluster) {
        (Ok(identity), _) | (Err(_), DeletedCluster::Of(identity)) => Some(identity),
        (Err(_), DeletedCluster::OfAnother | DeletedCluster::Unknown) => None,
    }
}

fn other_role_at_work(cr: &AWSEndpointService, now: Timestamp) -> Option<Duration> {
    let since = cr.metadata.deletion_timestamp.as_ref().map_or(now, |time| time.0);
    let waited = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    let remaining = GUEST_FIRST.checked_sub(waited)?;
    // HyperShift may have taken the finalizer away; the role goes on by what it has recorded.
    let is_at_work = held_by(cr, CPO_FINALIZER) || cr.annotations().contains_key(CPO_INTENT);
    (is_at_work && !remaining.is_zero()).then_some(remaining)
}

#[cfg(test)]
mod tests;
