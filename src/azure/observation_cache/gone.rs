//! Whether a resource that is not found is gone.

use std::time::Duration;

use tokio::time::Instant;
use url::Url;

use super::{Entry, ObservationCache};
use crate::azure::id::ResourceId;
use crate::azure::resource::GONE_FOR;

impl ObservationCache {
    /// Whether the resource is gone for certain: its DELETE by this process was observed to succeed, or reads have
    /// shown its absence for a while. A 404 to a DELETE proves nothing. In a parent that this process created, what was
    /// never put needs no read.
    pub fn surely_gone(&self, id: &ResourceId) -> bool {
        match self.ask(id, Entry::is_surely_gone) {
            Some(gone) => gone,
            None => id.parent().is_some_and(|parent| self.made_here(&parent)),
        }
    }

    /// How long until a read may make certain that the resource is gone.
    pub fn certain_in(&self, id: &ResourceId, now: Instant) -> Duration {
        let certain_at = self.ask(id, Entry::surely_gone_at).flatten();
        certain_at.map_or(GONE_FOR, |at| at.saturating_duration_since(now).min(GONE_FOR))
    }

    /// Whether ARM took a DELETE of the resource from this process, which has not failed.
    pub fn is_deleted(&self, id: &ResourceId) -> bool {
        self.holds(id, |entry| entry.writes.delete().is_some())
    }

    /// Stores that ARM accepted a DELETE of the resource, and the URL of its operation.
    pub fn delete_accepted(&self, id: &ResourceId, operation: Option<Url>) {
        self.edit(id, |entry| entry.writes.note_delete(operation));
    }

    /// The URL to poll the DELETE of a resource that is no longer found; none if the resource is gone for certain, or
    /// no URL is known.
    pub fn delete_to_poll(&self, id: &ResourceId) -> Option<Url> {
        let entries = self.entries();
        let entry = entries.get(id).filter(|entry| !entry.is_surely_gone())?;
        entry.writes.delete()?.operation().cloned()
    }

    /// Stores whether the DELETE of the resource succeeded.
    pub fn delete_ended(&self, id: &ResourceId, succeeded: bool) {
        self.edit(id, |entry| entry.writes.end_delete(succeeded));
    }

    /// Notes that the resource was not found. Returns the wait until the second read that has to confirm that; none if
    /// the absence counts already. It counts at once if the resource was not there before, or if this process deletes
    /// it.
    pub fn missed(&self, id: &ResourceId, now: Instant) -> Option<Duration> {
        self.edit(id, |entry| entry.note_missed(now)).flatten()
    }

    /// For how long every read has shown that the resource is not there; none if it was deleted or there before, or
    /// never read.
    pub fn absent_for(&self, id: &ResourceId, now: Instant) -> Option<Duration> {
        let since = self
            .ask(id, |entry| entry.observation.absence.never_there_since())
            .flatten()?;
        Some(now.saturating_duration_since(since))
    }

    /// For how long every read has shown that the resource is not there, whether it was there before or not; none if
    /// the last one showed something else.
    pub fn gone_for(&self, id: &ResourceId, now: Instant) -> Option<Duration> {
        let since = self.ask(id, |entry| entry.observation.absence.gone_since()).flatten()?;
        Some(now.saturating_duration_since(since))
    }
}
