//! What this process has written, and how that ended.

use std::time::Duration;

use tokio::time::Instant;

use super::{COUNTED_ROUNDS, ObservationCache, Operation};
use crate::cloud::{Cloud, ResourceKind};
use crate::kind_rules::Resync;
use crate::plan::Change;
use crate::resource::Observed;

impl<C: Cloud> ObservationCache<C> {
    /// The operation under way on the resource.
    pub fn operation(&self, key: &C::Key) -> Option<Operation<C>> {
        self.ask(key, |entry| entry.writes.operation().cloned()).flatten()
    }

    /// Whether this process created the resource, so that nothing is in it that this process did not put there.
    pub fn made_here(&self, key: &C::Key) -> bool {
        self.holds(key, |entry| entry.writes.made_here())
    }

    /// Stores the operation of a write that the cloud accepted.
    pub fn began(&self, kind: C::Kind, key: &C::Key, operation: Operation<C>, made_here: bool) {
        let change = i64::from(made_here) - i64::from(operation.deletes);
        self.update(kind, key, operation.began, |entry| entry.begin(operation, made_here));
        self.changes_inside(kind, key, change);
        if made_here {
            self.note_creation(kind, key);
        }
    }

    /// Stores what an accepted write changes; none if it deletes. Of several changes the first one is reported.
    pub fn changing(&self, key: &C::Key, change: Option<Change>) {
        self.edit(key, |entry| entry.unreported.note(change));
    }

    /// Notes that the resource is as desired, and clears its failures. Returns, once, the change that led to it.
    pub fn confirm(&self, key: &C::Key) -> Option<Change> {
        let kind = self.ask(key, |entry| entry.kind)?;
        let counted = kind.rules().resync == Resync::Counted;
        let since = self.shown_by_number_since(kind, key).filter(|_| counted);
        self.edit(key, |entry| {
            if let Some(since) = since {
                let hold = self.hold(kind, key).due_after * COUNTED_ROUNDS;
                entry.observation.prolong(self.hold_for(hold), since);
            }
            entry.confirm()
        })
        .flatten()
    }

    /// Stores that a write or its operation failed. Returns the wait, which grows until the resource is as desired.
    pub fn write_failed(&self, kind: C::Kind, key: &C::Key, error: &C::Error, now: Instant) -> Duration {
        self.failed(kind, key, Observed::WriteFailed(error.clone()), error, now)
    }

    /// Stores that a delete or its operation failed. Returns the wait, as for a write.
    pub fn delete_failed(&self, kind: C::Kind, key: &C::Key, error: &C::Error, now: Instant) -> Duration {
        self.failed(kind, key, Observed::DeleteFailed(error.clone()), error, now)
    }

    fn failed(&self, kind: C::Kind, key: &C::Key, failure: Observed<C>, error: &C::Error, now: Instant) -> Duration {
        let (wait, was_under_way) = self.update(kind, key, now, |entry| {
            let was_under_way = entry.writes.note_failed();
            (entry.note_failed_write(failure, error, now), was_under_way)
        });
        if was_under_way {
            self.wake_next(kind, key, now);
        }
        wait
    }

    /// How the last write of the resource failed; none once the resource is as desired.
    pub fn failing(&self, key: &C::Key) -> Option<C::Error> {
        self.ask(key, |entry| entry.backoff.failing().cloned()).flatten()
    }

    /// For how long every write of the resource has failed with the same code.
    pub fn failing_for(&self, key: &C::Key, now: Instant) -> Duration {
        self.ask(key, |entry| entry.backoff.failing_for(now))
            .unwrap_or_default()
    }

    /// Whether at most one write of the resource has failed since it was last as desired.
    pub fn refused_once(&self, key: &C::Key) -> bool {
        self.ask(key, |entry| entry.backoff.refused_once()).unwrap_or(true)
    }

    /// Notes that a read has shown the resource.
    pub fn shown(&self, key: &C::Key) {
        self.edit(key, |entry| entry.writes.puts.note_shown());
    }

    /// Whether the resource may exist after a PUT although a read does not show it.
    pub fn shows_late(&self, key: &C::Key, now: Instant) -> bool {
        self.holds(key, |entry| entry.writes.puts.shows_late(now))
    }

    /// Whether the cloud accepted a PUT of the resource that has not made it as desired yet.
    pub fn is_put(&self, key: &C::Key) -> bool {
        self.holds(key, |entry| entry.writes.puts.any())
    }

    /// Stores that the operation of the PUT has succeeded.
    pub fn put_succeeded(&self, key: &C::Key, now: Instant) {
        self.edit(key, |entry| entry.writes.puts.note_succeeded(now));
    }

    /// How long to wait for a read to show the resource, once the operation of its PUT has succeeded: as long again as
    /// it has been waited for.
    pub fn wait_to_be_shown(&self, key: &C::Key, now: Instant) -> Option<Duration> {
        self.ask(key, |entry| entry.writes.puts.wait_to_be_shown(now)).flatten()
    }

    /// How long until a PUT without effect may be repeated; the resource is read again then. None: at once.
    pub fn wait_to_put_again(&self, key: &C::Key, now: Instant) -> Option<Duration> {
        self.edit(key, |entry| entry.wait_to_put_again(now)).flatten()
    }

    /// Notes that the resource is deleted because another one has to come in its place.
    pub fn replaced(&self, kind: C::Kind, key: &C::Key, now: Instant) {
        if let Some(first) = kind.rules().replaced_after {
            self.edit(key, |entry| entry.replacements.note(first, now));
        }
    }

    /// Notes what a read shows of a resource that is replaced when it has failed: what names each that has. Returns the
    /// wait until the second read that has to confirm that; none if none has failed, or that counts already.
    pub fn wait_to_confirm_failure(
        &self,
        kind: C::Kind,
        key: &C::Key,
        failed: &[&str],
        now: Instant,
    ) -> Option<Duration> {
        kind.rules().replaced_after?;
        self.update(kind, key, now, |entry| {
            entry.replacements.note_read(failed, C::MISSED, now)
        })
    }

    /// How long until the resource may be replaced; it is read again then. None: at once.
    pub fn wait_to_replace(&self, kind: C::Kind, key: &C::Key, now: Instant) -> Option<Duration> {
        let first = kind.rules().replaced_after?;
        let wait = self.ask(key, |entry| entry.replacements.wait(first, now)).flatten()?;
        self.expedite(key, wait, now);
        Some(wait)
    }

    /// Makes a resource that is ready at once after a PUT due after `resync`, however rarely its kind is read: the
    /// answer alone does not prove it.
    pub fn read_soon(&self, key: &C::Key, now: Instant) {
        let soon = now + self.resync;
        self.edit(key, |entry| entry.observation.read_by(soon));
    }
}
