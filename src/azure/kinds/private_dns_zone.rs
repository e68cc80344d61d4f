//! The private DNS zone.

use std::time::Duration;

use hyperlink_engine::kind_rules::ListRules;
use hyperlink_engine::resource::{Difference, Owned, Resource};
use serde_json::{Value, json};

use super::{Kind, KindSpec, ListScope, NETWORK, Rules};
use crate::arm::id::ResourceId;
use crate::body::{base, mark, set};
use crate::cloud::Arm;
use crate::owner_tags::OwnerTags;

/// The api-version of private DNS.
pub(super) const DNS_API: &str = "2024-06-01";
/// The service of private DNS, which counts requests on its own.
pub(super) const DNS_SERVICE: &str = "Microsoft.Network/privateDnsZones";

/// How many reads private DNS grants a subscription in five minutes.
///
/// Source: <https://learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling>.
pub(super) const DNS_READS: u32 = 500;

/// What generic code has to know of private DNS zones.
pub const SPEC: KindSpec = KindSpec {
    label: "private_dns_zone",
    provider: NETWORK,
    path: &["privateDnsZones"],
    api_version: DNS_API,
    service: DNS_SERVICE,
    reads_in_5_minutes: Some(DNS_READS),
    rules: Rules {
        // The time between two reads of a private DNS zone in progress if Azure gives no time. A write takes up to half
        // a minute.
        // Source: recorded traffic of Azure, as in `e2e/armsim/src/dns/zone.rs`.
        pace: Duration::from_secs(10),
        list: Some(ListRules {
            of: ListScope::Subscription,
            min_served: 10,
            rows: None,
            suffices: None,
        }),
        create_if_new: true,
        // A zone is not deleted with what others put into it after it was read. Other kinds are not known to hold
        // anything.
        delete_if_unchanged: true,
        in_use: Some("CannotDeleteResource"),
        numbers_inside: Some(numbers_inside),
        ..Rules::DEFAULT
    },
    ..KindSpec::DEFAULT
};

/// The limit of tags on private DNS resources.
pub(super) const MAX_DNS_TAGS: usize = 15;

/// A desired private DNS zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateDnsZone {
    /// The ARM id; its name is the zone's domain.
    pub id: ResourceId,
    /// Tags, one of which proves ownership.
    pub owner_tags: OwnerTags,
    /// Whether its structure proves that it is owned: this cluster's link and records are in it, or were when this
    /// process read it.
    pub proven: bool,
}

/// How many networks are linked to the zone, if the body says so.
pub fn links(body: &Value) -> Option<u64> {
    body.pointer("/properties/numberOfVirtualNetworkLinks")?.as_u64()
}

/// The numbers that change when others add or remove a record set or a link, or let a link register names. A link cannot
/// be led to another network. A zone's own SOA record is not counted.
fn numbers_inside(body: &Value) -> Vec<(Kind, u64)> {
    let number = |name: &str| body["properties"][name].as_u64();
    let registering = number("numberOfVirtualNetworkLinksWithRegistration").unwrap_or(0);
    let records = number("numberOfRecordSets").map(|records| (Kind::RecordSet, records.saturating_sub(1)));
    let links = links(body).map(|links| (Kind::VirtualNetworkLink, links << 32 | registering));
    records.into_iter().chain(links).collect()
}

/// How many rows a list of what is in the zone has, at most. A zone of somebody else may be very large.
pub(super) fn rows(body: &Value) -> u64 {
    count(body, "numberOfRecordSets").max(count(body, "numberOfVirtualNetworkLinks"))
}

fn count(body: &Value, name: &str) -> u64 {
    body["properties"][name].as_u64().unwrap_or(u64::MAX)
}

impl Owned<Arm> for PrivateDnsZone {
    fn kind(&self) -> Kind {
        Kind::PrivateDnsZone
    }

    fn key(&self) -> &ResourceId {
        &self.id
    }

    fn is_owned(&self, current: &Value) -> bool {
        self.owner_tags.prove(current) || (self.proven && !self.owner_tags.deny(current))
    }
}

impl Resource<Arm> for PrivateDnsZone {
    /// Every PUT of Hyperlink carries the owner tags; HyperShift's PUTs, which do not end, remove them.
    fn moved_by_others(&self, current: &Value) -> bool {
        !self.owner_tags.prove(current)
    }

    fn differs(&self, _: &Value) -> Vec<Difference> {
        Vec::new()
    }

    fn body(&self, current: Option<&Value>) -> Value {
        let mut body = base(current);
        set(&mut body, &["location"], json!("global"));
        mark(&mut body, "tags", &self.owner_tags.all(), MAX_DNS_TAGS);
        body
    }
}
