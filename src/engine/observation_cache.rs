//! What this process last observed of each resource, until when that is fresh, and the operation under way.
//!
//! After a restart everything is read again. What others write between two reads does not show here. So `execute`
//! invalidates old entries before a write, before a resource is left to others and before a custom resource is let go.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use super::cloud::{Cloud, Key, ResourceKind};
use super::kind_rules::Resync;
use super::resource::Observed;
use super::write_queue::WriteQueue;

mod absence;
mod backoff;
mod creating;
mod entry;
mod gone;
mod inside;
mod left;
mod observation;
mod operation;
mod puts;
mod queue;
mod reads;
mod replacements;
mod stored;
mod unreported;
mod writes;
mod written;

use entry::CacheEntry;
use inside::numbers_inside;
pub use left::UnderWay;
pub(crate) use observation::Deferral;
use observation::Hold;
pub use operation::Operation;
pub use puts::SHOWS_LATE;
use stored::Stored;

/// A resource in progress is read at least this often, however long that lasts and whatever the cloud asks for.
///
/// Rule: A3 in `docs/compatibility.md`.
pub const LONGEST_POLL: Duration = Duration::from_secs(60);

/// In so many rounds of `record_resync` a resource is read once that is as desired and whose number the parent shows.
///
/// Rule: `docs/decisions/0012-lists-and-reads.md`.
const COUNTED_ROUNDS: u32 = 6;

/// The entries by key. A table has room for up to twice as many as it holds, so they are not in it.
type Entries<C> = HashMap<<C as Cloud>::Key, Box<CacheEntry<C>>>;

/// The observation cache of one process.
#[derive(Debug)]
pub struct ObservationCache<C: Cloud> {
    entries: Mutex<Entries<C>>,
    /// The resources that this process creates, as far as lists are of use for them, and some that are created already.
    creating: Mutex<HashSet<C::Key>>,
    write_queue: WriteQueue<C::Key>,
    /// The receivers of the resources whose write has come first in the queue.
    waiting: Mutex<Vec<UnboundedSender<C::Key>>>,
    /// When it was last searched for entries to forget.
    searched: Mutex<Option<Instant>>,
    resync: Duration,
    record_resync: Duration,
}

impl<C: Cloud> ObservationCache<C> {
    /// A cache in which ready resources are due for a read after `resync`, links and records after `record_resync`,
    /// each spread by a tenth.
    pub fn new(resync: Duration, record_resync: Duration) -> Self {
        Self {
            entries: Mutex::default(),
            creating: Mutex::default(),
            write_queue: WriteQueue::default(),
            waiting: Mutex::default(),
            searched: Mutex::default(),
            resync,
            record_resync,
        }
    }

    fn entries(&self) -> MutexGuard<'_, Entries<C>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<UnboundedSender<C::Key>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn searched(&self) -> MutexGuard<'_, Option<Instant>> {
        self.searched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What `question` finds in the resource's entry; none if there is no entry.
    fn ask<T>(&self, key: &C::Key, question: impl FnOnce(&CacheEntry<C>) -> T) -> Option<T> {
        self.entries().get(key).map(|entry| question(entry))
    }

    /// Whether the resource has an entry of which this holds.
    fn holds(&self, key: &C::Key, rule: impl FnOnce(&CacheEntry<C>) -> bool) -> bool {
        self.entries().get(key).is_some_and(|entry| rule(entry))
    }

    /// Changes the resource's entry, if there is one.
    fn edit<T>(&self, key: &C::Key, change: impl FnOnce(&mut CacheEntry<C>) -> T) -> Option<T> {
        self.entries().get_mut(key).map(|entry| change(entry))
    }

    /// Changes the entry of a resource that was read or written, and makes one if there is none.
    fn update<T>(&self, kind: C::Kind, key: &C::Key, now: Instant, change: impl FnOnce(&mut CacheEntry<C>) -> T) -> T {
        let mut entries = self.entries();
        let entry = entries
            .entry(key.clone())
            .or_insert_with(|| Box::new(CacheEntry::new(kind, now)));
        entry.observation.note_read(now);
        change(entry)
    }

    /// What was last observed, while it is fresh.
    pub fn fresh(&self, key: &C::Key, now: Instant) -> Option<Observed<C>> {
        self.ask(key, |entry| entry.observation.fresh(now)).flatten()
    }

    /// Whether the cache has an entry for the resource.
    pub fn knows(&self, key: &C::Key) -> bool {
        self.entries().contains_key(key)
    }

    /// Whether the resource is there, as far as the cache knows it.
    pub fn is_there(&self, key: &C::Key) -> bool {
        self.holds(key, |entry| !entry.observation.is(Stored::is_absent))
    }

    /// When the first of these resources is due for a read; none if no entry exists.
    pub fn next_read<'a>(&self, keys: impl IntoIterator<Item = &'a C::Key>) -> Option<Instant> {
        let entries = self.entries();
        let known = keys.into_iter().filter_map(|key| entries.get(key));
        known.map(|entry| entry.observation.due()).min()
    }

