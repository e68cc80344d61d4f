//! The share of a request budget that calls may use for which nobody waits: half of it.

use std::time::Duration;

use tokio::time::Instant;

use super::Budget;

/// How long the most that was ever left of a budget counts as what Azure grants.
const LEARNED_FOR: Duration = Duration::from_secs(600);

/// The longest that a call waits for its turn in a share of which nothing is left; then it asks again.
const LONGEST_TURN: Duration = Duration::from_secs(300);

/// Azure is not taken to grant less than this part of what it documents.
const LEAST: f64 = 50.0;

/// What Azure grants: so many requests at once, and so many a second.
///
/// Source: <https://learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling>.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Grant {
    burst: f64,
    per_second: f64,
}

impl Grant {
    /// Of ARM, for a subscription and an identity.
    pub(super) fn of_arm(budget: Budget) -> Self {
        match budget {
            Budget::Reads => Self {
                burst: 250.0,
                per_second: 25.0,
            },
            Budget::Writes | Budget::Deletes => Self {
                burst: 200.0,
                per_second: 10.0,
            },
        }
    }

    /// Of a service that counts so many requests in five minutes.
    pub(super) fn of_five_minutes(requests: u32) -> Self {
        let burst = f64::from(requests);
        Self {
            burst,
            per_second: burst / 300.0,
        }
    }
}

/// What is left of the share.
#[derive(Debug)]
pub(super) struct Share {
    grant: Grant,
    left: f64,
    at: Instant,
    /// The most that was left lately, and when: Azure may grant less than it documents.
    most: Option<(f64, Instant)>,
    /// The time that the next call gets that has to wait.
    turn: Instant,
}

impl Share {
    pub(super) fn new(grant: Grant, now: Instant) -> Self {
        Self {
            grant,
            left: grant.burst / 2.0,
            at: now,
            most: None,
            turn: now,
        }
    }

    /// What Azure grants, as far as that was noted.
    fn burst(&self) -> f64 {
        // One answer that nothing is left says nothing about what Azure grants.
        let least = self.grant.burst / LEAST;
        let noted = self
            .most
            .filter(|(_, at)| self.at.saturating_duration_since(*at) < LEARNED_FOR);
        noted.map_or(self.grant.burst, |(most, _)| most.clamp(least, self.grant.burst))
    }

    fn per_second(&self) -> f64 {
        self.grant.per_second * self.burst() / self.grant.burst / 2.0
    }

    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = now;
        self.left = (self.left + passed * self.per_second()).min((self.burst() / 2.0).max(1.0));
    }

    /// How long a call has to wait; none if there is something left.
    pub(super) fn wait(&mut self, now: Instant) -> Option<Duration> {
        self.refill(now);
        if self.left >= 1.0 {
            return None;
        }
        let each = Duration::try_from_secs_f64(1.0 / self.per_second()).unwrap_or(LONGEST_TURN);
        self.turn = (self.turn.max(now) + each).min(now + LONGEST_TURN);
        Some(self.turn - now)
    }

    pub(super) fn take(&mut self) {
        self.left -= 1.0;
    }

    /// Notes what is left of the whole budget. The other half is not for this share.
    pub(super) fn note_left(&mut self, left: u64, now: Instant) {
        #[expect(clippy::cast_precision_loss, reason = "Azure's budgets are small")]
        let left = left as f64;
        let most = self
            .most
            .filter(|(most, at)| *most > left + 1.0 && now.saturating_duration_since(*at) < LEARNED_FOR);
        self.most = most.or(Some((left + 1.0, now)));
        self.refill(now);
        self.turn = now;
        self.left = self.left.min((left - self.burst() / 2.0).max(0.0));
    }
}
