//! What the CPO role does for an AWSEndpointService under deletion, or whose control plane is: records and endpoint,
//! then the security group. Pure.
//!
//! It works from the control plane while that is there, and from the recorded intent and the status alike. These may be
//! forged: an endpoint counts only in the cluster's VPC and to its endpoint service, a group only with name, VPC and
//! tag, a record only if it leads to the endpoint.

use std::collections::BTreeSet;

use kube::ResourceExt;
use serde_json::Value;

use super::inputs::VpcEndpointInputs;
use super::plan::{Basis, MOST_FORMER, check_zone, known_names, owned_endpoint, owned_group, released};
use super::zone;
use crate::api::markers::CPO_INTENT;
use crate::api::markers::aws::ENDPOINT_DNS_NAME;
use crate::api::{AWSEndpointService, Reason, Role};
use crate::aws::body::{state, text, texts};
use crate::aws::cloud::{Aws, Observed};
use crate::aws::kinds::Kind;
use crate::aws::kinds::vpc_endpoint::CUSTOM_RESOURCE_TAG;
use crate::aws::slot::{Scope, Slot};
use crate::controllers::aws::lists::EndpointsOf;
use crate::controllers::aws::{Decision, Needs, Step};
use crate::controllers::decision::Lifecycle;
use crate::controllers::event;
use crate::engine::cloud::Cloud;
use crate::engine::plan::ensure_absent;
use crate::engine::resource::Owned;
use crate::hypershift::aws::ids::{endpoint_suffix, is_zone_id, service_id};
use crate::hypershift::aws::intent::CpoIntent;
use crate::hypershift::aws::scopes::Access;
use crate::hypershift::identity::Identity;
use crate::hypershift::intent;
use crate::hypershift::problem::Problem;

/// Whether the guest's side is built or deleted. It goes with the control plane, whose workers are gone by then.
pub(super) fn lifecycle(cr: &AWSEndpointService, inputs: &VpcEndpointInputs) -> Lifecycle {
    let is_deleting = cr.metadata.deletion_timestamp.is_some();
    Lifecycle::of(Role::Cpo, cr, is_deleting || inputs.is_unwanted)
}

/// What a deleted custom resource may have.
struct Remains {
    /// Where endpoint and security group are, or may be.
    homes: Vec<Home>,
    /// The accounts and ids of the zones.
    zones: BTreeSet<(Scope, String)>,
    /// Those of before, which hold nothing else up.
    former_zones: BTreeSet<(Scope, String)>,
    record_names: Vec<String>,
    services: BTreeSet<String>,
    /// What was recorded.
    recorded: CpoIntent,
}

/// Where the resources of a cluster are.
#[derive(Clone, PartialEq)]
struct Home {
    identity: Identity,
    account: Scope,
    vpc: String,
    zone_account: Scope,
}

/// The steps that delete what the custom resource has. It is released when nothing of it is left.
pub(super) fn teardown(basis: Basis<'_>) -> Result<Decision, Needs> {
    let remains = remains(basis);
    if let Err(problem) = check_allowed(basis, &remains) {
        return Ok(Decision::stuck(problem));
    }
    let mut dns_names = known_dns_names(basis);
    let mut steps = Vec::new();
    let mut decision = Decision::default();
    for home in &remains.homes {
        let reports = (&mut dns_names, &mut decision.left_out);
        steps.extend(steps_in(basis, home, &remains.services, reports)?);
    }
    add_records(basis, &remains, dns_names, &mut decision)?;
    decision.steps.extend(steps);
    Ok(decision)
}

/// Why nothing is deleted: the operator's file does not allow what the control plane names, or what is recorded. Both
/// may be forged.
fn check_allowed(basis: Basis<'_>, remains: &Remains) -> Result<(), Problem> {
    const RECORDED: &str = "what was recorded";
    let scopes = match &basis.inputs.access {
        Access::AsNamed(_) => return Ok(()),
        Access::Refused(problem) => return Err(problem.clone()),
        Access::Allowed(scopes) => scopes,
    };
    if let Err(problem) = &basis.inputs.guest
        && problem.reason == Reason::ScopeNotAllowed
    {
        return Err(problem.clone());
    }
    for home in &remains.homes {
        scopes.check_account(RECORDED, &home.account)?;
        scopes.check_vpc(RECORDED, &home.vpc)?;
    }
    let mut zones = remains.zones.iter();
    zones.try_for_each(|(account, zone)| check_zone(basis, account, zone))
}

