//! Since when resources have been observed as they are.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::ObservationCache;
use crate::azure::error::ArmError;
use crate::azure::id::ResourceId;
use crate::azure::resource::Observed;

/// After this many failed reads in a row, over this long, nothing is known of a resource any more.
const LASTING: (u32, Duration) = (3, Duration::from_secs(120));

/// The id that Azure gives a resource when it is created: a recreated one has another under the old name. Not every
/// kind has it.
fn made_as(body: &Value) -> &str {
    let properties = &body["properties"];
    let given = properties["resourceGuid"]
        .as_str()
        .or(properties["internalId"].as_str());
    given.unwrap_or_default()
}

/// Reads that have failed in a row.
#[derive(Debug, Clone, Copy)]
pub(in crate::azure) struct Unread {
    count: u32,
    since: Instant,
}

impl Unread {
    /// Counts one more failed read. Returns whether the failures last.
    pub(in crate::azure) fn note_failure(row: &mut Option<Self>, now: Instant) -> bool {
        let row = row.get_or_insert(Self { count: 0, since: now });
        row.count = row.count.saturating_add(1);
        row.lasts(now)
    }

    /// Whether the reads have failed often and long enough to count as lasting.
    pub(in crate::azure) fn lasts(&self, now: Instant) -> bool {
        let (count, time) = LASTING;
        self.count >= count && now.saturating_duration_since(self.since) >= time
    }
}

impl ObservationCache {
    /// Whether the resource itself was last read before `since`, or was only shown by a list after that.
    pub fn was_read_before(&self, id: &ResourceId, since: Instant) -> bool {
        let entries = self.entries();
        entries
            .get(id)
            .is_some_and(|entry| entry.only_listed || entry.read_at < since)
    }

    /// Stores that a zone was read in place of a link in it that is being deleted.
    pub fn was_read_instead(&self, id: &ResourceId, now: Instant) {
        if let Some(entry) = self.entries().get_mut(id) {
            // A step that was decided from an earlier read in this reconcile has to read it again.
            (entry.read_instead, entry.only_listed) = (Some(now), true);
        }
    }

    /// What such a read after `since` showed, once: the zone without the link.
    pub fn observed_instead(&self, id: &ResourceId, since: Instant) -> Option<Observed> {
        let mut entries = self.entries();
        let entry = entries.get_mut(id)?;
        entry.read_instead.take().filter(|read| *read >= since)?;
        entry.only_listed = false;
        entry.observed.clone()
    }

    /// Stores that the resource was observed as owned. That holds as long as it exists, whatever it becomes.
    pub fn prove(&self, id: &ResourceId, body: &Value) {
        if let Some(entry) = self.entries().get_mut(id) {
            entry.proven = Some(made_as(body).to_owned());
        }
    }

    /// Whether this process has observed this very resource as owned, and not as gone since.
    pub fn is_proven(&self, id: &ResourceId, body: &Value) -> bool {
        let entries = self.entries();
        let proven = entries.get(id).and_then(|entry| entry.proven.as_deref());
        proven.is_some_and(|proven| proven == made_as(body))
    }

    /// For how long every read has shown that the resource is not there; none if it was deleted or there before, or
    /// never read.
    pub fn absent_for(&self, id: &ResourceId, now: Instant) -> Option<Duration> {
        let since = self.entries().get(id)?.absent_since?;
        Some(now.saturating_duration_since(since))
    }

    /// For how long every read has shown that the resource is not there, whether it was there before or not; none if
    /// the last one showed something else.
    pub fn gone_for(&self, id: &ResourceId, now: Instant) -> Option<Duration> {
        let since = self.entries().get(id)?.gone_since?;
        Some(now.saturating_duration_since(since))
    }

    /// For how long every write of the resource has failed with the same code.
    pub fn failing_for(&self, id: &ResourceId, now: Instant) -> Duration {
        let entries = self.entries();
        let since = entries.get(id).and_then(|entry| entry.failing.as_ref());
        since.map_or(Duration::ZERO, |(_, since)| now.saturating_duration_since(*since))
    }

    /// How the last write of the resource failed; none once the resource is as desired.
    pub fn failing(&self, id: &ResourceId) -> Option<ArmError> {
        let entries = self.entries();
        entries.get(id)?.failing.as_ref().map(|(error, _)| error.clone())
    }

    /// Whether reads of the resource have failed for so long that nothing is known of it any more.
    pub fn unread_for_long(&self, id: &ResourceId, now: Instant) -> bool {
        let entries = self.entries();
        let unread = entries.get(id).and_then(|entry| entry.unread);
        unread.is_some_and(|unread| unread.lasts(now))
    }

    /// Whether the last list of what is in the resource could not be read.
    pub fn list_is_unread(&self, id: &ResourceId) -> bool {
        self.entries().get(id).is_some_and(|entry| entry.lists_unread.is_some())
    }

    /// Stores the result of a list of what is in the resource, and returns it. A failure gets whether it lasts.
    pub fn list_of<T>(&self, id: &ResourceId, list: Result<T, ArmError>, now: Instant) -> Result<T, ArmError> {
        let mut entries = self.entries();
        let Some(entry) = entries.get_mut(id) else {
            return list;
        };
        if list.is_ok() {
            entry.lists_unread = None;
        }
        list.map_err(|error| ArmError {
            lasting: Unread::note_failure(&mut entry.lists_unread, now),
            ..error
        })
    }
}
