//! Which entries the management cluster should have, for which workload clusters, and what changes that: one decision
//! over all AzureClusters.
//!
//! An entry is a cluster's if the ledger has it for that, or if it is not in the ledger, has the name of one of that
//! cluster's links and connects to its Private Link Service. What is nobody's by these rules is not touched, whatever it
//! connects to, unless its name and form are those of an entry that was removed before.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::cluster::{self, Access, access, is_deleting, is_held, uid};
use super::dropped::DroppedEndpoints;
use super::entry::{Change, DesiredEntry, Position, entries, key, only_service};
use super::ledger::{Holder, Ledger, MOST_OF_NAMESPACE};
use super::links::{self, has_our_form};
use super::reason::{Problem, Reason};
use crate::api::capi::{AzureCluster, Entry};

mod claims;
mod problems;
mod state;

use claims::{Claims, Wish};
use problems::{conflict, no_room, no_share, too_many};
pub use problems::{no_subnet, not_owned};
pub use state::{ClusterState, EntryState};

/// The most bytes of entries in the management cluster. An object has 1.5 MiB at most, and some of that is others'.
/// Source: <https://etcd.io/docs/v3.6/dev-guide/limit>
const LARGEST: usize = 900 * 1024;
/// How many bytes an entry has that is there, as an estimate that is rather too much.
const MEAN_ENTRY: usize = 600;

/// What is decided on: all AzureClusters, of which one is the management cluster's.
#[derive(Clone, Copy)]
pub struct Snapshot<'a> {
    /// The management cluster.
    pub management: &'a AzureCluster,
    /// All others.
    pub workloads: &'a [&'a AzureCluster],
    /// The cloud of this process.
    pub cloud: &'a str,
    /// The only namespace whose workload clusters are served; none means all.
    pub only: Option<&'a str>,
    /// The UIDs in the ledger of which reads have shown that no such cluster exists.
    pub gone: &'a BTreeSet<String>,
    /// The UIDs of workload clusters whose links the API server hides, or may.
    pub hidden: &'a BTreeSet<String>,
}

/// What the entries of the management cluster should be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assignments {
    /// The changes.
    pub changes: Vec<Change>,
    /// The ledger after them.
    pub ledger: Ledger,
    /// The desired entries of each workload cluster, by its UID.
    pub of: HashMap<String, ClusterState>,
    /// The entries of our form that are nobody's, by position and name.
    pub unclaimed: Vec<(Position, String)>,
    /// The clusters in the ledger that are not among the AzureClusters, of which it has to be read whether they exist.
    pub unknown: BTreeSet<Holder>,
}

impl Assignments {
    /// Whether something is to be written.
    pub fn writes(&self, management: &AzureCluster) -> bool {
        !self.changes.is_empty() || self.ledger != Ledger::read(management)
    }

    /// Whether the management cluster has nothing for the cluster with this UID: no entry, and nothing in the ledger.
    pub fn is_free_of(snapshot: &Snapshot<'_>, uid: &str) -> bool {
        let ledger = Ledger::read(snapshot.management);
        let claims = Claims::of(snapshot, &ledger);
        let found = entries(snapshot.management);
        let mut owners = found.filter_map(|(_, entry)| Owner::of(entry, &ledger, &claims).uid().map(str::to_owned));
        ledger.is_free_of(uid) && !owners.any(|owner| owner == uid)
    }
}

/// Whose an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Owner {
    /// The ledger names the holder.
    Recorded(Holder),
    /// Its connection leads to a link of the cluster with this UID.
    Connected(String),
    /// Nobody's of the workload clusters.
    Nobody,
}

impl Owner {
    fn of(entry: &Entry, ledger: &Ledger, claims: &Claims<'_>) -> Self {
        if let Some(holder) = ledger.holder(&entry.name) {
            return Self::Recorded(holder.clone());
        }
        Self::connected(entry, claims)
    }

    /// Whose an entry is by its connection.
    fn connected(entry: &Entry, claims: &Claims<'_>) -> Self {
        let cluster = only_service(entry).and_then(|service| claims.linked(&entry.name, &service));
        cluster.map_or(Self::Nobody, |cluster| Self::Connected(uid(cluster).to_owned()))
    }

    fn uid(&self) -> Option<&str> {
        match self {
            Self::Recorded(holder) => Some(&holder.uid),
            Self::Connected(uid) => Some(uid),
            Self::Nobody => None,
        }
    }
}

/// Decides on all entries of the management cluster.
pub fn assign(snapshot: &Snapshot<'_>) -> Assignments {
    let before = Ledger::read(snapshot.management);
    let mut assigning = Assigning {
        claims: Claims::of(snapshot, &before),
        before,
        snapshot,
        dropped: DroppedEndpoints::read(snapshot.management)
            .all()
            .map(|(name, _)| key(name))
            .collect(),
        size: entries(snapshot.management).count() * MEAN_ENTRY,
        found: BTreeMap::new(),
        result: Assignments::default(),
    };
    assigning.sort_entries();
    assigning.keep_records();
    assigning.decide_on_found();
    assigning.decide_on_missing();
    assigning.result
}

