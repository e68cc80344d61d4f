//! What no pass looks after any more: it does not count as under way, and is forgotten later.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::{Entry, Memory};
use crate::azure::id::ResourceId;
use crate::azure::ports::Counters;
use crate::azure::resource::Kind;

/// What was to be looked at so long ago is looked after by no pass now: its object is gone, paused or led by others.
const LEFT: Duration = Duration::from_secs(600);

/// After this long it is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(7_200);

impl Entry {
    fn overdue(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.due)
    }
}

impl Memory {
    /// Others may have put something into what this process made.
    pub fn others_were_at_it(&self) {
        doubt_inside(&mut self.entries());
    }

    /// Counts the operations under way that passes look after.
    pub fn count_operations(&self, counters: &dyn Counters, now: Instant) {
        let mut entries = self.entries();
        forget_left(&mut entries, now);
        for kind in Kind::ALL {
            let ages = entries
                .values()
                .filter(|e| e.kind == kind && e.overdue(now) <= LEFT)
                .filter_map(|e| e.operation.as_ref())
                .map(|o| now - o.began);
            let ages: Vec<Duration> = ages.collect();
            counters.operations(kind, ages.len(), ages.iter().max().copied().unwrap_or_default());
        }
    }
}

/// Drops what no pass has looked after for long. It is not absent for that.
fn forget_left(entries: &mut HashMap<ResourceId, Entry>, now: Instant) {
    if entries.extract_if(|_, entry| entry.overdue(now) > FORGOTTEN).count() > 0 {
        doubt_inside(entries);
    }
}

fn doubt_inside(entries: &mut HashMap<ResourceId, Entry>) {
    entries.values_mut().for_each(|entry| entry.made_here = false);
}
