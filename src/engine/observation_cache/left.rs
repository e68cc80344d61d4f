//! What no reconcile reads any more: it does not count as under way, and is forgotten later.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::{Entries, ObservationCache};
use crate::cloud::Cloud;

/// A resource whose read has been due for this long is read by no reconcile now. Its custom resource is gone, paused or
/// served by another process.
///
/// Rule: `RUNBOOK.md`.
const UNATTENDED_AFTER: Duration = Duration::from_secs(600);

/// After the read of a resource has been due for this long, the cache drops what it holds of it.
const FORGET_AFTER: Duration = Duration::from_secs(7_200);

/// The time between two searches of the cache for entries to drop.
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

impl<C: Cloud> ObservationCache<C> {
    /// Notes that others may have put something into what this process created.
    pub fn others_were_at_it(&self) {
        invalidate_inside(&mut self.entries());
    }

    /// The operations under way on resources that reconciles still read.
    pub fn under_way(&self, now: Instant) -> BTreeMap<C::Kind, UnderWay> {
        let mut all = BTreeMap::<C::Kind, UnderWay>::new();
        let entries = self.entries();
        let attended = entries
            .values()
            .filter(|entry| entry.observation.overdue(now) <= UNATTENDED_AFTER);
        for entry in attended {
            if let Some(operation) = entry.writes.operation() {
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

fn forget<C: Cloud>(entries: &mut Entries<C>, now: Instant) {
    entries.retain(|_, entry| !entry.is_absent_and_idle() || entry.observation.overdue(now) <= UNATTENDED_AFTER);
    let known = entries.len();
    entries.retain(|_, entry| entry.observation.overdue(now) <= FORGET_AFTER);
    if entries.len() < known {
        invalidate_inside(entries);
    }
}

fn invalidate_inside<C: Cloud>(entries: &mut Entries<C>) {
    for entry in entries.values_mut() {
        entry.writes.others_may_write();
    }
}
