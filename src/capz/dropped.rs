//! The private endpoints of the management cluster whose entries were removed, as an annotation records them until Azure
//! has them no more: CAPZ deletes such a private endpoint, or leaves it, as its edition is.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::core::DynamicObject;

use super::cluster::uid;
use super::entry::{Change, entries, key};
use super::ledger::Ledger;
use super::links::is_name;
use crate::api::capi::AzureCluster;
use crate::api::markers::capz::{DROPPED_ENDPOINTS, LONGEST_RECORDS};

/// How long CAPZ may take to delete a private endpoint whose entry was removed.
pub const LEFT_BEHIND_AFTER: Duration = Duration::from_secs(1_800);

/// How long CAPZ may take from the removal of an entry to its last write for that.
pub const CAPZ_LAG: Duration = Duration::from_secs(300);

/// The bytes between the items.
const PUNCTUATION: usize = 6;
/// The bytes of a time.
const TIME: usize = 20;

/// The names of the private endpoints, each with the time at which its entry was removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DroppedEndpoints(BTreeMap<String, Timestamp>);

impl DroppedEndpoints {
    /// Those that the management cluster records. What cannot be read counts as absent.
    pub fn read(management: &AzureCluster) -> Self {
        let text = management
            .annotations()
            .get(DROPPED_ENDPOINTS)
            .map_or("", String::as_str);
        let items: BTreeMap<String, serde_json::Value> = serde_json::from_str(text).unwrap_or_default();
        let time = |value: serde_json::Value| value.as_str()?.parse().ok();
        // Each name becomes part of a path.
        let items = items.into_iter().filter(|(name, _)| is_name(name) && !name.is_empty());
        Self(items.filter_map(|(name, value)| Some((name, time(value)?))).collect())
    }

    /// The names, with the time at which each entry was removed.
    pub fn all(&self) -> impl Iterator<Item = (&str, Timestamp)> {
        self.0.iter().map(|(name, since)| (name.as_str(), *since))
    }

    /// Whether there is one of this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Those after a write of the management cluster that changes the ledger so, and these entries: what is in the
    /// ledger has its entry again.
    #[must_use]
    pub fn after(mut self, (before, after): (&Ledger, &Ledger), changes: &[Change], now: Timestamp) -> Self {
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        let removed = changes.iter().filter_map(|change| match change {
            Change::Remove { name, .. } => Some(name.as_str()),
            Change::Add { .. } | Change::Repair { .. } => None,
        });
        // CAPZ may have made the private endpoint again of an entry that is removed again.
        for name in removed.filter(|name| is_name(name)) {
            self.0.insert(name.to_owned(), now);
        }
        let known: BTreeSet<String> = self.0.keys().map(|name| key(name)).collect();
        // Others removed the entry of what only the ledger has; it has the name in the form of its keys.
        for (name, _) in before.all().filter(|(name, _)| is_name(name) && !known.contains(*name)) {
            self.0.insert(name.to_owned(), now);
        }
        self.0.retain(|name, _| after.holder(name).is_none());
        self.shorten(LONGEST_RECORDS.saturating_sub(after.text().len()))
    }

    /// Without these, unless their entries were removed again since.
    #[must_use]
    pub fn without(mut self, gone: &BTreeSet<(String, Timestamp)>) -> Self {
        self.0.retain(|name, since| !gone.contains(&(name.clone(), *since)));
        self
    }

    /// Without the oldest, as far as they need more room.
    fn shorten(mut self, room: usize) -> Self {
        let size = |all: &BTreeMap<String, Timestamp>| -> usize {
            all.keys().map(|name| name.len() + TIME + PUNCTUATION).sum()
        };
        while size(&self.0) > room {
            let oldest = self
                .0
                .iter()
                .min_by_key(|(_, since)| **since)
                .map(|(name, _)| name.clone());
            let Some(oldest) = oldest else { break };
            self.0.remove(&oldest);
        }
        self
    }

