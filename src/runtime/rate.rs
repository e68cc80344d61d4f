//! How often something may be done for one object: a burst, then at an interval. Whoever changes an object a hundred
//! times a second otherwise causes a hundred reconciles of it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How often something may be done.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// How many at once.
    pub burst: u32,
    /// After that, one per interval.
    pub interval: Duration,
}

/// How often one object may be reconciled: once per interval, after a burst. Nothing that becomes ready in Azure takes
/// less than the interval.
///
/// Rule: D5 in `docs/compatibility.md`.
const OF_AN_OBJECT: Limit = Limit {
    burst: 20,
    interval: Duration::from_millis(500),
};

/// Idle rates are dropped each time that there are twice as many as after the last time, and at least as many as this.
const FEW: usize = 64;

/// The rate of one object.
#[derive(Debug, Default)]
pub struct Rate(
    /// When all that was counted would have been done at the interval.
    Option<Instant>,
);

impl Rate {
    /// Counts one more reconcile of an object; `Err` is how long it has to wait.
    pub fn take(&mut self, now: Instant) -> Result<(), Duration> {
        self.take_within(OF_AN_OBJECT, now)
    }

    /// Counts one more within another limit; `Err` is how long it has to wait.
    pub fn take_within(&mut self, limit: Limit, now: Instant) -> Result<(), Duration> {
        let busy = self.busy(now);
        let burst = limit.interval * limit.burst.saturating_sub(1);
        if let Some(wait) = busy.checked_sub(burst).filter(|wait| !wait.is_zero()) {
            return Err(wait);
        }
        self.0 = Some(now + busy + limit.interval);
        Ok(())
    }

    fn busy(&self, now: Instant) -> Duration {
        self.0
            .map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }
}

/// The rates of many objects, by UID or by what else they share.
#[derive(Debug)]
pub struct Rates {
    limit: Limit,
    all: Mutex<RateTable>,
}

#[derive(Debug)]
struct RateTable {
    rates: HashMap<String, Rate>,
    /// How many rates there may be until idle ones are dropped.
    max_len: usize,
}

impl Default for Rates {
    fn default() -> Self {
        Self::within(OF_AN_OBJECT)
    }
}

impl Rates {
    /// Each within this limit.
    pub fn within(limit: Limit) -> Self {
        let table = RateTable {
            rates: HashMap::new(),
            max_len: FEW,
        };
        Self {
            limit,
            all: Mutex::new(table),
        }
    }

    /// Counts one more for this object; `Err` is how long it has to wait.
    pub fn take(&self, uid: &str, now: Instant) -> Result<(), Duration> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.rates.len() >= all.max_len {
            all.rates.retain(|_, rate| !rate.busy(now).is_zero());
            all.max_len = FEW.max(2 * all.rates.len());
        }
        all.rates
            .entry(uid.to_owned())
            .or_default()
            .take_within(self.limit, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn object_changed_100_times_a_second_is_reconciled_twice() {
        let (mut rate, began) = (Rate::default(), Instant::now());
        let changes = (0..1000).map(|n| began + Duration::from_millis(10) * n);
        let allowed = changes.filter(|now| rate.take(*now).is_ok()).count();
        assert_eq!(allowed, 20 + 19);
        let later = began + Duration::from_secs(60);
        assert!((0..20).all(|_| rate.take(later).is_ok()));
        assert_eq!(rate.take(later), Err(OF_AN_OBJECT.interval));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_kept_of_objects_that_have_come_to_rest() {
        let (rates, began) = (Rates::default(), Instant::now());
        for n in 0..10_000_u32 {
            assert_eq!(rates.take(&n.to_string(), began + OF_AN_OBJECT.interval * n), Ok(()));
        }
        assert!(rates.all.lock().unwrap().rates.len() <= 2 * FEW);
    }
}
