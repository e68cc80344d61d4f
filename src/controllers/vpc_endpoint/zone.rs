//! Which hosted zone is the cluster's internal one. HyperShift's installer makes it; Hyperlink only finds it. Pure.

use std::sync::Arc;

use super::inputs::Guest;
use super::plan::{Basis, Stop};
use crate::api::{AWSEndpointService, ConditionType, Reason};
use crate::aws::cloud::Observed;
use crate::aws::kinds::Kind;
use crate::aws::kinds::records::Records;
use crate::aws::route53::hosted_zone::HostedZone;
use crate::aws::slot::{Scope, Slot};
use crate::controllers::aws::Needs;
use crate::controllers::aws::lists::ZoneLists;
use crate::engine::failure::Class;
use crate::engine::resource::Resource;
use crate::hypershift::aws::ids::is_zone_id;
use crate::hypershift::aws::intent::CpoIntent;
use crate::hypershift::aws::problem;
use crate::hypershift::aws::scopes::Access;
use crate::hypershift::conditions;
use crate::hypershift::names::internal_zone;
use crate::hypershift::problem::Problem;

/// The most zones of one name that are searched for the cluster's records.
const MOST_SEARCHED: usize = 5;

/// AWS's code for a zone that is not there.
const NO_SUCH_ZONE: &str = "NoSuchHostedZone";

/// The id of the zone for these records. Without `target`, the DNS name to which they lead, nothing tells zones of one
/// name apart.
pub(super) fn find(
    basis: Basis<'_>,
    guest: &Guest,
    recorded: &CpoIntent,
    names: &[&str],
    target: Option<&Records>,
) -> Result<String, Stop> {
    if let Some(given) = &guest.zone {
        return Ok(given.clone());
    }
    let status = basis.cr.status.as_ref();
    let shown = status.and_then(|status| status.dns_zone_id.as_deref());
    let shown = shown.filter(|zone| is_zone_id(zone));
    let access = &basis.inputs.access;
    for known in [recorded.zone_id(), shown].into_iter().flatten() {
        if access.allows_zone(known) && !is_gone(basis, &guest.zone_account, known, names)? {
            return Ok(known.to_owned());
        }
    }
    let name = internal_zone(&guest.identity.name);
    let zones = match basis.facts.hosted_zones(&guest.zone_account)? {
        Ok(zones) => zones,
        Err(error) => {
            let problem = Problem::unread(Reason::HostedZoneNotFound, "the hosted zones", error);
            return Err(problem.requeue_after(error.delay(1)).into());
        }
    };
    let fits = |zone: &&HostedZone| zone.private && zone.name.eq_ignore_ascii_case(&name);
    let named = zones.last.iter().filter(fits);
    let (found, outside): (Vec<&HostedZone>, Vec<&HostedZone>) = named.partition(|zone| access.allows_zone(&zone.id));
    if let (Access::Allowed(scopes), [], [zone, ..]) = (access, found.as_slice(), outside.as_slice()) {
        scopes.check_zone(&format!("hosted zone {name}"), &zone.id)?;
    }
    match found.as_slice() {
        [only] => Ok(only.id.clone()),
        [] => Err(problem::no_hosted_zone(&guest.identity.name).into()),
        several => {
            let holding = match target {
                Some(target) => with_records(basis, guest, several, names, target)?,
                None => None,
            };
            holding.ok_or_else(|| problem::several_hosted_zones(&guest.identity.name).into())
        }
    }
}

/// Whether a zone is not there any more. A read shows no records in it then, as it does in an empty one, or is denied,
/// because the policies name one zone, and a write says that there is no such zone; so the list of zones is asked. One
/// list suffices only after such a write: reads and lists may be behind together.
pub(super) fn is_gone(basis: Basis<'_>, account: &Scope, zone: &str, names: &[&str]) -> Result<bool, Needs> {
    let slot = Slot::records(account, zone, names);
    let is_written = match basis.facts.reads.get(&slot) {
        Some(Observed::WriteFailed(error)) if error.code == NO_SUCH_ZONE => true,
        Some(Observed::ReadFailed(error)) if error.class == Class::Denied => false,
        Some(Observed::Absent) if had_records(basis.cr, zone) => false,
        _ => return Ok(false),
    };
    let lists = basis.facts.hosted_zones(account)?.as_ref();
    let is_missing = |lists: &Arc<ZoneLists>| match is_written {
        true => !lists.shows(zone),
        false => lists.lack(zone),
    };
    Ok(lists.is_ok_and(is_missing))
}

/// Whether the zone had the cluster's records, or was to have them and AWS did not take them, or it was found to be
/// gone.
fn had_records(cr: &AWSEndpointService, zone: &str) -> bool {
    const REASONS: [Reason; 3] = [
        Reason::RecordsFailed,
        Reason::HostedZoneNotFound,
        Reason::AmbiguousHostedZone,
    ];
    cr.status.as_ref().is_some_and(|status| {
        let condition = conditions::get(&status.conditions, ConditionType::AWSEndpointAvailable);
        let reason = condition.map(|condition| condition.reason.as_str());
        REASONS.iter().any(|one| reason == Some(one.as_str())) || status.dns_zone_id.as_deref() == Some(zone)
    })
}

/// The zone in which the cluster's records are already.
fn with_records(
    basis: Basis<'_>,
    guest: &Guest,
    zones: &[&HostedZone],
    names: &[&str],
    target: &Records,
) -> Result<Option<String>, Needs> {
    for zone in zones.iter().take(MOST_SEARCHED) {
        let slot = Slot::records(&guest.zone_account, &zone.id, names);
        let found = basis.facts.read(Kind::Records, &slot)?.found();
        let desired = Records { slot, ..target.clone() };
        if found.is_some_and(|body| desired.differs(body).is_empty()) {
            return Ok(Some(zone.id.clone()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
