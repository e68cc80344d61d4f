//! What this process has put and no read has confirmed yet. The cloud may show a new resource late, and may accept a
//! PUT again and again that never has the desired effect.

use std::time::Duration;

use tokio::time::Instant;

/// For this long a read may still show the state before a write that the cloud accepted. After it, the read shows
/// whether the resource is gone.
///
/// Rule: D3 in `docs/compatibility.md`.
pub const SHOWS_LATE: Duration = Duration::from_secs(60);

/// The first wait for a read to show a resource whose create has succeeded. Later waits are longer.
const FIRST_SHOWN: Duration = Duration::from_secs(5);

/// The first wait before a PUT that was accepted but has no effect is repeated. It doubles each time.
const FIRST_REPEAT: Duration = Duration::from_secs(5);

/// The longest wait before a PUT without effect is repeated.
const LAST_REPEAT: Duration = Duration::from_secs(300);

/// The PUTs of one resource since it was last as desired.
#[derive(Debug, Default)]
pub(super) struct Puts {
    /// When the cloud accepted the last one.
    accepted: Option<Instant>,
    /// Whether a read has shown the resource since then.
    shown: bool,
    /// When its operation was first observed to have succeeded.
    succeeded: Option<Instant>,
    /// How long after the last one the next may be sent.
    repeat_after: Duration,
}

impl Puts {
    /// Notes that the cloud accepted a PUT.
    pub(super) fn note_accepted(&mut self, now: Instant) {
        self.repeat_after = (self.repeat_after * 2).clamp(FIRST_REPEAT, LAST_REPEAT);
        self.accepted = Some(now);
        self.shown = false;
        self.succeeded = None;
    }

    /// Notes that a read has shown the resource.
    pub(super) fn note_shown(&mut self) {
        self.shown = true;
    }

    /// Notes that the operation of the PUT has succeeded.
    pub(super) fn note_succeeded(&mut self, now: Instant) {
        self.succeeded.get_or_insert(now);
    }

    /// Whether the cloud accepted one.
    pub(super) fn any(&self) -> bool {
        self.accepted.is_some()
    }

    /// Whether the resource may exist after a PUT although a read does not show it.
    pub(super) fn shows_late(&self, now: Instant) -> bool {
        let not_shown = self.accepted.filter(|_| !self.shown);
        not_shown.is_some_and(|accepted| now.saturating_duration_since(accepted) < SHOWS_LATE)
    }

    /// How long to wait for a read to show the resource, once the operation of its PUT has succeeded: as long again as
    /// it has been waited for.
    pub(super) fn wait_to_be_shown(&self, now: Instant) -> Option<Duration> {
        let since = self.succeeded?;
        Some(now.saturating_duration_since(since).max(FIRST_SHOWN))
    }

    /// When a PUT without effect may be repeated; none if that is over, or nothing was put.
    pub(super) fn repeat_at(&self, now: Instant) -> Option<Instant> {
        let repeat_at = self.accepted? + self.repeat_after;
        (repeat_at > now).then_some(repeat_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn put_without_effect_is_repeated_ever_later() {
        let (mut puts, now) = (Puts::default(), Instant::now());
        assert_eq!(puts.repeat_at(now), None);
        let mut repeat_after = |_| {
            puts.note_accepted(now);
            puts.repeat_at(now).unwrap().duration_since(now).as_secs()
        };
        let waits = [1, 2, 3, 4, 5, 6, 7, 8].map(&mut repeat_after);
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(puts.repeat_at(now + LAST_REPEAT), None, "it may be sent");
    }

    #[tokio::test(start_paused = true)]
    async fn resource_shows_late_until_a_read_shows_it() {
        let (mut puts, now) = (Puts::default(), Instant::now());
        assert!(!puts.shows_late(now) && !puts.any());
        puts.note_accepted(now);
        assert!(puts.shows_late(now + Duration::from_secs(59)) && puts.any());
        assert!(!puts.shows_late(now + SHOWS_LATE));
        puts.note_shown();
        assert!(!puts.shows_late(now));
    }

    #[tokio::test(start_paused = true)]
    async fn wait_to_be_shown_is_as_long_again_as_it_took() {
        let (mut puts, now) = (Puts::default(), Instant::now());
        assert_eq!(puts.wait_to_be_shown(now), None);
        puts.note_succeeded(now);
        puts.note_succeeded(now + Duration::from_secs(9));
        let wait = |second| puts.wait_to_be_shown(now + Duration::from_secs(second));
        assert_eq!([wait(0), wait(20)], [5, 20].map(|wait| Some(Duration::from_secs(wait))));
    }
}
