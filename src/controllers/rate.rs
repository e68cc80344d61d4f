//! How often something may be done for one object: a burst, then at an interval. Whoever changes an object a hundred times a
//! second otherwise makes a hundred reconciles of it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// So many at once.
const BURST: u32 = 20;
/// Then one per interval. Nothing that becomes ready in Azure takes less.
const INTERVAL: Duration = Duration::from_millis(500);

/// The rate of one object.
#[derive(Debug, Default)]
pub struct Rate(
    /// When all that was done would have been done at the interval.
    Option<Instant>,
);

impl Rate {
    /// Counts one more; `Err` is how long it has to wait.
    pub fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let busy = self
            .0
            .map_or(Duration::ZERO, |until| until.saturating_duration_since(now));
        let most = INTERVAL * (BURST - 1);
        if let Some(wait) = busy.checked_sub(most).filter(|wait| !wait.is_zero()) {
            return Err(wait);
        }
        self.0 = Some(now + busy + INTERVAL);
        Ok(())
    }
}

/// The rates of many objects, by UID.
#[derive(Debug, Default)]
pub struct Rates(Mutex<HashMap<String, Rate>>);

impl Rates {
    /// Counts one more for the object with this UID; `Err` is how long it has to wait.
    pub fn take(&self, uid: &str, now: Instant) -> Result<(), Duration> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(uid.to_owned()).or_default().take(now)
    }

    /// The object is gone.
    pub fn forget(&self, uid: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn object_changed_100_times_a_second_has_two_reconciles_a_second() {
        let (mut rate, began) = (Rate::default(), Instant::now());
        let changes = (0..1000).map(|n| began + Duration::from_millis(10) * n);
        let done = changes.filter(|now| rate.take(*now).is_ok()).count();
        assert_eq!(done, 20 + 19);
        let later = began + Duration::from_secs(60);
        assert!((0..BURST).all(|_| rate.take(later).is_ok()));
        assert_eq!(rate.take(later), Err(INTERVAL));
    }
}
