//! Lists by their addresses. One caller reads a list, and all that wait for it share the result. None waits for long: the
//! cloud may not answer, and who waits occupies what others need.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::MutexGuard;
use tokio::time::{Instant, timeout_at};

use super::failed_reads::FailedReads;
use super::failure::{Class, Failure, NOT_READ_YET};
use super::urgency::Urgency;

/// How long a list that would spare reads of ready resources is not tried again when it is denied or too long. Each
/// resource is read by itself meanwhile.
///
/// Rule: D12 in `docs/compatibility.md`.
pub const REFUSED_FOR: Duration = Duration::from_secs(3_600);
/// For how long the time that a list took says how long the next one takes.
const LATELY: Duration = Duration::from_secs(600);
/// The longest that a list of resources may take. After that it is given up, as many callers wait for it.
///
/// Rule: `docs/decisions/0012-lists-and-reads.md`.
pub const LIST_TIMEOUT: Duration = Duration::from_secs(20);

/// The result of a list that does not take too long.
pub async fn in_time<T, E: Failure>(list: impl Future<Output = Result<T, E>>) -> Result<T, E> {
    let slow = |_| E::own(Class::Down, "ListTooSlow");
    tokio::time::timeout(LIST_TIMEOUT, list).await.map_err(slow)?
}

/// How long a caller waits for a list that another caller reads, if somebody waits for its read. After that it reads its
/// resource by itself.
const AWAITED_PATIENCE: Duration = Duration::from_secs(5);
/// How long any other caller waits, from when the reader began.
const ROUTINE_PATIENCE: Duration = Duration::from_secs(2);
/// When a caller that did not wait any longer comes back: the list has been read by then, or given up.
pub const LIST_ENDS_IN: Duration = LIST_TIMEOUT;

/// The lists by their addresses.
#[derive(Debug)]
pub struct Lists<T, E>(Mutex<HashMap<String, Arc<Shared<T, E>>>>);

impl<T, E> Default for Lists<T, E> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T, E: Failure> Lists<T, E> {
    /// The list at this address. Drops lists that nobody has asked for lately.
    pub fn at(&self, address: &str) -> Arc<Shared<T, E>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(address) {
            return Arc::clone(known);
        }
        all.retain(|_, list| Arc::strong_count(list) > 1 || list.last().is_of_use());
        Arc::clone(all.entry(address.to_owned()).or_default())
    }

    /// The list at this address, started at most `max_age` ago, and when it was. If the known one is older, `call`
    /// reads it again, and gets what it showed before. Nothing else shows what is in it: a reconcile for which somebody
    /// waits waits until it is read or given up, as any list is that takes too long.
    ///
    /// # Errors
    /// A failure is shared too, but for that of a list that was not sent. Its `retry_after` is the time for which the
    /// list is still not tried again.
    pub async fn get<F: Future<Output = Result<T, E>>>(
        &self,
        address: &str,
        urgency: Urgency,
        max_age: Duration,
        call: impl FnOnce(Option<Arc<T>>) -> F,
    ) -> ListResult<T, E> {
        // A list that was started after this call is new enough, however long it took.
        let since = Instant::now().checked_sub(max_age);
        let shared = self.at(address);
        let patience = if urgency.is_awaited() {
            LIST_ENDS_IN + Duration::from_secs(1)
        } else {
            patience(urgency)
        };
        let (observed, list) = match shared.ask(since, E::delay, patience).await {
            Asked::Known(known) => known,
            Asked::Pending => {
                let pending = E::own(Class::Throttled, NOT_READ_YET);
                return (Instant::now(), Err(pending.with_retry_after(LIST_ENDS_IN)));
            }
            Asked::Reader(reader) => {
                let before = reader.before();
                reader.read(in_time(call(before))).await
            }
        };
        let list = list.map_err(|error| {
            let wait = shared.retry_wait(&error);
            error.with_retry_after(wait).with_lasting(shared.fails_for_long())
        });
        (observed, list)
    }
}

/// One list. One caller reads it; those that wait share the result.
#[derive(Debug)]
pub struct Shared<T, E> {
    last: Mutex<LastAttempt<T, E>>,
    reader: tokio::sync::Mutex<()>,
    /// When a caller last began to read it.
    reading_since: Mutex<Instant>,
}

impl<T, E> Default for Shared<T, E> {
    fn default() -> Self {
        Self {
            last: Mutex::default(),
            reader: tokio::sync::Mutex::default(),
            reading_since: Mutex::new(Instant::now()),
        }
    }
}

/// What a caller that asks for a list gets.
#[derive(Debug)]
pub enum Asked<'a, T, E> {
    /// A list that is young enough, or a failure that is.
    Known(ListResult<T, E>),
    /// The right to read it.
    Reader(ListReader<'a, T, E>),
    /// Nothing yet: another caller is reading it.
    Pending,
}

