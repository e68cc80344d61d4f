//! The order of writes into one resource, as a virtual network, into which the cloud takes one write at a time and
//! refuses all others. So those of one process wait in a queue instead of being refused again and again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::cloud::Key;

/// A write that is not taken up within this long after its time loses its place in the queue.
const PLACE_KEPT_FOR: Duration = Duration::from_secs(5);

/// The queues of one process, by parent.
#[derive(Debug)]
pub(super) struct WriteQueue<K>(Mutex<HashMap<K, Vec<QueuedWrite<K>>>>);

impl<K> Default for WriteQueue<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

#[derive(Debug)]
struct QueuedWrite<K> {
    key: K,
    expires: Instant,
    /// Whether the write is sent and not answered yet.
    sent: bool,
}

impl<K: Key> WriteQueue<K> {
    /// How long a write of `key` still has to wait, if each write takes as long as `lasts`. None if it is due now; its
    /// answer then has to be reported with [`over`](Self::over).
    ///
    /// `busy`: how long the cloud still works on another write of this process in the parent.
    pub(super) fn take(
        &self,
        parent: &K,
        key: &K,
        lasts: Duration,
        busy: Option<Duration>,
        now: Instant,
    ) -> Option<Duration> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = all.entry(parent.clone()).or_default();
        queue.retain(|queued| queued.expires > now || (queued.key == *key && !queued.sent));
        let found = queue.iter().position(|queued| queued.key == *key && !queued.sent);
        let position = found.unwrap_or(queue.len());
        let sent = position == 0 && busy.is_none();
        let ahead = lasts.saturating_mul(u32::try_from(position).unwrap_or(u32::MAX));
        let wait = ahead.saturating_add(busy.unwrap_or_default());
        let queued = QueuedWrite {
            key: key.clone(),
            expires: now + if sent { lasts } else { wait } + PLACE_KEPT_FOR,
            sent,
        };
        match found {
            Some(position) => queue[position] = queued,
            None => queue.push(queued),
        }
        (!sent).then_some(wait)
    }

    /// Ends the write of `key` that was sent: it is answered.
    pub(super) fn over(&self, parent: &K, key: &K) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = all.get_mut(parent) {
            queue.retain(|queued| !(queued.sent && queued.key == *key));
            if queue.is_empty() {
                all.remove(parent);
            }
        }
    }

    /// The first resource that waits for its write.
    pub(super) fn next(&self, parent: &K) -> Option<K> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = all.get(parent)?.iter().find(|queued| !queued.sent);
        waiting.map(|queued| queued.key.clone())
    }

    /// Drops the waiting writes of `key`, so that they hold up no others. A write that is sent stays until it is
    /// answered.
    pub(super) fn leave(&self, key: &K) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, queue| {
            queue.retain(|queued| queued.sent || queued.key != *key);
            !queue.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::Key as _;
    use crate::sample::Key;

    const LASTS: Duration = Duration::from_secs(3);

    fn key(name: &str) -> Key {
        Key::of(&format!("v/{name}"))
    }

    struct Line(WriteQueue<Key>, Instant);

    impl Line {
        /// Seconds to wait, asked at this second.
        fn at(&self, second: u64, name: &str, busy: bool) -> Option<u64> {
            self.beside(second, name, busy.then_some(LASTS))
        }

        /// Seconds to wait while another write takes this much longer. A write that is sent is answered at once.
        fn beside(&self, second: u64, name: &str, busy: Option<Duration>) -> Option<u64> {
            let (key, now) = (key(name), self.1 + Duration::from_secs(second));
            let parent = key.parent().unwrap();
            let wait = self.0.take(&parent, &key, LASTS, busy, now);
            if wait.is_none() {
                self.0.over(&parent, &key);
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
        let (first, parent) = (key("a"), key("a").parent().unwrap());
        assert_eq!(line.0.take(&parent, &first, LASTS, None, line.1), None);
        line.0.leave(&first);
        assert_eq!(line.at(0, "b", false), Some(3));
        line.0.over(&parent, &first);
        assert_eq!(line.at(0, "b", false), None);
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_come_back_holds_nobody() {
        let line = Line(WriteQueue::default(), Instant::now());
        assert_eq!([line.at(0, "a", true), line.at(0, "b", true)], [Some(3), Some(6)]);
        assert_eq!([line.at(6, "b", false), line.at(9, "b", false)], [Some(3), None]);
    }
}
