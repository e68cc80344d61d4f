//! How long to wait when a reconcile failed, and whether to log that as a warning: one rule for all controllers.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::call::ReconcileError;
use super::requeue::Requeue;
use crate::metrics::ReconcileResult;

/// The wait after the first conflict of reconciles in a row: somebody else wrote the object at the same time. It
/// doubles with each further one, up to [`LONGEST_WAIT`].
///
/// Rule: D3 in `docs/compatibility.md`.
const AFTER_CONFLICT: Duration = Duration::from_millis(200);
/// The wait after the first failed reconcile in a row, if it was no conflict. It doubles with each further one, up to
/// [`LONGEST_WAIT`].
const AFTER_ERROR: Duration = Duration::from_secs(1);
/// The wait after the first reconcile in a row that panicked. The panic will most likely come again.
const AFTER_PANIC: Duration = Duration::from_secs(10);
/// The longest wait after a reconcile that failed, met a conflict or panicked.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// How many conflicts in a row are normal where several write an object; more are a failure.
const MAX_CONFLICTS: u32 = 4;

/// What follows a reconcile that did not reach its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// How the reconcile counts.
    pub result: ReconcileResult,
    /// When the next one is due.
    pub requeue: Requeue,
}

/// How many reconciles in a row have failed for each object of one role, by UID.
#[derive(Debug, Default)]
pub struct Retries(Mutex<HashMap<String, u32>>);

impl Retries {
    fn all(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn in_a_row(&self, uid: &str) -> u32 {
        let mut all = self.all();
        let count = all.entry(uid.to_owned()).or_default();
        *count = count.saturating_add(1);
        *count
    }

    /// Logs a reconcile that failed; returns what follows.
    pub fn failed(&self, uid: &str, error: &ReconcileError) -> Retry {
        let row = self.in_a_row(uid);
        if !error.conflict() {
            return failed(error, longer(AFTER_ERROR, row));
        }
        let wait = longer(AFTER_CONFLICT, row);
        if row > MAX_CONFLICTS {
            return failed(error, wait);
        }
        tracing::debug!(%error, "somebody else changed the object first");
        Retry {
            result: ReconcileResult::Waiting,
            requeue: Requeue::new(wait, Requeue::CONFLICT),
        }
    }

    /// Logs a reconcile that panicked; returns what follows.
    pub fn panicked(&self, uid: &str) -> Retry {
        let wait = longer(AFTER_PANIC, self.in_a_row(uid));
        tracing::error!(again_in_s = wait.as_secs(), "a reconcile panicked");
        Retry {
            result: ReconcileResult::Panicked,
            requeue: Requeue::new(wait, Requeue::PANICKED),
        }
    }

    /// Ends the row: a reconcile of the object has reached its end, or the object is gone.
    pub fn over(&self, uid: &str) {
        self.all().remove(uid);
    }
}

fn failed(error: &ReconcileError, wait: Duration) -> Retry {
    tracing::warn!(%error, again_in_s = wait.as_secs(), "reconcile failed");
    Retry {
        result: ReconcileResult::Failed,
        requeue: Requeue::new(wait, Requeue::FAILED),
    }
}

/// The wait after so many failures in a row: twice as long each time.
fn longer(first: Duration, row: u32) -> Duration {
    first.saturating_mul(1 << (row - 1).min(16)).min(LONGEST_WAIT)
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn refused(code: u16) -> ReconcileError {
        let status = Status::failure("x", "y").with_code(code);
        ReconcileError::Kube(kube::Error::Api(status.boxed()))
    }

    fn after_failure(retries: &Retries, error: &ReconcileError) -> (ReconcileResult, u128) {
        let retry = retries.failed("u", error);
        (retry.result, retry.requeue.after.as_millis())
    }

    #[test]
    fn errors_in_a_row_wait_longer_up_to_a_minute() {
        let retries = Retries::default();
        let all: Vec<_> = (0..9)
            .map(|_| after_failure(&retries, &ReconcileError::Timeout))
            .collect();
        let waits = [1, 2, 4, 8, 16, 32, 60, 60, 60].map(|s| (ReconcileResult::Failed, s * 1000));
        assert_eq!(all, waits);
        retries.over("u");
        assert_eq!(after_failure(&retries, &ReconcileError::Timeout).1, 1000);
    }

    #[test]
    fn conflicts_in_a_row_wait_longer_and_the_fifth_is_a_failure() {
        for conflict in [refused(409), ReconcileError::Gone] {
            let retries = Retries::default();
            let all: Vec<_> = (0..6).map(|_| after_failure(&retries, &conflict)).collect();
            let harmless = [200, 400, 800, 1600].map(|ms| (ReconcileResult::Waiting, ms));
            let failed = [3200, 6400].map(|ms| (ReconcileResult::Failed, ms));
            assert_eq!(all, [harmless.as_slice(), &failed].concat());
        }
    }

    #[test]
    fn what_is_not_found_by_a_read_or_a_creation_is_no_conflict() {
        assert_eq!(
            after_failure(&Retries::default(), &refused(404)),
            (ReconcileResult::Failed, 1000)
        );
    }
}
