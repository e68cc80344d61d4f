//! What the workload clusters desire of the management cluster, and to which of them a connection leads.

use std::collections::HashMap;

use super::{Snapshot, takes_part, undecided};
use crate::api::ClusterRef;
use crate::api::capi::AzureCluster;
use crate::azure::arm::id::ResourceId;
use crate::capz::cluster::{Access, age, is_deleting, reference, uid};
use crate::capz::entry::{DesiredEntry, entries, key, only_service};
use crate::capz::ledger::{Ledger, MOST_OF_NAMESPACE};
use crate::capz::links::{self, DesiredLinks};

/// Whether it is known what a cluster desires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// It is.
    Known,
    /// Nothing can be decided for it now, or it is not among the AzureClusters: its entries stay as they are.
    Unknown,
}

struct Claimant<'a> {
    cluster: &'a AzureCluster,
    /// None if nothing can be decided for it.
    desired: Option<DesiredLinks>,
    /// How many links it has that its namespace has no room for.
    refused: usize,
}

/// What the workload clusters desire, the oldest first.
pub(super) struct Claims<'a> {
    all: Vec<Claimant<'a>>,
    by_uid: HashMap<&'a str, usize>,
    by_name: HashMap<ClusterRef, usize>,
    /// The clusters that desire an entry, by its key.
    by_key: HashMap<String, Vec<usize>>,
    /// To what the entries of each key connect, each with the oldest cluster that has such a link.
    connected: HashMap<String, Vec<(ResourceId, Option<usize>)>>,
}

impl<'a> Claims<'a> {
    pub(super) fn of(snapshot: &Snapshot<'a>, ledger: &Ledger) -> Self {
        let mut clusters = snapshot.workloads.to_vec();
        clusters.sort_by_cached_key(|cluster| age(cluster));
        let mut claims = Self {
            all: Vec::new(),
            by_uid: HashMap::new(),
            by_name: HashMap::new(),
            by_key: HashMap::new(),
            connected: connected(snapshot.management),
        };
        let mut taken = HashMap::new();
        for (number, cluster) in clusters.into_iter().enumerate() {
            claims.connect(cluster, number);
            let mut desired = desired(cluster, snapshot);
            let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
            let taken = taken.entry(namespace).or_insert_with(|| ledger.count_of(namespace));
            let is_recorded = |entry: &DesiredEntry| ledger.is_of(&entry.name, uid(cluster));
            let is_there = |entry: &DesiredEntry| claims.oldest(&entry.name, &entry.service) == Some(number);
            let refused = desired
                .as_mut()
                .map_or(0, |desired| refuse(desired, taken, is_recorded, is_there));
            for entry in desired.iter().flat_map(|desired| &desired.entries) {
                claims.by_key.entry(key(&entry.name)).or_default().push(number);
            }
            claims.by_uid.insert(uid(cluster), number);
            claims.by_name.insert(reference(cluster), number);
            claims.all.push(Claimant {
                cluster,
                desired,
                refused,
            });
        }
        claims
    }

    /// Notes to which entries the links of a cluster lead.
    fn connect(&mut self, cluster: &AzureCluster, number: usize) {
        for (name, service) in links::services(cluster) {
            let entries = self.connected.get_mut(&key(&name)).into_iter().flatten();
            for (_, oldest) in entries.filter(|(connected, _)| *connected == service) {
                oldest.get_or_insert(number);
            }
        }
    }

