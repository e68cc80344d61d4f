//! What this process has written of one resource: the operation under way, and what no read has confirmed yet.

use std::time::Duration;

use tokio::time::Instant;

use super::puts::Puts;
use super::{LONGEST_POLL, Operation};
use crate::cloud::Cloud;

/// The writes of one resource by this process.
#[derive(Debug, Default)]
pub(super) struct Writes<C: Cloud> {
    /// The operation under way; most resources are at rest.
    operation: Option<Box<Operation<C>>>,
    /// Whether that operation creates it.
    creates: bool,
    /// Since when every read has shown the resource in progress.
    changing_since: Option<Instant>,
    /// Whether this process created it, so that nothing is in it that this process did not put there.
    made_here: bool,
    /// The last DELETE of it that the cloud accepted and that has not failed.
    delete: Option<Box<AcceptedDelete<C>>>,
    /// The PUTs since it was last as desired.
    pub(super) puts: Puts,
}

/// A DELETE that the cloud accepted.
#[derive(Debug)]
pub(super) struct AcceptedDelete<C: Cloud> {
    /// What the cloud names its operation, if it did.
    operation: Option<C::OperationId>,
    /// Whether its operation was observed to succeed.
    succeeded: bool,
}

impl<C: Cloud> AcceptedDelete<C> {
    /// What the cloud names its operation, if it did.
    pub(super) fn operation(&self) -> Option<&C::OperationId> {
        self.operation.as_ref()
    }

    /// Whether its operation was observed to succeed.
    pub(super) fn succeeded(&self) -> bool {
        self.succeeded
    }
}

impl<C: Cloud> Writes<C> {
    /// Notes that the cloud accepted a write.
    pub(super) fn begin(&mut self, operation: Operation<C>, made_here: bool) {
        self.changing_since = Some(operation.began);
        self.made_here |= made_here;
        self.creates = made_here;
        if !operation.deletes {
            self.puts.note_accepted(operation.began);
            self.delete = None;
        }
        self.operation = Some(Box::new(operation));
    }

    /// Notes that nothing is under way any more. Returns whether an operation of this process was.
    pub(super) fn note_ready(&mut self, absent: bool) -> bool {
        if absent {
            self.made_here = false;
        } else {
            self.delete = None;
        }
        self.changing_since = None;
        self.operation.take().is_some()
    }

    /// Notes that the write or its operation failed. Returns whether an operation of this process was under way.
    pub(super) fn note_failed(&mut self) -> bool {
        self.puts = Puts::default();
        self.delete = None;
        self.operation.take().is_some()
    }

    /// Notes that the resource is as desired.
    pub(super) fn confirm(&mut self) {
        self.puts = Puts::default();
    }

    /// Notes that a read shows it in progress. Returns the wait until the next one, of which the cloud asks `wait`: at
    /// most [`LONGEST_POLL`], and longer as this lasts.
    pub(super) fn note_in_progress(&mut self, wait: Duration, now: Instant) -> Duration {
        let since = *self.changing_since.get_or_insert(now);
        let patience = now.saturating_duration_since(since) / 5;
        wait.max(patience).min(LONGEST_POLL)
    }

    /// The operation under way.
    pub(super) fn operation(&self) -> Option<&Operation<C>> {
        self.operation.as_deref()
    }

    /// Whether the operation under way deletes the resource.
    pub(super) fn is_deleting(&self) -> bool {
        self.operation.as_ref().is_some_and(|operation| operation.deletes)
    }

    /// When the operation under way began, if it creates the resource.
    pub(super) fn creation(&self) -> Option<Instant> {
        let operation = self.operation.as_ref().filter(|_| self.creates)?;
        Some(operation.began)
    }

    /// Whether this process created it, and nobody else can have put something into it.
    pub(super) fn made_here(&self) -> bool {
        self.made_here
    }

    /// Notes that others may have put something into it.
    pub(super) fn others_may_write(&mut self) {
        self.made_here = false;
    }

    /// Notes that the cloud accepted a DELETE, and what it names the operation.
    pub(super) fn note_delete(&mut self, operation: Option<C::OperationId>) {
        self.delete = Some(Box::new(AcceptedDelete {
            operation,
            succeeded: false,
        }));
    }

    /// Notes whether the DELETE succeeded.
    pub(super) fn end_delete(&mut self, succeeded: bool) {
        if !succeeded {
            self.delete = None;
        } else if let Some(delete) = &mut self.delete {
            delete.succeeded = true;
        }
    }

    /// The DELETE that the cloud accepted and that has not failed.
    pub(super) fn delete(&self) -> Option<&AcceptedDelete<C>> {
        self.delete.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Operation, Sample};

    fn operation(deletes: bool, began: Instant) -> Operation {
        Operation {
            id: None,
            began,
            deletes,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_lasts_is_polled_ever_more_rarely() {
        let (mut writes, now) = (Writes::<Sample>::default(), Instant::now());
        let mut wait = |second, asked| {
            let now = now + Duration::from_secs(second);
            writes.note_in_progress(Duration::from_secs(asked), now).as_secs()
        };
        assert_eq!([wait(0, 4), wait(100, 4), wait(900, 4), wait(900, 90)], [4, 20, 60, 60]);
        writes.note_ready(false);
        let began_again = now + Duration::from_secs(900);
        assert_eq!(writes.note_in_progress(Duration::ZERO, began_again), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn accepted_delete_counts_until_it_fails_or_something_is_put() {
        let now = Instant::now();
        let deleted = || {
            let mut writes = Writes::<Sample>::default();
            writes.begin(operation(true, now), false);
            writes.note_delete(None);
            writes
        };
        let mut succeeded = deleted();
        succeeded.end_delete(true);
        succeeded.note_ready(true);
        assert!(succeeded.delete().is_some_and(AcceptedDelete::succeeded) && !succeeded.is_deleting());
        let (mut failed, mut put, mut shown) = (deleted(), deleted(), deleted());
        failed.end_delete(false);
        put.begin(operation(false, now), true);
        shown.note_ready(false);
        assert!([failed, put, shown].iter().all(|writes| writes.delete().is_none()));
    }

    #[tokio::test(start_paused = true)]
    async fn failed_write_ends_the_operation_and_what_was_put() {
        let (mut writes, now) = (Writes::<Sample>::default(), Instant::now());
        assert!(!writes.note_failed());
        writes.begin(operation(false, now), true);
        assert!(writes.puts.any() && writes.operation().is_some());
        assert!(writes.note_failed());
        assert!(!writes.puts.any() && writes.operation().is_none());
        assert!(writes.made_here(), "it may exist");
    }

    #[tokio::test(start_paused = true)]
    async fn created_resource_is_made_here_until_others_may_write() {
        let now = Instant::now();
        let made = || {
            let mut writes = Writes::<Sample>::default();
            writes.begin(operation(false, now), true);
            writes
        };
        let (mut ready, mut absent, mut shared) = (made(), made(), made());
        ready.note_ready(false);
        absent.note_ready(true);
        shared.others_may_write();
        assert!(ready.made_here() && !absent.made_here() && !shared.made_here());
    }
}
