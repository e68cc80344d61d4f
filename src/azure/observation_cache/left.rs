//! What no reconcile reads any more: it does not count as under way, and is forgotten later.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tokio::time::Instant;

use super::{Entry, ObservationCache};
use crate::azure::id::ResourceId;
use crate::azure::kinds::Kind;
use crate::azure::resource::Observed;

/// A resource whose read has been due for this long is read by no reconcile now: its custom resource is gone, paused or
/// served by another process.
const UNATTENDED_AFTER: Duration = Duration::from_secs(600);

/// After a read has been due for this long, the entry is dropped.
const FORGET_AFTER: Duration = Duration::from_secs(7_200);

/// The time between two searches for entries to forget.
const SEARCH_INTERVAL: Duration = Duration::from_secs(60);

/// The long-running operations that this process has started on resources of one kind, and whose end it has not
/// observed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UnderWay {
    /// The number of operations.
    pub count: usize,
    /// The age of the oldest one.
    pub oldest: Duration,
}

impl UnderWay {
    /// The operations of both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            oldest: self.oldest.max(other.oldest),
        }
    }
}

impl Entry {
    /// For how long its read has been due.
    pub(super) fn overdue(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.due)
    }
}

impl ObservationCache {
    /// Notes that others may have put something into what this process created.
    pub fn others_were_at_it(&self) {
        invalidate_inside(&mut self.entries());
    }

    /// The operations under way on resources that reconciles still read.
    pub fn under_way(&self, now: Instant) -> BTreeMap<Kind, UnderWay> {
        let mut all = BTreeMap::<Kind, UnderWay>::new();
        let entries = self.entries();
        for entry in entries.values().filter(|entry| entry.overdue(now) <= UNATTENDED_AFTER) {
            if let Some(operation) = &entry.operation {
                let oldest = now.saturating_duration_since(operation.began);
                let of_kind = all.entry(entry.kind).or_default();
                *of_kind = of_kind.and(UnderWay { count: 1, oldest });
            }
        }
        all
    }

    /// Drops the entries whose reads have been due for long. Such a resource does not count as absent.
    pub fn forget_overdue(&self, now: Instant) {
        let mut searched = self.searched();
        if searched.is_some_and(|last| now.saturating_duration_since(last) < SEARCH_INTERVAL) {
            return;
        }
        *searched = Some(now);
        forget(&mut self.entries(), now);
    }
}

/// Whether it is absent and nothing is under way on it. Nothing can be in it, and the next read needs no entry. Its
/// custom resource may be one of those that somebody creates and deletes without end.
fn is_absent_and_idle(entry: &Entry) -> bool {
    entry.observed == Some(Observed::Absent) && entry.operation.is_none() && !entry.gone.is_deleted()
}

fn forget(entries: &mut HashMap<ResourceId, Entry>, now: Instant) {
    entries.retain(|_, entry| !is_absent_and_idle(entry) || entry.overdue(now) <= UNATTENDED_AFTER);
    if entries.extract_if(|_, entry| entry.overdue(now) > FORGET_AFTER).count() > 0 {
        invalidate_inside(entries);
    }
}

fn invalidate_inside(entries: &mut HashMap<ResourceId, Entry>) {
    entries.values_mut().for_each(|entry| entry.made_here = false);
}
