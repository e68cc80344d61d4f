//! Zones, links and records of a custom resource: what is wanted, how it comes about and how it goes. Pure.

use std::net::IpAddr;

use serde_json::Value;

use crate::api::markers::PRIVATE_ROUTER;
use crate::azure::id::{IdError, ResourceId, SubscriptionId};
use crate::azure::mark::Marks;
use crate::azure::plan::{Step, Verb, Why, away, toward};
use crate::azure::record::Record;
use crate::azure::resource::{Kind, Resource};
use crate::azure::zone::Zone;
use crate::azure::zone_link::ZoneLink;
use crate::controllers::facts::{Facts, Needs, together};
use crate::controllers::identity::Identity;
use crate::names;

/// Which of the two zones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// `<cluster>.hypershift.local`
    Internal,
    /// `<baseDomain>`
    BaseDomain,
}

/// One zone with all that is ours in it.
#[derive(Debug, Clone)]
pub struct WantedZone {
    /// Which of the two.
    pub part: Part,
    /// The zone.
    pub zone: Zone,
    /// Its link to the guest's network.
    pub link: ZoneLink,
    /// Its records, without an address.
    pub records: Vec<Record>,
}

/// Where the zones are and for whom.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The custom resource's name.
    pub cr: &'a str,
    /// The guest's subscription.
    pub subscription: &'a SubscriptionId,
    /// The guest's resource group.
    pub group: &'a str,
    /// The guest's virtual network.
    pub network: &'a ResourceId,
    /// The base domain, if there is one.
    pub base_domain: Option<&'a str>,
    /// Zones that the status names: they were seen, and ours.
    pub recorded: &'a [String],
}

/// The zones of a custom resource.
pub fn wanted(place: Place<'_>, identity: &Identity) -> Result<Vec<WantedZone>, IdError> {
    let mut zones = Vec::new();
    if place.cr == PRIVATE_ROUTER {
        let records = names::INTERNAL_RECORDS.map(str::to_owned);
        let link = names::internal_link(place.cr);
        zones.push(zone(
            Part::Internal,
            place,
            identity,
            &names::internal_zone(&identity.name),
            &link,
            &records,
        )?);
    }
    if let Some(domain) = place.base_domain {
        let records = names::base_domain_records(&identity.name);
        let link = names::base_domain_link(place.cr);
        zones.push(zone(Part::BaseDomain, place, identity, domain, &link, &records)?);
    }
    Ok(zones)
}

fn zone(
    part: Part,
    place: Place<'_>,
    identity: &Identity,
    domain: &str,
    link: &str,
    records: &[String],
) -> Result<WantedZone, IdError> {
    let id = names::in_group(Kind::Zone, place.subscription, place.group, domain)?;
    let is_recorded = |text: &String| ResourceId::parse_as(Kind::Zone, text).is_ok_and(|found| found == id);
    let marks = |resource_type| names::marks(&identity.cluster_id, resource_type);
    let record = |name: &String| {
        let marks: Marks = names::record_marks(&identity.cluster_id);
        Ok(Record {
            id: id.child(Kind::Record, name)?,
            marks,
            address: None,
            zone_is_ours: true,
        })
    };
    Ok(WantedZone {
        part,
        link: ZoneLink {
            id: id.child(Kind::ZoneLink, link)?,
            marks: marks("vnet-link"),
            virtual_network: place.network.clone(),
            zone_is_ours: true,
        },
        records: records.iter().map(record).collect::<Result<_, IdError>>()?,
        zone: Zone {
            marks: marks("private-dns-zone"),
            recorded: place.recorded.iter().any(is_recorded),
            id,
        },
    })
}

