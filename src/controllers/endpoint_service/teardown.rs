//! What the HO role does for an AWSEndpointService under deletion: connections, then the endpoint service. Pure.
//!
//! It works from the Service, the recorded intent, the spec and the list of the account alike. All but the Service and
//! the list may be forged, so that a service is deleted only if the Service vouches for its load balancer, or its tag
//! names the cluster.

use std::collections::BTreeSet;

use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use super::plan::{Basis, MOST_FORMER};
use super::{guests_side, service};
use crate::api::markers::HO_INTENT;
use crate::api::markers::aws::SERVICES;
use crate::api::{AWSEndpointService, Reason};
use crate::aws::slot::Slot;
use crate::controllers::aws::lists::ServicesOf;
use crate::controllers::aws::{Decision, Needs, Step};
use crate::hypershift::aws::ids::service_id;
use crate::hypershift::aws::intent::HoIntent;
use crate::hypershift::aws::load_balancer_name::{is_name, of_host_name};
use crate::hypershift::identity::{DeletedCluster, Identity};
use crate::hypershift::intent;
use crate::hypershift::names;
use crate::hypershift::problem::Problem;

/// The steps that delete what the custom resource has. It is released when nothing of it is left.
pub(super) fn teardown(basis: Basis<'_>, now: Timestamp) -> Result<Decision, Needs> {
    let Some(identity) = cluster_of(basis) else {
        return Ok(of_nobody(basis.cr, now));
    };
    if let Some(wait) = guests_side::wait_to_begin(basis.cr, now) {
        let problem = Problem::new(Reason::Deleting, "the guest's side is being deleted first");
        return Ok(Decision::stuck(problem.requeue_after(wait)));
    }
    let mut decision = Decision::default();
    let named = load_balancers(basis);
    let account = &basis.settings.account;
    let slots = named.iter().map(|name| Slot::endpoint_service(account, name));
    for slot in slots.chain(recorded_elsewhere(basis)) {
        let step = service::remove(basis, identity, slot, &mut decision)?;
        decision.steps.push(step);
    }
    add_unnamed(basis, identity, &named, &mut decision)?;
    if let Some(problem) = guests_problem(basis.cr, now).filter(|_| decision.nothing_left()) {
        decision.requeue = problem.requeue();
        decision.problem = Some(problem);
    }
    decision.left_out.extend(guests_side::left(basis.cr));
    decision.left_out.extend(not_searched(basis));
    Ok(decision)
}

/// What is done where nothing tells whose the resources are: nothing, but the guest's side is still waited for, as role
/// `cpo` may know. No condition is written: the present refusal keeps that role from what is not the cluster's.
fn of_nobody(cr: &AWSEndpointService, now: Timestamp) -> Decision {
    match guests_problem(cr, now) {
        Some(problem) => Decision::paused(problem),
        None => Decision {
            left_out: guests_side::left(cr).into_iter().collect(),
            ..Decision::default()
        },
    }
}

/// That the custom resource may not be released yet, as role `cpo` goes by it.
fn guests_problem(cr: &AWSEndpointService, now: Timestamp) -> Option<Problem> {
    let wait = guests_side::wait_to_end(cr, now)?;
    Some(Problem::new(Reason::Deleting, "the guest's side is still being deleted").requeue_after(wait))
}

/// Adds the steps for the cluster's endpoint services that nothing names. They are searched once all that is named is
/// surely gone, because the custom resource is released then, and whoever may write it may have named something else.
fn add_unnamed(
    basis: Basis<'_>,
    identity: &Identity,
    named: &BTreeSet<String>,
    decision: &mut Decision,
) -> Result<(), Needs> {
    let is_here = |step: &Step| step.key.scope().is_same_place(&basis.settings.account);
    let is_over = |step: &Step| !is_here(step) || step.left() || basis.facts.surely_gone.contains(&step.key);
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
    for load_balancer in owned.filter(|name| !named.contains(name)).take(MOST_FORMER) {
        if others.iter().any(|other| other.eq_ignore_ascii_case(&load_balancer)) {
            decision.shared = true;
        } else if basis.settings.infrastructure.is_none() {
            decision.left_out.push(format!(
                "the endpoint service of load balancer {load_balancer} stays: nothing names it, and it may be that of \
                 another management cluster"
            ));
        } else {
            let slot = Slot::endpoint_service(&basis.settings.account, &load_balancer);
            let step = service::remove(basis, identity, slot, decision)?;
            decision.steps.push(step);
        }
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
    all.filter(|name| is_name(name)).collect()
}

/// The names of load balancers in the intent and in the spec.
pub(super) fn named_load_balancers(cr: &AWSEndpointService) -> impl Iterator<Item = String> {
    let recorded: Option<HoIntent> = intent::read(cr.annotations().get(HO_INTENT));
    let recorded = recorded.into_iter().flat_map(recorded_load_balancers);
    // Under a name that no Service of HyperShift has, nothing was ever made by the spec alone.
    let named = Some(&cr.spec.network_load_balancer_name).filter(|_| SERVICES.contains(&cr.name_any().as_str()));
    recorded.chain(named.cloned())
}

/// What was recorded in another account or region than the process calls now: reads there say so, in place of an
/// absence here that proves nothing.
fn recorded_elsewhere(basis: Basis<'_>) -> Vec<Slot> {
    let recorded: Option<HoIntent> = intent::read(basis.cr.annotations().get(HO_INTENT));
    let recorded = recorded.unwrap_or_default();
    let scope = recorded.scope();
    let Some(elsewhere) = scope.filter(|scope| !scope.is_same_place(&basis.settings.account)) else {
        return Vec::new();
    };
    let names = recorded_load_balancers(recorded).filter(|name| is_name(name));
    names.map(|name| Slot::endpoint_service(&elsewhere, &name)).collect()
}

/// The names in an intent: no more than this role records, because each is read.
fn recorded_load_balancers(known: HoIntent) -> impl Iterator<Item = String> {
    let former = known.former_load_balancers.into_iter().take(MOST_FORMER);
    std::iter::once(known.load_balancer).chain(former)
}

/// What may stay of a custom resource of earlier versions of HyperShift, whose load balancer is another namespace's:
/// nothing proves whose it is.
fn not_searched(basis: Basis<'_>) -> Option<String> {
    let Basis { cr, settings, .. } = basis;
    let shown = cr.status.as_ref()?.endpoint_service_name.as_deref()?;
    let id = service_id(shown, &settings.region).filter(|_| !SERVICES.contains(&cr.name_any().as_str()))?;
    let balancer = Some(&cr.spec.network_load_balancer_name).filter(|name| is_name(name));
    let of = balancer
        .map(|name| format!(" of load balancer {name}"))
        .unwrap_or_default();
    Some(format!(
        "endpoint service {id}{of} may stay: nothing proves that it is this cluster's"
    ))
}

/// The cluster whose resources are deleted; none if nothing is known to be its own.
fn cluster_of<'a>(basis: Basis<'a>) -> Option<&'a Identity> {
    match (&basis.inputs.identity, &basis.inputs.deleted_cluster) {
        (Ok(identity), _) | (Err(_), DeletedCluster::Of(identity)) => Some(identity),
        (Err(_), DeletedCluster::OfAnother | DeletedCluster::Unknown) => None,
    }
}

#[cfg(test)]
mod tests;
