//! What the CPO role does for a custom resource that goes: endpoint, links, records, zones. Pure.
//!
//! Works from names and from what was recorded; no other object has to exist still. What was recorded may have been forged,
//! so it counts only where namespace, name, scope and a fresh look agree.

use kube::ResourceExt;
use serde_json::Value;

use super::dns::{WantedZone, proven, proven_link, unreadable};
use super::plan::{self, Surroundings, outside};
use crate::api::markers::CPO_INTENT;
use crate::api::{AzurePrivateLinkService, HostedControlPlane, Reason};
use crate::azure::error::ArmError;
use crate::azure::plan::{Step, Verb, away};
use crate::azure::record::Record;
use crate::azure::resource::{Kind, Owned};
use crate::azure::zone::links;
use crate::controllers::decision::Decision;
use crate::controllers::facts::{Facts, Needs, together};
use crate::controllers::identity::Identity;
use crate::controllers::intent::{self, CpoIntent};
use crate::names;

/// Steps away, for a custom resource that is deleted or whose control plane is. All are gone or left when nothing of ours is
/// there.
pub fn teardown(cr: &AzurePrivateLinkService, around: &Surroundings, facts: &Facts) -> Result<Decision, Needs> {
    if let Some(problem) = &around.refused {
        return Ok(Decision::stuck(problem.clone()));
    }
    let control_plane = around.control_plane.as_ref().ok();
    if let Some(problem) = control_plane.and_then(|c| outside(cr, &c.azure)) {
        // What was made before the control plane named another place is not lost sight of.
        return Ok(if begun(cr) {
            Decision::stuck(problem)
        } else {
            Decision::default()
        });
    }
    let Some(identity) = identity(cr, around) else {
        return Ok(Decision::default());
    };
    // What does not parse was never made.
    let Ok(want) = plan::wanted(cr, &identity, &around.siblings) else {
        return Ok(Decision::default());
    };
    let endpoint = facts
        .look(Kind::Endpoint, &want.endpoint.id)
        .map(|seen| away(&want.endpoint, seen));
    let zones = want.zones.iter().map(|zone| take_zone(zone, facts));
    let steps = together(std::iter::once(endpoint.map(|step| vec![step])).chain(zones))?.concat();
    Ok(Decision {
        steps,
        ..Decision::default()
    })
}

/// Whether something may have been made, by us or by HyperShift's own operator.
fn begun(cr: &AzurePrivateLinkService) -> bool {
    let endpoint = cr
        .status
        .as_ref()
        .and_then(|status| status.private_endpoint_id.as_ref());
    endpoint.is_some() || cr.annotations().contains_key(CPO_INTENT)
}

/// The cluster, as its control plane says; else as recorded; else by name only. Without the cluster's id no mark proves
/// anything, and any mark denies.
fn identity(cr: &AzurePrivateLinkService, around: &Surroundings) -> Option<Identity> {
    let known = around.control_plane.as_ref().ok().map(|c| c.identity.clone());
    let mut identity = known.or_else(|| recorded(cr)).or_else(|| by_name(cr))?;
    if around.claimed_elsewhere || plan::refused_for(cr, Reason::DuplicateIdentity) {
        identity.cluster_id.clear();
    }
    Some(identity)
}

/// What the intent says, if its cluster can live in this namespace.
pub(super) fn recorded(cr: &AzurePrivateLinkService) -> Option<Identity> {
    let intent: CpoIntent = intent::read(cr.annotations().get(CPO_INTENT))?;
    names::fits_namespace(&intent.cluster, &cr.namespace()?).then_some(Identity {
        name: intent.cluster,
        cluster_id: intent.cluster_id,
        infra_id: intent.infra_id,
    })
}

/// The cluster's name alone, from the owner that the custom resource had, or from the zone that its status names.
fn by_name(cr: &AzurePrivateLinkService) -> Option<Identity> {
    let namespace = cr.namespace()?;
    let kind = <HostedControlPlane as kube::Resource>::kind(&());
    let owners = cr.owner_references().iter().filter(|owner| owner.kind == kind);
    let zone = cr.status.as_ref().and_then(|status| status.dns_zone_name.as_deref());
    let mut names = owners
        .map(|owner| owner.name.as_str())
        .chain(zone.and_then(names::cluster_of_internal_zone));
    let name = names.find(|name| names::fits_namespace(name, &namespace))?;
    Some(Identity {
        name: name.to_owned(),
        cluster_id: String::new(),
        infra_id: String::new(),
    })
}

