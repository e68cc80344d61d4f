//! What the CPO role does for an AWSEndpointService under deletion, or whose control plane is: records and endpoint,
//! then the security group. Pure.
//!
//! It works from the control plane while that is there, and from the recorded intent and the status alike. These may be
//! forged: an endpoint counts only in the cluster's VPC and to its endpoint service, a group only with name, VPC and tag,
//! a record only if it leads to the endpoint.

use std::collections::BTreeSet;

use kube::ResourceExt;

use super::inputs::{Guest, VpcEndpointInputs};
use super::plan::{Basis, MOST_FORMER, owned_endpoint, owned_group};
use crate::api::markers::CPO_INTENT;
use crate::api::markers::aws::ENDPOINT_DNS_NAME;
use crate::api::{AWSEndpointService, Role};
use crate::aws::body::texts;
use crate::aws::kinds::Kind;
use crate::aws::kinds::records::ReleasedRecords;
use crate::aws::slot::{Scope, Slot};
use crate::controllers::aws::{Decision, Needs, Step};
use crate::controllers::decision::Lifecycle;
use crate::engine::plan::ensure_absent;
use crate::engine::resource::Owned;
use crate::hypershift::aws::ids::{endpoint_suffix, is_zone_id, service_id};
use crate::hypershift::aws::intent::CpoIntent;
use crate::hypershift::aws::names;
use crate::hypershift::identity::Identity;
use crate::hypershift::intent;

/// Whether the guest's side is built or deleted. It goes with the control plane, whose workers are gone by then.
///
/// HyperShift takes the role's finalizer away when it believes that nobody can delete anything any more. What is
/// recorded is deleted all the same, as long as the custom resource is there.
pub(super) fn lifecycle(cr: &AWSEndpointService, inputs: &VpcEndpointInputs) -> Lifecycle {
    let is_deleting = cr.metadata.deletion_timestamp.is_some();
    match Lifecycle::of(Role::Cpo, cr, is_deleting || inputs.is_unwanted) {
        Lifecycle::Nothing if is_deleting && cr.annotations().contains_key(CPO_INTENT) => Lifecycle::Teardown,
        lifecycle => lifecycle,
    }
}

/// Where the resources of a deleted custom resource are.
struct Remains {
    identity: Identity,
    account: Scope,
    vpc: String,
    zone_account: Scope,
    zones: BTreeSet<String>,
    record_names: Vec<String>,
    services: BTreeSet<String>,
}

/// The steps that delete what the custom resource has. It is released when nothing of it is left.
pub(super) fn teardown(basis: Basis<'_>) -> Result<Decision, Needs> {
    let Some(remains) = remains(basis) else {
        return Ok(Decision::default());
    };
    let mut decision = Decision::default();
    let mut dns_names = known_dns_names(basis);
    let mut endpoints = Vec::new();
    for service in &remains.services {
        let owned = owned_endpoint(&remains.identity, (&remains.account, &remains.vpc), service, basis.cr);
        let observed = basis.facts.read(Kind::VpcEndpoint, owned.key())?;
        let step = ensure_absent(&owned, observed);
        let body = observed
            .found()
            .filter(|_| !step.left())
            .map(|body| owned.own_part(body));
        dns_names.extend(body.map(|body| texts(&body, "DnsNames")).unwrap_or_default());
        endpoints.push(step);
    }
    add_records(basis, &remains, dns_names, &mut decision)?;
    let group = owned_group(&remains.identity, (&remains.account, &remains.vpc), basis.cr);
    let in_use = endpoints.iter().any(|step| !step.gone() && !step.left());
    decision.steps.extend(endpoints);
    decision.steps.push(if in_use {
        Step::needs(Kind::SecurityGroup, group.slot, "the endpoint to go")
    } else {
        ensure_absent(&group, basis.facts.read(Kind::SecurityGroup, &group.slot)?)
    });
    Ok(decision)
}

