//! What this process remembers of each resource: the last look, when to look again, the operation under way.
//!
//! Nothing here is needed for correctness: after a restart everything is read again.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use url::Url;

use super::error::ArmError;
use super::id::ResourceId;
use super::plan::Change;
use super::ports::Counters;
use super::resource::{Kind, Seen};

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
    operation: Option<Operation>,
    look_failures: u32,
    write_failures: u32,
    made_here: bool,
    change: Option<Change>,
}

impl Entry {
    fn due_at(&mut self, when: Instant) {
        (self.due, self.good_until) = (when, when);
    }
}

/// The memory of one process.
#[derive(Debug)]
pub struct Memory {
    entries: Mutex<HashMap<ResourceId, Entry>>,
    resync: Duration,
    record_resync: Duration,
}

impl Memory {
    /// Settled resources are looked at again after `resync`, links and records after `record_resync`, each spread by a tenth.
    pub fn new(resync: Duration, record_resync: Duration) -> Self {
        Self {
            entries: Mutex::default(),
            resync,
            record_resync,
        }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<ResourceId, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// When the resource was last looked at.
    pub fn looked(&self, id: &ResourceId) -> Option<Instant> {
        self.entries().get(id).map(|entry| entry.looked)
    }

    /// The operation under way on the resource.
    pub fn operation(&self, id: &ResourceId) -> Option<Operation> {
        self.entries().get(id).and_then(|entry| entry.operation.clone())
    }

    /// The resource is at rest as seen; its operation, if any, has ended. What was in one that is gone went with it.
    pub fn settled(&self, kind: Kind, id: &ResourceId, seen: Seen, now: Instant) {
        let hold = self.hold(kind, id);
        if seen == Seen::Absent {
            self.entries().retain(|known, _| !known.is_in(id));
        }
        self.update(kind, id, now, |entry| {
            if seen == Seen::Absent {
                entry.made_here = false;
            }
            (entry.seen, entry.operation, entry.look_failures) = (Some(seen), None, 0);
            (entry.due, entry.good_until) = (now + hold, now + hold * 4 / 5);
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

    /// The resource is as wanted: failures of earlier writes no longer count. Gives, once, what brought it there.
    pub fn kept(&self, id: &ResourceId) -> Option<Change> {
        let mut entries = self.entries();
        let entry = entries.get_mut(id)?;
        entry.write_failures = 0;
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
            entry.due_at(now + wait);
        });
        wait
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

    /// Drops everything about the resource.
    pub fn forget(&self, id: &ResourceId) {
        self.entries().remove(id);
    }

    /// Counts the operations under way.
    pub fn count_operations(&self, counters: &dyn Counters, now: Instant) {
        let entries = self.entries();
        for kind in Kind::ALL {
            let ages = entries
                .values()
                .filter(|e| e.kind == kind)
                .filter_map(|e| e.operation.as_ref())
                .map(|o| now - o.began);
            let ages: Vec<Duration> = ages.collect();
            counters.operations(kind, ages.len(), ages.iter().max().copied().unwrap_or_default());
        }
    }

    fn update(&self, kind: Kind, id: &ResourceId, now: Instant, change: impl FnOnce(&mut Entry)) {
        let mut entries = self.entries();
        let entry = entries.entry(id.clone()).or_insert_with(|| Entry {
            kind,
            seen: None,
            looked: now,
            due: now,
            good_until: now,
            operation: None,
            look_failures: 0,
            write_failures: 0,
            made_here: false,
            change: None,
        });
        entry.looked = now;
        change(entry);
    }

    /// How long a settled resource is left alone. Spread by its id, so that many do not come due together.
    fn hold(&self, kind: Kind, id: &ResourceId) -> Duration {
        let base = if matches!(kind, Kind::ZoneLink | Kind::Record) {
            self.record_resync
        } else {
            self.resync
        };
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let permille = u32::try_from(hasher.finish() % 200).unwrap_or(0);
        base * (900 + permille) / 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::azure::error::Class;

    fn id() -> ResourceId {
        ResourceId::parse("/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/privateDnsZones/z.z").unwrap()
    }

    fn memory() -> Memory {
        Memory::new(Duration::from_secs(100), Duration::from_secs(1_000))
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_settled_is_recalled_until_its_next_look() {
        let (memory, now) = (memory(), Instant::now());
        memory.settled(Kind::Zone, &id(), Seen::Absent, now);
        assert_eq!(memory.recall(&id(), now + Duration::from_secs(71)), Some(Seen::Absent));
        assert_eq!(memory.recall(&id(), now + Duration::from_secs(110)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_moves_is_recalled_until_its_next_look_and_no_longer() {
        let (memory, now) = (memory(), Instant::now());
        memory.settled(Kind::Zone, &id(), Seen::Absent, now);
        memory.moving(Kind::Zone, &id(), Seen::Pending, Duration::from_secs(10), now);
        assert_eq!(memory.recall(&id(), now + Duration::from_secs(9)), Some(Seen::Pending));
        assert_eq!(memory.recall(&id(), now + Duration::from_secs(10)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_in_a_resource_that_went_is_forgotten() {
        let (memory, now) = (memory(), Instant::now());
        let inside = id().child(Kind::Record, "api").unwrap();
        let beside = ResourceId::parse(&id().to_string().replace("z.z", "y.y")).unwrap();
        for known in [&inside, &beside] {
            memory.settled(Kind::Record, known, Seen::Found(serde_json::json!({})), now);
        }
        memory.settled(Kind::Zone, &id(), Seen::Absent, now);
        assert!(!memory.knows(&inside) && memory.knows(&beside));
    }

    #[tokio::test(start_paused = true)]
    async fn refused_writes_wait_longer_until_the_resource_is_as_wanted() {
        let (memory, now, error) = (memory(), Instant::now(), ArmError::own(Class::Busy, "X"));
        let fail = || {
            memory.settled(Kind::Zone, &id(), Seen::Absent, now);
            memory.write_failed(Kind::Zone, &id(), &error, now).as_secs()
        };
        assert_eq!([fail(), fail(), fail()], [3, 6, 12]);
        memory.kept(&id());
        assert_eq!(fail(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn failed_looks_wait_longer_until_one_succeeds() {
        let (memory, now, error) = (memory(), Instant::now(), ArmError::own(Class::Down, "X"));
        let fail = || memory.look_failed(Kind::Zone, &id(), &error, now).as_secs();
        assert_eq!([fail(), fail()], [5, 10]);
        memory.settled(Kind::Zone, &id(), Seen::Absent, now);
        assert_eq!(fail(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_resource_that_went_is_no_longer_made_here() {
        let (memory, now) = (memory(), Instant::now());
        memory.began(
            Kind::Zone,
            &id(),
            Operation {
                url: None,
                began: now,
                deletes: false,
            },
            true,
        );
        assert!(memory.made_here(&id()));
        memory.settled(Kind::Zone, &id(), Seen::Absent, now);
        assert!(!memory.made_here(&id()));
    }
}
