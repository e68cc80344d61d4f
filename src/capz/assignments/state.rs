//! How it stands with the desired entries of the workload clusters.

use super::problems::too_many;
use crate::capz::entry::DesiredEntry;
use crate::capz::reason::Problem;

/// How it stands with one desired entry of a workload cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryState {
    /// The entry.
    pub entry: DesiredEntry,
    /// Why it is not there; none if it is, or will be with the next write.
    pub problem: Option<Problem>,
    /// Whether it is there.
    pub is_there: bool,
    /// Whether it was there before, as the ledger has it.
    pub was_there: bool,
}

/// How it stands with the desired entries of a workload cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterState {
    /// Each of them for which the cluster's namespace has room.
    pub entries: Vec<EntryState>,
    /// How many there are for which it has none.
    pub refused: usize,
}

impl ClusterState {
    /// Whether it was decided on these.
    pub fn is_about(&self, desired: &[DesiredEntry]) -> bool {
        let mut desired_entries = desired.iter();
        self.entries.len() + self.refused == desired.len()
            && self
                .entries
                .iter()
                .all(|state| desired_entries.any(|entry| *entry == state.entry))
    }

    /// The problem that a namespace has no room for all of them.
    pub fn problem(&self, namespace: &str) -> Option<Problem> {
        (self.refused > 0).then(|| too_many(namespace))
    }
}
