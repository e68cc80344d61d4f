//! What the workload clusters desire of the management cluster, and to which of them a connection leads.

use std::collections::HashMap;

use super::{Snapshot, takes_part, undecided};
use crate::api::ClusterRef;
use crate::api::capi::AzureCluster;
use crate::azure::arm::id::ResourceId;
use crate::capz::cluster::{Access, age, is_deleting, reference, uid};
use crate::capz::entry::{DesiredEntry, key};
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
}

/// What the workload clusters desire, the oldest first.
pub(super) struct Claims<'a> {
    all: Vec<Claimant<'a>>,
    by_uid: HashMap<&'a str, usize>,
    by_name: HashMap<ClusterRef, usize>,
    /// The clusters that desire an entry, by its key.
    by_key: HashMap<String, Vec<usize>>,
    /// The clusters that have a link of an entry's name, by its key.
    links: HashMap<String, Vec<(ResourceId, usize)>>,
}

impl<'a> Claims<'a> {
    pub(super) fn of(snapshot: &Snapshot<'a>) -> Self {
        let mut clusters = snapshot.workloads.to_vec();
        clusters.sort_by_cached_key(|cluster| age(cluster));
        let mut claims = Self {
            all: Vec::new(),
            by_uid: HashMap::new(),
            by_name: HashMap::new(),
            by_key: HashMap::new(),
            links: HashMap::new(),
        };
        for (number, cluster) in clusters.into_iter().enumerate() {
            for (name, service) in links::services(cluster) {
                claims.links.entry(key(&name)).or_default().push((service, number));
            }
            let desired = desired(cluster, snapshot);
            for entry in desired.iter().flat_map(|desired| &desired.entries) {
                claims.by_key.entry(key(&entry.name)).or_default().push(number);
            }
            claims.by_uid.insert(uid(cluster), number);
            claims.by_name.insert(reference(cluster), number);
            claims.all.push(Claimant { cluster, desired });
        }
        claims
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

    /// The clusters that desire anything, with what they desire.
    pub(super) fn all_desiring(&self) -> Vec<(&'a AzureCluster, DesiredLinks)> {
        let all = self.all.iter();
        all.filter_map(|one| Some((one.cluster, one.desired.clone()?)))
            .collect()
    }

    /// The oldest cluster with a link of an entry's name and this Private Link Service. One that is deleting counts.
    pub(super) fn linked(&self, name: &str, service: &ResourceId) -> Option<&'a AzureCluster> {
        let links = self.links.get(&key(name))?;
        let (_, number) = links.iter().find(|(own, _)| own == service)?;
        Some(self.all[*number].cluster)
    }
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
