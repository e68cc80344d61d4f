//! Which workload cluster each entry of the management cluster is for, as an annotation records it: the intent, and the
//! proof of ownership once a workload cluster is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::cluster::{reference, uid};
use super::entry::key;
use crate::api::ClusterRef;
use crate::api::capi::AzureCluster;
use crate::api::markers::capz::{LEDGER, LONGEST_LEDGER};
use crate::hypershift::names::{is_namespace, is_object_name};

/// The bytes between the items of a ledger, and between an entry and its holder.
const PUNCTUATION: usize = 6;
/// The most entries for the workload clusters of one namespace, so that it leaves room for those of others.
pub const MOST_OF_NAMESPACE: usize = 512;
/// The most bytes of the ledger for these, so that it leaves room for those of others.
const LONGEST_OF_NAMESPACE: usize = LONGEST_LEDGER / 2;

/// The workload cluster that an entry is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Holder {
    /// Its namespace and name.
    pub cluster: ClusterRef,
    /// Its UID: another cluster of its name is another holder.
    pub uid: String,
}

impl Holder {
    /// The holder that a cluster is.
    pub fn of(cluster: &AzureCluster) -> Self {
        Self {
            cluster: reference(cluster),
            uid: uid(cluster).to_owned(),
        }
    }

    /// How many bytes it has in the ledger.
    fn size(&self) -> usize {
        self.cluster.namespace.len() + self.cluster.name.len() + self.uid.len() + 2
    }

    /// The holder that a record names.
    pub fn parse(text: &str) -> Option<Self> {
        let (cluster, uid) = text.rsplit_once('/')?;
        let cluster: ClusterRef = cluster.parse().ok()?;
        // Both become parts of a path.
        if !is_namespace(&cluster.namespace) || !is_object_name(&cluster.name) {
            return None;
        }
        Some(Self {
            cluster,
            uid: Some(uid).filter(|uid| !uid.is_empty())?.to_owned(),
        })
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.cluster, self.uid)
    }
}

/// How much of a ledger is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Usage {
    entries: usize,
    bytes: usize,
}

impl Usage {
    fn add(&mut self, bytes: usize) {
        self.entries += 1;
        self.bytes += bytes;
    }

    fn remove(&mut self, bytes: usize) {
        self.entries -= 1;
        self.bytes -= bytes;
    }
}

/// The entries of the management cluster by key, each with the cluster that it is for.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    items: BTreeMap<String, Holder>,
    used: Usage,
    /// By namespace.
    used_by: BTreeMap<String, Usage>,
}

impl PartialEq for Ledger {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

impl Eq for Ledger {}

/// How many bytes an item has in a ledger.
fn size(entry: &str, holder: &Holder) -> usize {
    entry.len() + holder.size() + PUNCTUATION
}

impl Ledger {
    /// The ledger of the management cluster. What cannot be read counts as absent: then the connections tell which
    /// entries are whose.
    pub fn read(management: &AzureCluster) -> Self {
        let annotations = management.metadata.annotations.as_ref();
        let text = annotations.and_then(|all| all.get(LEDGER)).map_or("", String::as_str);
        let items: BTreeMap<String, serde_json::Value> = serde_json::from_str(text).unwrap_or_default();
        let mut ledger = Self::default();
        for (name, value) in items {
            if let Some(holder) = value.as_str().and_then(Holder::parse) {
                ledger.record(&name, holder);
            }
        }
        ledger
    }

    /// The cluster that an entry is for.
    pub fn holder(&self, entry: &str) -> Option<&Holder> {
        self.items.get(&key(entry))
    }

    /// Whether an entry is for the cluster with this UID.
    pub fn is_of(&self, entry: &str, uid: &str) -> bool {
        self.holder(entry).is_some_and(|holder| holder.uid == uid)
    }

    /// The key of every entry, with the cluster that it is for.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Holder)> {
        self.items.iter().map(|(key, holder)| (key.as_str(), holder))
    }

    /// Records that an entry is for a cluster.
    pub fn record(&mut self, entry: &str, holder: Holder) {
        let (key, namespace) = (key(entry), holder.cluster.namespace.clone());
        let bytes = size(&key, &holder);
        self.used.add(bytes);
        self.used_by.entry(namespace).or_default().add(bytes);
        if let Some(before) = self.items.insert(key.clone(), holder) {
            let bytes = size(&key, &before);
            self.used.remove(bytes);
            self.used_by.entry(before.cluster.namespace).or_default().remove(bytes);
        }
    }

