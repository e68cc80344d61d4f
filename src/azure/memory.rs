//! What this process remembers of each resource: the last look, when to look again, the operation under way.
//!
//! After a restart everything is read again. What others have written since the last look does not show here: before a write,
//! before something is left to others and before an object is let go, `execute` has what is only remembered read again.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use url::Url;

use super::error::ArmError;
use super::id::ResourceId;
use super::inventory::{ListOf, Listed, PAGE};
use super::plan::Change;
use super::resource::{Kind, Progress, Seen, progress};
use super::turns::{Turns, usual};

/// An operation that takes longer than this holds no other: Azure decides.
const STUCK: Duration = Duration::from_secs(30);

/// What takes longer than usual is looked at again this soon.
const OVERDUE: Duration = Duration::from_secs(2);

/// A long-running operation that this process has started.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// Where Azure tells about it, if it said so.
    pub url: Option<Url>,
    /// When it was started.
    pub began: Instant,
    /// Whether it removes the resource.
    pub deletes: bool,
}

#[derive(Debug)]
struct Entry {
    kind: Kind,
    seen: Option<Seen>,
    looked: Instant,
    due: Instant,
    /// Good enough until then, for a pass that runs anyway.
    good_until: Instant,
    /// Nothing is under way and nothing doubted: if it is still the same, it needs no look of its own.
    listable: bool,
    /// How a list showed it when it was last read.
    listed: Option<u64>,
    /// Whether the last look was only at a list.
    only_listed: bool,
    /// Since when every look has shown that it is not there.
    absent_since: Option<Instant>,
    operation: Option<Operation>,
    look_failures: u32,
    write_failures: u32,
    /// How the last write failed, and since when every one has failed with this code.
    failing: Option<(ArmError, Instant)>,
    made_here: bool,
    change: Option<Change>,
}

impl Entry {
    fn due_at(&mut self, when: Instant) {
        (self.due, self.good_until) = (when, when);
        self.listable = false;
    }

    fn hold_from(&mut self, seen: Instant, hold: Duration, slack: Duration) {
        (self.due, self.good_until) = (seen + hold, seen + hold.saturating_sub(slack));
    }
}

/// The memory of one process.
#[derive(Debug)]
pub struct Memory {
    entries: Mutex<HashMap<ResourceId, Entry>>,
    turns: Turns,
    /// When it was last searched for what is to be forgotten.
    searched: Mutex<Option<Instant>>,
    resync: Duration,
    record_resync: Duration,
}

impl Memory {
    /// Settled resources are looked at again after `resync`, links and records after `record_resync`, each spread by a tenth.
    pub fn new(resync: Duration, record_resync: Duration) -> Self {
        Self {
            entries: Mutex::default(),
            turns: Turns::default(),
            searched: Mutex::default(),
            resync,
            record_resync,
        }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<ResourceId, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn searched(&self) -> MutexGuard<'_, Option<Instant>> {
        self.searched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was seen, as long as it is not time to look again.
    pub fn recall(&self, id: &ResourceId, now: Instant) -> Option<Seen> {
        self.entries()
            .get(id)
            .filter(|entry| entry.good_until > now)
            .and_then(|entry| entry.seen.clone())
    }

    /// Whether this process made the resource, so that nothing can be in it that this process did not put there.
    pub fn made_here(&self, id: &ResourceId) -> bool {
        self.entries().get(id).is_some_and(|entry| entry.made_here)
    }

    /// Whether anything is remembered of the resource.
    pub fn knows(&self, id: &ResourceId) -> bool {
        self.entries().contains_key(id)
    }

    /// When the first of these resources is to be looked at again; none if nothing is remembered.
    pub fn next_look<'a>(&self, ids: impl IntoIterator<Item = &'a ResourceId>) -> Option<Instant> {
        let entries = self.entries();
        ids.into_iter()
            .filter_map(|id| entries.get(id))
            .map(|entry| entry.due)
            .min()
    }

    /// Whether the resource itself was last read before `since`.
    pub fn only_remembered(&self, id: &ResourceId, since: Instant) -> bool {
        let entries = self.entries();
        entries
            .get(id)
            .is_some_and(|entry| entry.only_listed || entry.looked < since)
    }

    /// How old a list may be to show that a resource at rest is still the same: none if the resource is not at rest.
    pub fn list_since(&self, id: &ResourceId, now: Instant) -> Option<Instant> {
        let entries = self.entries();
        let entry = entries.get(id).filter(|entry| entry.listable)?;
        Some(
            now.checked_sub(self.resync / 2)
                .map_or(entry.looked, |then| then.max(entry.looked)),
        )
    }

