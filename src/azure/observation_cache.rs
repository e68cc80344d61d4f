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

use super::error::ArmError;
use super::id::ResourceId;
use super::inventory::{ListOf, Listed};
use super::kinds::{Kind, Resync};
use super::plan::Change;
use super::resource::{Observed, Progress, progress};
use super::write_queue::WriteQueue;

/// A resource in progress is read at least this often, however long that lasts.
pub const LONGEST_POLL: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct Entry {
    kind: Kind,
    observed: Option<Observed>,
    read_at: Instant,
    due: Instant,
    /// Until then a reconcile that runs anyway does not read it.
    good_until: Instant,
    /// Whether it is ready and not invalidated: then a list that shows it unchanged saves a read.
    listable: bool,
    /// The fingerprint of it in a list when it was last read.
    listed: Option<u64>,
    /// Whether the last read was only one of a list.
    only_listed: bool,
    /// Since when every read has shown that it is not there; none if it was there or deleted before.
    absent_since: Option<Instant>,
    /// Since when every read has shown that it is not there, even if it was there before.
    gone_since: Option<Instant>,
    operation: Option<Operation>,
    /// Since when every read has shown it in progress.
    changing_since: Option<Instant>,
    read_failures: u32,
    /// Failures in a row to read it, and to list what is in it.
    unread: Option<Unread>,
    lists_unread: Option<Unread>,
    write_failures: u32,
    /// How the last write failed, and since when every write has failed with this code.
    failing: Option<(ArmError, Instant)>,
    made_here: bool,
    /// The id that Azure gave the resource that was observed as owned: a recreated one has another.
    proven: Option<String>,
    gone: Gone,
    /// When it was last read in place of a link in it.
    read_instead: Option<Instant>,
    puts: Puts,
    change: Option<Change>,
}

impl Entry {
    fn due_at(&mut self, when: Instant) {
        (self.due, self.good_until) = (when, when);
        self.listable = false;
    }

