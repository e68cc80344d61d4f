//! What is in a resource, by the numbers in its body: a number that changes without this process shows that others
//! wrote there.

use tokio::time::Instant;

use super::ObservationCache;
use crate::cloud::{Cloud, Key, ResourceKind};
use crate::resource::Observed;

/// The numbers of what is in a resource, by kind, as its body last showed them.
#[derive(Debug)]
pub(super) struct Inside<K>(Vec<(K, Number)>);

/// How many resources of one kind are in another one.
#[derive(Debug)]
struct Number {
    value: u64,
    /// Since when the body has shown this number.
    since: Instant,
    /// Whether this process has written such a resource since.
    changing: bool,
    /// By how much those writes change the number.
    change: i64,
}

impl<K> Default for Inside<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Copy + PartialEq> Inside<K> {
    /// Stores the numbers. Returns the kinds of which more or less may be there than reads have shown: their number has
    /// changed, is zero, or was not known. A kind without a number keeps its last one.
    fn note(&mut self, numbers: Vec<(K, u64)>, now: Instant) -> Vec<K> {
        numbers
            .into_iter()
            .filter_map(|(kind, value)| self.note_one(kind, value, now).then_some(kind))
            .collect()
    }

    fn note_one(&mut self, kind: K, value: u64, now: Instant) -> bool {
        let known = self.0.iter_mut().find(|(known, _)| *known == kind);
        let Some((_, number)) = known else {
            self.0.push((
                kind,
                Number {
                    value,
                    since: now,
                    changing: false,
                    change: 0,
                },
            ));
            return true;
        };
        // A write of this process that the number does not show yet is taken for one of others: that costs a read.
        let others_wrote = number.value != 0 && number.value.checked_add_signed(number.change) != Some(value);
        if number.changing || number.value != value {
            *number = Number {
                value,
                since: now,
                changing: false,
                change: 0,
            };
        }
        others_wrote || value == 0
    }

    fn of(&self, kind: K) -> Option<&Number> {
        self.0
            .iter()
            .find_map(|(known, number)| (*known == kind).then_some(number))
    }

    /// Whether none of this kind is there.
    fn has_none(&self, kind: K) -> bool {
        self.of(kind).is_some_and(|number| number.value == 0)
    }

    /// Since when a change of the number would show that others write such a resource.
    fn shows_since(&self, kind: K) -> Option<Instant> {
        let number = self.of(kind)?;
        (number.value != 0 && !number.changing).then_some(number.since)
    }

    /// Notes that this process writes a resource of this kind, which changes their number by so much.
    fn note_write(&mut self, kind: K, change: i64) {
        if let Some((_, number)) = self.0.iter_mut().find(|(known, _)| *known == kind) {
            number.changing = true;
            number.change = number.change.saturating_add(change);
        }
    }
}

/// The numbers in the resource's body; none if it has no such, or is not there.
pub(super) fn numbers_inside<C: Cloud>(kind: C::Kind, observed: &Observed<C>) -> Option<Vec<(C::Kind, u64)>> {
    Some(kind.rules().numbers_inside?(observed.found()?))
}

impl<C: Cloud> ObservationCache<C> {
    /// Compares the numbers in the resource's body with those that were known. The resources of a kind of which others may
    /// have added or removed some are due for a read.
    pub(super) fn compare_inside(&self, parent: &C::Key, numbers: Vec<(C::Kind, u64)>, now: Instant) {
        let mut entries = self.entries();
        let Some(entry) = entries.get_mut(parent) else {
            return;
        };
        let questioned = entry.observation.inside.note(numbers, now);
        if questioned.is_empty() {
            return;
        }
        let suspected = entries
            .iter_mut()
            .filter(|(key, entry)| questioned.contains(&entry.kind) && key.is_in(parent));
        for (_, entry) in suspected {
            entry.observation.suspect(now);
        }
    }

    /// Whether the parent's body shows that no resource of this kind is in it.
    pub(crate) fn none_inside(&self, kind: C::Kind, key: &C::Key) -> bool {
        let parent = key.parent();
        parent.is_some_and(|parent| self.holds(&parent, |entry| entry.observation.inside.has_none(kind)))
    }

    /// Since when the parent's number of such resources would show that others write one; none if it would not.
    pub(super) fn shown_by_number_since(&self, kind: C::Kind, key: &C::Key) -> Option<Instant> {
        self.ask(&key.parent()?, |entry| entry.observation.inside.shows_since(kind))
            .flatten()
    }

    /// Notes that this process writes a resource of this kind, which changes their number in the parent by so much.
    pub(super) fn changes_inside(&self, kind: C::Kind, key: &C::Key, change: i64) {
        if let Some(parent) = key.parent() {
            self.edit(&parent, |entry| entry.observation.inside.note_write(kind, change));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn number_that_changes_without_a_write_is_questioned() {
        let (mut inside, now) = (Inside::default(), Instant::now());
        assert_eq!(
            inside.note(vec![('a', 1), ('b', 1)], now),
            ['a', 'b'],
            "not known before"
        );
        assert_eq!(inside.note(vec![('a', 1), ('b', 2)], now), ['b']);
        inside.note_write('b', 1);
        assert_eq!(inside.note(vec![('a', 2), ('b', 3)], now), ['a']);
        inside.note_write('b', 0);
        inside.note_write('b', -1);
        assert_eq!(inside.note(vec![('b', 2)], now), []);
        inside.note_write('b', 1);
        assert_eq!(inside.note(vec![('b', 2)], now), ['b'], "others removed one");
        assert_eq!(inside.note(Vec::new(), now), []);
        assert_eq!(
            inside.note(vec![('a', 3), ('b', 2)], now),
            ['a'],
            "a body without numbers changes nothing"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn number_shows_what_others_write_from_when_it_was_first_shown() {
        let (mut inside, now) = (Inside::default(), Instant::now());
        let later = now + std::time::Duration::from_secs(1);
        inside.note(vec![('a', 1), ('b', 0)], now);
        assert_eq!((inside.shows_since('a'), inside.shows_since('b')), (Some(now), None));
        inside.note(vec![('a', 1)], later);
        assert_eq!(inside.shows_since('a'), Some(now));
        inside.note_write('a', 0);
        assert_eq!(inside.shows_since('a'), None);
        inside.note(vec![('a', 1)], later);
        assert_eq!(inside.shows_since('a'), Some(later));
    }

    #[tokio::test(start_paused = true)]
    async fn none_is_always_questioned_and_stays_known_while_this_process_writes() {
        let (mut inside, now) = (Inside::default(), Instant::now());
        for _ in 0..2 {
            assert_eq!(inside.note(vec![('a', 0)], now), ['a']);
        }
        inside.note_write('a', 1);
        assert!(inside.has_none('a'));
        assert_eq!(inside.note(vec![('a', 1)], now), []);
        assert!(!inside.has_none('a'));
    }
}
