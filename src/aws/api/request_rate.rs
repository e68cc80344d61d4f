//! How many requests a second this process sends to Route 53, which allows an account five.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::api::throttle::Bucket;

/// How many requests a second Route 53 allows an account.
///
/// Source: <https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/DNSLimitations.html>
pub const ROUTE53_REQUESTS_PER_SECOND: usize = 5;

/// The time over which requests are counted.
const OVER: Duration = Duration::from_secs(60);

/// When requests were sent, by account: no more than the budgets allow in [`OVER`].
#[derive(Debug, Default)]
pub(crate) struct RequestRate(Mutex<HashMap<Bucket, VecDeque<Instant>>>);

impl RequestRate {
    fn recent(&self, now: Instant) -> MutexGuard<'_, HashMap<Bucket, VecDeque<Instant>>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, sent| {
            sent.retain(|at| now.saturating_duration_since(*at) < OVER);
            !sent.is_empty()
        });
        all
    }

    /// Notes that a request is sent.
    pub(crate) fn note(&self, bucket: &Bucket, now: Instant) {
        self.recent(now).entry(bucket.clone()).or_default().push_back(now);
    }

    /// The requests a second in the account that gets most.
    pub(crate) fn most(&self, now: Instant) -> f64 {
        let most = self.recent(now).values().map(VecDeque::len).max().unwrap_or_default();
        #[expect(clippy::cast_precision_loss, reason = "so many are never sent")]
        let most = most as f64;
        most / OVER.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::action::Action;

    #[tokio::test(start_paused = true)]
    async fn requests_of_the_busiest_account_are_counted_for_a_minute() {
        let (rate, now) = (RequestRate::default(), Instant::now());
        let of = |account| Bucket::of(account, "us-east-1", Action::ListHostedZones);
        for second in 0..60 {
            rate.note(&of("1"), now + Duration::from_secs(second));
        }
        rate.note(&of("2"), now + Duration::from_secs(59));
        let at = |second| (rate.most(now + Duration::from_secs(second)) * 60.0).round();
        assert_eq!([at(59), at(89), at(119)].map(|count: f64| count as u32), [60, 30, 0]);
    }
}
