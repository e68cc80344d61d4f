//! Whether a resource that is not found is gone.

use std::time::Duration;

use tokio::time::Instant;

use super::{CacheEntry, ObservationCache};
use crate::cloud::{Cloud, Key, ResourceKind};

impl<C: Cloud> ObservationCache<C> {
    /// Whether the resource is gone for certain: its DELETE by this process was observed to succeed, or reads have
    /// shown its absence for a while. A 404 to a DELETE proves nothing. In a parent that this process created, what was
    /// never put needs no read.
    pub fn surely_gone(&self, key: &C::Key) -> bool {
        match self.ask(key, CacheEntry::is_surely_gone) {
            Some(gone) => gone,
            None => key.parent().is_some_and(|parent| self.made_here(&parent)),
        }
    }

    /// How long until a read may make certain that the resource is gone.
    pub fn certain_in(&self, key: &C::Key, now: Instant) -> Duration {
        let certain_at = self.ask(key, CacheEntry::surely_gone_at).flatten();
        certain_at.map_or(C::GONE_FOR, |at| at.saturating_duration_since(now).min(C::GONE_FOR))
    }

    /// Whether the cloud took a DELETE of the resource from this process, which has not failed.
    pub fn is_deleted(&self, key: &C::Key) -> bool {
        self.holds(key, |entry| entry.writes.delete().is_some())
    }

    /// Stores that the cloud accepted a DELETE of the resource, and what it names the operation.
    pub fn delete_accepted(&self, key: &C::Key, operation: Option<C::OperationId>) {
        self.edit(key, |entry| entry.writes.note_delete(operation));
    }

    /// What the operation is named that deletes a resource which is no longer found; none if the resource is gone for
    /// certain, or no name is known.
    pub fn delete_to_poll(&self, key: &C::Key) -> Option<C::OperationId> {
        let entries = self.entries();
        let entry = entries.get(key).filter(|entry| !entry.is_surely_gone())?;
        entry.writes.delete()?.operation().cloned()
    }

    /// Stores whether the DELETE of the resource succeeded.
    pub fn delete_ended(&self, key: &C::Key, succeeded: bool) {
        self.edit(key, |entry| entry.writes.end_delete(succeeded));
    }

    /// Notes that the resource was not found. Returns the wait until the second read that has to confirm that; none if
    /// the absence counts already. It counts at once if the resource was not there before, or if this process deletes
    /// it.
    pub fn missed(&self, kind: C::Kind, key: &C::Key, now: Instant) -> Option<Duration> {
        if kind.rules().confirms_absence {
            return self.update(kind, key, now, |entry| entry.note_missed(now));
        }
        self.edit(key, |entry| entry.note_missed(now)).flatten()
    }

    /// For how long every read has shown that the resource is not there; none if it was deleted or there before, or
    /// never read.
    pub fn absent_for(&self, key: &C::Key, now: Instant) -> Option<Duration> {
        let since = self
            .ask(key, |entry| entry.observation.absence.never_there_since())
            .flatten()?;
        Some(now.saturating_duration_since(since))
    }

    /// For how long every read has shown that the resource is not there, whether it was there before or not; none if
    /// the last one showed something else.
    pub fn gone_for(&self, key: &C::Key, now: Instant) -> Option<Duration> {
        let since = self
            .ask(key, |entry| entry.observation.absence.gone_since())
            .flatten()?;
        Some(now.saturating_duration_since(since))
    }
}
