//! The CNAME records of a cluster's names in a private hosted zone, written in one batch. They are there while one of
//! them is.
//!
//! Body: `Records`, by name in lower case: `Type`, `TTL` in seconds, `Values`, and `SetIdentifier` where a routing
//! policy chooses.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use hyperlink_engine::kind_rules::Resync;
use hyperlink_engine::resource::{Difference, Owned, Resource};
use serde_json::{Value, json};

use super::{Kind, Rules};
use crate::cloud::Aws;
use crate::slot::Slot;

/// What the engine has to know of records.
pub const RULES: Rules = Rules {
    resync: Resync::Record,
    create_if_new: true,
    written_at_once: true,
    deleted_at_once: true,
    ..Rules::DEFAULT
};

/// The time for which resolvers may keep an answer, in seconds.
const TTL: u64 = 300;

/// The desired records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Records {
    /// The slot, with the hosted zone and the names.
    pub slot: Slot,
    /// The DNS name of the endpoint, to which they all lead.
    pub target: String,
    /// The end of the names that endpoints have, for example `vpce.amazonaws.com`: a record that leads to another one
    /// is drift.
    pub endpoint_suffix: String,
}

/// The records that the body shows, by name.
pub fn shown(body: &Value) -> BTreeMap<&str, &Value> {
    let records = body["Records"].as_object().into_iter().flatten();
    records.map(|(name, record)| (name.as_str(), record)).collect()
}

impl Records {
    /// The names whose record leads to no endpoint. Their records are neither put nor deleted.
    pub fn foreign<'a>(&self, current: &'a Value) -> BTreeSet<&'a str> {
        let records = shown(current).into_iter();
        let foreign = records.filter(|(_, record)| !self.leads_to_an_endpoint(record));
        foreign.map(|(name, _)| name).collect()
    }

    /// Whether a record is missing or wrong that is not foreign.
    fn is_incomplete(&self, current: &Value) -> bool {
        let (records, foreign) = (shown(current), self.foreign(current));
        let mut own = self.slot.record_names().filter(|name| !foreign.contains(name));
        !own.all(|name| records.get(name).is_some_and(|record| self.is_right(record)))
    }

    /// Whether a record has the only value that it should have.
    fn is_right(&self, record: &Value) -> bool {
        record["Type"] == "CNAME"
            && record["TTL"] == TTL
            && self.leads_to(record, |value| value.eq_ignore_ascii_case(&self.target))
    }

    /// Whether one of the records that the body shows leads to the target.
    pub fn lead_to_target(&self, current: &Value) -> bool {
        let is_target = |value: &str| value.eq_ignore_ascii_case(&self.target);
        shown(current).values().any(|record| self.leads_to(record, is_target))
    }

    /// Whether the record leads to an endpoint, this cluster's or another.
    fn leads_to_an_endpoint(&self, record: &Value) -> bool {
        let suffix = format!(".{}", self.endpoint_suffix.to_ascii_lowercase());
        let is_routed = record.get("SetIdentifier").is_some();
        !is_routed && record["Type"] == "CNAME" && self.leads_to(record, |value| value.ends_with(&suffix))
    }

    /// Whether this is true of each value, of which there is one at least. Names are in lower case, without a last dot.
    fn leads_to(&self, record: &Value, is_so: impl Fn(&str) -> bool) -> bool {
        let values = record["Values"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_so = |value: &Value| {
            let name = value.as_str().unwrap_or_default().to_ascii_lowercase();
            is_so(name.trim_end_matches('.'))
        };
        !values.is_empty() && values.iter().all(is_so)
    }
}

impl Owned<Aws> for Records {
    fn kind(&self) -> Kind {
        Kind::Records
    }

    fn key(&self) -> &Slot {
        &self.slot
    }

    /// Each leads to an endpoint, or at least one beside foreign ones has to be put. Records are read only in a zone
    /// that is the cluster's.
    fn is_owned(&self, current: &Value) -> bool {
        self.foreign(current).is_empty() || self.is_incomplete(current)
    }
}

