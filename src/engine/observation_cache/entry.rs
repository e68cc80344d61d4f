//! All that the cache holds of one resource. What happens to it is noted in each of the four parts.

use std::time::Duration;

use tokio::time::Instant;

use super::backoff::Backoff;
use super::observation::{Hold, Observation};
use super::replacements::Replacements;
use super::stored::Stored;
use super::unreported::Unreported;
use super::writes::Writes;
use super::{Operation, SHOWS_LATE};
use crate::cloud::{Cloud, ResourceKind};
use crate::failure::{Class, Failure};
use crate::plan::Change;
use crate::resource::Observed;

/// How long reads have to find nothing until an accepted DELETE whose end is not known counts as executed. A read may
/// be behind for seconds.
///
/// Rule: D3 in `docs/compatibility.md`.
const CARRIED_OUT: Duration = Duration::from_secs(8);

/// What the cache holds of one resource.
#[derive(Debug)]
pub(super) struct CacheEntry<C: Cloud> {
    /// The resource's kind.
    pub(super) kind: C::Kind,
    /// What was observed, and until when it is fresh.
    pub(super) observation: Observation<C>,
    /// What this process has written.
    pub(super) writes: Writes<C>,
    /// What has failed.
    pub(super) backoff: Backoff<C>,
    /// How often it was replaced.
    pub(super) replacements: Replacements,
    /// What is to be reported once.
    pub(super) unreported: Unreported,
}

impl<C: Cloud> CacheEntry<C> {
    /// Nothing is known of the resource yet.
    pub(super) fn new(kind: C::Kind, now: Instant) -> Self {
        Self {
            kind,
            observation: Observation::new(now),
            writes: Writes::default(),
            backoff: Backoff::default(),
            replacements: Replacements::default(),
            unreported: Unreported::default(),
        }
    }

    /// Notes that nothing is under way any more. Returns whether an operation of this process was.
    pub(super) fn note_ready(&mut self, observed: Observed<C>, hold: Hold, now: Instant) -> bool {
        let is_absent = observed == Observed::Absent;
        self.backoff.note_ready();
        self.observation
            .note_ready(observed, self.writes.is_deleting(), hold, now);
        self.writes.note_ready(is_absent)
    }

    /// Notes that the resource is in progress, and that the cloud asks for this wait.
    pub(super) fn note_in_progress(&mut self, observed: Observed<C>, wait: Duration, now: Instant) {
        let wait = self.writes.note_in_progress(wait, now);
        self.backoff.note_in_progress();
        self.observation.note_in_progress(observed, wait, now);
    }

    /// Notes that the cloud accepted a write.
    pub(super) fn begin(&mut self, operation: Operation<C>, made_here: bool) {
        self.observation.note_written();
        self.writes.begin(operation, made_here);
    }

    /// Notes that the resource is as desired. Returns, once, the change that led to it.
    pub(super) fn confirm(&mut self) -> Option<Change> {
        self.backoff.confirm();
        self.writes.confirm();
        self.unreported.take()
    }

    /// Notes a failed read. Returns the wait until the next one.
    pub(super) fn note_failed_read(&mut self, error: &C::Error, now: Instant) -> Duration {
        let wait = self.backoff.note_read(error, now);
        let failure = Observed::ReadFailed(error.clone().with_lasting(self.backoff.unread_for_long(now)));
        self.observation.note_failed(failure, wait, now);
        wait
    }

    /// Notes a failed read of a ready resource; the next one is due later with each failure. Returns what is known of the
    /// resource.
    pub(super) fn postpone(&mut self, error: &C::Error, now: Instant) -> Option<Observed<C>> {
        let known = self.observation.known()?;
        let wait = self.backoff.note_read(error, now);
        self.observation.postpone(now + wait);
        Some(known)
    }

    /// Notes a failed write, as `failure` shows it. Returns the wait.
    pub(super) fn note_failed_write(&mut self, failure: Observed<C>, error: &C::Error, now: Instant) -> Duration {
        let wait = self.backoff.note_write(error, now);
        if C::LOST_WRITES_SHOW_LATE && error.class() == Class::Down {
            self.observation.absence.note_lost_write();
        }
        let rules = self.kind.rules();
        let is_refused = matches!(failure, Observed::DeleteFailed(_)) && rules.in_use == Some(error.code());
        if is_refused && rules.in_use_shows_it {
            self.observation.note_in_use(now);
        }
        self.observation.note_failed(failure, wait, now);
        wait
    }