/// The right to read a list. Others wait as long as it is held.
#[derive(Debug)]
pub struct ListReader<'a, T, E> {
    list: &'a Shared<T, E>,
    _held: MutexGuard<'a, ()>,
}

impl<T, E: Failure> ListReader<'_, T, E> {
    /// What the list showed when it was last read without a failure.
    fn before(&self) -> Option<Arc<T>> {
        self.list.last().shown.clone()
    }

    /// Reads the list and stores the result.
    pub async fn read(self, call: impl Future<Output = Result<T, E>>) -> ListResult<T, E> {
        let began = Instant::now();
        let outcome = call.await.map(Arc::new);
        self.list.last().note(began, outcome.clone());
        (began, outcome)
    }
}

/// How long a caller waits for a list that another caller reads, from when that one began.
pub fn patience(urgency: Urgency) -> Duration {
    if urgency.is_awaited() {
        AWAITED_PATIENCE
    } else {
        ROUTINE_PATIENCE
    }
}

impl<T, E: Failure> Shared<T, E> {
    /// The list if it was started after `since`, or its failure if that is no older than `retry_interval` says; else
    /// the right to read it, unless another caller has been reading it for longer than `patience`.
    pub async fn ask(
        &self,
        since: Option<Instant>,
        retry_interval: fn(&E, u32) -> Duration,
        patience: Duration,
    ) -> Asked<'_, T, E> {
        let known = || self.last().known(since, retry_interval);
        if let Some(known) = known() {
            return Asked::Known(known);
        }
        let waits_until = *self.reading_since() + patience;
        let Ok(held) = timeout_at(waits_until, self.reader.lock()).await else {
            return known().map_or(Asked::Pending, Asked::Known);
        };
        *self.reading_since() = Instant::now();
        match known() {
            Some(known) => Asked::Known(known),
            None => Asked::Reader(ListReader {
                list: self,
                _held: held,
            }),
        }
    }

    /// How much longer the list is not tried again after a failure.
    pub fn retry_wait(&self, error: &E) -> Duration {
        self.last().retry_wait(error)
    }

    /// Whether it has failed for so long that nothing is known of what it shows.
    pub fn fails_for_long(&self) -> bool {
        self.last().failed.lasts(Instant::now())
    }

    /// How long it took lately, and what it showed.
    pub fn lately(&self) -> Option<(Duration, Arc<T>)> {
        let last = self.last();
        let attempt = last
            .attempt
            .as_ref()
            .filter(|attempt| attempt.ended.elapsed() < LATELY)?;
        Some((attempt.ended - attempt.began, attempt.outcome.clone().ok()?))
    }

    fn last(&self) -> std::sync::MutexGuard<'_, LastAttempt<T, E>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reading_since(&self) -> std::sync::MutexGuard<'_, Instant> {
        self.reading_since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The result of the last attempt to read a list.
#[derive(Debug)]
struct LastAttempt<T, E> {
    attempt: Option<Attempt<T, E>>,
    /// What the last attempt showed that did not fail.
    shown: Option<Arc<T>>,
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
            shown: None,
            failed: FailedReads::default(),
        }
    }
}

/// When the request for a list was started, and its result.
pub type ListResult<T, E> = (Instant, Result<Arc<T>, E>);

impl<T, E: Failure> LastAttempt<T, E> {
    fn known(&self, since: Option<Instant>, retry_interval: fn(&E, u32) -> Duration) -> Option<ListResult<T, E>> {
        let attempt = self.attempt.as_ref()?;
        let good = match &attempt.outcome {
            Ok(_) => since.is_none_or(|since| attempt.began >= since),
            Err(error) => attempt.ended.elapsed() < retry_interval(error, self.failed.count()),
        };
        good.then(|| (attempt.began, attempt.outcome.clone()))
    }

    fn note(&mut self, began: Instant, outcome: Result<Arc<T>, E>) {
        match &outcome {
            Ok(shown) => {
                self.failed = FailedReads::default();
                self.shown = Some(Arc::clone(shown));
            }
            // Another caller may be allowed to send it.
            Err(error) if error.is_unsent() => return,
            Err(_) => self.failed.note_failure(Instant::now()),
        }
        self.attempt = Some(Attempt {
            began,
            ended: Instant::now(),
            outcome,
        });
    }

    fn retry_wait(&self, error: &E) -> Duration {
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

    fn is_of_use(&self) -> bool {
        self.attempt
            .as_ref()
            .is_some_and(|attempt| attempt.ended.elapsed() < REFUSED_FOR)
    }
}

#[cfg(test)]
mod tests;
