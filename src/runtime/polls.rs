//! How often to poll for what no event shows: each wait is as long as the polling has lasted, so that each is twice the
//! last.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::rate::{Limit, Rates};

/// The longest wait between two polls for what no event shows, as a missing frontend or an approval. Each wait is twice
/// the last.
///
/// Rule: A2 and W14 in `docs/compatibility.md`.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// How often a list that all clusters share is read again on behalf of one namespace, after a few at once.
///
/// Rule: D5 in `docs/compatibility.md`.
pub const LIST_EACH: Duration = Duration::from_secs(5);

/// The limit for such lists: two custom resources that come together, each of which reads again if a list from just
/// before does not suffice.
const LISTS: Limit = Limit {
    burst: 4,
    interval: LIST_EACH,
};

/// What is not asked for any more is dropped when this many are known: what waits may have been forgotten without an
/// end.
const SWEEP: usize = 1_024;

#[derive(Debug)]
struct Poll {
    since: Instant,
    /// When it was last asked for.
    asked: Instant,
    /// Something that is watched has changed since the last time.
    changed: bool,
    /// The value that it is polled with, where only a change of that counts.
    with: Option<String>,
}

impl Poll {
    /// Whether nothing has changed that counts: the value, where there is one.
    fn is_unchanged(&self, with: Option<&str>) -> bool {
        match with {
            Some(with) => self.with.as_deref() == Some(with),
            None => !self.changed,
        }
    }
}

/// What is polled for on behalf of the objects of one role, by UID, and lists that cannot be read, by the id of what
/// waits for them: one thing each.
#[derive(Debug)]
pub struct Polls {
    all: Mutex<HashMap<String, Poll>>,
    lists: Rates,
}

impl Default for Polls {
    fn default() -> Self {
        Self {
            all: Mutex::default(),
            lists: Rates::within(LISTS),
        }
    }
}

impl Polls {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Poll>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long to wait before the next poll: `first` to begin with, and again after a change.
    pub fn wait(&self, uid: &str, first: Duration, now: Instant) -> Duration {
        self.next(uid, None, first, now)
    }

    /// Like [`Self::wait`], but only a change of `with` begins again with `first`.
    pub fn wait_with(&self, uid: &str, with: &str, first: Duration, now: Instant) -> Duration {
        self.next(uid, Some(with), first, now)
    }

    fn next(&self, uid: &str, with: Option<&str>, first: Duration, now: Instant) -> Duration {
        let mut all = self.all();
        let known = all.remove(uid);
        if all.len() >= SWEEP {
            all.retain(|_, poll| now.saturating_duration_since(poll.asked) <= 2 * LONGEST_PAUSE);
        }
        let unchanged = known.filter(|poll| poll.is_unchanged(with));
        let since = unchanged.map_or(now, |poll| poll.since);
        let poll = Poll {
            since,
            asked: now,
            changed: false,
            with: with.map(str::to_owned),
        };
        all.insert(uid.to_owned(), poll);
        now.saturating_duration_since(since)
            .clamp(first, LONGEST_PAUSE.max(first))
    }

    /// Whether a list may be read again on behalf of a namespace.
    pub fn may_list(&self, namespace: &str, list: &str, now: Instant) -> bool {
        self.lists.take(&format!("{namespace}/{list}"), now).is_ok()
    }

    /// Records that something that is watched has changed: what is polled for may have come.
    pub fn change(&self, uid: &str) {
        if let Some(poll) = self.all().get_mut(uid) {
            poll.changed = true;
        }
    }

    /// Whether something has changed since the last wait.
    pub fn has_changed(&self, uid: &str) -> bool {
        self.all().get(uid).is_some_and(|poll| poll.changed)
    }

    /// Ends the poll: nothing is asked for any more, or the object is gone.
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
    async fn change_that_brings_nothing_makes_no_wait_shorter() {
        let (polls, now) = (Polls::default(), Instant::now());
        let at = |with: &str, s| {
            polls.change("u");
            let wait = polls.wait_with("u", with, Duration::from_secs(10), now + Duration::from_secs(s));
            wait.as_secs()
        };
        assert_eq!([at("a", 0), at("a", 40), at("b", 50), at("b", 90)], [10, 40, 10, 40]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_asked_for_any_more_is_dropped() {
        let (polls, now) = (Polls::default(), Instant::now());
        for number in 0..20_000 {
            let at = now + Duration::from_secs(number);
            polls.wait(&number.to_string(), Duration::from_secs(10), at);
            polls.wait("lasting", Duration::from_secs(10), at);
        }
        assert!(polls.all().len() <= SWEEP + 1, "{}", polls.all().len());
        let later = now + Duration::from_secs(20_000);
        assert_eq!(polls.wait("lasting", Duration::from_secs(10), later), LONGEST_PAUSE);
    }

    #[tokio::test(start_paused = true)]
    async fn lists_for_one_namespace_are_few_and_others_do_not_wait() {
        let (polls, began) = (Polls::default(), Instant::now());
        let at = |namespace: &str, n: u32| polls.may_list(namespace, "s/g", began + Duration::from_millis(50) * n);
        let times = (0..1200).filter(|n| at("n", *n)).count();
        assert_eq!(times, 4 + 11, "in a minute");
        assert!((0..20).all(|n| at(&format!("cluster-{n}"), 1200)));
        assert!(polls.may_list("n", "s/another", began));
    }

    #[tokio::test(start_paused = true)]
    async fn reconciles_for_other_reasons_keep_the_wait_and_its_bound() {
        let (polls, now) = (Polls::default(), Instant::now());
        let at = |s| {
            polls
                .wait("u", Duration::from_secs(10), now + Duration::from_secs(s))
                .as_secs()
        };
        assert_eq!([0, 1, 15, 60, 10_000].map(at), [10, 10, 15, 60, 300]);
    }
}
