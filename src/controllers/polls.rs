//! How often to ask for what nothing tells of: as long again as it has been asked for, so that each wait is twice the last.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The longest wait.
const MOST: Duration = Duration::from_secs(300);

#[derive(Debug, Clone, Copy)]
struct Poll {
    since: Instant,
    /// Something that is watched has changed since the last time.
    changed: bool,
}

/// What is asked for on behalf of the objects of one role, by UID, and lists that cannot be read, by the id of what waits for
/// them: one thing each.
#[derive(Debug, Default)]
pub struct Polls(Mutex<HashMap<String, Poll>>);

impl Polls {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Poll>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long to wait before the next time: `first` to begin with, and again after a change.
    pub fn wait(&self, uid: &str, first: Duration, now: Instant) -> Duration {
        let begins = Poll {
            since: now,
            changed: false,
        };
        let mut all = self.all();
        let poll = all.entry(uid.to_owned()).or_insert(begins);
        if poll.changed {
            *poll = begins;
        }
        now.saturating_duration_since(poll.since).clamp(first, MOST.max(first))
    }

    /// Something that is watched has changed: what is asked for may have come.
    pub fn change(&self, uid: &str) {
        if let Some(poll) = self.all().get_mut(uid) {
            poll.changed = true;
        }
    }

    /// Whether something has changed since the last wait.
    pub fn has_changed(&self, uid: &str) -> bool {
        self.all().get(uid).is_some_and(|poll| poll.changed)
    }

    /// Nothing is asked for any more, or the object is gone.
    pub fn over(&self, uid: &str) {
        self.all().remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_does_not_come_is_asked_for_ever_less_often() {
        let (polls, mut now) = (Polls::default(), Instant::now());
        let mut waits = |polls: &Polls| {
            let wait = polls.wait("u", Duration::from_secs(10), now);
            now += wait;
            wait.as_secs()
        };
        let all: Vec<_> = (0..9).map(|_| waits(&polls)).collect();
        assert_eq!(all, [10, 10, 20, 40, 80, 160, 300, 300, 300]);
        polls.change("u");
        polls.change("other");
        assert!(polls.has_changed("u") && !polls.has_changed("other"));
        assert_eq!((waits(&polls), waits(&polls), waits(&polls)), (10, 10, 20));
        assert!(!polls.has_changed("u"));
        polls.over("u");
        assert_eq!(waits(&polls), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn passes_for_other_reasons_make_no_wait_shorter_or_endless() {
        let (polls, now) = (Polls::default(), Instant::now());
        let at = |s| {
            polls
                .wait("u", Duration::from_secs(10), now + Duration::from_secs(s))
                .as_secs()
        };
        assert_eq!([0, 1, 15, 60, 10_000].map(at), [10, 10, 15, 60, 300]);
    }
}
