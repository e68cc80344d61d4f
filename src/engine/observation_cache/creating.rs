//! Which resources this process is creating, and which of them one list would show.

use std::collections::HashSet;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::{CacheEntry, ObservationCache};
use crate::cloud::{Cloud, List, ResourceKind};
use crate::inventory::{Listed, list_of};

impl<C: Cloud> ObservationCache<C> {
    /// Locked after the entries, where both are.
    fn creating(&self) -> MutexGuard<'_, HashSet<C::Key>> {
        self.creating.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores that the creation of a resource was accepted, if a list is of use for it.
    pub(super) fn note_creation(&self, kind: C::Kind, key: &C::Key) {
        if kind.rules().shown_whole_in_list() {
            self.creating().insert(key.clone());
        }
    }

    /// The earliest start of a list that may show more of a resource than is known, if this process creates it.
    pub(crate) fn creation_listed_from(&self, key: &C::Key) -> Option<Instant> {
        self.ask(key, |entry| {
            entry.writes.creation()?;
            entry.observation.listed_after()
        })
        .flatten()
    }

    /// Whether somebody may take the resource's body from a list: it is being created, or nothing is known of it.
    pub(crate) fn is_unread(&self, key: &C::Key) -> bool {
        self.ask(key, |entry| entry.writes.creation().is_some()).unwrap_or(true)
    }

    /// How many of the resources that one list with this one would show were put in the `span` before now: about as many
    /// new ones follow within another one.
    pub(crate) fn creations_begun(&self, kind: C::Kind, key: &C::Key, span: Duration, now: Instant) -> usize {
        self.creations(kind, key, |_, began| now.saturating_duration_since(began) <= span)
    }

    /// How many of the resources that one list with this one would show are being created, and are due for a read within
    /// a `span` around now.
    pub(crate) fn creations_due(&self, kind: C::Kind, key: &C::Key, span: Duration, now: Instant) -> usize {
        self.creations(kind, key, |entry, _| {
            entry.observation.overdue(now) <= span && entry.observation.due() <= now + span
        })
    }

    fn creations(&self, kind: C::Kind, key: &C::Key, counts: impl Fn(&CacheEntry<C>, Instant) -> bool) -> usize {
        let Some((_, list)) = list_of::<C>(kind, key) else {
            return 0;
        };
        let entries = self.entries();
        let mut creating = self.creating();
        creating.retain(|key| entries.get(key).is_some_and(|entry| entry.writes.creation().is_some()));
        let entries = creating.iter().filter_map(|key| Some((key, entries.get(key)?)));
        let shown = entries.filter(|(key, entry)| entry.kind == kind && list.shows(key));
        let counted = shown.filter(|(_, entry)| entry.writes.creation().is_some_and(|began| counts(entry, began)));
        counted.count()
    }

    /// Stores that the resource was observed as this list shows it: before a write it is read by itself.
    pub(crate) fn only_listed(&self, kind: C::Kind, key: &C::Key, listed: Listed) {
        let hold = self.hold(kind, key);
        self.edit(key, |entry| entry.observation.note_only_listed(listed, hold));
    }
}