impl Resource<Aws> for Records {
    fn differs(&self, current: &Value) -> Vec<Difference> {
        let differs = self.is_incomplete(current);
        differs.then_some(Difference::of("Records")).into_iter().collect()
    }

    fn body(&self, current: Option<&Value>) -> Value {
        let foreign = current.map(|current| self.foreign(current)).unwrap_or_default();
        let record = json!({"Type": "CNAME", "TTL": TTL, "Values": [self.target]});
        let names = self.slot.record_names().filter(|name| !foreign.contains(name));
        let records: BTreeMap<&str, &Value> = names.map(|name| (name, &record)).collect();
        json!({"Records": records})
    }
}

/// The first two labels of the DNS name of an endpoint, which begin with its id and are that of its endpoint service.
///
/// Format: <https://docs.aws.amazon.com/vpc/latest/privatelink/privatelink-access-saas.html#interface-endpoint-dns-hostnames-saas>
fn labels(name: &str) -> Option<(&str, &str)> {
    let (endpoint, rest) = name.split_once('.')?;
    let (service, _) = rest.split_once('.')?;
    (endpoint.starts_with("vpce-") && service.starts_with("vpce-svc-")).then_some((endpoint, service))
}

/// The records of a cluster that are not desired any more: only those that lead to an endpoint of its own, the one that
/// it has or one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleasedRecords {
    /// The slot, with the hosted zone and the names.
    pub slot: Slot,
    /// The DNS names of the endpoint.
    pub endpoint_names: Vec<String>,
    /// The ids of endpoints whose DNS names nothing shows any more.
    pub endpoint_ids: Vec<String>,
    /// The ids of the cluster's endpoint services: any endpoint to one of them was its own.
    pub service_ids: Vec<String>,
}

impl Owned<Aws> for ReleasedRecords {
    fn kind(&self) -> Kind {
        Kind::Records
    }

    fn key(&self) -> &Slot {
        &self.slot
    }

    /// One of them at least is.
    fn is_owned(&self, current: &Value) -> bool {
        shown(current).values().any(|record| self.is_own(record))
    }

    fn own_part<'a>(&self, current: &'a Value) -> Cow<'a, Value> {
        let mut records = shown(current);
        let all = records.len();
        records.retain(|_, record| self.is_own(record));
        match records.is_empty() || records.len() == all {
            true => Cow::Borrowed(current),
            false => Cow::Owned(json!({"Records": records})),
        }
    }
}

impl ReleasedRecords {
    /// Whether an endpoint is known to which they may lead.
    pub fn is_recognisable(&self) -> bool {
        !(self.endpoint_names.is_empty() && self.endpoint_ids.is_empty())
    }

    /// Whether each value of the record is a name of an own endpoint.
    fn is_own(&self, record: &Value) -> bool {
        let values = record["Values"].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_name = |value: &Value| self.is_name(value.as_str().unwrap_or_default());
        let is_routed = record.get("SetIdentifier").is_some();
        !is_routed && !values.is_empty() && values.iter().all(is_name)
    }

