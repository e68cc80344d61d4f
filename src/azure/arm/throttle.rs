//! Azure's request budgets: which calls have to wait, because Azure said so, or because what is left of a budget is kept
//! for calls that somebody waits for.

mod share;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use hyperlink_engine::urgency::Urgency;
use tokio::time::Instant;

use self::share::{Grant, Share};
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

/// How long it is remembered that a subscription was called.
const REMEMBERED: Duration = Duration::from_secs(600);

/// What a call draws on.
#[derive(Debug, Clone, Copy)]
pub struct Draw<'a> {
    /// The subscription of the resource.
    pub subscription: &'a SubscriptionId,
    /// What the call counts as.
    pub budget: Budget,
    /// The kind of the resource.
    pub kind: Kind,
    /// Whether somebody waits for the call.
    pub urgency: Urgency,
}

impl Draw<'_> {
    fn keys(&self) -> [Key; 2] {
        [Counts::Arm, Counts::Service(self.kind.spec().service)].map(|counts| self.key(counts))
    }

    fn key(&self, counts: Counts) -> Key {
        (self.subscription.clone(), self.budget, counts)
    }

    /// What Azure is known to grant.
    fn grant(&self, counts: Counts) -> Option<Grant> {
        match counts {
            Counts::Arm => Some(Grant::of_arm(self.budget)),
            Counts::Service(_) if self.budget == Budget::Reads => {
                self.kind.spec().reads_in_5_minutes.map(Grant::of_five_minutes)
            }
            Counts::Service(_) => None,
        }
    }
}

type Key = (SubscriptionId, Budget, Counts);

/// What is known of one budget.
#[derive(Debug)]
struct State {
    /// Until when it is exhausted, as Azure said.
    until: Instant,
    /// The times that the next calls get that have to wait, those for which somebody waits and the others: each gets a
    /// later one, so that they do not come back together.
    turns: [Instant; 2],
    share: Option<Share>,
    used: Instant,
}

/// The time between two calls that come back when an exhausted budget opens again.
const GAP: Duration = Duration::from_millis(100);

/// How long after an exhausted budget opens again the last of the calls comes back that wait for it.
const LAST_TURN: Duration = Duration::from_secs(60);

impl State {
    fn new(grant: Option<Grant>, now: Instant) -> Self {
        Self {
            until: now,
            turns: [now; 2],
            share: grant.map(|grant| Share::new(grant, now)),
            used: now,
        }
    }

    /// How long a call has to wait because Azure said so.
    fn wait(&mut self, urgency: Urgency, now: Instant) -> Option<Duration> {
        if self.until <= now {
            return None;
        }
        let next = &mut self.turns[usize::from(!urgency.is_awaited())];
        let turn = (*next).clamp(self.until, self.until + LAST_TURN);
        *next = turn + GAP;
        Some(turn - now)
    }
}

/// Knows what is left of the request budgets of subscriptions.
#[derive(Debug, Default)]
pub struct Throttle {
    states: Mutex<HashMap<Key, State>>,
    cleaned: Mutex<Option<Instant>>,
}

impl Throttle {
    fn states(&self) -> MutexGuard<'_, HashMap<Key, State>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long a call has to wait; none if it may be sent, which it is then counted as. An earlier call on an exhausted
    /// budget would only prolong the wait.
    pub fn wait(&self, draw: &Draw<'_>, now: Instant) -> Option<Duration> {
        self.clean(now);
        let mut states = self.states();
        let keys = draw.keys();
        let exhausted = keys
            .iter()
            .filter_map(|key| states.get_mut(key)?.wait(draw.urgency, now))
            .max();
        if exhausted.is_some() || draw.urgency.is_awaited() {
            return exhausted;
        }
        let mut shares = Vec::new();
        for key in keys {
            let grant = draw.grant(key.2);
            let state = states.entry(key.clone()).or_insert_with(|| State::new(grant, now));
            state.used = now;
            if let Some(wait) = state.share.as_mut().and_then(|share| share.wait(now)) {
                return Some(wait);
            }
            shares.push(key);
        }
        for key in shares {
            if let Some(share) = states.get_mut(&key).and_then(|state| state.share.as_mut()) {
                share.take();
            }
        }
        None
    }

    /// Notes that the budget is exhausted for this long, as the one who counts it answered. Of several answers the one
    /// that asks for the latest time counts.
    pub fn note_exhausted(&self, draw: &Draw<'_>, counts: Counts, wait: Duration, now: Instant) {
        let mut states = self.states();
        let state = states
            .entry(draw.key(counts))
            .or_insert_with(|| State::new(draw.grant(counts), now));
        state.until = state.until.max(now + wait);
        state.used = state.until;
    }

    /// Notes what is left of each budget by the headers of an answer, and reports it to the counters.
    pub fn note_left(&self, draw: &Draw<'_>, headers: &HeaderMap, counters: &dyn Counters, now: Instant) {
        for budget in BUDGETS {
            let value = headers.get(format!("x-ms-ratelimit-remaining-{budget}"));
            let Some(left) = value.and_then(|v| v.to_str().ok()).and_then(|v| v.parse().ok()) else {
                continue;
            };
            counters.budget(budget, left);
            let counts = match (budget, draw.budget) {
                ("subscription-reads", Budget::Reads)
                | ("subscription-writes", Budget::Writes)
                | ("subscription-deletes", Budget::Deletes) => Counts::Arm,
                ("subscription-resource-requests", _) => Counts::Service(draw.kind.spec().service),
                _ => continue,
            };
            let Some(grant) = draw.grant(counts) else { continue };
            let mut states = self.states();
            let state = states
                .entry(draw.key(counts))
                .or_insert_with(|| State::new(Some(grant), now));
            state.used = state.used.max(now);
            if let Some(share) = &mut state.share {
                share.note_left(left, now);
            }
        }
    }

    /// Forgets subscriptions that were not called lately.
    fn clean(&self, now: Instant) {
        let mut cleaned = self.cleaned.lock().unwrap_or_else(PoisonError::into_inner);
        if cleaned.is_some_and(|last| now.saturating_duration_since(last) < REMEMBERED) {
            return;
        }
        *cleaned = Some(now);
        self.states()
            .retain(|_, state| now.saturating_duration_since(state.used) < REMEMBERED);
    }
}

#[cfg(test)]
mod tests;
