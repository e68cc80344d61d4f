//! Zones, links and records of a custom resource: which are desired, which are owned, and the steps for them. Pure.

use std::net::IpAddr;

use serde_json::Value;

use super::siblings::SiblingSet;
use crate::api::markers::PRIVATE_ROUTER;
use crate::azure::arm::error::ArmError;
use crate::azure::arm::id::{IdError, ResourceId, SubscriptionId};
use crate::azure::body::progress;
use crate::azure::cloud::Observed;
use crate::azure::kinds::Kind;
use crate::azure::kinds::private_dns_zone::{PrivateDnsZone, links};
use crate::azure::kinds::record_set::{RecordSet, addresses};
use crate::azure::kinds::virtual_network_link::VirtualNetworkLink;
use crate::azure::plan::{Step, Why};
use crate::controllers::azure::{Facts, Needs};
use crate::engine::failure::Class;
use crate::engine::plan::{Verb, ensure_present};
use crate::engine::resource::{Owned, Progress, Resource};
use crate::hypershift::azure::names;
use crate::hypershift::identity::Identity;
use crate::hypershift::names::{INTERNAL_RECORDS, internal_zone as internal_zone_name};

/// Which of the two zones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The zone `<cluster>.hypershift.local`.
    Internal,
    /// The zone `<baseDomain>`.
    BaseDomain,
}

/// One zone with all that the cluster has in it.
#[derive(Debug, Clone)]
pub struct DesiredZone {
    /// Which of the two.
    pub part: Part,
    /// The zone itself.
    pub zone: PrivateDnsZone,
    /// Its link to the guest's network.
    pub link: VirtualNetworkLink,
    /// Links under the names of siblings: one of all is enough, and Azure accepts no second one.
    pub shared_links: Vec<VirtualNetworkLink>,
    /// Whether a sibling is to make the link.
    pub defers: bool,
    /// The records that this custom resource writes, without an address.
    pub records: Vec<RecordSet>,
    /// All records of the cluster that can be in the zone.
    pub all_records: Vec<RecordSet>,
    /// The records to delete with this custom resource though a sibling keeps using the zone; none if no sibling does.
    pub deleted_from_shared: Option<Vec<RecordSet>>,
    /// The address of the owned endpoint. A record that holds it is owned.
    pub known: Option<IpAddr>,
    /// Why the endpoint could not be read, if that is so.
    pub endpoint_unread: Option<ArmError>,
}

/// Where the zones are and for whom.
#[derive(Debug, Clone, Copy)]
pub struct DnsScope<'a> {
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
    /// The siblings that can share what is in the zone.
    pub sibling_set: SiblingSet<'a>,
}

/// The zones of a custom resource.
pub fn desired_zones(scope: DnsScope<'_>, identity: &Identity) -> Result<Vec<DesiredZone>, IdError> {
    let mut zones = Vec::new();
    if scope.cr == PRIVATE_ROUTER {
        zones.push(internal_zone(scope, identity)?);
    }
    if let Some(domain) = scope.base_domain {
        zones.push(base_domain_zone(scope, identity, domain)?);
    }
    Ok(zones)
}

fn internal_zone(scope: DnsScope<'_>, identity: &Identity) -> Result<DesiredZone, IdError> {
    let domain = internal_zone_name(&identity.name);
    let link = names::internal_link(scope.cr);
    let internal = zone(Part::Internal, scope, identity, &domain, &link)?;
    let records = records(&internal.zone.id, identity, &INTERNAL_RECORDS)?;
    Ok(DesiredZone {
        all_records: records.clone(),
        records,
        ..internal
    })
}

fn base_domain_zone(scope: DnsScope<'_>, identity: &Identity, domain: &str) -> Result<DesiredZone, IdError> {
    let cluster = &identity.name;
    let sibling_set = scope.sibling_set;
    let link = names::base_domain_link(scope.cr);
    let mut base = zone(Part::BaseDomain, scope, identity, domain, &link)?;
    let id = &base.zone.id;
    for sibling in sibling_set.other_linkers() {
        base.shared_links.push(VirtualNetworkLink {
            id: id.child(Kind::VirtualNetworkLink, &names::base_domain_link(sibling))?,
            ..base.link.clone()
        });
    }
    base.defers = sibling_set.defers();
    base.records = records(id, identity, &sibling_set.records(cluster))?;
    base.all_records = records(id, identity, &SiblingSet::all_records(cluster))?;
    if sibling_set.keeps() {
        base.deleted_from_shared = Some(records(id, identity, &sibling_set.records_to_delete(cluster))?);
    }
    Ok(base)
}