/// The steps that delete endpoints and security group. Adds the DNS names of the endpoints.
fn steps_in(
    basis: Basis<'_>,
    home: &Home,
    services: &BTreeSet<String>,
    (dns_names, left_out): (&mut BTreeSet<String>, &mut Vec<String>),
) -> Result<Vec<Step>, Needs> {
    let mut steps: Vec<Step> = Vec::new();
    for service in services {
        let owned = owned_endpoint(&home.identity, (&home.account, &home.vpc), service, basis.cr);
        let observed = basis.facts.read(Kind::VpcEndpoint, owned.key())?;
        let step = ensure_absent(&owned, observed);
        let body = observed
            .found()
            .filter(|_| !step.left())
            .map(|body| owned.own_part(body));
        dns_names.extend(body.map(|body| texts(&body, "DnsNames")).unwrap_or_default());
        steps.push(step);
    }
    if steps.iter().all(|step| step.left() || is_surely_gone(basis, step)) {
        left_out.extend(unnamed(basis, home)?);
    }
    let group = owned_group(&home.identity, (&home.account, &home.vpc), basis.cr);
    let in_use = steps.iter().any(|step| !step.gone() && !step.left());
    steps.push(if in_use {
        Step::needs(Kind::SecurityGroup, group.slot, "the endpoint to go")
    } else {
        ensure_absent(&group, basis.facts.read(Kind::SecurityGroup, &group.slot)?)
    });
    Ok(steps)
}

fn is_surely_gone(basis: Basis<'_>, step: &Step) -> bool {
    step.gone() && basis.facts.surely_gone.contains(&step.key)
}

/// The endpoints with the tags of the custom resource that nothing names, in words for an Event. Whoever may write it
/// may have named something else; but a cluster that was moved has its endpoint under another management cluster.
fn unnamed(basis: Basis<'_>, home: &Home) -> Result<Vec<String>, Needs> {
    let owned = owned_endpoint(&home.identity, (&home.account, &home.vpc), "", basis.cr);
    let asked = EndpointsOf {
        scope: home.account.clone(),
        vpc: home.vpc.clone(),
        tags: owned.owner_tags.marks(CUSTOM_RESOURCE_TAG),
    };
    let found = match basis.facts.endpoints(&asked)? {
        Ok(found) => found,
        Err(error) => return Ok(vec![format!("endpoints in {} may be left: {error}", home.vpc)]),
    };
    let named = |body: &Value| {
        let (id, service) = (Aws::instance(body), text(body, "ServiceName"));
        format!("endpoint {id} to {service} stays: it has the tags of this cluster, and nothing here names its service")
    };
    Ok(found
        .iter()
        .filter(|body| state(body) != "deleting")
        .map(named)
        .collect())
}

/// Adds the steps that delete the records that lead to the endpoint.
fn add_records(
    basis: Basis<'_>,
    remains: &Remains,
    dns_names: BTreeSet<String>,
    decision: &mut Decision,
) -> Result<(), Needs> {
    let names: Vec<&str> = remains.record_names.iter().map(String::as_str).collect();
    if names.is_empty() {
        return Ok(());
    }
    let stay = |zone: &str, why: &str| format!("records {} may stay in hosted zone {zone}: {why}", names.join(", "));
    for (account, zone) in remains.zones.union(&remains.former_zones) {
        let is_former = !remains.zones.contains(&(account.clone(), zone.clone()));
        if is_former && let Err(problem) = check_zone(basis, account, zone) {
            decision.left_out.push(stay(zone, &problem.message));
            continue;
        }
        let slot = Slot::records(account, zone, &names);
        let released = released(basis, &remains.recorded, slot, dns_names.clone());
        if !released.is_recognisable() {
            continue;
        }
        let observed = basis.facts.read(Kind::Records, &released.slot)?;
        // A zone that the policies name no more is denied; in one that is gone there is nothing to delete.
        let is_denied = matches!(observed, Observed::ReadFailed(error) if error.is_of_policies());
        if is_denied && zone::is_gone(basis, account, zone, &names)? {
            continue;
        }
        if is_denied && is_former {
            decision.left_out.push(stay(zone, "AWS denies access"));
            continue;
        }
        decision.steps.push(ensure_absent(&released, observed));
    }
    let stays = event::left_out(&decision.left_out);
    decision.standing.push(("former zones", stays));
    Ok(())
}

