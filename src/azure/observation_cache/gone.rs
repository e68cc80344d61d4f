//! Whether a resource that is not found is gone. A read that finds nothing proves little: one of ARM's front ends may be behind
//! for seconds, and what it does not know it neither shows nor deletes.

use std::time::Duration;

use tokio::time::Instant;
use url::Url;

use super::{Entry, ObservationCache, SHOWS_LATE};
use crate::azure::id::ResourceId;
use crate::azure::resource::{GONE_FOR, MISSED, Observed};

/// A DELETE that ARM took, of which nobody knows how it ended, is carried out when reads have found nothing for this long.
const CARRIED_OUT: Duration = Duration::from_secs(8);

/// What is known of a resource that goes, or of how it went.
#[derive(Debug, Default)]
pub(super) struct Gone {
    /// Whether it was ever seen to be there.
    observed: bool,
    /// Whether it was there when it was last seen to be at rest or to change.
    there: bool,
    /// Since when it was not found although it was there.
    missed: Option<Instant>,
    /// The last DELETE of it that ARM took.
    delete: Option<Delete>,
}

#[derive(Debug)]
struct Delete {
    operation: Option<Url>,
    /// Whether its operation was seen to succeed.
    succeeded: bool,
}

impl Gone {
    /// It rests, and is there or not. Gives since when it was not found, if it was there before.
    pub(super) fn rests(&mut self, absent: bool) -> Option<Instant> {
        if !absent {
            self.delete = None;
        }
        (self.observed, self.there) = (self.observed || !absent, !absent);
        self.missed.take().filter(|_| absent)
    }

    /// It was seen to change like this.
    pub(super) fn moves(&mut self, observed: &Observed) {
        if matches!(observed, Observed::Found(_)) {
            (self.observed, self.there, self.missed) = (true, true, None);
        }
    }

    /// Whether ARM took a DELETE of it that has not failed.
    pub(super) fn is_deleted(&self) -> bool {
        self.delete.is_some()
    }

    /// The DELETE failed, or came to nothing.
    pub(super) fn delete_is_over(&mut self) {
        self.delete = None;
    }

    /// For how long reads have to show that it is not there, for it to be gone for certain.
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
        let reads_for = |since| self.looked.saturating_duration_since(since);
        let since = self.gone_since;
        since.is_some_and(|since| reads_for(since) >= self.gone.certain_after())
    }
}

impl ObservationCache {
    /// Whether the resource is gone for certain: its deletion by this process was seen to succeed, or reads have said so for a while.
    /// That a DELETE is answered 404 proves nothing.
    pub fn surely_gone(&self, id: &ResourceId) -> bool {
        let entries = self.entries();
        let Some(entry) = entries.get(id) else {
            // Nobody has read what cannot be there.
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

    /// ARM took a DELETE of the resource, and tells of it there.
    pub fn delete_accepted(&self, id: &ResourceId, operation: Option<Url>) {
        if let Some(entry) = self.entries().get_mut(id) {
            let succeeded = false;
            entry.gone.delete = Some(Delete { operation, succeeded });
        }
    }

    /// Where ARM tells how the DELETE of a resource that is not found any more has ended; none if that is known, or no use.
    pub fn delete_to_ask_about(&self, id: &ResourceId) -> Option<Url> {
        let entries = self.entries();
        let entry = entries.get(id).filter(|entry| !entry.surely_gone())?;
        entry.gone.delete.as_ref()?.operation.clone()
    }

    /// The DELETE of the resource has succeeded, or failed.
    pub fn delete_ended(&self, id: &ResourceId, well: bool) {
        if let Some(entry) = self.entries().get_mut(id) {
            match &mut entry.gone.delete {
                Some(delete) if well => delete.succeeded = true,
                delete => *delete = None,
            }
        }
    }

    /// The resource was not found. How long until it is to be read again before that counts, if it was there, and this process does not
    /// delete it; none if it counts.
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
