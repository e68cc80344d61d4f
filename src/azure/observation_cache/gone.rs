//! Whether a resource that is not found is gone. A read that finds nothing proves little: one of ARM's front ends may
//! be behind for seconds, and what it does not know it neither shows nor deletes.

use std::time::Duration;

use tokio::time::Instant;
use url::Url;

use super::{Entry, ObservationCache, SHOWS_LATE};
use crate::azure::id::ResourceId;
use crate::azure::resource::{GONE_FOR, MISSED, Observed};

/// When ARM accepted a DELETE and its end is not known, it counts as executed after reads have found nothing for this
/// long.
const CARRIED_OUT: Duration = Duration::from_secs(8);

/// What is known about the absence of a resource, or about its DELETE.
#[derive(Debug, Default)]
pub(super) struct Gone {
    /// Whether it was ever observed to be there.
    observed: bool,
    /// Whether it was there when it was last observed as ready or in progress.
    there: bool,
    /// Since when it was not found although it was there before.
    missed: Option<Instant>,
    /// The last DELETE of it that ARM accepted.
    delete: Option<Delete>,
}

#[derive(Debug)]
struct Delete {
    operation: Option<Url>,
    /// Whether its operation was observed to succeed.
    succeeded: bool,
}

impl Gone {
    /// Notes that it is ready, or absent. Returns since when it was not found, if it was there before.
    pub(super) fn note_ready(&mut self, absent: bool) -> Option<Instant> {
        if !absent {
            self.delete = None;
        }
        (self.observed, self.there) = (self.observed || !absent, !absent);
        self.missed.take().filter(|_| absent)
    }

    /// Notes that it was observed in progress.
    pub(super) fn note_in_progress(&mut self, observed: &Observed) {
        if matches!(observed, Observed::Found(_)) {
            (self.observed, self.there, self.missed) = (true, true, None);
        }
    }

    /// Whether ARM accepted a DELETE of it that has not failed.
    pub(super) fn is_deleted(&self) -> bool {
        self.delete.is_some()
    }

    /// Notes that the DELETE failed, or had no effect.
    pub(super) fn delete_is_over(&mut self) {
        self.delete = None;
    }

    /// For how long reads have to show that it is not there until it is gone for certain.
    fn certain_after(&self) -> Duration {
        match &self.delete {
            Some(delete) if delete.succeeded => Duration::ZERO,
            Some(_) => CARRIED_OUT,
            None if self.observed => SHOWS_LATE,
            None => GONE_FOR,
        }
    }
}

impl Entry {
    fn surely_gone(&self) -> bool {
        let reads_for = |since| self.read_at.saturating_duration_since(since);
        let since = self.gone_since;
        since.is_some_and(|since| reads_for(since) >= self.gone.certain_after())
    }
}

impl ObservationCache {
    /// Whether the resource is gone for certain: its DELETE by this process was observed to succeed, or reads have
    /// shown its absence for a while. A 404 to a DELETE proves nothing.
    pub fn surely_gone(&self, id: &ResourceId) -> bool {
        let entries = self.entries();
        let Some(entry) = entries.get(id) else {
            // In a parent that this process created, what was never put needs no read.
            let parent = id.parent().and_then(|parent| entries.get(&parent));
            return parent.is_some_and(|parent| parent.made_here);
        };
        entry.surely_gone()
    }

    /// How long until a read may make certain that the resource is gone.
    pub fn certain_in(&self, id: &ResourceId, now: Instant) -> Duration {
        let entries = self.entries();
        let certain = entries
            .get(id)
            .and_then(|entry| Some(entry.gone_since? + entry.gone.certain_after()));
        certain.map_or(GONE_FOR, |certain| certain.saturating_duration_since(now).min(GONE_FOR))
    }

    /// Whether ARM took a DELETE of the resource from this process, which has not failed.
    pub fn is_deleted(&self, id: &ResourceId) -> bool {
        let entries = self.entries();
        entries.get(id).is_some_and(|entry| entry.gone.is_deleted())
    }

    /// Stores that ARM accepted a DELETE of the resource, and the URL of its operation.
    pub fn delete_accepted(&self, id: &ResourceId, operation: Option<Url>) {
        if let Some(entry) = self.entries().get_mut(id) {
            let succeeded = false;
            entry.gone.delete = Some(Delete { operation, succeeded });
        }
    }

    /// The URL to poll the DELETE of a resource that is no longer found; none if the resource is gone for certain, or
    /// no URL is known.
    pub fn delete_to_poll(&self, id: &ResourceId) -> Option<Url> {
        let entries = self.entries();
        let entry = entries.get(id).filter(|entry| !entry.surely_gone())?;
        entry.gone.delete.as_ref()?.operation.clone()
    }

    /// Stores whether the DELETE of the resource succeeded.
    pub fn delete_ended(&self, id: &ResourceId, succeeded: bool) {
        if let Some(entry) = self.entries().get_mut(id) {
            match &mut entry.gone.delete {
                Some(delete) if succeeded => delete.succeeded = true,
                delete => *delete = None,
            }
        }
    }

    /// Notes that the resource was not found. Returns the wait until the second read that has to confirm that; none if
    /// the absence counts already. It counts at once if the resource was not there before, or if this process deletes
    /// it.
    pub fn missed(&self, id: &ResourceId, now: Instant) -> Option<Duration> {
        let mut entries = self.entries();
        let deletes = |entry: &Entry| entry.operation.as_ref().is_some_and(|operation| operation.deletes);
        let entry = entries.get_mut(id).filter(|entry| !deletes(entry))?;
        if entry.gone.there {
            entry.gone.missed.get_or_insert(now);
        }
        let counts = entry.gone.missed? + MISSED;
        counts.checked_duration_since(now).filter(|wait| !wait.is_zero())
    }
}