fn zone(
    part: Part,
    scope: DnsScope<'_>,
    identity: &Identity,
    domain: &str,
    link: &str,
) -> Result<DesiredZone, IdError> {
    let id = names::in_group(Kind::PrivateDnsZone, scope.subscription, scope.group, domain)?;
    Ok(DesiredZone {
        part,
        link: VirtualNetworkLink {
            id: id.child(Kind::VirtualNetworkLink, link)?,
            owner_tags: names::owner_tags(&identity.cluster_id, "vnet-link"),
            virtual_network: scope.network.clone(),
            proven: false,
        },
        zone: PrivateDnsZone {
            owner_tags: names::owner_tags(&identity.cluster_id, "private-dns-zone"),
            proven: false,
            id,
        },
        shared_links: Vec::new(),
        defers: false,
        records: Vec::new(),
        all_records: Vec::new(),
        deleted_from_shared: None,
        known: None,
        endpoint_unread: None,
    })
}

fn records(zone: &ResourceId, identity: &Identity, names: &[impl AsRef<str>]) -> Result<Vec<RecordSet>, IdError> {
    let mut records = Vec::new();
    for name in names {
        records.push(RecordSet {
            id: zone.child(Kind::RecordSet, name.as_ref())?,
            owner_tags: names::record_tags(&identity.cluster_id),
            address: None,
        });
    }
    Ok(records)
}

/// Why records without an address wait.
pub const NEEDS_ADDRESS: Why = Why::NeedsValue(Kind::PrivateEndpoint, "the endpoint's address");

/// Why a link waits that is left to `private-router`.
pub const NEEDS_LINK: Why = Why::Needs("the link of private-router");

/// Why what is in a zone waits that is not ready.
const NEEDS_ZONE: Why = Why::Needs("its zone");

/// The steps for a zone. Zone and link need no address, so they start before there is one.
pub fn build(desired: &DesiredZone, address: Option<IpAddr>, facts: &Facts) -> Result<Vec<Step>, Needs> {
    let observed = facts.read(Kind::PrivateDnsZone, &desired.zone.id)?;
    let zone = unless_unread(ensure_present(&proven(desired, facts)?, observed), desired, facts);
    let Some(body) = zone.ready().cloned() else {
        let link = Step::waits(Kind::VirtualNetworkLink, desired.link.id.clone(), NEEDS_ZONE);
        let records = desired.records.iter();
        let records = records.map(|record| Step::waits(Kind::RecordSet, record.id.clone(), NEEDS_ZONE));
        return Ok([zone, link].into_iter().chain(records).collect());
    };
    let mut reads = vec![(Kind::VirtualNetworkLink, &desired.link.id)];
    // While the endpoint is not read yet, its records are read in their turn all the same.
    if address.is_some() || desired.endpoint_unread.is_some() {
        reads.extend(desired.records.iter().map(|r| (Kind::RecordSet, &r.id)));
    }
    facts.reads(&reads)?;
    let mut steps = vec![zone, ensure_link(desired, &body, facts)?];
    for record in &desired.records {
        steps.push(match address {
            None => Step::waits(Kind::RecordSet, record.id.clone(), NEEDS_ADDRESS),
            Some(_) => ensure_present(
                &RecordSet {
                    address,
                    ..record.clone()
                },
                facts.read(Kind::RecordSet, &record.id)?,
            ),
        });
    }
    Ok(steps)
}

/// The zone, `proven` if a link and a record of the cluster are in it, or were when this process read it last. What is
/// in it is read only where the owner tags neither prove nor deny. What a status names proves nothing.
pub(super) fn proven(desired: &DesiredZone, facts: &Facts) -> Result<PrivateDnsZone, Needs> {
    let mut zone = desired.zone.clone();
    let observed = facts.read(Kind::PrivateDnsZone, &zone.id)?.found();
    if let Some(body) = observed.filter(|body| !zone.is_owned(body) && !zone.owner_tags.deny(body)) {
        zone.proven = facts.proven.contains(&zone.id)
            || (links(body) != Some(0) && has_our_link(desired, facts)? && has_our_address(desired, facts)?);
    }
    Ok(zone)
}

/// The step for the zone. It waits instead of leaving to others what something unread may prove the cluster's.
pub(super) fn unless_unread(step: Step, desired: &DesiredZone, facts: &Facts) -> Step {
    let denied = |body: &Value| desired.zone.owner_tags.deny(body);
    unless_proof_unread(step, denied, desired, facts)
}

/// Like [`unless_unread`], for a link in the zone.
pub(super) fn link_unless_unread(step: Step, link: &VirtualNetworkLink, desired: &DesiredZone, facts: &Facts) -> Step {
    let denied = |body: &Value| link.owner_tags.deny(body) || !link.leads_to_desired(body);
    unless_proof_unread(step, denied, desired, facts)
}

fn unless_proof_unread(step: Step, denied: impl Fn(&Value) -> bool, desired: &DesiredZone, facts: &Facts) -> Step {
    let is_open = step.left() && step.found.as_ref().is_some_and(|body| !denied(body));
    match unread_proof(desired, facts).filter(|_| is_open) {
        Some(error) => step.unreadable(error),
        None => step,
    }
}

/// Why something that may prove the zone the cluster's could not be read, if that is so.
fn unread_proof<'a>(desired: &'a DesiredZone, facts: &'a Facts) -> Option<&'a ArmError> {
    let links = std::iter::once(&desired.link).chain(&desired.shared_links);
    let ids = links
        .map(|link| &link.id)
        .chain(desired.all_records.iter().map(|r| &r.id));
    let mut failures = ids.filter_map(|id| match facts.reads.get(id)? {
        Observed::ReadFailed(error) => Some(error),
        _ => None,
    });
    failures.next().or(desired.endpoint_unread.as_ref())
}