    /// Notes that the resource was not found. Returns the wait until the second read that has to confirm that; none if
    /// the absence counts already, as it does at once of what this process deletes.
    pub(super) fn note_missed(&mut self, now: Instant) -> Option<Duration> {
        if self.writes.is_deleting() {
            return None;
        }
        let confirms = self.kind.rules().confirms_absence;
        let wait = self.observation.absence.note_missed(C::MISSED, confirms, now)?;
        // What shows it again may be a read that is behind.
        self.observation.call_in_question(now);
        Some(wait)
    }

    /// How long until a PUT without effect may be repeated; the resource is read again then. None: at once.
    pub(super) fn wait_to_put_again(&mut self, now: Instant) -> Option<Duration> {
        let repeat_at = self.writes.puts.repeat_at(now)?;
        self.observation.due_at(repeat_at);
        Some(repeat_at.saturating_duration_since(now))
    }

    /// Whether the resource is gone for certain.
    pub(super) fn is_surely_gone(&self) -> bool {
        let gone_for = self.observation.gone_at_last_read();
        gone_for.is_some_and(|gone_for| gone_for >= self.gone_after())
    }

    /// When reads will have shown long enough that the resource is gone; none if the last one showed something else.
    pub(super) fn surely_gone_at(&self) -> Option<Instant> {
        Some(self.observation.absence.gone_since()? + self.gone_after())
    }

    /// For how long reads have to show that the resource is not there until it is gone for certain.
    fn gone_after(&self) -> Duration {
        match self.writes.delete() {
            Some(delete) if delete.succeeded() => Duration::ZERO,
            Some(_) => CARRIED_OUT,
            None if self.observation.absence.was_there() => SHOWS_LATE,
            None => C::GONE_FOR,
        }
    }

    /// Whether it is absent and nothing is under way on it. Nothing can be in it, and the next read needs no entry. Its
    /// custom resource may be one of those that somebody creates and deletes without end.
    pub(super) fn is_absent_and_idle(&self) -> bool {
        self.observation.is(Stored::is_absent) && self.writes.operation().is_none() && self.writes.delete().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::GONE_FOR;
    use crate::sample::{Error, Kind, Observed, Operation};

    const HOLD: Hold = Hold {
        due_after: Duration::from_secs(100),
        good_for: Duration::from_secs(80),
    };

    #[tokio::test(start_paused = true)]
    async fn what_was_never_there_is_gone_after_reads_for_long() {
        let now = Instant::now();
        let mut entry = CacheEntry::new(Kind::Guarded, now);
        let later = now + GONE_FOR;
        entry.note_ready(Observed::Absent, HOLD, now);
        assert_eq!(entry.surely_gone_at(), Some(later));
        assert!(!entry.is_surely_gone() && entry.is_absent_and_idle());
        entry.observation.note_read(later);
        entry.note_ready(Observed::Absent, HOLD, later);
        assert!(entry.is_surely_gone());
    }

    #[tokio::test(start_paused = true)]
    async fn what_this_process_deletes_is_not_missed() {
        let now = Instant::now();
        let mut entry = CacheEntry::new(Kind::Guarded, now);
        entry.note_ready(Observed::Found(serde_json::json!({})), HOLD, now);
        assert!(entry.note_missed(now).is_some());
        let delete = Operation {
            id: None,
            began: now,
            deletes: true,
        };
        entry.begin(delete, false);
        assert_eq!(entry.note_missed(now), None);
    }

    #[tokio::test(start_paused = true)]
    async fn failed_read_shows_whether_reads_have_failed_for_long() {
        let now = Instant::now();
        let mut entry = CacheEntry::new(Kind::Guarded, now);
        let error = Error::own(Class::Down, "X");
        for second in [0, 60, 120] {
            entry.note_failed_read(&error, now + Duration::from_secs(second));
        }
        let observed = entry.observation.observed();
        assert!(matches!(observed, Some(Observed::ReadFailed(error)) if error.lasting));
    }
}
