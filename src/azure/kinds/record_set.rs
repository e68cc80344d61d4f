//! The A record set in a private DNS zone.

use std::collections::BTreeSet;
use std::net::IpAddr;

use hyperlink_engine::kind_rules::{ListRules, Resync};
use hyperlink_engine::resource::{Difference, Owned, Resource};
use serde_json::{Value, json};

use super::private_dns_zone::{DNS_API, DNS_READS, DNS_SERVICE, rows};
use super::{Kind, KindSpec, ListScope, NETWORK, Rules};
use crate::arm::id::ResourceId;
use crate::body::{base, mark, set};
use crate::cloud::Arm;
use crate::owner_tags::OwnerTags;

/// What generic code has to know of A record sets.
pub const SPEC: KindSpec = KindSpec {
    label: "record_set",
    provider: NETWORK,
    path: &["privateDnsZones", "A"],
    api_version: DNS_API,
    service: DNS_SERVICE,
    reads_in_5_minutes: Some(DNS_READS),
    // Of every type, not only A.
    all_in_parent: Some("ALL"),
    rules: Rules {
        resync: Resync::Record,
        list: Some(ListRules {
            of: ListScope::Parent,
            min_served: 2,
            rows: Some(rows),
            suffices: None,
        }),
        create_if_new: true,
        written_at_once: true,
        ..Rules::DEFAULT
    },
    ..KindSpec::DEFAULT
};

/// The time for which resolvers may keep an answer, in seconds.
const TTL: u64 = 300;
/// The limit of metadata entries on a record set.
const MAX_METADATA: usize = 10;

/// A desired A record set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordSet {
    /// The ARM id; its name is relative to the zone.
    pub id: ResourceId,
    /// Metadata, one entry of which names the owner.
    pub owner_tags: OwnerTags,
    /// The only address that it should have.
    pub address: Option<IpAddr>,
}

/// The addresses of a record set.
pub fn addresses(body: &Value) -> BTreeSet<String> {
    let list = body.pointer("/properties/aRecords").and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(|r| r.get("ipv4Address").and_then(Value::as_str))
        .map(str::to_owned)
        .collect()
}

impl Owned<Arm> for RecordSet {
    fn kind(&self) -> Kind {
        Kind::RecordSet
    }

    fn key(&self) -> &ResourceId {
        &self.id
    }

    fn is_owned(&self, current: &Value) -> bool {
        let registered = current
            .pointer("/properties/isAutoRegistered")
            .and_then(Value::as_bool)
            .unwrap_or(false);
        !registered && !self.owner_tags.deny(current)
    }
}

impl Resource<Arm> for RecordSet {
    fn differs(&self, current: &Value) -> Vec<Difference> {
        let desired: BTreeSet<String> = self.address.iter().map(ToString::to_string).collect();
        let ttl = current.pointer("/properties/ttl").and_then(Value::as_u64);
        let rules = [(addresses(current) != desired, "aRecords"), (ttl != Some(TTL), "ttl")];
        rules
            .into_iter()
            .filter_map(|(differs, field)| differs.then_some(Difference::of(field)))
            .collect()
    }

    fn body(&self, current: Option<&Value>) -> Value {
        let mut body = base(current);
        let records: Vec<Value> = self
            .address
            .iter()
            .map(|a| json!({"ipv4Address": a.to_string()}))
            .collect();
        set(&mut body, &["properties", "ttl"], json!(TTL));
        set(&mut body, &["properties", "aRecords"], json!(records));
        if let Some(properties) = body.get_mut("properties") {
            mark(properties, "metadata", &self.owner_tags.all(), MAX_METADATA);
        }
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn desired() -> RecordSet {
        let zone = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/privateDnsZones/z.z";
        RecordSet {
            id: ResourceId::parse(&format!("{zone}/A/*.apps")).unwrap(),
            owner_tags: OwnerTags {
                owner: ("cluster".into(), "x".into()),
                ..OwnerTags::default()
            },
            address: "10.0.0.5".parse().ok(),
        }
    }

    #[test]
    fn foreign_value_beside_the_desired_one_is_drift() {
        let mut body = desired().body(None);
        assert_eq!(desired().differs(&body), []);
        set(
            &mut body,
            &["properties", "aRecords"],
            json!([{"ipv4Address": "10.0.0.5"}, {"ipv4Address": "6.6.6.6"}]),
        );
        assert_eq!(desired().differs(&body), [Difference::of("aRecords")]);
        assert_eq!(desired().differs(&desired().body(Some(&body))), []);
    }

    #[test]
    fn foreign_record_is_refused() {
        let body =
            |metadata: Value| json!({"properties": {"metadata": metadata, "aRecords": [{"ipv4Address": "1.1.1.1"}]}});
        assert!(!desired().is_owned(&body(json!({"cluster": "another"}))));
        // Records are read only in a zone that is owned.
        assert!(desired().is_owned(&body(Value::Null)));
    }

    #[test]
    fn automatically_registered_record_is_foreign() {
        assert!(!desired().is_owned(&json!({"properties": {"isAutoRegistered": true}})));
    }
}