    fn hold_from(&mut self, observed: Instant, hold: Duration, slack: Duration) {
        (self.due, self.good_until) = (observed + hold, observed + hold.saturating_sub(slack));
    }
}

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

    /// What was last observed, while it is fresh.
    pub fn fresh(&self, id: &ResourceId, now: Instant) -> Option<Observed> {
        self.entries()
            .get(id)
            .filter(|entry| entry.good_until > now)
            .and_then(|entry| entry.observed.clone())
    }

    /// Whether this process created the resource, so that nothing is in it that this process did not put there.
    pub fn made_here(&self, id: &ResourceId) -> bool {
        self.entries().get(id).is_some_and(|entry| entry.made_here)
    }

    /// Whether the cache has an entry for the resource.
    pub fn knows(&self, id: &ResourceId) -> bool {
        self.entries().contains_key(id)
    }

    /// When the first of these resources is due for a read; none if no entry exists.
    pub fn next_read<'a>(&self, ids: impl IntoIterator<Item = &'a ResourceId>) -> Option<Instant> {
        let entries = self.entries();
        ids.into_iter()
            .filter_map(|id| entries.get(id))
            .map(|entry| entry.due)
            .min()
    }

    /// The earliest start of a list that may show a ready resource unchanged; none if it is not ready.
    pub fn list_since(&self, id: &ResourceId, now: Instant) -> Option<Instant> {
        let entries = self.entries();
        let entry = entries.get(id).filter(|entry| entry.listable)?;
        Some(
            now.checked_sub(self.resync / 2)
                .map_or(entry.read_at, |then| then.max(entry.read_at)),
        )
    }

    /// How many ready resources one list with this one would show.
    pub fn share_a_list(&self, kind: Kind, id: &ResourceId) -> usize {
        let Some(list) = ListOf::of(kind, id) else {
            return 0;
        };
        let entries = self.entries();
        let parent = id.parent().and_then(|parent| entries.get(&parent));
        if !list.is_short(parent.and_then(|entry| entry.observed.as_ref()?.found())) {
            return 0;
        }
        let listable = entries.iter().filter(|(_, entry)| entry.kind == kind && entry.listable);
        listable.filter(|(other, _)| list.shows(other)).count()
    }

    /// What was observed of the resource before, if a list shows it as it was when it was last read.
    pub fn unchanged(&self, id: &ResourceId, listed: Listed) -> Option<Observed> {
        let mut entries = self.entries();
        let entry = entries.get_mut(id)?;
        if !entry.listable || entry.listed != Some(listed.fingerprint) {
            return None;
        }
        (entry.read_at, entry.only_listed) = (listed.observed, true);
        let hold = self.hold(entry.kind, id);
        entry.hold_from(listed.observed, hold, self.slack());
        entry.observed.clone()
    }

    /// Stores the resource's fingerprint in a list that was started before the resource was read.
    pub fn listed(&self, id: &ResourceId, listed: Listed) {
        if let Some(entry) = self.entries().get_mut(id).filter(|entry| entry.listable) {
            entry.listed = Some(listed.fingerprint);
        }
    }

    /// The operation under way on the resource.
    pub fn operation(&self, id: &ResourceId) -> Option<Operation> {
        self.entries().get(id).and_then(|entry| entry.operation.clone())
    }

    /// Stores a resource on which nothing is under way any more. If it is absent, what was in it is dropped.
    pub fn ready(&self, kind: Kind, id: &ResourceId, observed: Observed, now: Instant) {
        let (hold, slack) = (self.hold(kind, id), self.slack());
        if observed == Observed::Absent {
            self.entries().retain(|known, _| !known.is_in(id));
        }
        let mut had_operation = false;
        self.update(kind, id, now, |entry| {
            had_operation = entry.operation.is_some();
            let absent = observed == Observed::Absent;
            entry.made_here &= !absent;
            entry.proven = entry.proven.take().filter(|_| !absent);
            let was_deleted = entry.operation.as_ref().is_some_and(|operation| operation.deletes);
            let missed = entry.gone.note_ready(absent);
            entry.absent_since = match &entry.observed {
                _ if !absent || was_deleted || missed.is_some() => None,
                Some(Observed::Found(_)) => None,
                Some(Observed::Absent) => entry.absent_since,
                _ => entry.absent_since.or(Some(now)),
            };
            entry.gone_since = absent.then(|| entry.gone_since.or(missed).unwrap_or(now));
            entry.listable = matches!(&observed, Observed::Found(body) if progress(body) == Progress::Ready);
            (
                entry.observed,
                entry.operation,
                entry.changing_since,
                entry.read_failures,
            ) = (Some(observed), None, None, 0);
            (entry.unread, entry.listed) = (None, None);
            entry.hold_from(now, hold, slack);
        });
        if had_operation {
            self.wake_next(kind, id, now);
        }
    }

    /// Stores that the resource is in progress: due after `wait`, at most [`LONGEST_POLL`], and later as this lasts.
    pub fn in_progress(&self, kind: Kind, id: &ResourceId, observed: Observed, wait: Duration, now: Instant) {
        self.update(kind, id, now, |entry| {
            let since = *entry.changing_since.get_or_insert(now);
            let patience = (now.saturating_duration_since(since) / 5).min(LONGEST_POLL);
            entry.gone.note_in_progress(&observed);
            (entry.observed, entry.gone_since, entry.unread) = (Some(observed), None, None);
            entry.due_at(now + wait.min(LONGEST_POLL).max(patience));
        });
    }

    /// Stores the operation of a write that Azure accepted.
    pub fn began(&self, kind: Kind, id: &ResourceId, operation: Operation, made_here: bool) {
        self.update(kind, id, operation.began, |entry| {
            (entry.listable, entry.absent_since, entry.changing_since) = (false, None, Some(operation.began));
            entry.made_here |= made_here;
            if !operation.deletes {
                entry.puts.note_accepted(operation.began);
                entry.gone.delete_is_over();
            }
            entry.operation = Some(operation);
        });
    }

    /// Stores what an accepted write changes; none if it deletes. Of several changes the first one is reported.
    pub fn changing(&self, id: &ResourceId, change: Option<Change>) {
        if let Some(entry) = self.entries().get_mut(id) {
            entry.change = change.map(|change| entry.change.take().unwrap_or(change));
        }
    }

    /// Notes that the resource is as desired, and clears its failures. Returns, once, the change that led to it.
    pub fn confirm(&self, id: &ResourceId) -> Option<Change> {
        let mut entries = self.entries();
        let entry = entries.get_mut(id)?;
        (entry.write_failures, entry.failing, entry.puts) = (0, None, Puts::default());
        entry.change.take()
    }

    /// Stores a failed read. Returns the wait until the next one, which grows with each failure.
    pub fn read_failed(&self, kind: Kind, id: &ResourceId, error: &ArmError, now: Instant) -> Duration {
        let mut wait = Duration::ZERO;
        self.update(kind, id, now, |entry| {
            entry.read_failures = entry.read_failures.saturating_add(1);
            wait = error.delay(entry.read_failures);
            let lasting = Unread::note_failure(&mut entry.unread, now);
            entry.observed = Some(Observed::ReadFailed(ArmError {
                lasting,
                ..error.clone()
            }));
            entry.due_at(now + wait);
        });
        wait
    }

    /// Stores that a write or its operation failed. Returns the wait, which grows until the resource is as desired.
    pub fn write_failed(&self, kind: Kind, id: &ResourceId, error: &ArmError, now: Instant) -> Duration {
        self.failed(kind, id, Observed::WriteFailed(error.clone()), error, now)
    }

    /// Stores that a delete or its operation failed. Returns the wait, as for a write.
    pub fn delete_failed(&self, kind: Kind, id: &ResourceId, error: &ArmError, now: Instant) -> Duration {
        self.failed(kind, id, Observed::DeleteFailed(error.clone()), error, now)
    }

    fn failed(&self, kind: Kind, id: &ResourceId, observed: Observed, error: &ArmError, now: Instant) -> Duration {
        let (mut wait, mut had_operation) = (Duration::ZERO, false);
        self.update(kind, id, now, |entry| {
            had_operation = entry.operation.is_some();
            entry.write_failures = entry.write_failures.saturating_add(1);
            wait = error.delay(entry.write_failures);
            (entry.observed, entry.operation, entry.puts) = (Some(observed), None, Puts::default());
            entry.gone.delete_is_over();
            let same = entry.failing.take().filter(|(last, _)| last.code == error.code);
            entry.failing = Some((error.clone(), same.map_or(now, |(_, since)| since)));
            entry.due_at(now + wait);
        });
        if had_operation {
            self.wake_next(kind, id, now);
        }
        wait
    }

    /// Makes the next read of the resource due at once.
    pub fn invalidate(&self, id: &ResourceId, now: Instant) {
        if let Some(entry) = self.entries().get_mut(id) {
            entry.due_at(now);
        }
    }

    /// Makes the next read of the resource due within `wait`, if it is not due sooner.
    pub fn expedite(&self, id: &ResourceId, wait: Duration, now: Instant) {
        if let Some(entry) = self.entries().get_mut(id) {
            entry.due_at(entry.due.min(now + wait));
        }
    }

    /// Drops everything about the resource, also its waiting write in the queue.
    pub fn forget(&self, id: &ResourceId) {
        self.entries().remove(id);
        self.write_queue.leave(id);
    }

    fn update(&self, kind: Kind, id: &ResourceId, now: Instant, change: impl FnOnce(&mut Entry)) {
        let mut entries = self.entries();
        let entry = entries.entry(id.clone()).or_insert_with(|| Entry {
            kind,
            observed: None,
            read_at: now,
            due: now,
            good_until: now,
            listable: false,
            listed: None,
            only_listed: false,
            absent_since: None,
            gone_since: None,
            operation: None,
            changing_since: None,
            read_failures: 0,
            unread: None,
            lists_unread: None,
            write_failures: 0,
            failing: None,
            made_here: false,
            proven: None,
            gone: Gone::default(),
            read_instead: None,
            puts: Puts::default(),
            change: None,
        });
        (entry.read_at, entry.only_listed) = (now, false);
        change(entry);
    }

    /// How long before it is due a resource is read by a reconcile that runs anyway.
    fn slack(&self) -> Duration {
        self.resync.min(self.record_resync) / 5
    }

    /// How long a ready resource is not read: spread by its id, or by its parent's, where one list shows all in it.
    fn hold(&self, kind: Kind, id: &ResourceId) -> Duration {
        let (base, spread_by) = match kind.spec().resync {
            Resync::Resource => (self.resync, None),
            Resync::Record => (self.record_resync, id.parent()),
        };
        // Only this process uses the hash: another release of Rust may spread the reads in another way.
        let mut hasher = DefaultHasher::new();
        spread_by.as_ref().unwrap_or(id).hash(&mut hasher);
        let permille = u32::try_from(hasher.finish() % 200).unwrap_or(0);
        base * (900 + permille) / 1_000
    }
}

mod gone;
mod left;
mod operation;
mod puts;
mod queue;
mod since;

use gone::Gone;
pub use left::UnderWay;
pub use operation::Operation;
use puts::Puts;
pub use puts::SHOWS_LATE;
pub(in crate::azure) use since::Unread;

#[cfg(test)]
mod tests;