    fn is_name(&self, name: &str) -> bool {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        if self.endpoint_names.iter().any(|own| own.eq_ignore_ascii_case(&name)) {
            return true;
        }
        labels(&name).is_some_and(|(endpoint, service)| {
            let begins_with = |id: &String| endpoint.strip_prefix(id).is_some_and(|rest| rest.starts_with('-'));
            self.endpoint_ids.iter().any(begins_with) || self.service_ids.iter().any(|id| id == service)
        })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::slot::Scope;

    const ENDPOINT: &str = "vpce-1-abc.vpce-svc-1.us-east-1.vpce.amazonaws.com";
    const OTHER: &str = "vpce-2-abc.vpce-svc-2.us-east-1.vpce.amazonaws.com";

    fn slot() -> Slot {
        let scope = Scope::own("123456789012", "us-east-1");
        Slot::records(&scope, "Z1", &["api.c.hypershift.local", "*.apps.c.hypershift.local"])
    }

    fn desired() -> Records {
        Records {
            slot: slot(),
            target: ENDPOINT.to_owned(),
            endpoint_suffix: "vpce.amazonaws.com".to_owned(),
        }
    }

    fn with_api(record: Value) -> Value {
        let mut body = desired().body(None);
        body["Records"]["api.c.hypershift.local"] = record;
        body
    }

    #[test]
    fn records_as_aws_shows_them_are_as_desired() {
        let dotted = json!({"Type": "CNAME", "TTL": 300, "Values": [format!("{}.", ENDPOINT.to_uppercase())]});
        assert_eq!(desired().differs(&with_api(dotted)), []);
    }

    #[rstest]
    #[case::other_endpoint(json!({"Type": "CNAME", "TTL": 300, "Values": [OTHER]}), true)]
    #[case::other_ttl(json!({"Type": "CNAME", "TTL": 60, "Values": [ENDPOINT]}), true)]
    #[case::other_name(json!({"Type": "CNAME", "TTL": 300, "Values": ["mine.example"]}), false)]
    #[case::suffix_of_a_label(json!({"Type": "CNAME", "TTL": 300, "Values": ["evilvpce.amazonaws.com"]}), false)]
    #[case::address(json!({"Type": "A", "TTL": 300, "Values": ["10.0.0.1"]}), false)]
    #[case::alias(json!({"Type": "CNAME", "Values": []}), false)]
    fn only_a_record_to_an_endpoint_is_put_again(#[case] record: Value, #[case] owned: bool) {
        let body = with_api(record);
        assert_eq!(desired().differs(&body).is_empty(), !owned);
        assert_eq!(desired().is_owned(&body), owned);
        let put = desired().body(Some(&body));
        assert_eq!(put["Records"].get("api.c.hypershift.local").is_some(), owned);
    }

    #[test]
    fn missing_record_is_put() {
        let mut body = desired().body(None);
        body["Records"]
            .as_object_mut()
            .unwrap()
            .remove("api.c.hypershift.local");
        assert!(desired().is_owned(&body));
        assert_eq!(desired().differs(&body), [Difference::of("Records")]);
    }

    #[test]
    fn only_records_to_the_own_endpoint_are_released() {
        let released = ReleasedRecords {
            slot: slot(),
            endpoint_names: vec![ENDPOINT.to_owned()],
            endpoint_ids: Vec::new(),
            service_ids: Vec::new(),
        };
        let own = desired().body(None);
        assert!(released.is_owned(&own));
        assert_eq!(*released.own_part(&own), own);
        let other = json!({"Type": "CNAME", "TTL": 300, "Values": [OTHER]});
        let mut mixed = with_api(other.clone());
        let part = released.own_part(&mixed);
        assert!(shown(&part).into_keys().eq(["*.apps.c.hypershift.local"]), "{part}");
        mixed["Records"]["*.apps.c.hypershift.local"] = other;
        assert!(!released.is_owned(&released.own_part(&mixed)));
    }

    #[rstest]
    #[case::own_service(&[], &["vpce-svc-1"], true)]
    #[case::own_id(&["vpce-1"], &[], true)]
    #[case::start_of_an_id(&["vpce-"], &[], false)]
    #[case::other_service(&["vpce-2"], &["vpce-svc-2", "vpce-svc"], false)]
    fn records_to_an_endpoint_of_before_are_released(
        #[case] endpoint_ids: &[&str],
        #[case] service_ids: &[&str],
        #[case] owned: bool,
    ) {
        let owned_ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        let released = ReleasedRecords {
            slot: slot(),
            endpoint_names: Vec::new(),
            endpoint_ids: owned_ids(endpoint_ids),
            service_ids: owned_ids(service_ids),
        };
        assert_eq!(released.is_owned(&desired().body(None)), owned);
    }
}
