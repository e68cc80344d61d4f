//! When a write may be sent into a virtual network: not while Azure works there on another one of this process.

use std::time::Duration;

use futures::{Stream, stream};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::Instant;

use super::ObservationCache;
use crate::azure::id::ResourceId;
use crate::azure::kinds::Kind;
use crate::azure::write_queue::usual;

/// An operation that takes longer than this no longer holds up other writes: Azure decides.
const STUCK: Duration = Duration::from_secs(30);

/// An operation whose read has been due for this long no longer holds up other writes: its custom resource is gone, or
/// refused by now.
const UNATTENDED_AFTER: Duration = Duration::from_secs(5);

/// The wait for an operation that takes longer than usual.
const OVERDUE: Duration = Duration::from_secs(2);

/// The resource in which writes of this one are queued, if they are.
fn queue_of(kind: Kind, id: &ResourceId) -> Option<ResourceId> {
    id.parent().filter(|_| kind.spec().queued_in_parent)
}

impl ObservationCache {
    /// How long a write has to wait for other writes of this process into the same network; the resource is read again
    /// then. None if it may be sent now: no other write is sent before [`leave_queue`](Self::leave_queue).
    pub fn wait_in_queue(&self, kind: Kind, id: &ResourceId, lasts: Duration, now: Instant) -> Option<Duration> {
        let network = queue_of(kind, id)?;
        let busy = self.busy_for(kind, id, &network, now);
        let wait = self.write_queue.take(&network, id, lasts, busy, now)?;
        self.expedite(id, wait, now);
        Some(wait)
    }

    /// How long Azure still works on other writes of this process into the network; none if on none.
    fn busy_for(&self, kind: Kind, id: &ResourceId, network: &ResourceId, now: Instant) -> Option<Duration> {
        let entries = self.entries();
        let others = entries.iter().filter(|(other, entry)| {
            let attended = entry.observation.overdue(now) <= UNATTENDED_AFTER;
            *other != id && attended && entry.kind == kind && other.is_in(network)
        });
        let operations = others.filter_map(|(_, entry)| entry.writes.operation());
        let ages = operations.map(|operation| (operation, now.duration_since(operation.began)));
        let not_stuck = ages.filter(|(_, age)| *age < STUCK);
        let left = not_stuck.map(|(operation, age)| usual(operation.deletes).saturating_sub(age));
        left.max().map(|left| left.max(OVERDUE))
    }

    /// Ends the turn of a write that is answered. If Azure works on it, the next write comes when that ends.
    pub fn leave_queue(&self, kind: Kind, id: &ResourceId, now: Instant) {
        let Some(network) = queue_of(kind, id) else {
            return;
        };
        self.write_queue.over(&network, id);
        if self.operation(id).is_none() {
            self.wake_next(kind, id, now);
        }
    }

    /// A stream of the resources whose write has come first in the queue.
    pub fn next_in_queue(&self) -> impl Stream<Item = ResourceId> + Send + Unpin + use<> {
        let (sender, mut receiver) = unbounded_channel();
        self.waiting().push(sender);
        stream::poll_fn(move |cx| receiver.poll_recv(cx))
    }

    /// Wakes the first waiting write in the network of `id`: nothing of this process is under way there any more.
    pub(super) fn wake_next(&self, kind: Kind, id: &ResourceId, now: Instant) {
        let Some(next) = queue_of(kind, id).and_then(|network| self.write_queue.next(&network)) else {
            return;
        };
        self.invalidate(&next, now);
        self.waiting().retain(|waiting| waiting.send(next.clone()).is_ok());
    }
}
