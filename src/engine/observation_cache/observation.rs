//! What reads and lists have shown of one resource, and until when that is fresh.

mod in_use;

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use self::in_use::InUse;
use super::absence::Absence;
use super::inside::Inside;
use super::puts::SHOWS_LATE;
use super::stored::Stored;
use crate::cloud::Cloud;
use crate::inventory::{Listed, version};
use crate::resource::{Observed, Progress};

/// How long what is known of a ready resource stands while the budget allows no read of it, where somebody waits for the
/// reconcile: longer than 500 clusters of one subscription take to be made, and not much longer.
const STANDS_FOR: Duration = Duration::from_secs(2_700);

/// How long a ready resource is not read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hold {
    /// The time until its read is due.
    pub(super) due_after: Duration,
    /// The time during which a reconcile that runs anyway does not read it either.
    pub(super) good_for: Duration,
}

/// Until when the first read of a resource is deferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deferral {
    /// Until its turn comes, as no list shows enough of it.
    ToItsTurn,
    /// Until a list is read that may show it.
    ToTheList,
}

/// What was observed of one resource.
#[derive(Debug)]
pub(super) struct Observation<C: Cloud> {
    /// What was last observed, or how the last read or write failed; none before the first time.
    observed: Option<Stored<C>>,
    /// When the resource was last read, written or shown by a list.
    read_at: Instant,
    /// Whether a list, or a read for something else, has shown it since: that is not enough for a write.
    only_listed: bool,
    /// Whether the next read has to be one of the resource itself.
    by_itself: bool,
    /// When the next read is due.
    due: Instant,
    /// Until then a reconcile that runs anyway does not read it.
    good_until: Instant,
    /// Until when its first read is deferred, if that is still to come.
    deferral: Option<Deferral>,
    /// Whether the last read was not sent because nobody waited for it.
    passed_over: bool,
    /// When something else last called in question what was observed. A read soon after that may still show what was.
    questioned: Option<Instant>,
    /// Whether it is ready and not invalidated.
    ready: bool,
    /// The fingerprint of it in a list when it was last read.
    listed: Option<u64>,
    /// Whether the last read had another version than the list before it.
    behind: bool,
    /// The numbers of what is in it.
    pub(super) inside: Inside<C::Kind>,
    /// When it was last read in place of a resource in it.
    read_instead: Option<Instant>,
    /// What the cloud names the resource that was observed as owned: a recreated one has another name.
    proven: Option<String>,
    /// The refusals to delete it.
    in_use: InUse,
    /// Since when it is not found.
    pub(super) absence: Absence,
}

