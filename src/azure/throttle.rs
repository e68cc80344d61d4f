//! Azure's request budgets: which calls have to wait because Azure said so, and what the headers say is left.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use tokio::time::Instant;

use super::id::SubscriptionId;
use super::ports::Counters;

/// Azure counts reads, writes and deletes by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Budget {
    /// GET.
    Reads,
    /// PUT.
    Writes,
    /// DELETE.
    Deletes,
}

/// `x-ms-ratelimit-remaining-` headers that are counted, without that prefix.
const HEADERS: [&str; 7] = [
    "subscription-reads",
    "subscription-writes",
    "subscription-deletes",
    "subscription-global-reads",
    "subscription-global-writes",
    "subscription-global-deletes",
    "subscription-resource-requests",
];

/// Remembers until when a budget of a subscription is used up.
#[derive(Debug, Default)]
pub struct Throttle {
    until: Mutex<HashMap<(SubscriptionId, Budget), Instant>>,
}

impl Throttle {
    /// How long calls on this budget have to wait; asking Azure earlier would only prolong it.
    pub fn wait(&self, subscription: &SubscriptionId, budget: Budget, now: Instant) -> Option<Duration> {
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.retain(|_, end| *end > now);
        until.get(&(subscription.clone(), budget)).map(|end| *end - now)
    }

    /// Azure answered that the budget is used up for this long.
    pub fn used_up(&self, subscription: &SubscriptionId, budget: Budget, wait: Duration, now: Instant) {
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.insert((subscription.clone(), budget), now + wait);
    }
}

/// Passes on what the headers of an answer say is left.
pub fn count_budgets(headers: &HeaderMap, counters: &dyn Counters) {
    for budget in HEADERS {
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
    async fn a_used_up_budget_holds_its_own_kind_of_call_until_its_time() {
        let (throttle, one, two) = (
            Throttle::default(),
            SubscriptionId::parse("a").unwrap(),
            SubscriptionId::parse("b").unwrap(),
        );
        let now = Instant::now();
        throttle.used_up(&one, Budget::Writes, Duration::from_secs(30), now);
        assert_eq!(throttle.wait(&one, Budget::Writes, now), Some(Duration::from_secs(30)));
        assert_eq!(throttle.wait(&one, Budget::Reads, now), None);
        assert_eq!(throttle.wait(&two, Budget::Writes, now), None);
        assert_eq!(throttle.wait(&one, Budget::Writes, now + Duration::from_secs(30)), None);
    }
}
