//! What reads and lists have shown, and which of them have failed.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::ObservationCache;
use crate::azure::error::ArmError;
use crate::azure::id::ResourceId;
use crate::azure::inventory::{ListOf, Listed};
use crate::azure::kinds::Kind;
use crate::azure::resource::Observed;

impl ObservationCache {
    /// Stores a failed read. Returns the wait until the next one, which grows with each failure.
    pub fn read_failed(&self, kind: Kind, id: &ResourceId, error: &ArmError, now: Instant) -> Duration {
        self.update(kind, id, now, |entry| entry.note_failed_read(error, now))
    }

    /// Whether reads of the resource have failed for so long that nothing is known of it any more.
    pub fn unread_for_long(&self, id: &ResourceId, now: Instant) -> bool {
        self.holds(id, |entry| entry.failures.unread_for_long(now))
    }

    /// Whether the resource itself was last read before `since`, or was only shown by a list after that.
    pub fn was_read_before(&self, id: &ResourceId, since: Instant) -> bool {
        self.holds(id, |entry| entry.observation.was_read_before(since))
    }

    /// Stores that the resource was read in place of one in it that is being deleted.
    pub fn was_read_instead(&self, id: &ResourceId, now: Instant) {
        self.edit(id, |entry| entry.observation.note_read_instead(now));
    }

    /// What such a read after `since` showed, once: the resource without the one in it.
    pub fn observed_instead(&self, id: &ResourceId, since: Instant) -> Option<Observed> {
        self.edit(id, |entry| entry.observation.take_read_instead(since))
            .flatten()
    }

    /// Stores that the resource was observed as owned. That holds as long as it exists, whatever it becomes.
    pub fn prove(&self, id: &ResourceId, body: &Value) {
        self.edit(id, |entry| entry.observation.note_proven(body));
    }

    /// Whether this process has observed this very resource as owned, and not as gone since.
    pub fn is_proven(&self, id: &ResourceId, body: &Value) -> bool {
        self.holds(id, |entry| entry.observation.is_proven(body))
    }

    /// The earliest start of a list that may show a ready resource unchanged; none if it is not ready.
    pub fn list_since(&self, id: &ResourceId, now: Instant) -> Option<Instant> {
        self.ask(id, |entry| entry.observation.list_since(self.resync / 2, now))
            .flatten()
    }

    /// How many ready resources one list with this one would show.
    pub fn share_a_list(&self, kind: Kind, id: &ResourceId) -> usize {
        let Some(list) = ListOf::of(kind, id) else {
            return 0;
        };
        let entries = self.entries();
        let parent = id.parent().and_then(|parent| entries.get(&parent));
        if !list.is_short(parent.and_then(|parent| parent.observation.found())) {
            return 0;
        }
        let listable = entries
            .iter()
            .filter(|(_, entry)| entry.kind == kind && entry.observation.is_listable());
        listable.filter(|(other, _)| list.shows(other)).count()
    }

    /// What was observed of the resource before, if a list shows it as it was when it was last read.
    pub fn unchanged(&self, id: &ResourceId, listed: Listed) -> Option<Observed> {
        let mut entries = self.entries();
        let entry = entries.get_mut(id)?;
        if !entry.observation.is_unchanged(listed) {
            return None;
        }
        entry.observation.confirm_by_list(listed, self.hold(entry.kind, id))
    }

    /// Stores the resource's fingerprint in a list that was started before the resource was read.
    pub fn listed(&self, id: &ResourceId, listed: Listed) {
        self.edit(id, |entry| entry.observation.note_listed(listed));
    }

    /// Whether the last list of what is in the resource could not be read.
    pub fn list_is_unread(&self, id: &ResourceId) -> bool {
        self.holds(id, |entry| entry.failures.list_is_unread())
    }

    /// Stores the result of a list of what is in the resource, and returns it. A failure gets whether it lasts.
    pub fn list_of<T>(&self, id: &ResourceId, list: Result<T, ArmError>, now: Instant) -> Result<T, ArmError> {
        let mut entries = self.entries();
        let Some(entry) = entries.get_mut(id) else {
            return list;
        };
        match list {
            Ok(list) => {
                entry.failures.note_listed();
                Ok(list)
            }
            Err(error) => {
                entry.failures.note_list(now);
                let lasting = entry.failures.lists_unread_for_long(now);
                Err(ArmError { lasting, ..error })
            }
        }
    }

    /// Drops the entries of what only this parent shows and is not among `present`, which a read of the parent showed.
    pub fn children_are(&self, parent: &ResourceId, present: &[ResourceId]) {
        self.entries()
            .retain(|id, entry| !entry.kind.spec().shown_by_parent || !id.is_in(parent) || present.contains(id));
    }
}