/// Steps that take a zone away: first our link, then the zone with our records in it.
///
/// A zone that a sibling goes on using, or in which others have links or records, stays without what is ours alone.
fn take_zone(want: &WantedZone, facts: &Facts) -> Result<Vec<Step>, Needs> {
    let zone = proven(want, facts)?;
    let step = away(&zone, facts.look(Kind::Zone, &zone.id)?);
    let (Verb::Delete, Some(body)) = (&step.verb, step.found.clone()) else {
        return Ok(vec![step]);
    };
    if let Some(records) = &want.kept_but {
        return take_records(records, facts);
    }
    let link = proven_link(want, &want.link, &body, facts)?;
    let link = away(&link, facts.look(Kind::ZoneLink, &link.id)?);
    if !link.gone() && !link.left() {
        return Ok(vec![link, Step::needs(Kind::Zone, zone.id, "its link to go")]);
    }
    // Only a new look shows that the link is out of it.
    let step = away(&zone, facts.new_look(Kind::Zone, &zone.id)?);
    let (Verb::Delete, Some(body)) = (&step.verb, step.found.clone()) else {
        return Ok(vec![step]);
    };
    let others = match links_inside(want, &body, facts)? {
        Err(error) => return Ok(vec![unreadable(step, &error)]),
        Ok(Links { ours, .. }) if !ours.is_empty() => {
            let waits = Step::needs(Kind::Zone, zone.id, "its link to go");
            return Ok(ours.into_iter().chain([waits]).collect());
        }
        Ok(Links { others: true, .. }) => "links of others",
        Ok(_) => match facts.inside(Kind::Record, &zone.id)? {
            Err(error) => return Ok(vec![unreadable(step, error)]),
            Ok(records) if records.iter().all(|r| is_ours_or_soa(want, r)) => return Ok(vec![step]),
            Ok(_) => "records of others",
        },
    };
    let records = take_records(&want.all_records, facts)?;
    // One that was put before this process began may come to be yet.
    let link = Some(link).filter(Step::gone);
    let stays = std::iter::once(step.leave(others));
    Ok(stays.chain(link).chain(records).collect())
}

fn take_records(records: &[Record], facts: &Facts) -> Result<Vec<Step>, Needs> {
    together(records.iter().map(|r| Ok(away(r, facts.look(Kind::Record, &r.id)?))))
}

/// The links that a list shows in a zone.
struct Links {
    /// Steps for those that were made under our name after it was looked for, or under that of a sibling, which is gone or goes too.
    ours: Vec<Step>,
    /// Whether there are any that are to stay.
    others: bool,
}

fn links_inside(want: &WantedZone, zone: &Value, facts: &Facts) -> Result<Result<Links, ArmError>, Needs> {
    let mut found = Links {
        ours: Vec::new(),
        others: false,
    };
    if links(zone) == Some(0) {
        return Ok(Ok(found));
    }
    let all = match facts.inside(Kind::ZoneLink, &want.zone.id)? {
        Err(error) => return Ok(Err(error.clone())),
        Ok(all) => all,
    };
    for body in all {
        let name = body.get("name").and_then(Value::as_str).unwrap_or_default();
        let mut named = std::iter::once(&want.link).chain(&want.shared_links);
        let Some(link) = named.find(|link| link.id.name().eq_ignore_ascii_case(name)) else {
            found.others = true;
            continue;
        };
        let seen = facts.new_look(Kind::ZoneLink, &link.id)?;
        let step = away(&proven_link(want, link, zone, facts)?, seen);
        if step.left() {
            found.others = true;
        } else if !step.gone() {
            found.ours.push(step);
        }
    }
    Ok(Ok(found))
}

fn is_ours_or_soa(want: &WantedZone, record: &Value) -> bool {
    let kind = record.get("type").and_then(Value::as_str).unwrap_or_default();
    let name = record.get("name").and_then(Value::as_str).unwrap_or_default();
    let ours = |r: &Record| r.id.name().eq_ignore_ascii_case(name) && r.ours(record);
    match kind.rsplit('/').next().unwrap_or_default() {
        "SOA" => name == "@",
        "A" => want.all_records.iter().any(ours),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
