//! Since when reads have not found a resource. A read that finds nothing proves little: one of the cloud's front ends
//! may be behind for seconds, and what it does not know it neither shows nor deletes.

use std::time::Duration;

use tokio::time::Instant;

use crate::cloud::Cloud;
use crate::resource::Observed;

/// Whether a resource was ever there, and since when it is not found.
#[derive(Debug, Default)]
pub(super) struct Absence {
    /// Whether it was ever observed to be there.
    was_there: bool,
    /// Whether it was there when it was last observed as ready or in progress.
    there: bool,
    /// Since when it was not found although it was there before; none once it counts as absent.
    missed: Option<Instant>,
    /// Since when every read has shown that it is not there; none if it was there or deleted before.
    never_there_since: Option<Instant>,
    /// Since when every read has shown that it is not there, even if it was there before.
    gone_since: Option<Instant>,
}

impl Absence {
    /// Notes that it was observed to be there, and ready.
    pub(super) fn note_ready(&mut self) {
        self.note_shown();
        self.never_there_since = None;
        self.gone_since = None;
    }

    /// Notes that it counts as absent. `last` is what was observed before, and `deletes` whether this process was
    /// deleting it.
    pub(super) fn note_absent<C: Cloud>(&mut self, last: Option<&Observed<C>>, deletes: bool, now: Instant) {
        let missed = self.missed.take();
        self.there = false;
        self.gone_since = self.gone_since.or(missed).or(Some(now));
        if deletes || missed.is_some() || matches!(last, Some(Observed::Found(_))) {
            self.never_there_since = None;
        } else if last != Some(&Observed::Absent) {
            self.never_there_since = self.never_there_since.or(Some(now));
        }
    }

    /// Notes that an operation on it is under way; `shown` if a read shows it.
    pub(super) fn note_in_progress(&mut self, shown: bool) {
        if shown {
            self.note_shown();
        }
        self.gone_since = None;
    }

    /// Notes that the cloud accepted a write of it.
    pub(super) fn note_written(&mut self) {
        self.never_there_since = None;
    }

    fn note_shown(&mut self) {
        self.was_there = true;
        self.there = true;
        self.missed = None;
    }

    /// Notes that a write was sent and not answered: it may have taken effect after all reads so far.
    pub(super) fn note_lost_write(&mut self) {
        self.gone_since = None;
        self.never_there_since = None;
    }

    /// Notes that it was not found. Returns the wait until the second read, `apart` after the first, that has to
    /// confirm that; none if the absence counts already. `confirms`: also of what was never there.
    pub(super) fn note_missed(&mut self, apart: Duration, confirms: bool, now: Instant) -> Option<Duration> {
        if self.there || (confirms && self.gone_since.is_none()) {
            self.missed.get_or_insert(now);
        }
        let counts_at = self.missed? + apart;
        counts_at.checked_duration_since(now).filter(|wait| !wait.is_zero())
    }

    /// Whether it was ever observed to be there.
    pub(super) fn was_there(&self) -> bool {
        self.was_there
    }

    /// Since when every read has shown that it is not there; none if it was there or deleted before.
    pub(super) fn never_there_since(&self) -> Option<Instant> {
        self.never_there_since
    }

    /// Since when every read has shown that it is not there, whether it was there before or not.
    pub(super) fn gone_since(&self) -> Option<Instant> {
        self.gone_since
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::resource::MISSED;
    use crate::sample::Observed;

    #[tokio::test(start_paused = true)]
    async fn what_was_there_is_missed_first_and_gone_later() {
        let (mut absence, now) = (Absence::default(), Instant::now());
        let later = now + MISSED;
        let missed = |absence: &mut Absence, now| absence.note_missed(MISSED, false, now);
        assert_eq!(missed(&mut absence, now), None, "it was never there");
        absence.note_ready();
        assert_eq!(missed(&mut absence, now), Some(MISSED));
        assert_eq!(missed(&mut absence, later), None);
        absence.note_absent(Some(&Observed::Pending), false, later);
        assert_eq!((absence.gone_since(), absence.never_there_since()), (Some(now), None));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_there_before_is_not_taken_for_never_there() {
        let now = Instant::now();
        let never_there = |last: Option<&Observed>, deletes| {
            let mut absence = Absence::default();
            absence.note_absent(last, deletes, now);
            absence.never_there_since().is_some()
        };
        assert!(never_there(None, false) && never_there(Some(&Observed::Pending), false));
        assert!(!never_there(None, true));
        assert!(!never_there(Some(&Observed::Found(Value::Null)), false));
        assert!(!never_there(Some(&Observed::Absent), false), "it was deleted before");
    }

    #[tokio::test(start_paused = true)]
    async fn absence_that_has_to_be_confirmed_is_so_once() {
        let (mut absence, now) = (Absence::default(), Instant::now());
        let later = now + MISSED;
        assert_eq!(absence.note_missed(MISSED, true, now), Some(MISSED));
        assert_eq!(absence.note_missed(MISSED, true, later), None);
        absence.note_absent(None::<&Observed>, false, later);
        assert_eq!(absence.note_missed(MISSED, true, later), None);
        absence.note_lost_write();
        assert_eq!(
            absence.note_missed(MISSED, true, later),
            Some(MISSED),
            "it may be there"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn operation_that_shows_nothing_ends_the_absence() {
        let (mut absence, now) = (Absence::default(), Instant::now());
        absence.note_absent(None::<&Observed>, false, now);
        absence.note_in_progress(false);
        assert_eq!((absence.gone_since(), absence.was_there()), (None, false));
        absence.note_in_progress(true);
        assert!(absence.was_there());
    }
}