/// Adds the steps that delete the records that lead to the endpoint.
fn add_records(
    basis: Basis<'_>,
    remains: &Remains,
    dns_names: BTreeSet<String>,
    decision: &mut Decision,
) -> Result<(), Needs> {
    let names: Vec<&str> = remains.record_names.iter().map(String::as_str).collect();
    if names.is_empty() || dns_names.is_empty() {
        return Ok(());
    }
    for zone in &remains.zones {
        let released = ReleasedRecords {
            slot: Slot::records(&remains.zone_account, zone, &names),
            endpoint_names: dns_names.iter().cloned().collect(),
        };
        let observed = basis.facts.read(Kind::Records, &released.slot)?;
        decision.steps.push(ensure_absent(&released, observed));
    }
    Ok(())
}

/// Where everything is; none if nothing was ever made.
fn remains(basis: Basis<'_>) -> Option<Remains> {
    let recorded: Option<CpoIntent> = intent::read(basis.cr.annotations().get(CPO_INTENT));
    let status = basis.cr.status.clone().unwrap_or_default();
    let made = [&status.endpoint_id, &status.security_group_id, &status.dns_zone_id];
    if recorded.is_none() && made.iter().all(|id| id.is_none()) {
        return None;
    }
    let recorded = recorded.unwrap_or_default();
    let (identity, account, vpc, zone_account) = match &basis.inputs.guest {
        Ok(guest) => here(guest),
        Err(_) => (
            recorded.identity(),
            recorded.scope()?,
            recorded.vpc()?.to_owned(),
            recorded.zone_scope()?,
        ),
    };
    let shown = status
        .endpoint_service_name
        .filter(|name| service_id(name, basis.region).is_some());
    // The last ones, as this role records them; each is read.
    let services = recorded.service_names().into_iter().rev().take(MOST_FORMER + 1);
    let services = services.map(str::to_owned).chain(shown);
    let zones = recorded
        .zone_id()
        .map(str::to_owned)
        .into_iter()
        .chain(status.dns_zone_id);
    let given = basis.inputs.guest.as_ref().ok().and_then(|guest| guest.zone.clone());
    Some(Remains {
        record_names: record_names(&identity, basis, &status.dns_names, recorded.record_names.clone()),
        zones: zones.chain(given).filter(|zone| is_zone_id(zone)).collect(),
        services: services.collect(),
        identity,
        account,
        vpc,
        zone_account,
    })
}

fn here(guest: &Guest) -> (Identity, Scope, String, Scope) {
    (
        guest.identity.clone(),
        guest.account.clone(),
        guest.vpc.clone(),
        guest.zone_account.clone(),
    )
}

/// The names of the custom resource's records: of those that it can have, all that are recorded, shown or desired.
fn record_names(identity: &Identity, basis: Basis<'_>, shown: &[String], recorded: Vec<String>) -> Vec<String> {
    let cr = basis.cr.name_any();
    let possible = [true, false].map(|routed| names::record_names(&cr, &identity.name, routed));
    let possible: BTreeSet<String> = possible.into_iter().flatten().collect();
    let named: BTreeSet<String> = recorded.into_iter().chain(shown.iter().cloned()).collect();
    let desired = basis.inputs.guest.as_ref().ok();
    let desired = desired.map(|guest| names::record_names(&cr, &identity.name, guest.api_server_is_routed));
    let all = possible.into_iter();
    let desired = desired.unwrap_or_default();
    all.filter(|name| named.contains(name) || desired.contains(name))
        .collect()
}

/// The DNS names of the endpoint that the custom resource shows.
fn known_dns_names(basis: Basis<'_>) -> BTreeSet<String> {
    let suffix = format!(".{}", endpoint_suffix(basis.region.partition()));
    let name = basis.cr.annotations().get(ENDPOINT_DNS_NAME);
    name.filter(|name| name.ends_with(&suffix))
        .cloned()
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests;