    /// Whether it records nothing for the cluster with this UID.
    pub fn is_free_of(&self, uid: &str) -> bool {
        self.items.values().all(|holder| holder.uid != uid)
    }

    /// The UIDs of the clusters for which it records anything.
    pub fn uids(&self) -> BTreeSet<&str> {
        self.items.values().map(|holder| holder.uid.as_str()).collect()
    }

    fn used_by(&self, namespace: &str) -> Usage {
        self.used_by.get(namespace).copied().unwrap_or_default()
    }

    /// How many entries are for clusters of this namespace.
    pub fn count_of(&self, namespace: &str) -> usize {
        self.used_by(namespace).entries
    }

    /// Whether it can be written with another entry.
    pub fn has_room(&self, entry: &str, holder: &Holder) -> bool {
        self.used.bytes + size(entry, holder) < LONGEST_LEDGER
    }

    /// Whether the clusters of a holder's namespace leave room for those of others with another entry.
    pub fn has_share(&self, entry: &str, holder: &Holder) -> bool {
        let used = self.used_by(&holder.cluster.namespace);
        used.bytes + size(entry, holder) < LONGEST_OF_NAMESPACE
    }

    /// The value of the annotation.
    pub fn text(&self) -> String {
        let items = self.items.iter();
        let items: BTreeMap<_, _> = items.map(|(name, holder)| (name, holder.to_string())).collect();
        serde_json::to_string(&items).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::capz::samples::{management, workload};

    #[test]
    fn ledger_is_read_as_it_was_written() {
        let mut ledger = Ledger::default();
        ledger.record("a-privateendpoint", Holder::of(&workload("a").cluster()));
        let read = Ledger::read(&management().ledger(&ledger.text()).cluster());
        assert_eq!(read, ledger);
        assert_eq!(ledger.text(), r#"{"a-privateendpoint":"org-giantswarm/a/uid-a"}"#);
        assert_eq!(read.holder("A-PrivateEndpoint"), ledger.holder("a-privateendpoint"));
        assert!(!read.is_free_of("uid-a") && read.is_free_of("uid-b"));
    }

    #[rstest]
    #[case::no_json("{")]
    #[case::a_list("[]")]
    #[case::other_values(r#"{"a": 7, "b": "x", "c": "/a/b", "d": "n/a/", "e": "a/b/c/d", "f": "n/../u"}"#)]
    #[case::empty("")]
    fn what_cannot_be_read_counts_as_absent(#[case] text: &str) {
        assert_eq!(Ledger::read(&management().ledger(text).cluster()), Ledger::default());
    }

    #[test]
    fn one_strange_item_hides_no_other() {
        let text = r#"{"a": 7, "b": "n/wc/u"}"#;
        let read = Ledger::read(&management().ledger(text).cluster());
        assert_eq!(
            read.all()
                .map(|(name, holder)| (name, holder.uid.as_str()))
                .collect::<Vec<_>>(),
            [("b", "u")]
        );
    }

    #[test]
    fn what_is_recorded_for_another_cluster_is_used_by_that_alone() {
        let other = workload("wc").with("/metadata/namespace", serde_json::json!("other"));
        let (mut ledger, other) = (Ledger::default(), Holder::of(&other.cluster()));
        let first = Holder::of(&workload("wc").cluster());
        ledger.record("a", first.clone());
        ledger.record("A", other);
        assert_eq!((ledger.count_of("org-giantswarm"), ledger.count_of("other")), (0, 1));
        assert_eq!(ledger.used, ledger.used_by("other"));
        ledger.record("a", first.clone());
        let mut only = Ledger::default();
        only.record("a", first);
        assert_eq!(ledger, only);
    }

    #[test]
    fn ledger_has_room_up_to_its_bound() {
        let (mut ledger, holder) = (Ledger::default(), Holder::of(&workload("wc").cluster()));
        let mut number = 0;
        while ledger.has_room(&format!("{number}-privateendpoint"), &holder) {
            ledger.record(&format!("{number}-privateendpoint"), holder.clone());
            number += 1;
        }
        assert!(
            (LONGEST_LEDGER - 100..=LONGEST_LEDGER).contains(&ledger.text().len()),
            "{}",
            ledger.text().len()
        );
        assert!(number > 3_000, "{number}");
    }
}