fn has_our_link(desired: &DesiredZone, facts: &Facts) -> Result<bool, Needs> {
    for link in std::iter::once(&desired.link).chain(&desired.shared_links) {
        let found = facts.read(Kind::VirtualNetworkLink, &link.id)?.found();
        if found.is_some_and(|body| link.leads_to_desired(body) && !link.owner_tags.deny(body)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a record with a name of the cluster holds the address of the owned endpoint.
pub(super) fn has_our_address(desired: &DesiredZone, facts: &Facts) -> Result<bool, Needs> {
    let Some(address) = desired.known else {
        return Ok(false);
    };
    let reads: Vec<_> = desired.all_records.iter().map(|r| (Kind::RecordSet, &r.id)).collect();
    facts.reads(&reads)?;
    let address = address.to_string();
    let mut found = reads.iter().filter_map(|(_, id)| facts.reads.get(*id)?.found());
    Ok(found.any(|body| addresses(body).contains(&address)))
}

/// A link in an owned zone, `proven` if the zone has our owner tags or a record of the cluster.
pub(super) fn proven_link(
    desired: &DesiredZone,
    link: &VirtualNetworkLink,
    zone: &Value,
    facts: &Facts,
) -> Result<VirtualNetworkLink, Needs> {
    let mut link = link.clone();
    let observed = facts.read(Kind::VirtualNetworkLink, &link.id)?.found();
    if observed.is_some_and(|body| link.leads_to_desired(body) && !link.is_owned(body) && !link.owner_tags.deny(body)) {
        let known = desired.zone.owner_tags.prove(zone) || facts.proven.contains(&link.id);
        link.proven = known || has_our_address(desired, facts)?;
    }
    Ok(link)
}

/// The step for the link. One link from the zone to the network is enough: our own, a sibling's, or that of others.
fn ensure_link(desired: &DesiredZone, zone: &Value, facts: &Facts) -> Result<Step, Needs> {
    let observed = facts.read(Kind::VirtualNetworkLink, &desired.link.id)?;
    let own = ensure_present(&proven_link(desired, &desired.link, zone, facts)?, observed);
    let own = link_unless_unread(own, &desired.link, desired, facts);
    if !matches!(observed, Observed::Absent | Observed::WriteFailed(_)) {
        return Ok(own);
    }
    for link in &desired.shared_links {
        match facts.read(Kind::VirtualNetworkLink, &link.id)? {
            Observed::Found(body) if link.leads_to_desired(body) => return Ok(linked(link, link.id.clone(), body)),
            Observed::Found(_) | Observed::Absent | Observed::WriteFailed(_) => {}
            other => return Ok(ensure_present(link, other)),
        }
    }
    let refused = matches!(observed, Observed::WriteFailed(error) if error.class == Class::Invalid);
    if refused || links(zone).is_some_and(|count| count > 0) {
        let all = match facts.inside(Kind::VirtualNetworkLink, &desired.zone.id)? {
            Ok(all) => all,
            Err(error) => return Ok(own.unreadable(error)),
        };
        if let Some(step) = link_of_others(desired, all) {
            return Ok(step);
        }
    }
    if desired.defers {
        return Ok(Step::waits(
            Kind::VirtualNetworkLink,
            desired.link.id.clone(),
            NEEDS_LINK,
        ));
    }
    Ok(own)
}

/// The step for a link of others that leads to the desired network, if one of these does.
fn link_of_others(desired: &DesiredZone, all: &[Value]) -> Option<Step> {
    let body = all.iter().find(|body| desired.link.leads_to_desired(body))?;
    let name = body.get("name")?.as_str()?;
    let id = desired.zone.id.child(Kind::VirtualNetworkLink, name).ok()?;
    Some(linked(&desired.link, id, body))
}

/// The step for an existing link that does what our own would do.
fn linked(own: &VirtualNetworkLink, id: ResourceId, body: &Value) -> Step {
    let (verb, why) = match progress(body) {
        Progress::InProgress if own.moved_by_others(body) => (Verb::Keep, Why::UpToDate),
        Progress::InProgress | Progress::Deleting => (Verb::Wait, Why::InProgress),
        Progress::Ready | Progress::Failed => (Verb::Keep, Why::UpToDate),
    };
    Step {
        kind: Kind::VirtualNetworkLink,
        key: id,
        verb,
        why,
        found: Some(body.clone()),
    }
}

/// The zone that a step belongs to, if it is one of these.
pub fn part_of(zones: &[DesiredZone], step: &Step) -> Option<Part> {
    let zone = if step.kind == Kind::PrivateDnsZone {
        Some(step.key.clone())
    } else {
        step.key.parent()
    };
    zones
        .iter()
        .find(|desired| Some(&desired.zone.id) == zone.as_ref())
        .map(|desired| desired.part)
}
