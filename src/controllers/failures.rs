//! How long to wait when a reconcile failed, and whether to log that as a warning: one rule for all controllers.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::driver::ReconcileError;
use crate::metrics::ReconcileResult;

/// The wait after the first conflict in a row: somebody else wrote the object at the same time.
const AFTER_CONFLICT: Duration = Duration::from_millis(200);
/// The wait after the first of other failures in a row.
const AFTER_ERROR: Duration = Duration::from_secs(1);
/// The wait after the first panic in a row, which will most likely come again.
const AFTER_PANIC: Duration = Duration::from_secs(10);
/// The longest wait of all.
const MOST: Duration = Duration::from_secs(60);
/// How many conflicts in a row are normal where several write an object; more are a failure.
const HARMLESS: u32 = 4;

/// How many reconciles in a row have failed for each object of one role, by UID.
#[derive(Debug, Default)]
pub struct Failures(Mutex<HashMap<String, u32>>);

impl Failures {
    fn all(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn in_a_row(&self, uid: &str) -> u32 {
        let mut all = self.all();
        let count = all.entry(uid.to_owned()).or_default();
        *count = count.saturating_add(1);
        *count
    }

    /// Logs a reconcile that failed; returns how it counts and how long to wait.
    pub fn failed(&self, uid: &str, error: &ReconcileError) -> (ReconcileResult, Duration) {
        let row = self.in_a_row(uid);
        let first = if error.conflict() { AFTER_CONFLICT } else { AFTER_ERROR };
        let wait = longer(first, row);
        if error.conflict() && row <= HARMLESS {
            tracing::debug!(%error, "somebody else changed the object first");
            return (ReconcileResult::Waiting, wait);
        }
        tracing::warn!(%error, again_in_s = wait.as_secs(), "reconcile failed");
        (ReconcileResult::Failed, wait)
    }

    /// Logs a reconcile that panicked; returns how long to wait.
    pub fn panicked(&self, uid: &str) -> Duration {
        let wait = longer(AFTER_PANIC, self.in_a_row(uid));
        tracing::error!(again_in_s = wait.as_secs(), "a reconcile panicked");
        wait
    }

    /// Ends the row: a reconcile of the object has reached its end, or the object is gone.
    pub fn over(&self, uid: &str) {
        self.all().remove(uid);
    }
}

/// The wait after so many failures in a row: twice as long each time.
fn longer(first: Duration, row: u32) -> Duration {
    first.saturating_mul(1 << (row - 1).min(16)).min(MOST)
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn refused(code: u16) -> ReconcileError {
        let status = Status::failure("x", "y").with_code(code);
        ReconcileError::Kube(kube::Error::Api(status.boxed()))
    }

    fn after_failure(failures: &Failures, error: &ReconcileError) -> (ReconcileResult, u128) {
        let (result, wait) = failures.failed("u", error);
        (result, wait.as_millis())
    }

    #[test]
    fn errors_in_a_row_wait_longer_up_to_a_minute() {
        let failures = Failures::default();
        let all: Vec<_> = (0..9)
            .map(|_| after_failure(&failures, &ReconcileError::Timeout))
            .collect();
        let waits = [1, 2, 4, 8, 16, 32, 60, 60, 60].map(|s| (ReconcileResult::Failed, s * 1000));
        assert_eq!(all, waits);
        failures.over("u");
        assert_eq!(after_failure(&failures, &ReconcileError::Timeout).1, 1000);
    }

    #[test]
    fn conflicts_in_a_row_wait_longer_and_the_fifth_is_a_failure() {
        for conflict in [refused(409), ReconcileError::Gone] {
            let failures = Failures::default();
            let all: Vec<_> = (0..6).map(|_| after_failure(&failures, &conflict)).collect();
            let harmless = [200, 400, 800, 1600].map(|ms| (ReconcileResult::Waiting, ms));
            let failed = [3200, 6400].map(|ms| (ReconcileResult::Failed, ms));
            assert_eq!(all, [harmless.as_slice(), &failed].concat());
        }
    }

    #[test]
    fn what_is_not_found_by_a_read_or_a_creation_is_no_conflict() {
        assert_eq!(
            after_failure(&Failures::default(), &refused(404)),
            (ReconcileResult::Failed, 1000)
        );
    }
}
