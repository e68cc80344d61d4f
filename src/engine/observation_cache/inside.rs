//! What is in a resource, by the numbers in its body: a number that changes without this process shows that others
//! wrote there.

use tokio::time::Instant;

use super::ObservationCache;
use crate::cloud::{Cloud, Key, ResourceKind};
use crate::resource::Observed;

/// The numbers of what is in a resource, by kind, as its body last showed them; none of a kind that this process wrote
/// since.
#[derive(Debug)]
pub(super) struct Inside<K>(Vec<(K, u64)>);

impl<K> Default for Inside<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Copy + PartialEq> Inside<K> {
    /// Stores the numbers. Returns the kinds whose number has changed: of what was not there, nothing can have changed.
    fn note(&mut self, numbers: Vec<(K, u64)>) -> Vec<K> {
        let known = std::mem::replace(&mut self.0, numbers);
        let has_changed = |(kind, number): &&(K, u64)| {
            let mut last = known.iter().filter(|(known, last)| known == kind && *last != 0);
            last.any(|(_, last)| last != number)
        };
        self.0.iter().filter(has_changed).map(|(kind, _)| *kind).collect()
    }

    /// Whether none of this kind is there.
    fn has_none(&self, kind: K) -> bool {
        self.0.contains(&(kind, 0))
    }

    /// Forgets the number of this kind. That there were none stays known.
    fn forget(&mut self, kind: K) {
        self.0.retain(|(known, last)| *known != kind || *last == 0);
    }
}

impl<C: Cloud> ObservationCache<C> {
    /// Compares the numbers in the resource's body with those that were known. The resources of a kind whose number has
    /// changed are due for a read.
    pub(super) fn compare_inside(&self, kind: C::Kind, parent: &C::Key, observed: &Observed<C>, now: Instant) {
        let numbers = kind.rules().numbers_inside.zip(observed.found());
        let Some(numbers) = numbers.map(|(numbers, body)| numbers(body)) else {
            return;
        };
        let mut entries = self.entries();
        let Some(entry) = entries.get_mut(parent) else {
            return;
        };
        let changed = entry.observation.inside.note(numbers);
        if changed.is_empty() {
            return;
        }
        let suspected = entries
            .iter_mut()
            .filter(|(key, entry)| changed.contains(&entry.kind) && key.is_in(parent));
        for (_, entry) in suspected {
            entry.observation.suspect(now);
        }
    }

    /// Whether the parent's body shows that no resource of this kind is in it.
    pub(crate) fn none_inside(&self, kind: C::Kind, key: &C::Key) -> bool {
        let parent = key.parent();
        parent.is_some_and(|parent| self.holds(&parent, |entry| entry.observation.inside.has_none(kind)))
    }

    /// Notes that this process writes a resource of this kind, so that its number in the parent may change.
    pub(super) fn changes_inside(&self, kind: C::Kind, key: &C::Key) {
        if let Some(parent) = key.parent() {
            self.edit(&parent, |entry| entry.observation.inside.forget(kind));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_has_changed_if_its_number_was_known_and_is_another() {
        let mut inside = Inside::default();
        assert_eq!(inside.note(vec![('a', 1), ('b', 1)]), []);
        assert_eq!(inside.note(vec![('a', 1), ('b', 2)]), ['b']);
        inside.forget('b');
        assert_eq!(inside.note(vec![('a', 2), ('b', 3)]), ['a']);
    }

    #[test]
    fn what_was_not_there_has_not_changed() {
        let mut inside = Inside::default();
        inside.note(vec![('a', 0)]);
        inside.forget('a');
        assert!(inside.has_none('a'));
        assert_eq!(inside.note(vec![('a', 1)]), []);
        assert!(!inside.has_none('a'));
    }
}
