//! What this process has put and no read has confirmed yet. ARM may show a new resource late, and may accept a PUT
//! again and again that never has the desired effect.

use std::time::Duration;

use tokio::time::Instant;

use super::ObservationCache;
use crate::azure::id::ResourceId;

/// For this long a read may still show the state before a write that ARM accepted. After it, the read shows whether the
/// resource is gone.
pub const SHOWS_LATE: Duration = Duration::from_secs(60);

/// The first wait for a read to show a resource whose create has succeeded.
const FIRST_SHOWN: Duration = Duration::from_secs(5);

/// The first wait before a PUT without effect is repeated. It doubles each time.
const FIRST_REPEAT: Duration = Duration::from_secs(5);

/// The longest wait before such a PUT is repeated.
const LAST_REPEAT: Duration = Duration::from_secs(300);

/// The PUTs of one resource since it was last as desired.
#[derive(Debug, Default)]
pub(super) struct Puts {
    /// When ARM accepted the last one.
    accepted: Option<Instant>,
    /// Whether a read has shown the resource since then.
    shown: bool,
    /// When its operation was first observed to have succeeded.
    succeeded: Option<Instant>,
    repeat_after: Duration,
}

impl Puts {
    /// Notes that ARM accepted a PUT.
    pub(super) fn note_accepted(&mut self, now: Instant) {
        self.repeat_after = (self.repeat_after * 2).clamp(FIRST_REPEAT, LAST_REPEAT);
        (self.accepted, self.shown, self.succeeded) = (Some(now), false, None);
    }
}

impl ObservationCache {
    /// Whether the resource may exist after a PUT although a read does not show it.
    pub fn shows_late(&self, id: &ResourceId, now: Instant) -> bool {
        let entries = self.entries();
        let puts = entries.get(id).map(|entry| &entry.puts);
        let not_shown = puts.filter(|puts| !puts.shown).and_then(|puts| puts.accepted);
        not_shown.is_some_and(|accepted| now.saturating_duration_since(accepted) < SHOWS_LATE)
    }

    /// Stores that the operation of the PUT has succeeded.
    pub fn put_succeeded(&self, id: &ResourceId, now: Instant) {
        if let Some(entry) = self.entries().get_mut(id) {
            entry.puts.succeeded.get_or_insert(now);
        }
    }

    /// How long to wait for a read to show the resource, once the operation of its PUT has succeeded: as long again as
    /// it has been waited for.
    pub fn wait_to_be_shown(&self, id: &ResourceId, now: Instant) -> Option<Duration> {
        let entries = self.entries();
        let since = entries.get(id)?.puts.succeeded?;
        Some(now.saturating_duration_since(since).max(FIRST_SHOWN))
    }

    /// Makes a resource that is ready at once after a PUT due after `resync`, however rarely its kind is read: the
    /// answer alone does not prove it.
    pub fn read_soon(&self, id: &ResourceId, now: Instant) {
        if let Some(entry) = self.entries().get_mut(id).filter(|entry| entry.due > now + self.resync) {
            entry.due_at(now + self.resync);
        }
    }

    /// Whether at most one write of the resource has failed since it was last as desired.
    pub fn refused_once(&self, id: &ResourceId) -> bool {
        self.entries().get(id).is_none_or(|entry| entry.write_failures <= 1)
    }

    /// Notes that a read has shown the resource.
    pub fn shown(&self, id: &ResourceId) {
        if let Some(entry) = self.entries().get_mut(id) {
            entry.puts.shown = true;
        }
    }

    /// Whether ARM accepted a PUT of the resource that has not made it as desired yet.
    pub fn is_put(&self, id: &ResourceId) -> bool {
        self.entries()
            .get(id)
            .is_some_and(|entry| entry.puts.accepted.is_some())
    }

    /// How long until a PUT without effect may be repeated; the resource is read again then. None: at once.
    pub fn wait_to_put_again(&self, id: &ResourceId, now: Instant) -> Option<Duration> {
        let mut entries = self.entries();
        let entry = entries.get_mut(id)?;
        let again = entry.puts.accepted? + entry.puts.repeat_after;
        let wait = again.checked_duration_since(now).filter(|wait| !wait.is_zero())?;
        entry.due_at(again);
        Some(wait)
    }

    /// Drops the entries of what only this parent shows and is not among `present`, which a read of the parent showed.
    pub fn children_are(&self, parent: &ResourceId, present: &[ResourceId]) {
        self.entries()
            .retain(|id, entry| !entry.kind.spec().shown_by_parent || !id.is_in(parent) || present.contains(id));
    }
}
