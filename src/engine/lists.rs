//! Lists by their addresses. One caller reads a list, and all that wait for it share the result.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::failed_reads::FailedReads;
use super::failure::{Class, Failure};

/// How long a list that would spare reads of ready resources is not tried again when it is denied or too long. Each
/// resource is read by itself meanwhile.
///
/// Rule: D12 in `docs/compatibility.md`.
pub const REFUSED_FOR: Duration = Duration::from_secs(3_600);
/// The longest that a list of resources may take. After that it is given up, as many callers wait for it.
///
/// Rule: `docs/decisions/0012-lists-and-reads.md`.
const LIST_TIMEOUT: Duration = Duration::from_secs(20);

/// The result of a list that does not take too long.
pub async fn in_time<E: Failure>(list: impl Future<Output = Result<Vec<Value>, E>>) -> Result<Vec<Value>, E> {
    let slow = |_| E::own(Class::Down, "ListTooSlow");
    tokio::time::timeout(LIST_TIMEOUT, list).await.map_err(slow)?
}

/// The lists by their addresses.
#[derive(Debug)]
pub struct Lists<T, E>(Mutex<HashMap<String, Arc<Shared<T, E>>>>);

impl<T, E> Default for Lists<T, E> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// One list. The caller that reads it holds the lock; those that wait for the lock share the result.
pub type Shared<T, E> = tokio::sync::Mutex<LastAttempt<T, E>>;

impl<T, E: Failure> Lists<T, E> {
    /// The list at this address. Drops lists that nobody has asked for lately.
    pub fn at(&self, address: &str) -> Arc<Shared<T, E>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(address) {
            return Arc::clone(known);
        }
        let asked_for = |list: &Arc<Shared<T, E>>| Arc::strong_count(list) > 1;
        all.retain(|_, list| asked_for(list) || list.try_lock().is_ok_and(|last| last.is_of_use()));
        Arc::clone(all.entry(address.to_owned()).or_default())
    }
}

/// The result of the last attempt to read a list.
#[derive(Debug)]
pub struct LastAttempt<T, E> {
    attempt: Option<Attempt<T, E>>,
    failed: FailedReads,
}

#[derive(Debug)]
struct Attempt<T, E> {
    began: Instant,
    ended: Instant,
    outcome: Result<Arc<T>, E>,
}

impl<T, E> Default for LastAttempt<T, E> {
    fn default() -> Self {
        Self {
            attempt: None,
            failed: FailedReads::default(),
        }
    }
}

/// When the request for a list was started, and its result.
pub type ListResult<T, E> = (Instant, Result<Arc<T>, E>);

impl<T, E: Failure> LastAttempt<T, E> {
    /// The list if it was started after `since`, or its failure if that is no older than `retry_interval` says.
    pub fn known(&self, since: Option<Instant>, retry_interval: fn(&E, u32) -> Duration) -> Option<ListResult<T, E>> {
        let attempt = self.attempt.as_ref()?;
        let good = match &attempt.outcome {
            Ok(_) => since.is_none_or(|since| attempt.began >= since),
            Err(error) => attempt.ended.elapsed() < retry_interval(error, self.failed.count()),
        };
        good.then(|| (attempt.began, attempt.outcome.clone()))
    }

    /// Reads the list again and stores the result.
    pub async fn relist(&mut self, call: impl Future<Output = Result<T, E>>) -> ListResult<T, E> {
        let began = Instant::now();
        let outcome = call.await.map(Arc::new);
        if outcome.as_ref().is_err_and(Failure::is_unsent) {
            // Another caller may be allowed to send it.
            return (began, outcome);
        }
        match &outcome {
            Ok(_) => self.failed = FailedReads::default(),
            Err(_) => self.failed.note_failure(Instant::now()),
        }
        self.attempt = Some(Attempt {
            began,
            ended: Instant::now(),
            outcome: outcome.clone(),
        });
        (began, outcome)
    }

    /// How much longer the list is not tried again after a failure.
    pub fn retry_wait(&self, error: &E) -> Duration {
        if error.is_unsent() {
            // The attempt that is known is an earlier one.
            return error.delay(1);
        }
        let elapsed = self
            .attempt
            .as_ref()
            .map_or(Duration::ZERO, |attempt| attempt.ended.elapsed());
        error.delay(self.failed.count()).saturating_sub(elapsed)
    }

    /// Whether it has failed for so long that nothing is known of what it shows.
    pub fn fails_for_long(&self) -> bool {
        self.failed.lasts(Instant::now())
    }

    fn is_of_use(&self) -> bool {
        self.attempt
            .as_ref()
            .is_some_and(|attempt| attempt.ended.elapsed() < REFUSED_FOR)
    }
}
