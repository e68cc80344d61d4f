//! Which reconciles come too early. Events bypass every delay of the work queue, so the delay is applied here.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::rate::{Limit, Rate, Rates};

/// How often new objects of one namespace may begin to be reconciled: one per interval, after a burst. The burst is as
/// many as a namespace has that are served. A custom resource that comes under a new UID has no pace yet, and whoever
/// creates and deletes them without end creates any number.
///
/// Rule: D5 in `docs/compatibility.md`.
const NEWCOMERS: Limit = Limit {
    burst: 8,
    interval: Duration::from_secs(5),
};

/// What a reconcile depends on, as hashes of texts that are long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fingerprint {
    own: u64,
    inputs: u64,
}

impl Fingerprint {
    /// The fingerprint of an object of which nothing else is read yet.
    pub fn of(object: &str) -> Self {
        Self {
            own: hash(object),
            inputs: 0,
        }
    }

    /// This fingerprint with what was read in addition.
    pub fn with(self, inputs: &str) -> Self {
        Self {
            inputs: hash(inputs),
            ..self
        }
    }

    /// This fingerprint with what was read in addition when the other one was made.
    pub fn with_inputs_of(self, other: Self) -> Self {
        Self {
            inputs: other.inputs,
            ..self
        }
    }
}

/// Why a reconcile begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// It is time; as far as events show, nothing has changed since the last one.
    Time,
    /// The object is new, or it or something that is read for it has changed.
    Change,
}

/// A part of `most` that is the same for the same text.
pub(super) fn spread(text: &str, most: Duration) -> Duration {
    let part = u32::try_from(hash(text) % 1_000).unwrap_or_default();
    most * part / 1_000
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[derive(Debug)]
struct LastReconcile {
    fingerprint: Fingerprint,
    not_before: Instant,
}

impl LastReconcile {
    fn remaining(&self, now: Instant) -> Option<Duration> {
        let remaining = self.not_before.checked_duration_since(now);
        remaining.filter(|remaining| !remaining.is_zero())
    }
}

/// The pace of one object.
#[derive(Debug, Default)]
struct Pace {
    last: Option<LastReconcile>,
    /// Whether something else than the object has changed since the last reconcile began.
    woken: bool,
    rate: Rate,
}

/// The pace of every object of one controller, by UID.
#[derive(Debug)]
pub struct Pacer {
    paces: Mutex<HashMap<String, Pace>>,
    newcomers: Rates,
    expected_names: &'static [&'static str],
}

