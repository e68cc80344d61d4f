//! What no pass looks after any more: it does not count as under way, and is forgotten later.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tokio::time::Instant;

use super::{Entry, ObservationCache};
use crate::azure::id::ResourceId;
use crate::azure::resource::{Kind, Observed};

/// What was to be looked at so long ago is looked after by no pass now: its object is gone, paused or led by others.
const LEFT: Duration = Duration::from_secs(600);

/// After this long it is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(7_200);

/// Between two searches for what is to be forgotten.
const SEARCH: Duration = Duration::from_secs(60);

/// Long-running operations that this process has started on resources of one kind and not yet seen end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UnderWay {
    /// How many.
    pub count: usize,
    /// The age of the oldest.
    pub oldest: Duration,
}

impl UnderWay {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            oldest: self.oldest.max(other.oldest),
        }
    }
}

impl Entry {
    /// For how long somebody should have looked at it already.
    pub(super) fn overdue(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.due)
    }
}

impl ObservationCache {
    /// Others may have put something into what this process made.
    pub fn others_were_at_it(&self) {
        invalidate_inside(&mut self.entries());
    }

    /// The operations under way that passes look after.
    pub fn under_way(&self, now: Instant) -> BTreeMap<Kind, UnderWay> {
        let mut all = BTreeMap::<Kind, UnderWay>::new();
        let entries = self.entries();
        for entry in entries.values().filter(|entry| entry.overdue(now) <= LEFT) {
            if let Some(operation) = &entry.operation {
                let oldest = now.saturating_duration_since(operation.began);
                let of_kind = all.entry(entry.kind).or_default();
                *of_kind = of_kind.and(UnderWay { count: 1, oldest });
            }
        }
        all
    }

    /// Drops what no pass has looked after for long. It is not absent for that.
    pub fn forget_left(&self, now: Instant) {
        let mut searched = self.searched();
        if searched.is_some_and(|last| now.saturating_duration_since(last) < SEARCH) {
            return;
        }
        *searched = Some(now);
        forget(&mut self.entries(), now);
    }
}

/// What is not there and is looked at no more: nothing can be in it, and who comes to look reads it as ever. Its object went
/// without it, as those that somebody makes and deletes without end.
fn is_nothing(entry: &Entry) -> bool {
    entry.observed == Some(Observed::Absent) && entry.operation.is_none() && !entry.gone.is_deleted()
}

fn forget(entries: &mut HashMap<ResourceId, Entry>, now: Instant) {
    entries.retain(|_, entry| !is_nothing(entry) || entry.overdue(now) <= LEFT);
    if entries.extract_if(|_, entry| entry.overdue(now) > FORGOTTEN).count() > 0 {
        invalidate_inside(entries);
    }
}

fn invalidate_inside(entries: &mut HashMap<ResourceId, Entry>) {
    entries.values_mut().for_each(|entry| entry.made_here = false);
}
