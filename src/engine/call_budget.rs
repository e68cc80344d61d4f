//! The call budget of each resource: how often it may be called, whatever the logic above requests. A resource that is
//! ready, being created or being deleted stays far below it, so an exhausted budget is a defect of this program and not
//! a state of the cloud.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The calls that a resource may get at once: three reconciles, one after the other, each with a read, a second read
/// before a write, the write, and a read after it.
pub const BURST: u32 = 12;

/// The time in which a resource gains one more call once its burst of calls is used up: as often as a service is polled
/// while it changes. It doubles after each exhaustion.
///
/// Rule: D3 in `docs/compatibility.md`.
pub const CALL_INTERVAL: Duration = Duration::from_secs(4);

/// The longest time in which a resource gains one more call. A resource that was called too often must still be created
/// or deleted, while it is read every few minutes as well.
///
/// Rule: D3 in `docs/compatibility.md`.
pub const MAX_CALL_INTERVAL: Duration = Duration::from_secs(60);

/// A refused caller has to wait for this many calls: a read, a second read before a write, and the write. With fewer, a
/// reconcile would read again and again and never write.
const CALLS_TO_WAIT_FOR: f64 = 3.0;

/// After this long without a refused call, a resource gains calls as fast as at first. It is longer than any wait for
/// [`CALLS_TO_WAIT_FOR`].
///
/// Rule: D3 in `docs/compatibility.md`.
const CALM: Duration = Duration::from_secs(300);

/// How many times the budget of a resource that all clusters share is.
const SHARED: u32 = 10;

/// Budgets that are full again are dropped when this many are known.
const SWEEP: usize = 1_024;

/// A call that the budget does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exhausted {
    /// The wait until there are enough calls for a reconcile.
    pub wait: Duration,
    /// Whether the call before was allowed.
    pub is_new: bool,
}

#[derive(Debug)]
struct Bucket {
    /// The calls that are left, as of `at`.
    left: f64,
    at: Instant,
    interval: Duration,
    /// Whether the last call was refused.
    refused: bool,
    /// When a call was last refused.
    refused_at: Option<Instant>,
}

impl Bucket {
    fn refill(&mut self, first: Duration, now: Instant) {
        let gained = now.saturating_duration_since(self.at).as_secs_f64() / self.interval.as_secs_f64();
        self.left = (self.left + gained).min(f64::from(BURST));
        self.at = now;
        let calm = |refused: Instant| now.saturating_duration_since(refused) >= CALM;
        if self.full() || self.refused_at.is_some_and(calm) {
            self.interval = first;
        }
    }

    fn full(&self) -> bool {
        self.left >= f64::from(BURST)
    }
}

/// The call budgets of one process, by the address that is called.
#[derive(Debug)]
pub struct CallBudgets {
    interval: Duration,
    buckets: Mutex<HashMap<String, Bucket>>,
}

impl Default for CallBudgets {
    fn default() -> Self {
        Self {
            interval: CALL_INTERVAL,
            buckets: Mutex::default(),
        }
    }
}

impl CallBudgets {
    /// Budgets that suffice for ready resources that are read every `resync`.
    pub fn for_resync(resync: Duration) -> Self {
        Self {
            interval: CALL_INTERVAL.min(resync / 3).max(Duration::from_millis(1)),
            buckets: Mutex::default(),
        }
    }

