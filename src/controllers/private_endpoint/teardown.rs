//! What the CPO role does for a custom resource under deletion: endpoint, links, records, zones. Pure.
//!
//! It works from names and from the recorded intent; no other object has to exist any more. The intent may be forged,
//! so it counts only where namespace, name, scope and a fresh read agree.

use kube::ResourceExt;
use serde_json::Value;

use super::dns::{DesiredZone, has_our_address, link_unless_unread, proven, proven_link, unless_unread};
use super::plan::{self, ControlPlaneState, DesiredResources, proven_endpoint};
use super::served::refused_for;
use crate::api::markers::CPO_INTENT;
use crate::api::{AzurePrivateLinkService, HostedControlPlane, Reason};
use crate::azure::arm::error::ArmError;
use crate::azure::arm::id::ResourceId;
use crate::azure::cloud::Observed;
use crate::azure::kinds::Kind;
use crate::azure::kinds::private_dns_zone::{PrivateDnsZone, links};
use crate::azure::kinds::private_endpoint::{PrivateEndpoint, leads_anywhere, leads_to};
use crate::azure::kinds::record_set::RecordSet;
use crate::azure::plan::Step;
use crate::controllers::azure::{Decision, Facts, Needs};
use crate::controllers::facts::together;
use crate::engine::plan::{Verb, ensure_absent};
use crate::engine::resource::Owned;
use crate::hypershift::azure::intent::CpoIntent;
use crate::hypershift::azure::names;
use crate::hypershift::identity::Identity;
use crate::hypershift::intent;
use crate::hypershift::names::{cluster_of_internal_zone, fits_namespace};

/// The steps that delete what a custom resource has, when it or its control plane is deleted. All are gone or left when
/// nothing of the cluster exists any more.
pub fn teardown(cr: &AzurePrivateLinkService, state: &ControlPlaneState, facts: &Facts) -> Result<Decision, Needs> {
    if let Some(problem) = &state.refused {
        return Ok(Decision::stuck(problem.clone()));
    }
    if let Some(problem) = state.outside(cr) {
        // What was made before the cluster named another scope is not forgotten.
        return Ok(if begun(cr) {
            Decision::stuck(problem)
        } else {
            Decision::default()
        });
    }
    let Some(identity) = identity(cr, state) else {
        return Ok(Decision::default());
    };
    // What does not parse was never made.
    let Ok(mut desired) = plan::desired_resources(cr, &identity, &state.siblings) else {
        return Ok(Decision::default());
    };
    if let Some(decision) = lives_elsewhere(cr, &desired, facts)? {
        return Ok(decision);
    }
    let observed = facts.read(Kind::PrivateEndpoint, &desired.endpoint.id);
    let endpoint = observed.map(|observed| ensure_absent(&proven_endpoint(&desired.endpoint, facts), observed));
    if let Ok(found) = &endpoint {
        desired.note_address(found);
    }
    let zones = desired.zones.iter().map(|zone| delete_zone(zone, facts));
    let mut steps = together(std::iter::once(endpoint.map(|step| vec![step])).chain(zones))?;
    if steps[0][0].verb == Verb::Delete && proves_zones(&desired.zones, &steps[1..], facts)? {
        steps[0] = vec![Step::needs(
            Kind::PrivateEndpoint,
            desired.endpoint.id.clone(),
            "its names to go",
        )];
    }
    Ok(Decision {
        steps: steps.concat(),
        shared: desired.zones.iter().any(|zone| zone.deleted_from_shared.is_some()),
        ..Decision::default()
    })
}

/// The decision where nothing is deleted, because the cluster lives on another management cluster, with everything on
/// the guest's side. It does if its endpoint leads to none of the Private Link Services that the custom resource had.
/// As long as nothing certain is known of the endpoint, nothing is deleted either.
fn lives_elsewhere(
    cr: &AzurePrivateLinkService,
    desired: &DesiredResources,
    facts: &Facts,
) -> Result<Option<Decision>, Needs> {
    let observed = facts.read(Kind::PrivateEndpoint, &desired.endpoint.id)?;
    let endpoint = ensure_absent(&proven_endpoint(&desired.endpoint, facts), observed);
    let zones = desired.zones.iter().map(|zone| &zone.zone);
    let steps = match observed {
        Observed::Found(body) if leads_elsewhere(cr, &desired.endpoint, body) => {
            let zones = zones.map(|zone| Ok(ensure_absent(zone, facts.read(Kind::PrivateDnsZone, &zone.id)?)));
            let all = together(std::iter::once(Ok(endpoint)).chain(zones))?;
            all.into_iter().map(leave_found).collect()
        }
        Observed::ReadFailed(_) | Observed::Absent if !facts.surely_gone.contains(&desired.endpoint.id) => {
            let waits =
                zones.map(|zone| Step::needs(Kind::PrivateDnsZone, zone.id.clone(), "its endpoint to be seen or gone"));
            std::iter::once(endpoint).chain(waits).collect()
        }
        _ => return Ok(None),
    };
    Ok(Some(Decision {
        steps,
        ..Decision::default()
    }))
}