/// A decision in the making.
struct Assigning<'a> {
    snapshot: &'a Snapshot<'a>,
    claims: Claims<'a>,
    before: Ledger,
    /// The keys of the entries that were removed.
    dropped: BTreeSet<String>,
    /// How many bytes the entries of the management cluster have with those that are added.
    size: usize,
    /// The entries that are there, by key.
    found: BTreeMap<String, Vec<(Position, &'a Entry, Owner)>>,
    result: Assignments,
}

impl<'a> Assigning<'a> {
    fn sort_entries(&mut self) {
        for (at, entry) in entries(self.snapshot.management) {
            let owner = match Owner::of(entry, &self.before, &self.claims) {
                // The cluster was recreated: it takes the entry over.
                Owner::Recorded(holder) if self.is_gone(&holder) => match Owner::connected(entry, &self.claims) {
                    Owner::Connected(uid) if self.claims.reference(&uid).as_ref() == Some(&holder.cluster) => {
                        Owner::Connected(uid)
                    }
                    _ => Owner::Recorded(holder),
                },
                owner => owner,
            };
            self.found.entry(key(&entry.name)).or_default().push((at, entry, owner));
        }
        for (_, holder) in self.before.all() {
            if !self.claims.knows(&holder.uid) && !self.is_gone(holder) {
                self.result.unknown.insert(holder.clone());
            }
        }
    }

    /// Whether a cluster that the ledger names certainly exists no more.
    fn is_gone(&self, holder: &Holder) -> bool {
        !self.claims.knows(&holder.uid)
            && (self.snapshot.gone.contains(&holder.uid) || self.claims.is_another(&holder.cluster, &holder.uid))
    }

    /// What the ledger has of clusters that desire it, or about which nothing is known, stays in it.
    fn keep_records(&mut self) {
        for (name, holder) in self.before.all() {
            let is_unknown = self.claims.wish(&holder.uid) == Wish::Unknown && !self.is_gone(holder);
            if is_unknown || self.claims.desired(&holder.uid, name).is_some() {
                self.result.ledger.record(name, holder.clone());
            }
        }
    }

    /// Decides on the entries that are there.
    fn decide_on_found(&mut self) {
        for (key, found) in std::mem::take(&mut self.found) {
            let owners: Vec<&Owner> = found.iter().map(|(_, _, owner)| owner).collect();
            let winner = self.winner(&key, &owners);
            let mut is_kept = false;
            for (at, entry, owner) in &found {
                let keeps = !is_kept && self.decide_on(*at, entry, owner, winner.as_ref());
                is_kept |= keeps;
                if !keeps
                    && is_kept
                    && owner.uid().is_some()
                    && owner.uid() == winner.as_ref().map(|won| won.uid.as_str())
                {
                    // A second one of this name.
                    self.remove(*at, entry);
                }
            }
            self.found.insert(key, found);
        }
    }

    /// The cluster that gets the entry of this key, of those that desire it.
    fn winner(&self, key: &str, owners: &[&Owner]) -> Option<Holder> {
        let claimants = self.claims.desiring(key);
        let of_uid = |uid: &str| claimants.iter().find(|cluster| self::uid(cluster) == uid);
        let recorded = self.before.holder(key).and_then(|holder| of_uid(&holder.uid));
        let connected = owners.iter().find_map(|owner| of_uid(owner.uid()?));
        let won = recorded.or(connected).or_else(|| claimants.first());
        won.map(|cluster| Holder::of(cluster))
    }

    /// Decides on one entry that is there; whether it stays as the winner's.
    fn decide_on(&mut self, at: Position, entry: &Entry, owner: &Owner, winner: Option<&Holder>) -> bool {
        let is_winners = |owner: &Owner| winner.is_some_and(|won| owner.uid() == Some(&won.uid));
        match owner {
            Owner::Nobody => {
                let connection = entry.connections().first().and_then(|one| one.name.as_deref());
                if has_our_form(&entry.name, connection) {
                    if self.dropped.contains(&key(&entry.name)) {
                        // Others wrote what they had read before it was removed.
                        self.remove(at, entry);
                    } else {
                        self.result.unclaimed.push((at, entry.name.clone()));
                    }
                }
                false
            }
            owner if is_winners(owner) => {
                self.keep(at, entry, winner);
                true
            }
            Owner::Recorded(holder) if self.claims.wish(&holder.uid) == Wish::Unknown && !self.is_gone(holder) => {
                self.result.ledger.record(&entry.name, holder.clone());
                false
            }
            Owner::Connected(uid) if self.claims.wish(uid) == Wish::Unknown => false,
            Owner::Recorded(_) | Owner::Connected(_) => {
                self.remove(at, entry);
                false
            }
        }
    }