/// What there may be, and where. Without control plane and intent nothing tells that.
fn remains(basis: Basis<'_>) -> Remains {
    let recorded: Option<CpoIntent> = intent::read(basis.cr.annotations().get(CPO_INTENT));
    let recorded = recorded.unwrap_or_default();
    let status = basis.cr.status.clone().unwrap_or_default();
    let homes = homes(basis, &recorded);
    let shown = status
        .endpoint_service_name
        .filter(|name| service_id(name, basis.region).is_some());
    // The last ones, as this role records them; each is read.
    let services = recorded.service_names().into_iter().rev().take(MOST_FORMER + 1);
    let services = services.map(str::to_owned).chain(shown);
    let names = homes.first().map(|home| known_names(basis, &home.identity, &recorded));
    Remains {
        zones: zones(basis, &homes, &recorded, status.dns_zone_id),
        former_zones: former_zones(basis, &recorded),
        record_names: names.unwrap_or_default(),
        services: services.collect(),
        homes,
        recorded,
    }
}

/// Where the control plane has its guest, and where that was when the intent was recorded; of the cluster that the
/// HostedCluster shows, where that is read and exists still.
fn homes(basis: Basis<'_>, recorded: &CpoIntent) -> Vec<Home> {
    let before = home_recorded(basis, recorded);
    match &basis.inputs.guest {
        Ok(guest) => {
            let now = Home {
                identity: vouched_identity(basis).unwrap_or_else(|| guest.identity.clone()),
                account: guest.account.clone(),
                vpc: guest.vpc.clone(),
                zone_account: guest.zone_account.clone(),
            };
            let before = before.filter(|home| home.identity == now.identity && *home != now);
            std::iter::once(now).chain(before).collect()
        }
        Err(_) => before.into_iter().collect(),
    }
}

fn home_recorded(basis: Basis<'_>, recorded: &CpoIntent) -> Option<Home> {
    Some(Home {
        identity: vouched_identity(basis).unwrap_or_else(|| recorded.identity()),
        account: basis.inputs.recorded_scope(recorded)?,
        vpc: recorded.vpc()?.to_owned(),
        zone_account: basis.inputs.recorded_zone_scope(recorded)?,
    })
}

fn vouched_identity(basis: Basis<'_>) -> Option<Identity> {
    basis.inputs.vouched.identity.clone()
}

/// The zones in which records may be: that which is recorded, else that which the status shows, and that which is
/// given.
fn zones(basis: Basis<'_>, homes: &[Home], recorded: &CpoIntent, shown: Option<String>) -> BTreeSet<(Scope, String)> {
    let account = homes.first().map(|home| &home.zone_account);
    let in_account = |zone: String| Some((account?.clone(), zone));
    let known = recorded.zone_id().map(str::to_owned);
    let known = match (known, basis.inputs.recorded_zone_scope(recorded)) {
        (Some(zone), Some(account)) => Some((account, zone)),
        _ => shown.and_then(in_account),
    };
    let given = basis.inputs.guest.as_ref().ok().and_then(|guest| guest.zone.clone());
    let all = known.into_iter().chain(given.and_then(in_account));
    all.filter(|(_, zone)| is_zone_id(zone)).collect()
}

/// The zones that had the records before.
fn former_zones(basis: Basis<'_>, recorded: &CpoIntent) -> BTreeSet<(Scope, String)> {
    let former = recorded.former_zones.iter().rev().take(MOST_FORMER).filter_map(|zone| {
        let account = basis.inputs.recorded_zone_scope(&recorded.of_zone(zone))?;
        Some((account, zone.zone_id.clone()))
    });
    former.filter(|(_, zone)| is_zone_id(zone)).collect()
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