    /// The value of the annotation; none if there are none.
    pub fn text(&self) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let items: BTreeMap<&str, String> = self.all().map(|(name, since)| (name, since.to_string())).collect();
        serde_json::to_string(&items).ok()
    }
}

/// Whether a cluster has an entry of this name.
pub fn has_entry(cluster: &AzureCluster, name: &str) -> bool {
    entries(cluster).any(|(_, entry)| key(&entry.name) == key(name))
}

/// How long ago an entry was removed; one of the future counts as old, as the clock may have gone back.
pub fn age(since: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(since)).unwrap_or(LEFT_BEHIND_AFTER)
}

/// Whether an object of the Azure Service Operator is the private endpoint of this name in the network of this cluster.
pub fn is_endpoint_of(object: &DynamicObject, cluster: &AzureCluster, name: &str) -> bool {
    let is_owned = !uid(cluster).is_empty() && object.owner_references().iter().any(|owner| owner.uid == uid(cluster));
    let azure_name = object.data["spec"]["azureName"].as_str();
    let is_named = azure_name.map_or_else(
        || object.name_any() == key(name),
        |azure_name| azure_name.eq_ignore_ascii_case(name),
    );
    is_owned && is_named
}

/// The text for people about private endpoints that are left behind.
pub fn left_behind(names: &BTreeSet<&str>) -> String {
    const SHOWN: usize = 3;
    let shown: Vec<&str> = names.iter().take(SHOWN).copied().collect();
    let more = names.len().saturating_sub(SHOWN);
    let more = if more == 0 {
        String::new()
    } else {
        format!(" and {more} more")
    };
    format!(
        "still in Azure, though their entries were removed: private endpoints {}{more}",
        shown.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::capz::entry::Position;
    use crate::capz::ledger::Holder;
    use crate::capz::samples::{management, workload};

    const NOW: &str = "2026-01-05T00:00:00Z";

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn recorded(text: &str) -> DroppedEndpoints {
        let annotations = json!({DROPPED_ENDPOINTS: text});
        DroppedEndpoints::read(&management().with("/metadata/annotations", annotations).cluster())
    }

    fn names(dropped: &DroppedEndpoints) -> Vec<&str> {
        dropped.all().map(|(name, _)| name).collect()
    }

    fn ledger(entries: &[&str]) -> Ledger {
        let mut ledger = Ledger::default();
        for entry in entries {
            ledger.record(entry, Holder::of(&workload("wc").cluster()));
        }
        ledger
    }

    fn remove(name: &str) -> Change {
        Change::Remove {
            at: Position { subnet: 0, entry: 0 },
            name: name.to_owned(),
        }
    }

    #[rstest]
    #[case::absent("")]
    #[case::no_json("{")]
    #[case::no_map("[1]")]
    #[case::no_time(r#"{"a": "yesterday", "b": 7, "c": null}"#)]
    #[case::no_name(r#"{"../x": "2026-01-05T00:00:00Z", "": "2026-01-05T00:00:00Z", "a/b": "2026-01-05T00:00:00Z"}"#)]
    fn unreadable_records_count_as_absent(#[case] text: &str) {
        assert_eq!(recorded(text), DroppedEndpoints::default());
    }

    #[test]
    fn removed_entry_is_recorded_by_its_own_name_and_read_back() {
        let before = ledger(&["L_1.x-privateendpoint"]);
        let changes = [remove("L_1.x-privateendpoint")];
        let dropped =
            DroppedEndpoints::default().after((&before, &ledger(&[])), &changes, at("2026-01-05T00:00:00.7Z"));
        assert_eq!(
            dropped.text().unwrap(),
            format!(r#"{{"L_1.x-privateendpoint":"{NOW}"}}"#)
        );
        assert_eq!(recorded(&dropped.text().unwrap()), dropped);
    }

    #[test]
    fn entry_that_others_removed_first_is_recorded() {
        let dropped = DroppedEndpoints::default().after((&ledger(&["e"]), &ledger(&[])), &[], at(NOW));
        assert_eq!(names(&dropped), ["e"]);
    }

    #[test]
    fn entry_that_is_desired_again_is_not_dropped() {
        let before = recorded(&format!(r#"{{"E": "{NOW}", "other": "{NOW}"}}"#));
        let dropped = before.after((&ledger(&[]), &ledger(&["e"])), &[], at(NOW));
        assert_eq!(names(&dropped), ["other"]);
        let second = DroppedEndpoints::default().after((&ledger(&["e"]), &ledger(&["e"])), &[remove("e")], at(NOW));
        assert_eq!(second.text(), None);
    }

    #[test]
    fn time_is_that_of_the_last_removal() {
        let before = recorded(r#"{"e": "2026-01-01T00:00:00Z"}"#);
        let lost = before.clone().after((&ledger(&["e"]), &ledger(&[])), &[], at(NOW));
        assert_eq!(lost, before);
        let removed = before
            .clone()
            .after((&ledger(&[]), &ledger(&[])), &[remove("e")], at(NOW));
        assert_eq!(removed, recorded(&format!(r#"{{"e": "{NOW}"}}"#)));
        assert_eq!(age(at("2026-01-04T23:00:00Z"), at(NOW)), Duration::from_secs(3_600));
        assert_eq!(age(at("2027-01-01T00:00:00Z"), at(NOW)), LEFT_BEHIND_AFTER);
    }

    #[test]
    fn what_is_gone_is_forgotten_unless_it_is_removed_again() {
        let before = recorded(&format!(r#"{{"e": "{NOW}", "other": "{NOW}"}}"#));
        let gone = |time: &str| BTreeSet::from([("e".to_owned(), at(time))]);
        assert_eq!(before.clone().without(&gone("2026-01-01T00:00:00Z")), before);
        assert_eq!(names(&before.without(&gone(NOW))), ["other"]);
    }

    #[test]
    fn oldest_are_forgotten_where_there_is_no_room() {
        let many = (0..2_500).map(|n| (format!("{n:04}-{}", "x".repeat(70)), at("2026-01-02T00:00:00Z")));
        let mut many = DroppedEndpoints(many.collect());
        many.0.insert("oldest".to_owned(), at("2026-01-01T00:00:00Z"));
        let dropped = many.after((&ledger(&[]), &ledger(&[])), &[remove("new")], at(NOW));
        assert!(dropped.text().unwrap().len() <= LONGEST_RECORDS);
        assert!(names(&dropped).contains(&"new") && !names(&dropped).contains(&"oldest"));
    }

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    #[rstest]
    #[case::by_its_azure_name("uid-mc", json!({"azureName": "L_1"}), "l-1", true)]
    #[case::by_its_own_name("uid-mc", json!({}), "l-1", true)]
    #[case::of_another_name("uid-mc", json!({"azureName": "l-1"}), "l-1", false)]
    #[case::of_another_cluster("uid-other", json!({"azureName": "L_1"}), "l-1", false)]
    fn only_the_clusters_own_endpoint_is_recognized(
        #[case] owner: &str,
        #[case] spec: Value,
        #[case] name: &str,
        #[case] expected: bool,
    ) {
        let found = object(
            json!({"apiVersion": "network.azure.com/v1", "kind": "PrivateEndpoint", "spec": spec,
            "metadata": {"name": name, "ownerReferences": [{"apiVersion": "a/v1", "kind": "AzureCluster",
                "name": "mc", "uid": owner}]}}),
        );
        assert_eq!(is_endpoint_of(&found, &management().cluster(), "L_1"), expected);
    }

    #[test]
    fn text_names_a_few() {
        let names = ["0", "1", "2", "3", "4"];
        let text = |count: usize| left_behind(&names.into_iter().take(count).collect());
        assert!(text(2).ends_with("0, 1"), "{}", text(2));
        assert!(text(5).ends_with("0, 1, 2 and 2 more"), "{}", text(5));
    }
}
