//! What this process has put and no read has confirmed yet. ARM may show a new resource late, and may take a PUT again and again
//! without ever showing what it was for.

use std::time::Duration;

use tokio::time::Instant;

use super::ObservationCache;
use crate::azure::id::ResourceId;
use crate::azure::resource::Kind;

/// For so long a read may still show what was there before a write that ARM took. Gone or not is what a read shows after it.
pub const SHOWS_LATE: Duration = Duration::from_secs(60);

/// What a create that has succeeded made, and reads do not show, is read again after this long at first.
const FIRST_SHOWN: Duration = Duration::from_secs(5);

/// A PUT that did not help is repeated after this long at first, then after twice as long.
const FIRST_REPEAT: Duration = Duration::from_secs(5);

/// It is repeated at least this often.
const LAST_REPEAT: Duration = Duration::from_secs(300);

/// The PUTs of one resource since it was last as wanted.
#[derive(Debug, Default)]
pub(super) struct Puts {
    /// When ARM took the last one.
    taken: Option<Instant>,
    /// Whether a read has shown the resource since.
    shown: bool,
    /// When its operation was first seen to have succeeded.
    succeeded: Option<Instant>,
    repeat_after: Duration,
}

impl Puts {
    /// ARM took one.
    pub(super) fn took(&mut self, now: Instant) {
        self.repeat_after = (self.repeat_after * 2).clamp(FIRST_REPEAT, LAST_REPEAT);
        (self.taken, self.shown, self.succeeded) = (Some(now), false, None);
    }
}

impl ObservationCache {
    /// Whether what was put may exist although a read does not show it.
    pub fn shows_late(&self, id: &ResourceId, now: Instant) -> bool {
        let entries = self.entries();
        let puts = entries.get(id).map(|entry| &entry.puts);
        let unseen = puts.filter(|puts| !puts.shown).and_then(|puts| puts.taken);
        unseen.is_some_and(|taken| now.saturating_duration_since(taken) < SHOWS_LATE)
    }

    /// The operation of the PUT has succeeded.
    pub fn put_succeeded(&self, id: &ResourceId, now: Instant) {
        if let Some(entry) = self.entries().get_mut(id) {
            entry.puts.succeeded.get_or_insert(now);
        }
    }

    /// How long to wait for what was put to be shown, once its operation has succeeded: as long again as it has been waited for.
    pub fn wait_to_be_shown(&self, id: &ResourceId, now: Instant) -> Option<Duration> {
        let entries = self.entries();
        let since = entries.get(id)?.puts.succeeded?;
        Some(now.saturating_duration_since(since).max(FIRST_SHOWN))
    }

    /// What was put at rest is looked at after `resync` first, however rarely its kind is: an answer does not make it so.
    pub fn read_soon(&self, id: &ResourceId, now: Instant) {
        if let Some(entry) = self.entries().get_mut(id).filter(|entry| entry.due > now + self.resync) {
            entry.due_at(now + self.resync);
        }
    }

    /// Whether no write of the resource was refused before the last one, since it was as wanted.
    pub fn refused_once(&self, id: &ResourceId) -> bool {
        self.entries().get(id).is_none_or(|entry| entry.write_failures <= 1)
    }

    /// A read has shown the resource.
    pub fn shown(&self, id: &ResourceId) {
        if let Some(entry) = self.entries().get_mut(id) {
            entry.puts.shown = true;
        }
    }

    /// Whether ARM took a PUT of the resource that did not bring it to what is wanted yet.
    pub fn is_put(&self, id: &ResourceId) -> bool {
        self.entries().get(id).is_some_and(|entry| entry.puts.taken.is_some())
    }

    /// How long until what was put in vain may be put again; it is read again then. None: at once.
    pub fn wait_to_put_again(&self, id: &ResourceId, now: Instant) -> Option<Duration> {
        let mut entries = self.entries();
        let entry = entries.get_mut(id)?;
        let again = entry.puts.taken? + entry.puts.repeat_after;
        let wait = again.checked_duration_since(now).filter(|wait| !wait.is_zero())?;
        entry.due_at(again);
        Some(wait)
    }

    /// A read of a service showed these connections; what is known of others is dropped.
    pub fn connections_are(&self, service: &ResourceId, present: &[ResourceId]) {
        self.entries()
            .retain(|id, entry| entry.kind != Kind::Connection || !id.is_in(service) || present.contains(id));
    }
}
