//! What reads and lists have shown, and which of them have failed.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::inside::numbers_inside;
use super::{CacheEntry, Deferral, ObservationCache};
use crate::cloud::{Cloud, Key, List, ResourceKind};
use crate::failure::{Class, Failure, NOT_READ_YET};
use crate::inventory::{Listed, Row, list_of};
use crate::lists::LIST_ENDS_IN;
use crate::resource::Observed;

impl<C: Cloud> ObservationCache<C> {
    /// Stores a failed read. Returns the wait until the next one, which grows with each failure.
    pub fn read_failed(&self, kind: C::Kind, key: &C::Key, error: &C::Error, now: Instant) -> Duration {
        self.update(kind, key, now, |entry| entry.note_failed_read(error, now))
    }

    /// What the cloud's last refusal to delete the resource has shown of it, once, in place of a read that is due.
    pub(crate) fn observed_in_use(&self, key: &C::Key, now: Instant) -> Option<Observed<C>> {
        self.edit(key, |entry| entry.observation.take_in_use(now)).flatten()
    }

    /// Whether reads of the resource have failed for so long that nothing is known of it any more.
    pub fn unread_for_long(&self, key: &C::Key, now: Instant) -> bool {
        self.holds(key, |entry| entry.backoff.unread_for_long(now))
    }

    /// Whether the resource itself was last read before `since`, or was only shown by a list after that.
    pub fn was_read_before(&self, key: &C::Key, since: Instant) -> bool {
        self.holds(key, |entry| entry.observation.was_read_before(since))
    }

    /// Stores that the resource was read in place of one in it that is being deleted.
    pub fn was_read_instead(&self, key: &C::Key, now: Instant) {
        self.edit(key, |entry| entry.observation.note_read_instead(now));
    }

    /// What such a read after `since` showed, once: the resource without the one in it.
    pub fn observed_instead(&self, key: &C::Key, since: Instant) -> Option<Observed<C>> {
        self.edit(key, |entry| entry.observation.take_read_instead(since))
            .flatten()
    }

    /// Stores that the resource was observed as owned. That holds as long as it exists, whatever it becomes.
    pub fn prove(&self, key: &C::Key, body: &Value) {
        self.edit(key, |entry| entry.observation.note_proven(body));
    }

    /// Whether this process has observed this very resource as owned, and not as gone since.
    pub fn is_proven(&self, key: &C::Key, body: &Value) -> bool {
        self.holds(key, |entry| entry.observation.is_proven(body))
    }

    /// The earliest start of a list that may show a ready resource unchanged; none if it is not ready.
    pub fn list_since(&self, key: &C::Key, now: Instant) -> Option<Instant> {
        self.ask(key, |entry| entry.observation.list_since(self.list_age(), now))
            .flatten()
    }

    /// How many resources one list with this one would show that are ready or were not read yet.
    pub fn share_a_list(&self, kind: C::Kind, key: &C::Key) -> usize {
        let Some((rules, list)) = list_of::<C>(kind, key) else {
            return 0;
        };
        let entries = self.entries();
        let parent = key.parent().and_then(|parent| entries.get(&parent));
        let parent = parent.and_then(|parent| parent.observation.found());
        if !rules.is_short(parent.as_ref()) {
            return 0;
        }
        let listable = entries
            .iter()
            .filter(|(_, entry)| entry.kind == kind && entry.observation.is_of_a_list());
        listable.filter(|(other, _)| list.shows(other)).count()
    }

    /// What was observed of the resource before, if a list shows it as it was when it was last read.
    pub fn unchanged(&self, key: &C::Key, listed: Listed) -> Option<Observed<C>> {
        let mut entries = self.entries();
        let entry = entries.get_mut(key)?;
        if !entry.observation.is_unchanged(listed) {
            return None;
        }
        entry.observation.confirm_by_list(listed, self.hold(entry.kind, key))
    }

    /// The earliest start of a list that shows this resource, of which nothing is known.
    pub(crate) fn list_start(&self, key: &C::Key, now: Instant) -> Instant {
        let oldest = now.checked_sub(self.list_age()).unwrap_or(now);
        let from = self.ask(key, |entry| entry.observation.listed_from(now)).flatten();
        from.map_or(oldest, |from| from.max(oldest))
    }

    /// Stores the first that is learned of a resource, unless another reconcile has learned something meanwhile, and
    /// returns what is known then.
    fn learn(
        &self,
        kind: C::Kind,
        key: &C::Key,
        now: Instant,
        learned: Observed<C>,
        store: impl FnOnce(&mut CacheEntry<C>, Observed<C>),
    ) -> Observed<C> {
        let mut entries = self.entries();
        let entry = entries
            .entry(key.clone())
            .or_insert_with(|| Box::new(CacheEntry::new(kind, now)));
        if entry.observation.deferral().is_none()
            && let Some(known) = entry.observation.observed()
        {
            return known;
        }
        entry.observation.note_read(now);
        store(entry, learned.clone());
        learned
    }