impl Pacer {
    /// A pacer that knows no object. New objects with one of `expected_names` wait for none of other names.
    pub fn new(expected_names: &'static [&'static str]) -> Self {
        Self {
            paces: Mutex::default(),
            newcomers: Rates::within(NEWCOMERS),
            expected_names,
        }
    }

    fn paces(&self) -> MutexGuard<'_, HashMap<String, Pace>> {
        self.paces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called before anything is read. `cached` is the fingerprint of the object as watched.
    /// A new object comes at the rate of its namespace.
    ///
    /// # Errors
    /// How long to wait.
    pub fn begin(
        &self,
        (namespace, name): (&str, &str),
        uid: &str,
        cached: Fingerprint,
        now: Instant,
    ) -> Result<Cause, Duration> {
        let mut paces = self.paces();
        if !paces.contains_key(uid) {
            let expected = self.expected_names.iter().find(|expected| **expected == name);
            let own = expected.copied().unwrap_or_default();
            self.newcomers.take(&format!("{namespace}/{own}"), now)?;
        }
        let pace = paces.entry(uid.to_owned()).or_default();
        let unchanged = pace.last.as_ref().filter(|last| last.fingerprint.own == cached.own);
        let unchanged = unchanged.filter(|_| !pace.woken);
        if let Some(remaining) = unchanged.and_then(|last| last.remaining(now)) {
            return Err(remaining);
        }
        let cause = unchanged.map_or(Cause::Change, |_| Cause::Time);
        pace.rate.take(now)?;
        pace.woken = false;
        Ok(cause)
    }

    /// Whether something that needs a reconcile has changed since the last one.
    pub fn has_changed(&self, uid: &str, fingerprint: Fingerprint) -> bool {
        let paces = self.paces();
        let last = paces.get(uid).and_then(|pace| pace.last.as_ref());
        last.is_some_and(|last| last.fingerprint != fingerprint)
    }

    /// How long this reconcile has to wait: nothing that was read has changed since the last one, and it is not due
    /// yet.
    pub fn early(&self, uid: &str, fingerprint: Fingerprint, now: Instant) -> Option<Duration> {
        let paces = self.paces();
        let last = paces.get(uid)?.last.as_ref()?;
        (last.fingerprint == fingerprint).then(|| last.remaining(now)).flatten()
    }

    /// Records that a reconcile has ended, well or not; the next is due after `wait`, or when the fingerprint changes.
    /// Returns whether the object was there until then: nothing is kept of one that was removed meanwhile.
    pub fn finish(&self, uid: &str, fingerprint: Fingerprint, wait: Duration, now: Instant) -> bool {
        let mut paces = self.paces();
        let Some(pace) = paces.get_mut(uid) else {
            return false;
        };
        pace.last = Some(LastReconcile {
            fingerprint,
            not_before: now + wait,
        });
        true
    }

    /// Records that something that is read for the object has changed.
    pub fn wake(&self, uid: &str) {
        if let Some(pace) = self.paces().get_mut(uid) {
            pace.woken = true;
        }
    }

    /// Makes the object due: what it waits for has come.
    pub fn due(&self, uid: &str, now: Instant) {
        if let Some(last) = self.paces().get_mut(uid).and_then(|pace| pace.last.as_mut()) {
            last.not_before = now;
        }
    }

    /// Records that something that is read for any object may have changed.
    pub fn wake_all(&self) {
        self.paces().values_mut().for_each(|pace| pace.woken = true);
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, uid: &str) {
        self.paces().remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(10);
    const ROUTER: (&str, &str) = ("n", "private-router");

    fn fingerprint(object: &str, inputs: &str) -> Fingerprint {
        Fingerprint::of(object).with(inputs)
    }

    #[test]
    fn many_are_spread_over_the_whole_time() {
        let parts = (0..1_000).map(|n: u32| spread(&n.to_string(), WAIT).as_secs());
        let seconds: std::collections::BTreeSet<u64> = parts.collect();
        assert_eq!(seconds.into_iter().collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
    }

    #[tokio::test(start_paused = true)]
    async fn a_reconcile_is_early_only_while_nothing_changed() {
        let (pacer, now) = (Pacer::new(&["private-router", "oauth-openshift"]), Instant::now());
        assert_eq!(pacer.begin(ROUTER, "u", Fingerprint::of("a"), now), Ok(Cause::Change));
        assert!(pacer.finish("u", fingerprint("a", "x"), WAIT, now));
        assert_eq!(pacer.early("u", fingerprint("a", "x"), now), Some(WAIT));
        assert_eq!(pacer.early("u", fingerprint("b", "x"), now), None);
        assert_eq!(pacer.early("u", fingerprint("a", "y"), now), None);
        assert_eq!(pacer.early("u", fingerprint("a", "x"), now + WAIT), None);
        let changed = |object: &str| pacer.has_changed("u", fingerprint(object, "x"));
        assert_eq!(["a", "b"].map(changed), [false, true]);
    }

    #[tokio::test(start_paused = true)]
    async fn change_that_nobody_reads_costs_no_read() {
        let (pacer, now) = (Pacer::new(&["private-router", "oauth-openshift"]), Instant::now());
        let begin = |object: &str, now| pacer.begin(ROUTER, "u", Fingerprint::of(object), now);
        assert_eq!(begin("a", now), Ok(Cause::Change), "nothing is known yet");
        pacer.finish("u", fingerprint("a", "x"), WAIT, now);
        assert_eq!(begin("a", now), Err(WAIT));
        assert_eq!(begin("b", now), Ok(Cause::Change));
        pacer.wake("u");
        assert_eq!(begin("a", now), Ok(Cause::Change), "something else has changed");
        assert_eq!(begin("a", now), Err(WAIT), "that was read");
        pacer.wake_all();
        assert_eq!(begin("a", now), Ok(Cause::Change));
        assert_eq!(begin("a", now + WAIT), Ok(Cause::Time), "it is time");
    }

    #[tokio::test(start_paused = true)]
    async fn what_it_waited_for_makes_it_due() {
        let (pacer, now) = (Pacer::new(&["private-router", "oauth-openshift"]), Instant::now());
        assert_eq!(pacer.begin(ROUTER, "u", Fingerprint::of("a"), now), Ok(Cause::Change));
        assert!(pacer.finish("u", fingerprint("a", "x"), WAIT, now));
        pacer.due("u", now);
        assert_eq!(pacer.begin(ROUTER, "u", Fingerprint::of("a"), now), Ok(Cause::Time));
        assert_eq!(pacer.early("u", fingerprint("a", "x"), now), None);
        pacer.due("v", now);
        assert!(!pacer.paces().contains_key("v"));
    }

    #[tokio::test(start_paused = true)]
    async fn object_that_changes_without_end_waits_for_its_turn() {
        let (pacer, now) = (Pacer::new(&["private-router", "oauth-openshift"]), Instant::now());
        let begin = |n: u32| pacer.begin(ROUTER, "u", Fingerprint::of(&n.to_string()), now);
        let waits = (0..100).filter_map(|n| begin(n).err()).count();
        assert_eq!(waits, 80);
        assert_eq!(
            pacer.begin(ROUTER, "v", Fingerprint::of("a"), now),
            Ok(Cause::Change),
            "others do not wait"
        );
        pacer.wake("w");
        assert!(
            !pacer.paces().contains_key("w"),
            "nothing is kept of what has no reconcile"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn objects_made_without_end_begin_at_their_namespaces_rate() {
        let (pacer, began) = (Pacer::new(&["private-router", "oauth-openshift"]), Instant::now());
        let begin = |namespace: &str, name: &str, n: u32| {
            let (uid, now) = (
                format!("{namespace}-{name}-{n}"),
                began + Duration::from_millis(100) * n,
            );
            let begun = pacer.begin((namespace, name), &uid, Fingerprint::of("a"), now);
            if begun.is_ok() {
                pacer.forget(&uid);
            }
            begun
        };
        let junk = (0..600).filter(|n| begin("n", &format!("junk-{n}"), *n).is_ok());
        assert_eq!(junk.count(), 8 + 11, "in a minute");
        assert!(pacer.paces().is_empty(), "what has not begun has no pace");
        assert_eq!(
            begin("n", "private-router", 600),
            Ok(Cause::Change),
            "it waits for none of other names"
        );
        assert_eq!(begin("n", "oauth-openshift", 600), Ok(Cause::Change));
        assert_eq!(
            begin("other", "junk", 600),
            Ok(Cause::Change),
            "a neighbour does not wait"
        );
        let allowed = (600..1200).filter(|n| begin("n", "private-router", *n).is_ok());
        assert_eq!(allowed.count(), 7 + 11, "no name is free of it");
    }

    #[tokio::test(start_paused = true)]
    async fn object_deleted_during_its_reconcile_leaves_no_pace() {
        let (pacer, now) = (Pacer::new(&["private-router", "oauth-openshift"]), Instant::now());
        assert_eq!(pacer.begin(ROUTER, "u", Fingerprint::of("a"), now), Ok(Cause::Change));
        pacer.forget("u");
        assert!(!pacer.finish("u", fingerprint("a", "x"), WAIT, now));
        assert!(pacer.paces().is_empty());
    }
}
