//! Whether a resource that fails is replaced: one wrong read is no reason, and one that fails again and again is not
//! worth a new one each time.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

/// The time between two replacements is doubled this often at most.
const MOST_DOUBLINGS: u32 = 4;

/// The replacements of one resource.
#[derive(Debug, Default)]
pub(super) struct Replacements {
    /// When it was last replaced.
    last: Option<Instant>,
    /// How often it was replaced in a row.
    in_a_row: u32,
    /// Since when every read has shown that one has failed, by its name.
    failed_since: HashMap<Box<str>, Instant>,
}

impl Replacements {
    /// Notes that it is replaced. A row ends when there was no need for one for twice as long as the wait. `first` is
    /// the time between the first two.
    pub(super) fn note(&mut self, first: Duration, now: Instant) {
        let wait = self.wait_after(first);
        let is_new_row = self
            .last
            .is_none_or(|last| now.saturating_duration_since(last) >= wait * 2);
        self.in_a_row = if is_new_row { 1 } else { self.in_a_row + 1 };
        self.last = Some(now);
    }

    /// How long until it may be replaced; none: at once.
    pub(super) fn wait(&self, first: Duration, now: Instant) -> Option<Duration> {
        let next = self.last? + self.wait_after(first);
        next.checked_duration_since(now).filter(|wait| !wait.is_zero())
    }

    /// Notes which have failed as a read shows. Returns the wait until the second read, `apart` after the first, that
    /// has to confirm that of each; none if none has, or that counts already.
    pub(super) fn note_read(&mut self, failed: &[&str], apart: Duration, now: Instant) -> Option<Duration> {
        self.failed_since.retain(|name, _| failed.contains(&&**name));
        for name in failed {
            self.failed_since.entry((*name).into()).or_insert(now);
        }
        let counts_at = *self.failed_since.values().max()? + apart;
        counts_at.checked_duration_since(now).filter(|wait| !wait.is_zero())
    }

    fn wait_after(&self, first: Duration) -> Duration {
        first * 2_u32.pow(self.in_a_row.saturating_sub(1).min(MOST_DOUBLINGS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_secs(600);

    #[tokio::test(start_paused = true)]
    async fn failure_counts_when_two_reads_show_it() {
        let (mut replaced, now) = (Replacements::default(), Instant::now());
        let apart = Duration::from_secs(10);
        let mut wait = |failed: &[&str], second| {
            let wait = replaced.note_read(failed, apart, now + Duration::from_secs(second));
            wait.map_or(0, |wait| wait.as_secs())
        };
        assert_eq!([wait(&["a"], 0), wait(&["a"], 4), wait(&[], 8)], [10, 6, 0]);
        assert_eq!([wait(&["a"], 20), wait(&["a"], 30), wait(&["a"], 40)], [10, 0, 0]);
        assert_eq!([wait(&["a", "b"], 50), wait(&["a", "b"], 60)], [10, 0], "another one");
    }

    #[tokio::test(start_paused = true)]
    async fn replacement_that_does_not_help_comes_ever_later() {
        let (mut replaced, mut now) = (Replacements::default(), Instant::now());
        assert_eq!(replaced.wait(FIRST, now), None);
        let mut waits = Vec::new();
        for _ in 0..6 {
            replaced.note(FIRST, now);
            let wait = replaced.wait(FIRST, now).unwrap();
            waits.push(wait.as_secs() / 60);
            now += wait;
            assert_eq!(replaced.wait(FIRST, now), None);
        }
        assert_eq!(waits, [10, 20, 40, 80, 160, 160]);
    }

    #[tokio::test(start_paused = true)]
    async fn replacement_that_helped_is_the_first_again() {
        let (mut replaced, now) = (Replacements::default(), Instant::now());
        replaced.note(FIRST, now);
        replaced.note(FIRST, now + FIRST);
        let later = now + 5 * FIRST;
        replaced.note(FIRST, later);
        assert_eq!(replaced.wait(FIRST, later), Some(FIRST));
    }
}