/// Steps towards a zone. Link and zone need no address, so they start before there is one.
pub fn build(want: &WantedZone, address: Option<IpAddr>, facts: &Facts) -> Result<Vec<Step>, Needs> {
    let zone = toward(&want.zone, facts.look(Kind::Zone, &want.zone.id)?);
    let ready = zone.settled().is_some();
    let mut steps = vec![zone];
    if !ready {
        steps.push(Step::needs(Kind::ZoneLink, want.link.id.clone(), "its zone"));
        steps.extend(
            want.records
                .iter()
                .map(|r| Step::needs(Kind::Record, r.id.clone(), "its zone")),
        );
        return Ok(steps);
    }
    let mut looks = vec![(Kind::ZoneLink, &want.link.id)];
    if address.is_some() {
        looks.extend(want.records.iter().map(|r| (Kind::Record, &r.id)));
    }
    facts.looks(&looks)?;
    steps.push(toward(&want.link, facts.look(Kind::ZoneLink, &want.link.id)?));
    for record in &want.records {
        steps.push(match address {
            None => Step::needs(Kind::Record, record.id.clone(), "the endpoint's address"),
            Some(_) => toward(
                &Record {
                    address,
                    ..record.clone()
                },
                facts.look(Kind::Record, &record.id)?,
            ),
        });
    }
    Ok(steps)
}

/// Steps that take a zone away: first our link, then the zone with our records in it.
///
/// A zone in which others have links or records stays, without what is ours.
pub fn teardown(want: &WantedZone, facts: &Facts) -> Result<Vec<Step>, Needs> {
    let link = away(&want.link, facts.look(Kind::ZoneLink, &want.link.id)?);
    if !link.gone() && !link.left() {
        return Ok(vec![
            link,
            Step::needs(Kind::Zone, want.zone.id.clone(), "its link to go"),
        ]);
    }
    let mut zone = away(&want.zone, facts.look(Kind::Zone, &want.zone.id)?);
    if zone.verb != Verb::Delete {
        return Ok(vec![zone]);
    }
    match others_inside(want, &zone, facts)? {
        Err(error) => {
            (zone.verb, zone.why) = (Verb::Wait, Why::Error(error));
            Ok(vec![zone])
        }
        Ok(None) => Ok(vec![zone]),
        Ok(Some(what)) => {
            let records = together(
                want.records
                    .iter()
                    .map(|r| Ok(away(r, facts.look(Kind::Record, &r.id)?))),
            )?;
            Ok(std::iter::once(zone.leave(what)).chain(records).collect())
        }
    }
}

type Read<T> = Result<T, crate::azure::error::ArmError>;

/// What others have in a zone whose link of ours is gone.
fn others_inside(want: &WantedZone, zone: &Step, facts: &Facts) -> Result<Read<Option<&'static str>>, Needs> {
    let count = zone
        .found
        .as_ref()
        .and_then(|z| z.pointer("/properties/numberOfVirtualNetworkLinks"))
        .and_then(Value::as_u64);
    if count != Some(0) {
        match facts.inside(Kind::ZoneLink, &want.zone.id)? {
            Err(error) => return Ok(Err(error.clone())),
            Ok(links) if !links.is_empty() => return Ok(Ok(Some("links of others"))),
            Ok(_) => {}
        }
    }
    Ok(match facts.inside(Kind::Record, &want.zone.id)? {
        Err(error) => Err(error.clone()),
        Ok(records) => Ok(records
            .iter()
            .any(|r| !is_ours_or_soa(want, r))
            .then_some("records of others")),
    })
}

fn is_ours_or_soa(want: &WantedZone, record: &Value) -> bool {
    let kind = record.get("type").and_then(Value::as_str).unwrap_or_default();
    let name = record.get("name").and_then(Value::as_str).unwrap_or_default();
    let ours = |r: &Record| r.id.name().eq_ignore_ascii_case(name) && r.ours(record);
    match kind.rsplit('/').next().unwrap_or_default() {
        "SOA" => name == "@",
        "A" => want.records.iter().any(ours),
        _ => false,
    }
}

/// The zone of ours that a step belongs to.
pub fn part_of(zones: &[WantedZone], step: &Step) -> Option<Part> {
    let zone = if step.kind == Kind::Zone {
        Some(step.id.clone())
    } else {
        step.id.parent()
    };
    zones
        .iter()
        .find(|want| Some(&want.zone.id) == zone.as_ref())
        .map(|want| want.part)
}
