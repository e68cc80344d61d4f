//! Reads that fail again and again, of a resource or of a list.

use std::time::Duration;

use tokio::time::Instant;

/// After this many failed reads in a row, nothing is known any more of what was read, if they also took [`LONG`].
const MANY: u32 = 3;
/// How long at least reads of a resource or a list have to fail until nothing is known any more of what was read.
///
/// Rule: `RUNBOOK.md`.
const LONG: Duration = Duration::from_secs(120);

/// The reads that have failed in a row.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FailedReads {
    count: u32,
    /// When the first of them failed.
    since: Option<Instant>,
}

impl FailedReads {
    /// Counts one more failed read.
    pub(super) fn note_failure(&mut self, now: Instant) {
        self.count = self.count.saturating_add(1);
        self.since.get_or_insert(now);
    }

    /// How many reads have failed in a row.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Whether reads have failed often and long enough to count as lasting.
    pub(super) fn lasts(&self, now: Instant) -> bool {
        let is_long = |since: Instant| now.saturating_duration_since(since) >= LONG;
        self.count >= MANY && self.since.is_some_and(is_long)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn failures_last_when_they_are_many_and_take_long() {
        let (mut failed, now) = (FailedReads::default(), Instant::now());
        let mut lasts_after = |second| {
            let now = now + Duration::from_secs(second);
            failed.note_failure(now);
            failed.lasts(now)
        };
        assert_eq!([0, 200, 201].map(&mut lasts_after), [false, false, true]);
        let mut failed = FailedReads::default();
        assert!(!failed.lasts(now));
        for _ in 0..9 {
            failed.note_failure(now);
        }
        assert_eq!(failed.count(), 9);
        assert!(!failed.lasts(now + Duration::from_secs(119)));
    }
}
