//! The failed reads and writes of one resource, and how long to wait after them.

use std::time::Duration;

use tokio::time::Instant;

use crate::cloud::Cloud;
use crate::failed_reads::FailedReads;
use crate::failure::Failure;

/// What has failed of one resource.
#[derive(Debug, Default)]
pub(super) struct Backoff<C: Cloud> {
    /// Failed reads since it was last ready: the more, the longer is the wait.
    reads: u32,
    /// Failed reads in a row.
    unread: FailedReads,
    /// Failed lists in a row of what is in it.
    lists_unread: FailedReads,
    /// Failed writes since it was last as desired: the more, the longer is the wait.
    writes: u32,
    /// How the last write failed; none once the resource is as desired.
    failing: Option<Box<FailingWrite<C>>>,
}

/// Writes that have failed in the same way.
#[derive(Debug)]
struct FailingWrite<C: Cloud> {
    /// The error of the last one.
    error: C::Error,
    /// Since when every write has failed with this code.
    since: Instant,
}

impl<C: Cloud> Backoff<C> {
    /// Notes a failed read. Returns the wait until the next one, which grows with each failure.
    pub(super) fn note_read(&mut self, error: &C::Error, now: Instant) -> Duration {
        self.reads = self.reads.saturating_add(1);
        self.unread.note_failure(now);
        error.delay(self.reads)
    }

    /// Notes a failed write. Returns the wait, which grows until the resource is as desired.
    pub(super) fn note_write(&mut self, error: &C::Error, now: Instant) -> Duration {
        self.writes = self.writes.saturating_add(1);
        let same = self.failing.as_ref().filter(|last| last.error.code() == error.code());
        self.failing = Some(Box::new(FailingWrite {
            since: same.map_or(now, |last| last.since),
            error: error.clone(),
        }));
        error.delay(self.writes)
    }

    /// Notes a failed list of what is in the resource.
    pub(super) fn note_list(&mut self, now: Instant) {
        self.lists_unread.note_failure(now);
    }

    /// Notes a read that showed the resource ready, or absent.
    pub(super) fn note_ready(&mut self) {
        self.reads = 0;
        self.unread = FailedReads::default();
    }

    /// Notes a read that showed the resource in progress.
    pub(super) fn note_in_progress(&mut self) {
        self.unread = FailedReads::default();
    }

    /// Notes that what is in the resource was listed.
    pub(super) fn note_listed(&mut self) {
        self.lists_unread = FailedReads::default();
    }

    /// Notes that the resource is as desired.
    pub(super) fn confirm(&mut self) {
        self.writes = 0;
        self.failing = None;
    }

    /// Whether reads have failed for so long that nothing is known of the resource any more.
    pub(super) fn unread_for_long(&self, now: Instant) -> bool {
        self.unread.lasts(now)
    }

    /// Whether lists have failed for so long that nothing is known any more of what is in the resource.
    pub(super) fn lists_unread_for_long(&self, now: Instant) -> bool {
        self.lists_unread.lasts(now)
    }

    /// Whether the last list of what is in the resource could not be read.
    pub(super) fn list_is_unread(&self) -> bool {
        self.lists_unread.count() > 0
    }

    /// Whether at most one write has failed since the resource was last as desired.
    pub(super) fn refused_once(&self) -> bool {
        self.writes <= 1
    }

    /// How the last write failed; none once the resource is as desired.
    pub(super) fn failing(&self) -> Option<&C::Error> {
        self.failing.as_ref().map(|failing| &failing.error)
    }

    /// For how long every write has failed with the same code.
    pub(super) fn failing_for(&self, now: Instant) -> Duration {
        let failing = self.failing.as_ref();
        failing.map_or(Duration::ZERO, |failing| now.saturating_duration_since(failing.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Class;
    use crate::sample::{Error, Sample};

    fn down() -> Error {
        Error::own(Class::Down, "X")
    }

    #[tokio::test(start_paused = true)]
    async fn wait_after_failed_reads_grows_until_the_resource_is_ready() {
        let (mut backoff, now) = (Backoff::<Sample>::default(), Instant::now());
        let waits = [(); 2].map(|()| backoff.note_read(&down(), now).as_secs());
        assert_eq!(waits, [3, 6]);
        backoff.note_in_progress();
        assert_eq!(backoff.note_read(&down(), now).as_secs(), 12);
        backoff.note_ready();
        assert_eq!(backoff.note_read(&down(), now).as_secs(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn reads_that_fail_for_long_leave_nothing_known() {
        let (mut backoff, now) = (Backoff::<Sample>::default(), Instant::now());
        let later = now + Duration::from_secs(120);
        for at in [now, now, later] {
            backoff.note_read(&down(), at);
        }
        assert!(backoff.unread_for_long(later));
        backoff.note_in_progress();
        assert!(!backoff.unread_for_long(later));
    }

    #[tokio::test(start_paused = true)]
    async fn failing_lists_say_nothing_of_the_resource_itself() {
        let (mut backoff, now) = (Backoff::<Sample>::default(), Instant::now());
        let later = now + Duration::from_secs(120);
        for at in [now, now, later] {
            backoff.note_list(at);
        }
        assert!(backoff.lists_unread_for_long(later) && backoff.list_is_unread());
        assert!(!backoff.unread_for_long(later));
        backoff.note_listed();
        assert!(!backoff.list_is_unread());
    }

    #[tokio::test(start_paused = true)]
    async fn writes_fail_since_the_first_with_this_code() {
        let (mut backoff, now) = (Backoff::<Sample>::default(), Instant::now());
        let at = |second| now + Duration::from_secs(second);
        let other = Error::own(Class::Busy, "Y");
        assert!(backoff.refused_once() && backoff.failing().is_none());
        backoff.note_write(&down(), at(0));
        backoff.note_write(&down(), at(5));
        assert_eq!(backoff.failing_for(at(7)).as_secs(), 7);
        backoff.note_write(&other, at(8));
        assert_eq!(backoff.failing_for(at(9)).as_secs(), 1);
        assert_eq!(backoff.failing(), Some(&other));
        assert!(!backoff.refused_once());
        backoff.confirm();
        assert!(backoff.refused_once() && backoff.failing_for(at(9)).is_zero());
    }
}
