//! Which passes come too early. Events bypass every delay of the work queue, so the delay is kept here.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug)]
struct Pace {
    /// The hash of the fingerprint, which is long.
    fingerprint: u64,
    not_before: Instant,
    failures: u32,
}

/// The pace of every object of one controller, by UID.
#[derive(Debug, Default)]
pub struct Pacer(Mutex<HashMap<String, Pace>>);

fn hash(fingerprint: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    fingerprint.hash(&mut hasher);
    hasher.finish()
}

/// The longest wait after failures in a row.
const MOST: Duration = Duration::from_secs(60);

impl Pacer {
    fn paces(&self) -> MutexGuard<'_, HashMap<String, Pace>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long this pass has to wait still: nothing has changed since the last one, and its time has not come.
    pub fn early(&self, uid: &str, fingerprint: &str, now: Instant) -> Option<Duration> {
        let paces = self.paces();
        let pace = paces.get(uid).filter(|pace| pace.fingerprint == hash(fingerprint))?;
        pace.not_before
            .checked_duration_since(now)
            .filter(|rest| !rest.is_zero())
    }

    /// A pass has ended; the next is due after `wait`, or when the fingerprint changes.
    pub fn ended(&self, uid: &str, fingerprint: &str, wait: Duration, now: Instant) {
        self.paces().insert(
            uid.to_owned(),
            Pace {
                fingerprint: hash(fingerprint),
                not_before: now + wait,
                failures: 0,
            },
        );
    }

    /// A pass has failed; gives how long to wait, longer each time.
    pub fn failed(&self, uid: &str, fingerprint: &str, now: Instant) -> Duration {
        let mut paces = self.paces();
        let failures = paces.get(uid).map_or(0, |pace| pace.failures).saturating_add(1);
        let wait = Duration::from_secs(1_u64 << (failures - 1).min(6)).min(MOST);
        paces.insert(
            uid.to_owned(),
            Pace {
                fingerprint: hash(fingerprint),
                not_before: now + wait,
                failures,
            },
        );
        wait
    }

    /// The object is gone.
    pub fn forget(&self, uid: &str) {
        self.paces().remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_pass_is_early_only_while_nothing_changed() {
        let (pacer, now) = (Pacer::default(), Instant::now());
        pacer.ended("u", "a", Duration::from_secs(10), now);
        assert_eq!(pacer.early("u", "a", now), Some(Duration::from_secs(10)));
        assert_eq!(pacer.early("u", "b", now), None);
        assert_eq!(pacer.early("u", "a", now + Duration::from_secs(10)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_in_a_row_wait_longer_up_to_a_minute() {
        let (pacer, now) = (Pacer::default(), Instant::now());
        let waits: Vec<u64> = (0..9).map(|_| pacer.failed("u", "a", now).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        pacer.ended("u", "a", Duration::ZERO, now);
        assert_eq!(pacer.failed("u", "a", now).as_secs(), 1);
    }
}
