//! When a write may go into a network: not while Azure works on another one of this process there.

use std::time::Duration;

use futures::{Stream, stream};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::Instant;

use super::{ObservationCache, Operation};
use crate::azure::id::ResourceId;
use crate::azure::resource::Kind;
use crate::azure::write_queue::usual;

/// An operation that takes longer than this holds no other: Azure decides.
const STUCK: Duration = Duration::from_secs(30);

/// One that nobody has asked after for so long past its time holds no other either: its object is gone, or refused by now.
const LEFT_ALONE: Duration = Duration::from_secs(5);

/// What takes longer than usual is looked at again this soon.
const OVERDUE: Duration = Duration::from_secs(2);

impl ObservationCache {
    /// How long a write has to wait for those of this process into the same network; it is looked at again then. None if its turn is
    /// now: nobody else's comes before [`leave_queue`](Self::turn_is_over).
    pub fn wait_in_queue(&self, kind: Kind, id: &ResourceId, lasts: Duration, now: Instant) -> Option<Duration> {
        let network = id.parent().filter(|_| kind == Kind::Subnet)?;
        let entries = self.entries();
        let others = entries.iter().filter(|(other, entry)| {
            let young = |operation: &Operation| now.duration_since(operation.began) < STUCK;
            *other != id
                && entry.operation.as_ref().is_some_and(young)
                && entry.overdue(now) <= LEFT_ALONE
                && entry.kind == kind
                && other.is_in(&network)
        });
        let left = |operation: &Operation| usual(operation.deletes).saturating_sub(now.duration_since(operation.began));
        let left = others.filter_map(|(_, entry)| entry.operation.as_ref().map(left)).max();
        let busy = left.map(|left| left.max(OVERDUE));
        drop(entries);
        let wait = self.write_queue.take(&network, id, lasts, busy, now)?;
        self.expedite(id, wait, now);
        Some(wait)
    }

    /// The write that did not have to wait is answered. Where Azure works on it, the next one's turn comes with its end.
    pub fn leave_queue(&self, kind: Kind, id: &ResourceId, now: Instant) {
        let Some(network) = id.parent().filter(|_| kind == Kind::Subnet) else {
            return;
        };
        self.write_queue.over(&network, id);
        if self.operation(id).is_none() {
            self.wake_next(kind, id, now);
        }
    }

    /// The resources whose turn to be written has come, as it comes.
    pub fn next_in_queue(&self) -> impl Stream<Item = ResourceId> + Send + Unpin + use<> {
        let (sender, mut receiver) = unbounded_channel();
        self.waiting().push(sender);
        stream::poll_fn(move |cx| receiver.poll_recv(cx))
    }

    /// Nothing of this process is under way any more in the network of `id`: the first of those that wait may go.
    pub(super) fn wake_next(&self, kind: Kind, id: &ResourceId, now: Instant) {
        let network = id.parent().filter(|_| kind == Kind::Subnet);
        let Some(next) = network.and_then(|network| self.write_queue.next(&network)) else {
            return;
        };
        self.invalidate(&next, now);
        self.waiting().retain(|waiting| waiting.send(next.clone()).is_ok());
    }
}