    /// How many resources at rest one list with this one would show.
    pub fn share_a_list(&self, kind: Kind, id: &ResourceId) -> usize {
        let entries = self.entries();
        // A zone of somebody else may be very large.
        let rows = |zone: &Value| {
            let count = |name: &str| zone["properties"][name].as_u64().unwrap_or(u64::MAX);
            count("numberOfRecordSets").max(count("numberOfVirtualNetworkLinks"))
        };
        let short = |zone: &ResourceId| {
            let seen = entries.get(zone).and_then(|entry| entry.seen.as_ref()?.found());
            seen.is_some_and(|zone| rows(zone) <= PAGE as u64)
        };
        if matches!(kind, Kind::ZoneLink | Kind::Record) && !id.parent().is_some_and(|zone| short(&zone)) {
            return 0;
        }
        let Some(list) = ListOf::of(kind, id) else {
            return 0;
        };
        let listable = entries.iter().filter(|(_, entry)| entry.kind == kind && entry.listable);
        listable.filter(|(other, _)| list.shows(other)).count()
    }

    /// A list shows the resource as it did when it was last read: then it is still the same. Gives what that was.
    pub fn unchanged(&self, id: &ResourceId, listed: Listed) -> Option<Seen> {
        let mut entries = self.entries();
        let entry = entries.get_mut(id)?;
        if !entry.listable || entry.listed != Some(listed.fingerprint) {
            return None;
        }
        (entry.looked, entry.only_listed) = (listed.seen, true);
        let hold = self.hold(entry.kind, id);
        entry.hold_from(listed.seen, hold, self.slack());
        entry.seen.clone()
    }

    /// A list that was made before the resource was read shows it like this.
    pub fn listed(&self, id: &ResourceId, listed: Listed) {
        if let Some(entry) = self.entries().get_mut(id).filter(|entry| entry.listable) {
            entry.listed = Some(listed.fingerprint);
        }
    }

    /// For how long looks have shown nothing but that the resource is not there; none if it was seen to go, or never looked for.
    pub fn absent_for(&self, id: &ResourceId, now: Instant) -> Option<Duration> {
        let since = self.entries().get(id)?.absent_since?;
        Some(now.saturating_duration_since(since))
    }

    /// The operation under way on the resource.
    pub fn operation(&self, id: &ResourceId) -> Option<Operation> {
        self.entries().get(id).and_then(|entry| entry.operation.clone())
    }

    /// The resource is at rest as seen; its operation, if any, has ended. What was in one that is gone went with it.
    pub fn resting(&self, kind: Kind, id: &ResourceId, seen: Seen, now: Instant) {
        let (hold, slack) = (self.hold(kind, id), self.slack());
        if seen == Seen::Absent {
            self.entries().retain(|known, _| !known.is_in(id));
        }
        self.update(kind, id, now, |entry| {
            let absent = seen == Seen::Absent;
            entry.made_here &= !absent;
            let went = entry.operation.as_ref().is_some_and(|operation| operation.deletes);
            entry.absent_since = match &entry.seen {
                _ if !absent || went => None,
                Some(Seen::Found(_)) => None,
                Some(Seen::Absent) => entry.absent_since,
                _ => entry.absent_since.or(Some(now)),
            };
            entry.listable = matches!(&seen, Seen::Found(body) if progress(body) == Progress::Settled);
            (entry.seen, entry.operation, entry.look_failures) = (Some(seen), None, 0);
            (entry.listed, entry.only_listed) = (None, false);
            entry.hold_from(now, hold, slack);
        });
    }

    /// The resource is changing; look again after `wait`.
    pub fn moving(&self, kind: Kind, id: &ResourceId, seen: Seen, wait: Duration, now: Instant) {
        self.update(kind, id, now, |entry| {
            entry.seen = Some(seen);
            entry.due_at(now + wait);
        });
    }

    /// Azure took a write and works on it.
    pub fn began(&self, kind: Kind, id: &ResourceId, operation: Operation, made_here: bool) {
        self.update(kind, id, operation.began, |entry| {
            (entry.listable, entry.absent_since) = (false, None);
            entry.made_here |= made_here;
            entry.operation = Some(operation);
        });
    }

    /// Azure took a write that changes the resource so; none if it takes it away. What was begun first is what is told.
    pub fn changing(&self, id: &ResourceId, change: Option<Change>) {
        if let Some(entry) = self.entries().get_mut(id) {
            entry.change = change.map(|change| entry.change.take().unwrap_or(change));
        }
    }

    /// How long a write has to wait for those of this process into the same network; it is looked at again then. None if its turn is
    /// now: nobody else's comes before [`turn_is_over`](Self::turn_is_over).
    pub fn wait_for_turn(&self, kind: Kind, id: &ResourceId, lasts: Duration, now: Instant) -> Option<Duration> {
        let network = id.parent().filter(|_| kind == Kind::Subnet)?;
        let entries = self.entries();
        let others = entries.iter().filter(|(other, entry)| {
            let young = |operation: &Operation| now.duration_since(operation.began) < STUCK;
            *other != id && entry.operation.as_ref().is_some_and(young) && entry.kind == kind && other.is_in(&network)
        });
        let left = |operation: &Operation| usual(operation.deletes).saturating_sub(now.duration_since(operation.began));
        let left = others.filter_map(|(_, entry)| entry.operation.as_ref().map(left)).max();
        let busy = left.map(|left| left.max(OVERDUE));
        drop(entries);
        let wait = self.turns.take(&network, id, lasts, busy, now)?;
        self.hasten(id, wait, now);
        Some(wait)
    }