    fn get(&self, uid: &str) -> Option<&Claimant<'a>> {
        self.all.get(*self.by_uid.get(uid)?)
    }

    /// Whether a cluster with this UID is there.
    pub(super) fn knows(&self, uid: &str) -> bool {
        self.by_uid.contains_key(uid)
    }

    /// Whether a cluster of this name is there with another UID.
    pub(super) fn is_another(&self, cluster: &ClusterRef, uid: &str) -> bool {
        let found = self.by_name.get(cluster);
        found.is_some_and(|number| self::uid(self.all[*number].cluster) != uid)
    }

    /// The name of the cluster with this UID.
    pub(super) fn reference(&self, uid: &str) -> Option<ClusterRef> {
        self.get(uid).map(|claimant| reference(claimant.cluster))
    }

    /// Whether it is known what the cluster with this UID desires.
    pub(super) fn wish(&self, uid: &str) -> Wish {
        match self.get(uid) {
            Some(claimant) if claimant.desired.is_some() => Wish::Known,
            _ => Wish::Unknown,
        }
    }

    /// The entry of this name that the cluster with this UID desires.
    pub(super) fn desired(&self, uid: &str, name: &str) -> Option<&DesiredEntry> {
        let desired = self.get(uid)?.desired.as_ref()?;
        desired.entries.iter().find(|entry| key(&entry.name) == key(name))
    }

    /// The clusters that desire the entry of this key, the oldest first.
    pub(super) fn desiring(&self, key: &str) -> Vec<&'a AzureCluster> {
        let numbers = self.by_key.get(key).map_or(&[][..], Vec::as_slice);
        numbers.iter().map(|number| self.all[*number].cluster).collect()
    }

    /// Takes all clusters, with what they desire; which of them desire an entry is known as before.
    pub(super) fn take_all(&mut self) -> Vec<(&'a AzureCluster, DesiredLinks, usize)> {
        let all = self.all.iter_mut();
        all.filter_map(|one| Some((one.cluster, one.desired.take()?, one.refused)))
            .collect()
    }

    /// The number of the oldest cluster with a link of an entry's name and this Private Link Service.
    fn oldest(&self, name: &str, service: &ResourceId) -> Option<usize> {
        let entries = self.connected.get(&key(name))?;
        entries.iter().find(|(connected, _)| connected == service)?.1
    }

    /// The oldest cluster with a link of an entry's name and this Private Link Service. One that is deleting counts.
    pub(super) fn linked(&self, name: &str, service: &ResourceId) -> Option<&'a AzureCluster> {
        Some(self.all[self.oldest(name, service)?].cluster)
    }
}

/// To what the entries of the management cluster connect, by their keys.
fn connected(management: &AzureCluster) -> HashMap<String, Vec<(ResourceId, Option<usize>)>> {
    let mut connected: HashMap<_, Vec<_>> = HashMap::new();
    for (_, entry) in entries(management) {
        if let Some(service) = only_service(entry) {
            connected.entry(key(&entry.name)).or_default().push((service, None));
        }
    }
    connected
}

/// Drops what is desired beyond the most of a namespace, of which so many are taken; returns how many. What a cluster
/// has stays: it is recorded, and taken then, or is there.
fn refuse(
    desired: &mut DesiredLinks,
    taken: &mut usize,
    is_recorded: impl Fn(&DesiredEntry) -> bool,
    is_there: impl Fn(&DesiredEntry) -> bool,
) -> usize {
    let all = desired.entries.len();
    desired.entries.retain(|entry| {
        if is_recorded(entry) {
            return true;
        }
        let is_taken = *taken < MOST_OF_NAMESPACE || is_there(entry);
        *taken += usize::from(is_taken);
        is_taken
    });
    desired.entries.shrink_to_fit();
    all - desired.entries.len()
}

/// What a workload cluster desires; none if nothing can be decided for it.
fn desired(cluster: &AzureCluster, snapshot: &Snapshot<'_>) -> Option<DesiredLinks> {
    if snapshot
        .only
        .is_some_and(|only| cluster.metadata.namespace.as_deref() != Some(only))
    {
        return None;
    }
    if is_deleting(cluster) {
        return Some(DesiredLinks::default());
    }
    if !takes_part(cluster) || snapshot.hidden.contains(uid(cluster)) {
        return None;
    }
    match undecided(cluster, snapshot.management, snapshot.cloud).ok()? {
        Access::Internal => Some(links::desired(cluster, snapshot.management)),
        Access::Public => Some(DesiredLinks::default()),
    }
}