    /// Stores a resource on which nothing is under way any more. If it is absent, what was in it is dropped.
    pub fn ready(&self, kind: C::Kind, key: &C::Key, observed: Observed<C>, now: Instant) {
        if observed == Observed::Absent {
            self.entries().retain(|known, _| !known.is_in(key));
        }
        let hold = self.hold(kind, key);
        let numbers = numbers_inside(kind, &observed);
        let was_under_way = self.update(kind, key, now, |entry| entry.note_ready(observed, hold, now));
        if let Some(numbers) = numbers {
            self.compare_inside(key, numbers, now);
        }
        if was_under_way {
            self.wake_next(kind, key, now);
        }
    }

    /// Stores that the resource is in progress: due after `wait`, at most [`LONGEST_POLL`], and later as this lasts.
    pub fn in_progress(&self, kind: C::Kind, key: &C::Key, observed: Observed<C>, wait: Duration, now: Instant) {
        self.update(kind, key, now, |entry| entry.note_in_progress(observed, wait, now));
    }

    /// Makes the next read of the resource due at once.
    pub fn invalidate(&self, key: &C::Key, now: Instant) {
        self.edit(key, |entry| entry.observation.invalidate(now));
    }

    /// Makes the next read of the resource due within `wait`, if it is not due sooner.
    pub fn expedite(&self, key: &C::Key, wait: Duration, now: Instant) {
        self.edit(key, |entry| entry.observation.expedite(now + wait));
    }

    /// Drops everything about the resource, also its waiting write in the queue.
    pub fn forget(&self, key: &C::Key) {
        self.entries().remove(key);
        self.write_queue.leave(key);
    }

    /// Drops what was observed of the resources that `is_outdated` finds, by their keys and whether they are absent. A
    /// failure stays: it tells how long to wait.
    pub fn forget_outdated(&self, is_outdated: impl Fn(&C::Key, bool) -> bool) {
        self.entries().retain(|key, entry| {
            entry.observation.is(Stored::has_failed) || !is_outdated(key, entry.observation.is(Stored::is_absent))
        });
    }

    /// How long a ready resource is not read: spread by its key, or by its parent's, where one list shows all in it. A
    /// reconcile that runs anyway reads it a little earlier.
    fn hold(&self, kind: C::Kind, key: &C::Key) -> Hold {
        let base = match kind.rules().resync {
            Resync::Resource => self.resync,
            Resync::Record | Resync::Counted => self.record_resync,
        };
        let due_after = base * (900 + Self::spread(&Self::spread_by(kind, key), 200)) / 1_000;
        self.hold_for(due_after)
    }

    fn hold_for(&self, due_after: Duration) -> Hold {
        let earlier = self.resync.min(self.record_resync) / 5;
        Hold {
            due_after,
            good_for: due_after.saturating_sub(earlier),
        }
    }

    /// How old a list may be that shows a resource unchanged: so young that the next read is still to come.
    fn list_age(&self) -> Duration {
        self.resync.min(self.record_resync) / 2
    }

    /// By which key the reads of a resource are spread: those of records by their parent's, as one list shows all in it.
    fn spread_by(kind: C::Kind, key: &C::Key) -> C::Key {
        let parent = key.parent().filter(|_| kind.rules().resync != Resync::Resource);
        parent.unwrap_or_else(|| key.clone())
    }

    /// A number below `range`, by the key. Only this process uses the hash: another release of Rust may spread reads in
    /// another way.
    fn spread(key: &C::Key, range: u32) -> u32 {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        u32::try_from(hasher.finish() % u64::from(range)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