    /// The write that did not have to wait is answered.
    pub fn turn_is_over(&self, kind: Kind, id: &ResourceId) {
        if let Some(network) = id.parent().filter(|_| kind == Kind::Subnet) {
            self.turns.over(&network, id);
        }
    }

    /// The resource is as wanted: failures of earlier writes no longer count. Gives, once, what brought it there.
    pub fn kept(&self, id: &ResourceId) -> Option<Change> {
        let mut entries = self.entries();
        let entry = entries.get_mut(id)?;
        (entry.write_failures, entry.failing) = (0, None);
        entry.change.take()
    }

    /// A look failed; waits longer each time. Gives the wait.
    pub fn look_failed(&self, kind: Kind, id: &ResourceId, error: &ArmError, now: Instant) -> Duration {
        let mut wait = Duration::ZERO;
        self.update(kind, id, now, |entry| {
            entry.look_failures = entry.look_failures.saturating_add(1);
            wait = error.delay(entry.look_failures);
            entry.seen = Some(Seen::ReadFailed(error.clone()));
            entry.due_at(now + wait);
        });
        wait
    }

    /// A write was refused, or its operation failed; waits longer each time until the resource is as wanted. Gives the wait.
    pub fn write_failed(&self, kind: Kind, id: &ResourceId, error: &ArmError, now: Instant) -> Duration {
        self.failed(kind, id, Seen::WriteFailed(error.clone()), error, now)
    }

    /// The same for a delete.
    pub fn delete_failed(&self, kind: Kind, id: &ResourceId, error: &ArmError, now: Instant) -> Duration {
        self.failed(kind, id, Seen::DeleteFailed(error.clone()), error, now)
    }

    fn failed(&self, kind: Kind, id: &ResourceId, seen: Seen, error: &ArmError, now: Instant) -> Duration {
        let mut wait = Duration::ZERO;
        self.update(kind, id, now, |entry| {
            entry.write_failures = entry.write_failures.saturating_add(1);
            wait = error.delay(entry.write_failures);
            (entry.seen, entry.operation) = (Some(seen), None);
            let same = entry.failing.take().filter(|(last, _)| last.code == error.code);
            entry.failing = Some((error.clone(), same.map_or(now, |(_, since)| since)));
            entry.due_at(now + wait);
        });
        wait
    }

    /// For how long every write of the resource has failed with the same code.
    pub fn failing_for(&self, id: &ResourceId, now: Instant) -> Duration {
        let entries = self.entries();
        let since = entries.get(id).and_then(|entry| entry.failing.as_ref());
        since.map_or(Duration::ZERO, |(_, since)| now.saturating_duration_since(*since))
    }

    /// How the last write of the resource failed, until it is seen to be as wanted.
    pub fn failing(&self, id: &ResourceId) -> Option<ArmError> {
        let entries = self.entries();
        entries.get(id)?.failing.as_ref().map(|(error, _)| error.clone())
    }

    /// The next look at the resource is due at once.
    pub fn doubt(&self, id: &ResourceId, now: Instant) {
        if let Some(entry) = self.entries().get_mut(id) {
            entry.due_at(now);
        }
    }

    /// Looks at the resource again within `wait`, if not sooner.
    pub fn hasten(&self, id: &ResourceId, wait: Duration, now: Instant) {
        if let Some(entry) = self.entries().get_mut(id) {
            entry.due_at(entry.due.min(now + wait));
        }
    }

    /// Drops everything about the resource, its place among those that wait for a turn too.
    pub fn forget(&self, id: &ResourceId) {
        self.entries().remove(id);
        self.turns.leave(id);
    }

    fn update(&self, kind: Kind, id: &ResourceId, now: Instant, change: impl FnOnce(&mut Entry)) {
        let mut entries = self.entries();
        let entry = entries.entry(id.clone()).or_insert_with(|| Entry {
            kind,
            seen: None,
            looked: now,
            due: now,
            good_until: now,
            listable: false,
            listed: None,
            only_listed: false,
            absent_since: None,
            operation: None,
            look_failures: 0,
            write_failures: 0,
            failing: None,
            made_here: false,
            change: None,
        });
        entry.looked = now;
        change(entry);
    }

    /// A pass that runs anyway looks at what would be due so soon.
    fn slack(&self) -> Duration {
        self.resync.min(self.record_resync) / 5
    }

    /// How long a settled resource is left alone. Spread by its id, so that many do not come due together; what is in one
    /// zone does, as one list shows it.
    fn hold(&self, kind: Kind, id: &ResourceId) -> Duration {
        let base = if matches!(kind, Kind::ZoneLink | Kind::Record) {
            self.record_resync
        } else {
            self.resync
        };
        let mut hasher = DefaultHasher::new();
        let zone = id.parent().filter(|_| matches!(kind, Kind::ZoneLink | Kind::Record));
        zone.as_ref().unwrap_or(id).hash(&mut hasher);
        let permille = u32::try_from(hasher.finish() % 200).unwrap_or(0);
        base * (900 + permille) / 1_000
    }
}

mod left;
pub use left::UnderWay;

#[cfg(test)]
mod tests;
