//! Azure's request budgets: which calls have to wait because Azure said so, and what the headers say is left.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use tokio::time::Instant;

use crate::arm::id::SubscriptionId;
use crate::arm::ports::Counters;
use crate::kinds::Kind;

/// A request budget. Azure counts reads, writes and deletes separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Budget {
    /// The budget of GET requests.
    Reads,
    /// The budget of PUT requests.
    Writes,
    /// The budget of DELETE requests.
    Deletes,
}

/// Who counts requests: ARM counts every call, and each service its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Counts {
    /// Azure Resource Manager itself.
    Arm,
    /// The service of this name, as kinds name theirs.
    Service(&'static str),
}

/// The `x-ms-ratelimit-remaining-` headers that are counted, without that prefix.
pub const BUDGETS: [&str; 7] = [
    "subscription-reads",
    "subscription-writes",
    "subscription-deletes",
    "subscription-global-reads",
    "subscription-global-writes",
    "subscription-global-deletes",
    "subscription-resource-requests",
];

/// Knows until when a request budget of a subscription is exhausted.
#[derive(Debug, Default)]
pub struct Throttle {
    until: Mutex<HashMap<(SubscriptionId, Budget, Counts), Instant>>,
}

impl Throttle {
    /// How long calls on this budget have to wait. An earlier call would only prolong the wait.
    pub fn wait(&self, subscription: &SubscriptionId, budget: Budget, kind: Kind, now: Instant) -> Option<Duration> {
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.retain(|_, end| *end > now);
        let ends = [Counts::Arm, Counts::Service(kind.spec().service)];
        let ends = ends.map(|counts| until.get(&(subscription.clone(), budget, counts)).copied());
        ends.into_iter().flatten().max().map(|end| end - now)
    }

    /// Notes that the budget is exhausted for this long, as the one who counts it answered. Of several answers the one
    /// that asks for the latest time counts.
    pub fn used_up(&self, subscription: &SubscriptionId, budget: Budget, counts: Counts, wait: Duration, now: Instant) {
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        let end = until.entry((subscription.clone(), budget, counts)).or_insert(now);
        *end = (*end).max(now + wait);
    }
}

/// Reports to the counters what is left of each budget by the headers of an answer.
pub fn count_budgets(headers: &HeaderMap, counters: &dyn Counters) {
    for budget in BUDGETS {
        let value = headers.get(format!("x-ms-ratelimit-remaining-{budget}"));
        if let Some(remaining) = value.and_then(|v| v.to_str().ok()).and_then(|v| v.parse().ok()) {
            counters.budget(budget, remaining);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn later_answer_makes_no_wait_shorter() {
        let (throttle, one) = (Throttle::default(), SubscriptionId::parse("a").unwrap());
        let now = Instant::now();
        for seconds in [300, 60] {
            throttle.used_up(&one, Budget::Reads, Counts::Arm, Duration::from_secs(seconds), now);
        }
        let wait = throttle.wait(&one, Budget::Reads, Kind::Zone, now);
        assert_eq!(wait, Some(Duration::from_secs(300)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_used_up_budget_holds_its_own_kind_of_call_until_its_time() {
        let (throttle, one, two) = (
            Throttle::default(),
            SubscriptionId::parse("a").unwrap(),
            SubscriptionId::parse("b").unwrap(),
        );
        let now = Instant::now();
        throttle.used_up(&one, Budget::Writes, Counts::Arm, Duration::from_secs(30), now);
        let wait = |of, budget, kind, later| throttle.wait(of, budget, kind, now + Duration::from_secs(later));
        assert_eq!(wait(&one, Budget::Writes, Kind::Zone, 0), Some(Duration::from_secs(30)));
        assert_eq!(wait(&one, Budget::Reads, Kind::Zone, 0), None);
        assert_eq!(wait(&two, Budget::Writes, Kind::Zone, 0), None);
        assert_eq!(wait(&one, Budget::Writes, Kind::Zone, 30), None);
        let private_dns = Counts::Service(Kind::Zone.spec().service);
        throttle.used_up(&two, Budget::Reads, private_dns, Duration::from_secs(30), now);
        assert_eq!(
            wait(&two, Budget::Reads, Kind::Record, 0),
            Some(Duration::from_secs(30))
        );
        assert_eq!(wait(&two, Budget::Reads, Kind::PrivateEndpoint, 0), None);
    }
}