    fn buckets(&self) -> MutexGuard<'_, HashMap<String, Bucket>> {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one call from the budget of `address`; `shared`: of a resource that all clusters share.
    ///
    /// # Errors
    /// None is left.
    pub fn take(&self, shared: bool, address: &str, now: Instant) -> Result<(), Exhausted> {
        let first = if shared { self.interval / SHARED } else { self.interval };
        let mut buckets = self.buckets();
        if buckets.len() >= SWEEP && !buckets.contains_key(address) {
            buckets.retain(|_, bucket| {
                bucket.refill(first, now);
                !bucket.full()
            });
        }
        let bucket = buckets.entry(address.to_ascii_lowercase()).or_insert_with(|| Bucket {
            left: f64::from(BURST),
            at: now,
            interval: first,
            refused: false,
            refused_at: None,
        });
        bucket.refill(first, now);
        if bucket.left >= 1.0 {
            bucket.left -= 1.0;
            bucket.refused = false;
            return Ok(());
        }
        bucket.refused_at = Some(now);
        let is_new = !std::mem::replace(&mut bucket.refused, true);
        if is_new {
            bucket.interval = (bucket.interval * 2).min(MAX_CALL_INTERVAL.max(first));
        }
        Err(Exhausted {
            wait: bucket.interval.mul_f64(CALLS_TO_WAIT_FOR - bucket.left),
            is_new,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn calls(budgets: &CallBudgets, shared: bool, from: Instant, for_seconds: u64) -> usize {
        let allowed = |at: &u64| budgets.take(shared, "/x", from + Duration::from_millis(*at)).is_ok();
        (0..for_seconds * 1_000).step_by(10).filter(allowed).count()
    }

    #[tokio::test(start_paused = true)]
    async fn loop_gets_its_burst_and_then_less_and_less() {
        let (budgets, now) = (CallBudgets::default(), Instant::now());
        assert_eq!(calls(&budgets, false, now, 1), 12);
        assert_eq!(calls(&budgets, false, now + Duration::from_secs(1), 60), 3);
        assert_eq!(calls(&budgets, false, now + Duration::from_secs(61), 600), 10);
        assert_eq!(calls(&budgets, false, now + Duration::from_secs(700), 3_600), 60);
    }

    #[tokio::test(start_paused = true)]
    async fn caller_that_waits_as_asked_has_the_calls_of_a_reconcile() {
        let (budgets, mut now) = (CallBudgets::default(), Instant::now());
        let mut waits = Vec::new();
        for _ in 0..7 {
            let mut allowed = 0;
            let wait = loop {
                match budgets.take(false, "/x", now) {
                    Ok(()) => allowed += 1,
                    Err(exhausted) => break exhausted.wait,
                }
            };
            assert!(allowed >= 3, "{allowed}");
            waits.push(wait.as_secs());
            now += wait + Duration::from_millis(1);
        }
        assert_eq!(waits, [24, 47, 95, 179, 179, 179, 179]);
    }

    #[tokio::test(start_paused = true)]
    async fn resource_that_is_called_rarely_again_has_its_first_interval() {
        let (budgets, now) = (CallBudgets::default(), Instant::now());
        calls(&budgets, false, now, 600);
        // Read every few minutes meanwhile.
        for minutes in [15, 20] {
            assert!(
                budgets
                    .take(false, "/x", now + Duration::from_secs(60 * minutes))
                    .is_ok()
            );
        }
        let later = now + Duration::from_secs(25 * 60);
        let allowed = (0..12).filter(|_| budgets.take(false, "/x", later).is_ok());
        assert_eq!(allowed.count(), 12);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_called_every_five_seconds_is_never_refused() {
        let (budgets, now) = (CallBudgets::default(), Instant::now());
        let refused = (0..1_000).filter(|n| {
            let at = now + Duration::from_secs(5 * n);
            budgets.take(false, "/x", at).is_err()
        });
        assert_eq!(refused.count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn what_all_clusters_share_has_ten_times_the_budget() {
        let (budgets, now) = (CallBudgets::default(), Instant::now());
        let refused = (0..1_000).filter(|n| {
            let at = now + Duration::from_millis(400 * n);
            budgets.take(true, "/x", at).is_err()
        });
        assert_eq!(refused.count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn other_resource_is_not_held_up_and_case_makes_none() {
        let (budgets, now) = (CallBudgets::default(), Instant::now());
        while budgets.take(false, "/x", now).is_ok() {}
        assert!(budgets.take(false, "/y", now).is_ok());
        let refused = budgets.take(false, "/X", now).unwrap_err();
        assert!(refused.wait <= 6 * CALL_INTERVAL && !refused.is_new, "{refused:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn full_budgets_are_forgotten() {
        let (budgets, now) = (CallBudgets::default(), Instant::now());
        for n in 0..10_000 {
            budgets
                .take(false, &n.to_string(), now + Duration::from_secs(n))
                .unwrap();
        }
        assert!(budgets.buckets().len() <= SWEEP, "{}", budgets.buckets().len());
    }

    proptest! {
        /// Whatever the times of the calls, no more are allowed than the burst and one for each interval.
        #[test]
        fn never_more_than_the_burst_and_one_each_interval(gaps in prop::collection::vec(0_u64..20_000, 1..400)) {
            let (budgets, began) = (CallBudgets::default(), std::time::Instant::now().into());
            let (mut now, mut allowed) = (began, 0_u32);
            for gap in gaps {
                now += Duration::from_millis(gap);
                allowed += u32::from(budgets.take(false, "/x", now).is_ok());
                let limit = f64::from(BURST) + now.duration_since(began).as_secs_f64() / CALL_INTERVAL.as_secs_f64();
                prop_assert!(f64::from(allowed) <= limit + 1e-6);
            }
        }
    }
}
