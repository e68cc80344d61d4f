//! What the HO role does for an AWSEndpointService under deletion: connections, then the endpoint service. Pure.
//!
//! It works from the Service, the recorded intent and the spec alike. All but the Service may be forged, so that a
//! service is deleted only if the Service vouches for its load balancer, or its tag names the cluster.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::plan::{Basis, MOST_FORMER};
use super::service;
use crate::api::markers::aws::{CPO_FINALIZER, SERVICES};
use crate::api::markers::{CPO_INTENT, HO_INTENT};
use crate::api::{AWSEndpointService, Reason, held_by};
use crate::controllers::aws::{Decision, Needs};
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
    for load_balancer in load_balancers(basis) {
        let step = service::remove(basis, identity, &load_balancer, &mut decision)?;
        decision.steps.push(step);
    }
    Ok(decision)
}

/// The names of all load balancers that may have the cluster's endpoint service.
fn load_balancers(basis: Basis<'_>) -> BTreeSet<String> {
    let Basis {
        cr, inputs, settings, ..
    } = basis;
    let recorded: Option<HoIntent> = intent::read(cr.annotations().get(HO_INTENT));
    let recorded = recorded.into_iter().flat_map(recorded_load_balancers);
    let service = inputs.service.iter();
    let service = service.flat_map(|service| {
        let reported = service.host_names.iter();
        let reported = reported.filter_map(|host_name| of_host_name(host_name, &settings.region));
        reported.chain([names::load_balancer(&service.uid)])
    });
    // Under a name that no Service of HyperShift has, nothing was ever made by the spec alone.
    let named = Some(&cr.spec.network_load_balancer_name).filter(|_| SERVICES.contains(&cr.name_any().as_str()));
    let all = recorded.chain(service).chain(named.cloned());
    all.filter(|name| !name.is_empty()).collect()
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