impl<C: Cloud> Observation<C> {
    /// Nothing is observed yet; the first read is due.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            observed: None,
            read_at: now,
            only_listed: false,
            by_itself: false,
            due: now,
            good_until: now,
            deferral: None,
            passed_over: false,
            questioned: None,
            ready: false,
            listed: None,
            behind: false,
            inside: Inside::default(),
            read_instead: None,
            proven: None,
            in_use: InUse::default(),
            absence: Absence::default(),
        }
    }

    /// Notes that the resource was read or written.
    pub(super) fn note_read(&mut self, now: Instant) {
        self.read_at = now;
        self.only_listed = false;
        self.by_itself = false;
        self.deferral = None;
        self.passed_over = false;
    }

    /// Notes that a read was not sent because nobody waited for it.
    pub(super) fn note_passed_over(&mut self) {
        self.passed_over = true;
    }

    /// Whether somebody who waits for it reads it at once, whatever is known of it.
    pub(super) fn is_put_off(&self) -> bool {
        self.deferral.is_some() || self.passed_over
    }

    /// Notes that the first read is to come then, and how that is observed until then.
    pub(super) fn note_deferred(&mut self, unread: Observed<C>, due: Instant, deferral: Deferral) {
        self.note_failed_until(unread, due);
        self.deferral = Some(deferral);
    }

    /// Until when the first read is deferred, if it is still to come.
    pub(super) fn deferral(&self) -> Option<Deferral> {
        self.deferral
    }

    /// Notes that nothing is under way on the resource any more. `deletes`: whether this process was deleting it.
    pub(super) fn note_ready(&mut self, observed: Observed<C>, deletes: bool, hold: Hold, now: Instant) {
        self.in_use = InUse::default();
        if observed == Observed::Absent {
            self.proven = None;
            self.absence.note_absent(self.observed().as_ref(), deletes, now);
            self.questioned = None;
        } else {
            self.absence.note_ready();
        }
        self.ready = observed
            .found()
            .is_some_and(|body| C::progress(body) == Progress::Ready);
        self.listed = None;
        self.observed = Some(Stored::of(observed));
        self.hold_from(now, hold);
    }

    /// Notes that the resource is in progress; the next read is due after `wait`.
    pub(super) fn note_in_progress(&mut self, observed: Observed<C>, wait: Duration, now: Instant) {
        self.in_use = InUse::default();
        self.absence.note_in_progress(observed.found().is_some());
        self.observed = Some(Stored::of(observed));
        self.due_at(now + wait);
    }

    /// Notes how a read or a write failed; the next read is due after `wait`.
    pub(super) fn note_failed(&mut self, failure: Observed<C>, wait: Duration, now: Instant) {
        self.note_failed_until(failure, now + wait);
    }

    fn note_failed_until(&mut self, failure: Observed<C>, due: Instant) {
        self.observed = Some(Stored::of(failure));
        self.due_at(due);
    }

    /// Notes that the cloud accepted a write: a list does not show its effect.
    pub(super) fn note_written(&mut self) {
        self.ready = false;
        self.questioned = None;
        self.absence.note_written();
    }

    /// Notes that it was read in place of a resource in it. A step that was decided from an earlier read in this
    /// reconcile has to read it again.
    pub(super) fn note_read_instead(&mut self, now: Instant) {
        self.read_instead = Some(now);
        self.only_listed = true;
    }

    /// What such a read after `since` showed, once.
    pub(super) fn take_read_instead(&mut self, since: Instant) -> Option<Observed<C>> {
        self.read_instead.take().filter(|read| *read >= since)?;
        self.only_listed = false;
        self.observed()
    }

    /// Stores the fingerprint in a list that was started before the resource was read. If the two have other versions,
    /// the read may be behind the list: it is repeated when none is behind any more, and that one counts in any case.
    pub(super) fn note_listed(&mut self, listed: Listed, now: Instant) {
        if !self.ready {
            return;
        }
        let read = self.found().as_ref().and_then(version::<C>);
        let differs = listed.version.zip(read).is_some_and(|(listed, read)| listed != read);
        let is_repeated = self.behind && self.questioned.is_none();
        self.behind = differs && !is_repeated;
        if self.behind {
            let certain_from = *self.questioned.get_or_insert(now) + SHOWS_LATE;
            self.due = self.due.min(certain_from);
            self.good_until = self.good_until.min(certain_from);
        } else {
            self.listed = Some(listed.fingerprint);
        }
    }

    /// Whether a list shows it as it was when it was last read.
    pub(super) fn is_unchanged(&self, listed: Listed) -> bool {
        self.ready && self.listed == Some(listed.fingerprint)
    }

    /// What was observed before, as a list shows it unchanged.
    pub(super) fn confirm_by_list(&mut self, listed: Listed, hold: Hold) -> Option<Observed<C>> {
        self.read_at = listed.observed;
        self.only_listed = true;
        self.passed_over = false;
        self.hold_from(listed.observed, hold);
        self.observed()
    }

    /// Notes that what was observed last is how a list shows the resource, which may be ready by now.
    pub(super) fn note_only_listed(&mut self, listed: Listed, hold: Hold) {
        self.read_at = listed.observed;
        self.only_listed = true;
        if self.ready {
            self.listed = Some(listed.fingerprint);
            self.hold_from(listed.observed, hold);
        }
    }

    /// Makes the next read due now, and one of the resource itself.
    pub(super) fn invalidate(&mut self, now: Instant) {
        self.due_at(now);
        self.by_itself = true;
    }

    /// The earliest start of a list that may show more than is known; none if the resource itself has to be read.
    pub(super) fn listed_after(&self) -> Option<Instant> {
        (!self.by_itself).then_some(self.read_at + Duration::from_nanos(1))
    }

    /// The earliest start of a list, at most `max_age` ago, that may show it unchanged; none if it is not ready.
    pub(super) fn list_since(&self, max_age: Duration, now: Instant) -> Option<Instant> {
        let oldest = now.checked_sub(max_age).unwrap_or(self.read_at).max(self.read_at);
        let from = self.listed_from(now);
        self.is_listable().then(|| from.map_or(oldest, |from| from.max(oldest)))
    }

    /// Whether it is ready, and a list that shows it unchanged saves its next read.
    fn is_listable(&self) -> bool {
        self.ready && !self.by_itself
    }

    /// Whether a list saves a read of it.
    pub(super) fn is_of_a_list(&self) -> bool {
        self.is_listable() || self.deferral.is_some()
    }

    /// Whether the resource is known to be ready, was read not long ago, and nothing has called that in question.
    pub(super) fn is_only_due(&self, now: Instant) -> bool {
        let is_recent = now.saturating_duration_since(self.read_at) < STANDS_FOR;
        self.ready && self.questioned.is_none() && is_recent
    }

    /// What is known of a ready resource.
    pub(super) fn known(&self) -> Option<Observed<C>> {
        self.observed().filter(|_| self.ready)
    }

    /// Makes the next read of a ready resource due then. A write must not rely on what is known of it.
    pub(super) fn postpone(&mut self, when: Instant) {
        self.only_listed = true;
        self.due = when;
        self.good_until = when;
    }

    /// Makes the next read due then, whatever a list shows.
    pub(super) fn due_at(&mut self, when: Instant) {
        self.due = when;
        self.good_until = when;
        self.ready = false;
    }

    /// Makes the next read due then, if it is not due sooner, whatever a list shows.
    pub(super) fn expedite(&mut self, when: Instant) {
        self.due_at(self.due.min(when));
    }

    /// Makes the next read due then, if it would be due later, and one of the resource itself.
    pub(super) fn read_by(&mut self, when: Instant) {
        if self.due > when {
            self.due = when;
            self.good_until = when;
            self.by_itself = true;
        }
    }

    /// Makes the next read due now, by a list that was started after now or by itself, if the resource is ready or was
    /// not read yet.
    pub(super) fn suspect(&mut self, now: Instant) {
        if !self.ready && self.deferral.is_none() {
            return;
        }
        if self.ready {
            self.read_at = now;
            self.only_listed = true;
        }
        self.call_in_question(now);
        self.due = now;
        self.good_until = now;
    }

    /// Notes that what was observed is in question.
    pub(super) fn call_in_question(&mut self, now: Instant) {
        self.questioned = Some(now);
    }

    /// The earliest start of a list that says anything, where what was observed is in question.
    pub(super) fn listed_from(&self, now: Instant) -> Option<Instant> {
        let questioned = self.questioned?;
        let certain_from = questioned + SHOWS_LATE;
        Some(if now < certain_from { questioned } else { certain_from })
    }

    /// Holds it for longer, if itself was last read, after `since`, and nothing has called that in question.
    pub(super) fn prolong(&mut self, hold: Hold, since: Instant) {
        if self.is_listable() && !self.only_listed && self.questioned.is_none() && self.read_at >= since {
            self.hold_from(self.read_at, hold);
        }
    }

    fn hold_from(&mut self, observed: Instant, hold: Hold) {
        self.due = observed + hold.due_after;
        self.good_until = observed + hold.good_for;
        let certain_from = self.questioned.map(|questioned| questioned + SHOWS_LATE);
        if let Some(certain_from) = certain_from.filter(|from| observed < *from) {
            self.due = self.due.min(certain_from);
            self.good_until = self.good_until.min(certain_from);
        } else {
            self.questioned = None;
        }
    }

    /// When the next read is due.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// For how long the next read has been due.
    pub(super) fn overdue(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.due)
    }

    /// What was last observed.
    pub(super) fn observed(&self) -> Option<Observed<C>> {
        self.observed.as_ref().map(Stored::observed)
    }

    /// The resource's body, if the resource was there.
    pub(super) fn found(&self) -> Option<Value> {
        self.observed.as_ref()?.found()
    }

    /// Whether this is true of what was last observed.
    pub(super) fn is(&self, so: fn(&Stored<C>) -> bool) -> bool {
        self.observed.as_ref().is_some_and(so)
    }

    /// What was last observed, while it is fresh.
    pub(super) fn fresh(&self, now: Instant) -> Option<Observed<C>> {
        if self.good_until > now { self.observed() } else { None }
    }

    /// Whether the resource itself was last read before `since`, or was only shown by a list after that.
    pub(super) fn was_read_before(&self, since: Instant) -> bool {
        self.only_listed || self.read_at < since
    }

    /// For how long reads had shown its absence when it was last read; none if the last one showed something else.
    pub(super) fn gone_at_last_read(&self) -> Option<Duration> {
        let since = self.absence.gone_since()?;
        Some(self.read_at.saturating_duration_since(since))
    }

    /// Notes that the resource with this body was observed as owned.
    pub(super) fn note_proven(&mut self, body: &Value) {
        self.proven = Some(C::instance(body).to_owned());
    }

    /// Whether this very resource was observed as owned.
    pub(super) fn is_proven(&self, body: &Value) -> bool {
        self.proven.as_deref() == Some(C::instance(body))
    }
}

#[cfg(test)]
mod tests;
