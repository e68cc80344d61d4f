//! What this process last observed of each resource, until when that is fresh, and the operation under way.
//!
//! After a restart everything is read again. What others write between two reads does not show here. So `execute`
//! invalidates old entries before a write, before a resource is left to others and before a custom resource is let go.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use super::id::ResourceId;
use super::kinds::{Kind, Resync};
use super::resource::Observed;
use super::write_queue::WriteQueue;

mod absence;
mod entry;
mod failures;
mod gone;
mod left;
mod observation;
mod operation;
mod puts;
mod queue;
mod reads;
mod unreported;
mod writes;
mod written;

use entry::Entry;
pub use left::UnderWay;
use observation::Hold;
pub use operation::Operation;
pub use puts::SHOWS_LATE;

/// A resource in progress is read at least this often, however long that lasts.
pub const LONGEST_POLL: Duration = Duration::from_secs(60);

/// The observation cache of one process.
#[derive(Debug)]
pub struct ObservationCache {
    entries: Mutex<HashMap<ResourceId, Entry>>,
    write_queue: WriteQueue,
    /// The receivers of the resources whose write has come first in the queue.
    waiting: Mutex<Vec<UnboundedSender<ResourceId>>>,
    /// When it was last searched for entries to forget.
    searched: Mutex<Option<Instant>>,
    resync: Duration,
    record_resync: Duration,
}

impl ObservationCache {
    /// A cache in which ready resources are due for a read after `resync`, links and records after `record_resync`,
    /// each spread by a tenth.
    pub fn new(resync: Duration, record_resync: Duration) -> Self {
        Self {
            entries: Mutex::default(),
            write_queue: WriteQueue::default(),
            waiting: Mutex::default(),
            searched: Mutex::default(),
            resync,
            record_resync,
        }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<ResourceId, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<UnboundedSender<ResourceId>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn searched(&self) -> MutexGuard<'_, Option<Instant>> {
        self.searched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What `question` finds in the resource's entry; none if there is no entry.
    fn ask<T>(&self, id: &ResourceId, question: impl FnOnce(&Entry) -> T) -> Option<T> {
        self.entries().get(id).map(question)
    }

    /// Whether the resource has an entry of which this holds.
    fn holds(&self, id: &ResourceId, rule: impl FnOnce(&Entry) -> bool) -> bool {
        self.entries().get(id).is_some_and(rule)
    }

    /// Changes the resource's entry, if there is one.
    fn edit<T>(&self, id: &ResourceId, change: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        self.entries().get_mut(id).map(change)
    }

    /// Changes the entry of a resource that was read or written, and makes one if there is none.
    fn update<T>(&self, kind: Kind, id: &ResourceId, now: Instant, change: impl FnOnce(&mut Entry) -> T) -> T {
        let mut entries = self.entries();
        let entry = entries.entry(id.clone()).or_insert_with(|| Entry::new(kind, now));
        entry.observation.note_read(now);
        change(entry)
    }

    /// What was last observed, while it is fresh.
    pub fn fresh(&self, id: &ResourceId, now: Instant) -> Option<Observed> {
        self.ask(id, |entry| entry.observation.fresh(now)).flatten()
    }

    /// Whether the cache has an entry for the resource.
    pub fn knows(&self, id: &ResourceId) -> bool {
        self.entries().contains_key(id)
    }

    /// When the first of these resources is due for a read; none if no entry exists.
    pub fn next_read<'a>(&self, ids: impl IntoIterator<Item = &'a ResourceId>) -> Option<Instant> {
        let entries = self.entries();
        let known = ids.into_iter().filter_map(|id| entries.get(id));
        known.map(|entry| entry.observation.due()).min()
    }

    /// Stores a resource on which nothing is under way any more. If it is absent, what was in it is dropped.
    pub fn ready(&self, kind: Kind, id: &ResourceId, observed: Observed, now: Instant) {
        if observed == Observed::Absent {
            self.entries().retain(|known, _| !known.is_in(id));
        }
        let hold = self.hold(kind, id);
        let was_under_way = self.update(kind, id, now, |entry| entry.note_ready(observed, hold, now));
        if was_under_way {
            self.wake_next(kind, id, now);
        }
    }

    /// Stores that the resource is in progress: due after `wait`, at most [`LONGEST_POLL`], and later as this lasts.
    pub fn in_progress(&self, kind: Kind, id: &ResourceId, observed: Observed, wait: Duration, now: Instant) {
        self.update(kind, id, now, |entry| entry.note_in_progress(observed, wait, now));
    }

    /// Makes the next read of the resource due at once.
    pub fn invalidate(&self, id: &ResourceId, now: Instant) {
        self.edit(id, |entry| entry.observation.due_at(now));
    }

    /// Makes the next read of the resource due within `wait`, if it is not due sooner.
    pub fn expedite(&self, id: &ResourceId, wait: Duration, now: Instant) {
        self.edit(id, |entry| entry.observation.expedite(now + wait));
    }

    /// Drops everything about the resource, also its waiting write in the queue.
    pub fn forget(&self, id: &ResourceId) {
        self.entries().remove(id);
        self.write_queue.leave(id);
    }

    /// How long a ready resource is not read: spread by its id, or by its parent's, where one list shows all in it. A
    /// reconcile that runs anyway reads it a little earlier.
    fn hold(&self, kind: Kind, id: &ResourceId) -> Hold {
        let (base, spread_by) = match kind.spec().resync {
            Resync::Resource => (self.resync, None),
            Resync::Record => (self.record_resync, id.parent()),
        };
        // Only this process uses the hash: another release of Rust may spread the reads in another way.
        let mut hasher = DefaultHasher::new();
        spread_by.as_ref().unwrap_or(id).hash(&mut hasher);
        let permille = u32::try_from(hasher.finish() % 200).unwrap_or(0);
        let due_after = base * (900 + permille) / 1_000;
        let earlier = self.resync.min(self.record_resync) / 5;
        Hold {
            due_after,
            good_for: due_after.saturating_sub(earlier),
        }
    }
}

#[cfg(test)]
mod tests;
