//! AWS's request budgets, as far as they are documented: a call for which nothing is left is not sent. It gets a turn, so
//! that of many calls each comes back when there is something left for it.
//!
//! Others in the account draw on the same budgets: what AWS refuses even so is held back by `throttle`.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hyperlink_engine::urgency::Urgency;
use tokio::time::Instant;

use crate::api::action::{Action, Verb};
use crate::api::throttle::Bucket;
use crate::endpoints::Service;

/// A call that does not come back within this long after its turn loses it.
const TURN_KEPT_FOR: Duration = Duration::from_secs(30);

/// The longest that a call is told to wait, however many wait before it. Those of them that are given up do not come
/// back, and no longer than this and [`TURN_KEPT_FOR`] do they hold up others.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Budgets of which nothing was used are forgotten when this many are known.
const SWEEP: usize = 1_024;

/// What is granted: so many calls at once, and so many a second.
///
/// Source: <https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html>,
/// <https://docs.aws.amazon.com/elasticloadbalancing/latest/userguide/api-throttling.html>,
/// <https://docs.aws.amazon.com/Route53/latest/DeveloperGuide/DNSLimitations.html>.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Grant {
    burst: f64,
    per_second: f64,
}

impl Grant {
    fn of(action: Action) -> Self {
        let (burst, per_second) = match (action, action.service(), action.verb()) {
            (Action::CreateVpcEndpoint, ..) => (4.0, 0.3),
            (_, Service::Ec2, Verb::Read) => (100.0, 20.0),
            (_, Service::Ec2, _) => (50.0, 5.0),
            // Five a second together: writes that wait hold up no reads.
            (_, Service::Route53, Verb::Read) => (3.0, 3.0),
            (_, Service::Route53, _) => (2.0, 2.0),
            _ => (40.0, 10.0),
        };
        Self { burst, per_second }
    }
}

/// The calls that one budget allows.
#[derive(Debug)]
struct Budget {
    grant: Grant,
    /// The calls that are left, as of `at`.
    left: f64,
    at: Instant,
    /// The calls that wait, those for which somebody waits and the others, in their order, and when each one comes back.
    waiting: [VecDeque<(u64, Instant)>; 2],
}

impl Budget {
    fn new(grant: Grant, now: Instant) -> Self {
        Self {
            grant,
            left: grant.burst,
            at: now,
            waiting: Default::default(),
        }
    }

    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.left = (self.left + passed * self.grant.per_second).min(self.grant.burst);
        self.at = now;
        for waiting in &mut self.waiting {
            waiting.retain(|(_, turn)| *turn + TURN_KEPT_FOR > now);
        }
    }

    /// After how long the call has to come back; none if it may be sent, which it is then counted as. What waits before it
    /// comes first. A call for which nobody waits comes after all others, and leaves half of the budget.
    fn take(&mut self, call: u64, urgency: Urgency, now: Instant) -> Option<Duration> {
        self.refill(now);
        let [awaited, routine] = &mut self.waiting;
        let (line, before, kept) = match urgency.is_awaited() {
            true => (awaited, 0, 0.0),
            false => (routine, awaited.len(), (self.grant.burst / 2.0).floor()),
        };
        let known = line.iter().position(|(waiting, _)| *waiting == call);
        #[expect(clippy::cast_precision_loss, reason = "so many calls never wait")]
        let ahead = (before + known.unwrap_or(line.len())) as f64;
        let missing = 1.0 + kept + ahead - self.left;
        // Refills are not exact.
        if missing <= 1e-6 {
            known.map(|position| line.remove(position));
            self.left -= 1.0;
            return None;
        }
        let wait = Duration::from_secs_f64(missing / self.grant.per_second).min(LONGEST_WAIT);
        match known {
            Some(position) => line[position].1 = now + wait,
            None => line.push_back((call, now + wait)),
        }
        Some(wait)
    }

    fn is_unused(&self) -> bool {
        self.left >= self.grant.burst && self.waiting.iter().all(VecDeque::is_empty)
    }
}

/// The budgets of one process. All identities share them.
#[derive(Debug, Default)]
pub(crate) struct Budgets(Mutex<HashMap<(Bucket, bool), Budget>>);

impl Budgets {
    /// After how long a call has to come back; none if it may be sent, which it is then counted as. `call` tells it from
    /// other ones.
    pub(crate) fn take(
        &self,
        bucket: &Bucket,
        action: Action,
        call: &impl Hash,
        urgency: Urgency,
        now: Instant,
    ) -> Option<Duration> {
        let mut hasher = DefaultHasher::new();
        call.hash(&mut hasher);
        let mut budgets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (bucket.clone(), action.verb() == Verb::Read);
        if budgets.len() >= SWEEP && !budgets.contains_key(&key) {
            budgets.retain(|_, budget| {
                budget.refill(now);
                !budget.is_unused()
            });
        }
        let budget = budgets
            .entry(key)
            .or_insert_with(|| Budget::new(Grant::of(action), now));
        budget.take(hasher.finish(), urgency, now)
    }
}

#[cfg(test)]
mod tests;