fn leads_elsewhere(cr: &AzurePrivateLinkService, endpoint: &PrivateEndpoint, body: &Value) -> bool {
    let aliases = plan::recorded_aliases(cr).into_iter().chain(endpoint.alias.clone());
    let aliases: Vec<String> = aliases.collect();
    let owned = endpoint.owner_tags.prove(body) && !aliases.is_empty();
    owned && leads_anywhere(body) && !aliases.iter().any(|alias| leads_to(body, alias))
}

/// The user of what is left behind then.
const ELSEWHERE: &str = "another management cluster, whose Private Link Service the endpoint leads to";

fn leave_found(step: Step) -> Step {
    if step.found.is_some() {
        step.leave(ELSEWHERE)
    } else {
        step
    }
}

/// Whether something is to be deleted in a zone without our owner tags, so that the endpoint's address is the proof.
fn proves_zones(zones: &[DesiredZone], steps: &[Vec<Step>], facts: &Facts) -> Result<bool, Needs> {
    for (desired, steps) in zones.iter().zip(steps) {
        let observed = facts.read(Kind::PrivateDnsZone, &desired.zone.id)?.found();
        let unmarked = observed.is_some_and(|body| !desired.zone.owner_tags.prove(body));
        if unmarked && steps.iter().any(|step| !step.gone() && !step.left()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The zone, `proven` if it is the cluster's. One without our owner tags stays proven when our link is deleted: nobody
/// resolves names in it any more, and it holds names of the cluster with the address of its endpoint.
fn proven_for_deletion(desired: &DesiredZone, facts: &Facts) -> Result<PrivateDnsZone, Needs> {
    let mut zone = proven(desired, facts)?;
    let observed = facts.read(Kind::PrivateDnsZone, &zone.id)?.found();
    if observed.is_some_and(|body| !zone.is_owned(body) && links(body) == Some(0)) {
        zone.proven = has_our_address(desired, facts)?;
    }
    Ok(zone)
}

/// Whether something may have been made, by us or by HyperShift's own operator.
fn begun(cr: &AzurePrivateLinkService) -> bool {
    let endpoint = cr
        .status
        .as_ref()
        .and_then(|status| status.private_endpoint_id.as_ref());
    endpoint.is_some() || cr.annotations().contains_key(CPO_INTENT)
}

/// The cluster's identity: by the HostedCluster where it is read, else by its control plane, else as recorded, else by
/// name only. Without the cluster's id no owner tags prove anything, and any deny.
fn identity(cr: &AzurePrivateLinkService, state: &ControlPlaneState) -> Option<Identity> {
    let hosted = state.vouched().and_then(|vouched| vouched.identity.clone());
    let control_plane = state.control_plane.as_ref().ok();
    let mut identity = hosted
        .or_else(|| control_plane.map(|control_plane| control_plane.identity.clone()))
        .or_else(|| hinted(cr))?;
    let duplicate = match state.vouched() {
        Some(vouched) => vouched.claimed_elsewhere,
        None => refused_for(cr, Reason::DuplicateIdentity),
    };
    if duplicate {
        identity.cluster_id.clear();
    }
    Some(identity)
}

/// The identity that the custom resource itself shows. A tenant can write it, so Azure has to prove what it leads to.
pub(super) fn hinted(cr: &AzurePrivateLinkService) -> Option<Identity> {
    recorded(cr).or_else(|| by_name(cr))
}

/// The identity in the intent, if its cluster can live in this namespace.
fn recorded(cr: &AzurePrivateLinkService) -> Option<Identity> {
    let intent: CpoIntent = intent::read(cr.annotations().get(CPO_INTENT))?;
    fits_namespace(&intent.cluster, &cr.namespace()?).then_some(Identity {
        name: intent.cluster,
        cluster_id: intent.cluster_id,
        infra_id: intent.infra_id,
    })
}

/// The cluster's name, from the owner that the custom resource had or the zone in its status. Its id, from the name of
/// the Private Link Service in the status.
fn by_name(cr: &AzurePrivateLinkService) -> Option<Identity> {
    let namespace = cr.namespace()?;
    let kind = <HostedControlPlane as kube::Resource>::kind(&());
    let owners = cr.owner_references().iter().filter(|owner| owner.kind == kind);
    let zone = cr.status.as_ref().and_then(|status| status.dns_zone_name.as_deref());
    let mut names = owners
        .map(|owner| owner.name.as_str())
        .chain(zone.and_then(cluster_of_internal_zone));
    let name = names.find(|name| fits_namespace(name, &namespace))?;
    let status = cr.status.as_ref();
    let service = status.and_then(|status| status.private_link_service_id.as_deref());
    let service = service.and_then(|id| ResourceId::parse_as(Kind::PrivateLinkService, id).ok());
    let cr_name = cr.name_any();
    let cluster_id = service
        .as_ref()
        .and_then(|id| names::cluster_id_of_link_service(&cr_name, id.name()));
    Some(Identity {
        name: name.to_owned(),
        cluster_id: cluster_id.unwrap_or_default().to_owned(),
        infra_id: String::new(),
    })
}

/// The steps that delete a zone: first our link, then the zone with our records in it.
///
/// A zone that a sibling keeps using, or in which others have links or records, stays without what is ours alone.
fn delete_zone(desired: &DesiredZone, facts: &Facts) -> Result<Vec<Step>, Needs> {
    let zone = proven_for_deletion(desired, facts)?;
    let step = ensure_absent(&zone, facts.read(Kind::PrivateDnsZone, &zone.id)?);
    let step = unless_unread(step, desired, facts);
    let (Verb::Delete, Some(body)) = (&step.verb, step.found.clone()) else {
        return Ok(vec![step]);
    };
    if let Some(records) = &desired.deleted_from_shared {
        return delete_records(records, facts);
    }
    let link = proven_link(desired, &desired.link, &body, facts)?;
    let link = ensure_absent(&link, facts.read(Kind::VirtualNetworkLink, &link.id)?);
    let link = link_unless_unread(link, &desired.link, desired, facts);
    if !link.gone() && !link.left() {
        return Ok(vec![link, Step::needs(Kind::PrivateDnsZone, zone.id, "its link to go")]);
    }
    // Only a fresh read shows that the link is gone from it.
    let step = ensure_absent(&zone, facts.fresh_read(Kind::PrivateDnsZone, &zone.id)?);
    let (Verb::Delete, Some(body)) = (&step.verb, step.found.clone()) else {
        return Ok(vec![step]);
    };
    let others = match links_inside(desired, &body, facts)? {
        Err(error) => return Ok(vec![step.unreadable(&error)]),
        Ok(Links { owned, .. }) if !owned.is_empty() => {
            let waits = Step::needs(Kind::PrivateDnsZone, zone.id, "its link to go");
            return Ok(owned.into_iter().chain([waits]).collect());
        }
        Ok(Links { others: true, .. }) => "links of others",
        Ok(_) => match facts.inside(Kind::RecordSet, &zone.id)? {
            Err(error) => return Ok(vec![step.unreadable(error)]),
            Ok(records) if records.iter().all(|r| is_owned_or_soa(desired, r)) => return Ok(vec![step]),
            Ok(_) => "records of others",
        },
    };
    let records = delete_records(&desired.all_records, facts)?;
    // One that was put before this process began may still appear.
    let link = Some(link).filter(Step::gone);
    let stays = std::iter::once(step.leave(others));
    Ok(stays.chain(link).chain(records).collect())
}

fn delete_records(records: &[RecordSet], facts: &Facts) -> Result<Vec<Step>, Needs> {
    together(
        records
            .iter()
            .map(|r| Ok(ensure_absent(r, facts.read(Kind::RecordSet, &r.id)?))),
    )
}

/// The links that a list shows in a zone.
struct Links {
    /// Steps for those that appeared under our name after it was read, or under the name of a former sibling.
    owned: Vec<Step>,
    /// Whether there are any that stay.
    others: bool,
}

fn links_inside(desired: &DesiredZone, zone: &Value, facts: &Facts) -> Result<Result<Links, ArmError>, Needs> {
    let mut found = Links {
        owned: Vec::new(),
        others: false,
    };
    if links(zone) == Some(0) {
        return Ok(Ok(found));
    }
    let all = match facts.inside(Kind::VirtualNetworkLink, &desired.zone.id)? {
        Err(error) => return Ok(Err(error.clone())),
        Ok(all) => all,
    };
    for body in all {
        let name = body.get("name").and_then(Value::as_str).unwrap_or_default();
        let mut named = std::iter::once(&desired.link).chain(&desired.shared_links);
        let Some(link) = named.find(|link| link.id.name().eq_ignore_ascii_case(name)) else {
            found.others = true;
            continue;
        };
        let observed = facts.fresh_read(Kind::VirtualNetworkLink, &link.id)?;
        let step = ensure_absent(&proven_link(desired, link, zone, facts)?, observed);
        let step = link_unless_unread(step, link, desired, facts);
        if step.left() {
            found.others = true;
        } else if !step.gone() {
            found.owned.push(step);
        }
    }
    Ok(Ok(found))
}

fn is_owned_or_soa(desired: &DesiredZone, record: &Value) -> bool {
    let kind = record.get("type").and_then(Value::as_str).unwrap_or_default();
    let name = record.get("name").and_then(Value::as_str).unwrap_or_default();
    let mut named = desired
        .all_records
        .iter()
        .filter(|own| own.id.name().eq_ignore_ascii_case(name));
    match kind.rsplit('/').next().unwrap_or_default() {
        "SOA" => name == "@",
        "A" => named.any(|own| own.is_owned(record)),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