    /// Stores a ready resource as a list shows it, of which nothing was known.
    pub(crate) fn first_listed(&self, kind: C::Kind, key: &C::Key, row: Row) -> Observed<C> {
        let hold = self.hold(kind, key);
        let Row { body, listed } = row;
        let observed = self.learn(kind, key, listed.observed, Observed::Found(body), |entry, found| {
            entry.note_ready(found, hold, listed.observed);
            entry.observation.note_listed(listed, listed.observed);
            entry.observation.confirm_by_list(listed, hold);
        });
        if let Some(numbers) = numbers_inside(kind, &observed) {
            self.compare_inside(key, numbers, listed.observed);
        }
        observed
    }

    /// Defers the first read of a resource to a time after `resync`: that of records to one at which all in the parent
    /// are read.
    pub fn defer(&self, kind: C::Kind, key: &C::Key, now: Instant) -> Observed<C> {
        let last = self.record_resync;
        let turn = last.saturating_sub(self.resync).max(self.resync) * Self::spread(&Self::spread_by(kind, key), 1_000)
            / 1_000;
        let wait = self.resync + turn;
        let unread = C::Error::own(Class::Throttled, NOT_READ_YET).with_retry_after(wait);
        self.learn(kind, key, now, Observed::ReadFailed(unread), |entry, unread| {
            let observation = &mut entry.observation;
            observation.note_deferred(unread, now + wait, Deferral::ToItsTurn);
        })
    }

    /// Defers the first read of a resource until a list is read that may show it.
    pub(crate) fn await_list(&self, kind: C::Kind, key: &C::Key, now: Instant) -> Observed<C> {
        let unread = C::Error::own(Class::Throttled, NOT_READ_YET).with_retry_after(LIST_ENDS_IN);
        let deferral = self.deferral(key).unwrap_or(Deferral::ToTheList);
        self.learn(kind, key, now, Observed::ReadFailed(unread), |entry, unread| {
            let observation = &mut entry.observation;
            observation.note_deferred(unread, now + LIST_ENDS_IN, deferral);
        })
    }

    /// What is known of a ready resource, whose next read is due when a list is read that may show it. None: nothing
    /// is.
    pub(crate) fn known_until_listed(&self, key: &C::Key, now: Instant) -> Option<Observed<C>> {
        self.edit(key, |entry| {
            let known = entry.observation.known()?;
            entry.observation.postpone(now + LIST_ENDS_IN);
            Some(known)
        })
        .flatten()
    }

    /// Postpones the failed read of a ready resource, for longer with each failure; what is known of it stands. None:
    /// nothing is.
    pub fn postpone(&self, key: &C::Key, error: &C::Error, now: Instant) -> Option<Observed<C>> {
        self.edit(key, |entry| entry.postpone(error, now)).flatten()
    }

    /// Notes that a read of the resource was not sent because nobody waited for it.
    pub fn passed_over(&self, key: &C::Key) {
        self.edit(key, |entry| entry.observation.note_passed_over());
    }

    /// Whether the resource is known to be ready, was read not long ago, and nothing has called that in question: its
    /// read is only due.
    pub(crate) fn is_only_due(&self, key: &C::Key, now: Instant) -> bool {
        self.holds(key, |entry| entry.observation.is_only_due(now))
    }

    /// Whether a read was put off that somebody who waits gets at once.
    pub fn is_put_off(&self, key: &C::Key) -> bool {
        self.holds(key, |entry| entry.observation.is_put_off())
    }

    /// Until when the first read of the resource is deferred, if it is still to come.
    pub(crate) fn deferral(&self, key: &C::Key) -> Option<Deferral> {
        self.ask(key, |entry| entry.observation.deferral()).flatten()
    }

    /// Stores how a list showed the resource that was started before the resource was read.
    pub fn listed(&self, key: &C::Key, listed: Listed, now: Instant) {
        self.edit(key, |entry| entry.observation.note_listed(listed, now));
    }

    /// Whether the last list of what is in the resource could not be read.
    pub fn list_is_unread(&self, key: &C::Key) -> bool {
        self.holds(key, |entry| entry.backoff.list_is_unread())
    }

    /// Stores the result of a list of what is in the resource, and returns it. A failure gets whether it lasts.
    pub fn list_of<T>(&self, key: &C::Key, list: Result<T, C::Error>, now: Instant) -> Result<T, C::Error> {
        let mut entries = self.entries();
        let Some(entry) = entries.get_mut(key) else {
            return list;
        };
        match list {
            Ok(list) => {
                entry.backoff.note_listed();
                Ok(list)
            }
            Err(error) => {
                entry.backoff.note_list(now);
                let lasting = entry.backoff.lists_unread_for_long(now);
                Err(error.with_lasting(lasting))
            }
        }
    }

    /// Drops the entries of what only this parent shows and is not among `present`, which a read of the parent showed.
    pub fn children_are(&self, parent: &C::Key, present: &[C::Key]) {
        self.entries()
            .retain(|key, entry| !entry.kind.rules().shown_by_parent || !key.is_in(parent) || present.contains(key));
    }
}