    /// Keeps an entry as the winner's, and repairs what differs.
    fn keep(&mut self, at: Position, entry: &Entry, winner: Option<&Holder>) {
        let Some((winner, desired)) = winner.and_then(|won| Some((won, self.claims.desired(&won.uid, &entry.name)?)))
        else {
            return;
        };
        if self.result.ledger.has_room(&entry.name, winner) {
            self.result.ledger.record(&entry.name, winner.clone());
        }
        let fields = desired.differs(entry);
        if !fields.is_empty() {
            let entry = DesiredEntry {
                name: entry.name.clone(),
                ..desired.clone()
            };
            self.result.changes.push(Change::Repair { at, entry, fields });
        }
    }

    fn remove(&mut self, at: Position, entry: &Entry) {
        let name = entry.name.clone();
        self.result.changes.push(Change::Remove { at, name });
    }

    /// Decides on the entries that are desired, and adds those that are missing.
    fn decide_on_missing(&mut self) {
        for (cluster, desired, refused) in self.claims.take_all() {
            let entries = desired.entries.into_iter();
            let entries = entries.map(|entry| self.state(cluster, entry, desired.ready)).collect();
            let state = ClusterState { entries, refused };
            self.result.of.insert(uid(cluster).to_owned(), state);
        }
    }

    /// How it stands with an entry that a cluster desires; adds the entry if it is missing and may be there.
    fn state(&mut self, cluster: &AzureCluster, desired: DesiredEntry, is_ready: bool) -> EntryState {
        let (key, holder) = (key(&desired.name), Holder::of(cluster));
        let found = self.found.get(&key).map_or(&[][..], Vec::as_slice);
        let owners: Vec<&Owner> = found.iter().map(|(_, _, owner)| owner).collect();
        let winner = self.winner(&key, &owners);
        let is_there = self.result.ledger.holder(&desired.name) == Some(&holder) && !found.is_empty();
        let problem = if winner.as_ref() != Some(&holder) {
            winner.map(|won| conflict(&desired.name, &won.cluster))
        } else if is_there {
            None
        } else if found.iter().any(|(_, _, owner)| *owner == Owner::Nobody) {
            Some(not_owned(&desired.name))
        } else if owners.iter().any(|owner| owner.uid() == Some(&holder.uid)) {
            Some(no_room())
        } else if !found.is_empty() {
            // Somebody else's is removed first, or held by one of whom nothing is known.
            let holder = found.iter().find_map(|(_, _, owner)| owner.uid());
            let other = holder.and_then(|uid| self.claims.reference(uid));
            Some(other.map_or_else(|| not_owned(&desired.name), |other| conflict(&desired.name, &other)))
        } else {
            self.add(cluster, &desired, &holder, is_ready)
        };
        EntryState {
            was_there: is_there || self.before.holder(&desired.name) == Some(&holder),
            entry: desired,
            problem,
            is_there,
        }
    }

    /// Whether the management cluster has room for another entry: else the API server would refuse all changes.
    fn has_room_for(&self, desired: &DesiredEntry) -> bool {
        self.size + desired.size() <= LARGEST
    }

    /// Adds a missing entry; returns why it cannot be added.
    fn add(
        &mut self,
        cluster: &AzureCluster,
        desired: &DesiredEntry,
        holder: &Holder,
        is_ready: bool,
    ) -> Option<Problem> {
        let was_there = self.before.holder(&desired.name) == Some(holder);
        if !is_ready && !was_there {
            return Some(links::not_ready(cluster));
        }
        if let Some(other) = self
            .result
            .ledger
            .holder(&desired.name)
            .filter(|other| *other != holder)
        {
            return Some(conflict(&desired.name, &other.cluster));
        }
        let management = self.snapshot.management;
        let Some(subnet) = cluster::endpoint_subnet(management) else {
            return Some(no_subnet(management));
        };
        let (ledger, namespace) = (&self.result.ledger, &holder.cluster.namespace);
        if !was_there && ledger.count_of(namespace) >= MOST_OF_NAMESPACE {
            return Some(too_many(namespace));
        }
        if !was_there && !ledger.has_share(&desired.name, holder) {
            return Some(no_share(namespace));
        }
        let has_room = was_there || ledger.has_room(&desired.name, holder);
        if !has_room || !self.has_room_for(desired) {
            return Some(no_room());
        }
        self.result.ledger.record(&desired.name, holder.clone());
        self.size += desired.size();
        let entry = desired.clone();
        self.result.changes.push(Change::Add { subnet, entry });
        None
    }
}

/// What keeps anything from being decided for a workload cluster; of its entries none is changed meanwhile.
pub fn undecided(workload: &AzureCluster, management: &AzureCluster, cloud: &str) -> Result<Access, Problem> {
    let own = cluster::cloud(workload);
    if !own.eq_ignore_ascii_case(cloud) {
        let message = format!("the cluster is in {own}, this process serves {cloud}");
        return Err(Problem::new(Reason::CloudMismatch, message));
    }
    access(management)?;
    access(workload)
}

/// Whether a workload cluster takes part at all: it has the finalizer, without which nothing would be removed with it.
fn takes_part(workload: &AzureCluster) -> bool {
    is_held(workload) && !is_deleting(workload)
}

#[cfg(test)]
mod tests;
