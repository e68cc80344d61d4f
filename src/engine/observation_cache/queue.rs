//! When a write may be sent into a parent that takes one at a time: not while the cloud works there on another one of
//! this process.

use std::time::Duration;

use futures::{Stream, stream};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::Instant;

use super::ObservationCache;
use crate::cloud::{Cloud, Key, ResourceKind};
use crate::kind_rules::WriteTimes;

/// An operation that takes longer than this no longer holds up other writes into the same parent. The cloud decides
/// then.
///
/// Rule: W6 in `docs/compatibility.md`.
const STUCK: Duration = Duration::from_secs(30);

/// An operation whose read has been due for this long no longer holds up other writes into the same parent. Its custom
/// resource is gone, or refused by now.
///
/// Rule: W6 in `docs/compatibility.md`.
const UNREAD_AFTER: Duration = Duration::from_secs(5);

/// The least wait of a write for an operation in the same parent, also when that operation takes longer than usual.
const OVERTIME_WAIT: Duration = Duration::from_secs(2);

/// The resource in which writes of this one are queued, if they are, and how long they take there.
fn queue_of<C: Cloud>(kind: C::Kind, key: &C::Key) -> Option<(C::Key, WriteTimes)> {
    let times = kind.rules().queued_in_parent?;
    Some((key.parent()?, times))
}

impl<C: Cloud> ObservationCache<C> {
    /// How long a write has to wait for other writes of this process into the same parent; the resource is read again
    /// then. None if it may be sent now: no other write is sent before [`leave_queue`](Self::leave_queue).
    pub fn wait_in_queue(&self, kind: C::Kind, key: &C::Key, deletes: bool, now: Instant) -> Option<Duration> {
        let (parent, times) = queue_of::<C>(kind, key)?;
        let busy = self.busy_for((kind, key), &parent, times, now);
        let wait = self.write_queue.take(&parent, key, times.of(deletes), busy, now)?;
        self.expedite(key, wait, now);
        Some(wait)
    }

    /// How long the cloud still works on other writes of this process into the parent; none if on none.
    fn busy_for(
        &self,
        (kind, key): (C::Kind, &C::Key),
        parent: &C::Key,
        times: WriteTimes,
        now: Instant,
    ) -> Option<Duration> {
        let entries = self.entries();
        let others = entries.iter().filter(|(other, entry)| {
            let attended = entry.observation.overdue(now) <= UNREAD_AFTER;
            *other != key && attended && entry.kind == kind && other.is_in(parent)
        });
        let operations = others.filter_map(|(_, entry)| entry.writes.operation());
        let ages = operations.map(|operation| (operation, now.duration_since(operation.began)));
        let not_stuck = ages.filter(|(_, age)| *age < STUCK);
        let left = not_stuck.map(|(operation, age)| times.of(operation.deletes).saturating_sub(age));
        left.max().map(|left| left.max(OVERTIME_WAIT))
    }

    /// Ends the turn of a write that is answered. If the cloud works on it, the next write comes when that ends.
    pub fn leave_queue(&self, kind: C::Kind, key: &C::Key, now: Instant) {
        let Some((parent, _)) = queue_of::<C>(kind, key) else {
            return;
        };
        self.write_queue.over(&parent, key);
        if self.operation(key).is_none() {
            self.wake_next(kind, key, now);
        }
    }

    /// A stream of the resources whose write has come first in the queue.
    pub fn next_in_queue(&self) -> impl Stream<Item = C::Key> + Send + Unpin + use<C> {
        let (sender, mut receiver) = unbounded_channel();
        self.waiting().push(sender);
        stream::poll_fn(move |cx| receiver.poll_recv(cx))
    }

    /// Wakes the first waiting write in the parent of `key`: nothing of this process is under way there any more.
    pub(super) fn wake_next(&self, kind: C::Kind, key: &C::Key, now: Instant) {
        let Some(next) = queue_of::<C>(kind, key).and_then(|(parent, _)| self.write_queue.next(&parent)) else {
            return;
        };
        self.invalidate(&next, now);
        self.waiting().retain(|waiting| waiting.send(next.clone()).is_ok());
    }
}
