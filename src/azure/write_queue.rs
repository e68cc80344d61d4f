//! The order of writes into a virtual network. Azure takes one write at a time there and refuses all others, so those
//! of one process wait in a queue instead of being refused again and again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::id::ResourceId;

/// A write that is not taken up within this long after its time loses its place in the queue.
const GRACE: Duration = Duration::from_secs(5);

/// How long a write usually takes when writes are sent one after the other.
pub fn usual(deletes: bool) -> Duration {
    Duration::from_secs(if deletes { 10 } else { 3 })
}

/// The queues of one process, by network.
#[derive(Debug, Default)]
pub struct WriteQueue(Mutex<HashMap<ResourceId, Vec<QueuedWrite>>>);

#[derive(Debug)]
struct QueuedWrite {
    id: ResourceId,
    expires: Instant,
    /// Whether the write is sent and not answered yet.
    sent: bool,
}

impl WriteQueue {
    /// How long a write of `id` still has to wait, if each write takes as long as `lasts`. None if it is due now; its
    /// answer then has to be reported with [`over`](Self::over).
    ///
    /// `busy`: how long Azure still works on another write of this process in the network.
    pub fn take(
        &self,
        network: &ResourceId,
        id: &ResourceId,
        lasts: Duration,
        busy: Option<Duration>,
        now: Instant,
    ) -> Option<Duration> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = all.entry(network.clone()).or_default();
        queue.retain(|queued| queued.expires > now || (queued.id == *id && !queued.sent));
        let found = queue.iter().position(|queued| queued.id == *id && !queued.sent);
        let position = found.unwrap_or(queue.len());
        let sent = position == 0 && busy.is_none();
        let ahead = lasts.saturating_mul(u32::try_from(position).unwrap_or(u32::MAX));
        let wait = ahead.saturating_add(busy.unwrap_or_default());
        let queued = QueuedWrite {
            id: id.clone(),
            expires: now + if sent { lasts } else { wait } + GRACE,
            sent,
        };
        match found {
            Some(position) => queue[position] = queued,
            None => queue.push(queued),
        }
        (!sent).then_some(wait)
    }

    /// Ends the write of `id` that was sent: it is answered.
    pub fn over(&self, network: &ResourceId, id: &ResourceId) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = all.get_mut(network) {
            queue.retain(|queued| !(queued.sent && queued.id == *id));
            if queue.is_empty() {
                all.remove(network);
            }
        }
    }

    /// The first resource that waits for its write.
    pub fn next(&self, network: &ResourceId) -> Option<ResourceId> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = all.get(network)?.iter().find(|queued| !queued.sent);
        waiting.map(|queued| queued.id.clone())
    }

    /// Drops the waiting writes of `id`, so that they hold up no others. A write that is sent stays until it is
    /// answered.
    pub fn leave(&self, id: &ResourceId) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, queue| {
            queue.retain(|queued| queued.sent || queued.id != *id);
            !queue.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LASTS: Duration = Duration::from_secs(3);

    fn id(name: &str) -> ResourceId {
        let network = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v";
        ResourceId::parse(&format!("{network}/subnets/{name}")).unwrap()
    }

    struct Line(WriteQueue, Instant);

    impl Line {
        /// Seconds to wait, asked at this second.
        fn at(&self, second: u64, name: &str, busy: bool) -> Option<u64> {
            self.beside(second, name, busy.then_some(LASTS))
        }

        /// Seconds to wait while another write takes this much longer. A write that is sent is answered at once.
        fn beside(&self, second: u64, name: &str, busy: Option<Duration>) -> Option<u64> {
            let (id, now) = (id(name), self.1 + Duration::from_secs(second));
            let network = id.parent().unwrap();
            let wait = self.0.take(&network, &id, LASTS, busy, now);
            if wait.is_none() {
                self.0.over(&network, &id);
            }
            wait.map(|wait| wait.as_secs())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_wait_come_in_their_order() {
        let line = Line(WriteQueue::default(), Instant::now());
        assert_eq!(line.at(0, "a", false), None);
        assert_eq!([line.at(0, "b", true), line.at(0, "c", true)], [Some(3), Some(6)]);
        assert_eq!(line.at(3, "d", false), Some(6), "b and c are before");
        assert_eq!(line.at(3, "b", true), Some(3), "it takes longer");
        assert_eq!([line.at(5, "c", false), line.at(6, "b", false)], [Some(3), None]);
        assert_eq!([line.at(9, "c", false), line.at(9, "d", true)], [None, Some(3)]);
    }

    #[tokio::test(start_paused = true)]
    async fn write_waits_only_for_what_is_left_of_the_one_under_way() {
        let line = Line(WriteQueue::default(), Instant::now());
        let left = Some(Duration::from_secs(1));
        assert_eq!(
            [line.beside(2, "b", left), line.beside(2, "c", left)],
            [Some(1), Some(4)]
        );
        assert_eq!(line.beside(3, "b", None), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_sent_keeps_its_turn_though_somebody_lets_it_go() {
        let line = Line(WriteQueue::default(), Instant::now());
        let (first, network) = (id("a"), id("a").parent().unwrap());
        assert_eq!(line.0.take(&network, &first, LASTS, None, line.1), None);
        line.0.leave(&first);
        assert_eq!(line.at(0, "b", false), Some(3));
        line.0.over(&network, &first);
        assert_eq!(line.at(0, "b", false), None);
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_come_back_holds_nobody() {
        let line = Line(WriteQueue::default(), Instant::now());
        assert_eq!([line.at(0, "a", true), line.at(0, "b", true)], [Some(3), Some(6)]);
        assert_eq!([line.at(6, "b", false), line.at(9, "b", false)], [Some(3), None]);
    }
}
