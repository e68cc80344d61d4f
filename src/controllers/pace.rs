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
}

/// The pace of every object of one controller, by UID.
#[derive(Debug, Default)]
pub struct Pacer(Mutex<HashMap<String, Pace>>);

fn hash(fingerprint: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    fingerprint.hash(&mut hasher);
    hasher.finish()
}

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

    /// A pass has ended, well or not; the next is due after `wait`, or when the fingerprint changes.
    pub fn ended(&self, uid: &str, fingerprint: &str, wait: Duration, now: Instant) {
        self.paces().insert(
            uid.to_owned(),
            Pace {
                fingerprint: hash(fingerprint),
                not_before: now + wait,
            },
        );
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
}
