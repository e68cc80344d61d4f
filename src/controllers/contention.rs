//! When to write a condition of ours again that somebody else has overwritten. Pure: the caller passes the time.
//!
//! A writer that sends a list of conditions from before our last write *puts back* an earlier condition of ours and
//! does not mean to: that is answered soon. A writer that sets another status *contradicts*: that is answered once at
//! once, then after at least a minute, doubled each time, so that two writers do not wake each other for ever: four
//! times in ten minutes. Until then our other writes carry the condition as that writer has it, whatever is new about
//! it. The right status with another message is left alone, unless ours names another controller.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::api::prune::read_message;
use crate::api::{ConditionType, Reason};

/// How a stored condition disputes what this process has published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dispute {
    /// It is an earlier condition of ours, to the second of its transition. A writer that sets an equal condition by
    /// itself gives it a time of its own.
    PutBack,
    /// Somebody sets it otherwise, or removes the condition.
    Contradiction,
}

/// How often a dispute is answered.
struct AnswerPace {
    /// How many answers in a row are sent at once. An answer during the other writer's reconcile is lost with its next
    /// write; the answer to its last write stays.
    at_once: u32,
    /// The shortest time between two answers after that; it doubles each time.
    first: Duration,
    /// The longest interval. If there is no dispute for this long after an answer, the row of answers ends.
    most: Duration,
}

impl Dispute {
    fn pace(self) -> AnswerPace {
        match self {
            // HyperShift's control-plane-operator writes its status up to four times in a reconcile.
            Self::PutBack => AnswerPace {
                at_once: 8,
                first: Duration::from_secs(10),
                most: Duration::from_secs(10),
            },
            Self::Contradiction => AnswerPace {
                at_once: 1,
                first: Duration::from_secs(60),
                most: Duration::from_secs(600),
            },
        }
    }
}

/// Answers in a row to one kind of dispute.
#[derive(Debug, Clone, Copy, Default)]
struct Answers {
    count: u32,
    last: Option<Instant>,
}

impl Answers {
    fn add(&mut self, now: Instant) {
        self.count += 1;
        self.last = Some(now);
    }

    /// How long the next answer has to wait.
    fn remaining_wait(self, pace: &AnswerPace, now: Instant) -> Duration {
        let doubled = self.count.checked_sub(pace.at_once);
        let interval = doubled.map_or(Duration::ZERO, |doubled| {
            pace.first.saturating_mul(1 << doubled.min(8)).min(pace.most)
        });
        self.last
            .map_or(Duration::ZERO, |last| (last + interval).saturating_duration_since(now))
    }

    /// Ends the row of answers when ours has not been disputed for long enough.
    fn reset_if_undisputed(&mut self, pace: &AnswerPace, now: Instant) {
        if self.last.is_some_and(|last| now >= last + pace.most) {
            *self = Self::default();
        }
    }
}

/// A condition as this process last published it.
#[derive(Debug, Clone)]
struct PublishedCondition {
    status: String,
    reason: String,
    fingerprint: u64,
    /// The answers by the kind of the dispute.
    answers: [Answers; 2],
}

/// How many earlier conditions of one object are remembered.
const KNOWN: usize = 32;

/// The conditions of one object as this process last published them, by their types.
#[derive(Debug, Clone, Default)]
pub struct PublishedConditions {
    published: HashMap<String, PublishedCondition>,
    /// Hashes of what was published, and of what was stored before that, each with the second of its transition.
    earlier: VecDeque<u64>,
}

/// A hash of a condition, as far as watches keep it; when it last changed does not count.
fn fingerprint(condition: &Condition) -> u64 {
    let mut hasher = DefaultHasher::new();
    let text = [&condition.reason, &condition.message].map(|text| read_message(text));
    (&condition.status, text, condition.observed_generation).hash(&mut hasher);
    hasher.finish()
}

/// A hash of a condition, with the time of its last transition.
fn dated(condition: &Condition) -> u64 {
    let mut hasher = DefaultHasher::new();
    (
        &condition.type_,
        fingerprint(condition),
        condition.last_transition_time.0.as_second(),
    )
        .hash(&mut hasher);
    hasher.finish()
}

fn get<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

impl PublishedConditions {
    /// Whether `own` is to be written over `stored`.
    pub fn to_be_written(&self, stored: &[Condition], own: &[Condition], now: Instant) -> bool {
        own.iter().any(|new| {
            let old = get(stored, &new.type_);
            let published = self.published.get(&new.type_);
            let is_stored = old.is_some_and(|old| fingerprint(old) == fingerprint(new));
            // A change in what we publish is news, whoever wrote last.
            let news = published.is_none_or(|published| published.fingerprint != fingerprint(new));
            let due = news || self.wait(&new.type_, old, now) == Some(Duration::ZERO);
            !is_stored && due && self.unanswered(stored, new, now).is_none()
        })
    }

    /// The conditions that a write of `own` over `stored` sends: all of them, also those that are left as they are.
    pub fn to_write(&self, stored: &[Condition], own: &[Condition], now: Instant) -> Vec<Condition> {
        let carried = own.iter().map(|new| self.unanswered(stored, new, now).unwrap_or(new));
        carried.cloned().collect()
    }

    /// The condition as others wrote it, if their status contradicts ours and may not be answered yet.
    fn unanswered<'a>(&self, stored: &'a [Condition], new: &Condition, now: Instant) -> Option<&'a Condition> {
        let old = get(stored, &new.type_).filter(|old| old.status != new.status)?;
        let published = self.published.get(&new.type_)?;
        let contradicts = self.dispute(&new.type_, Some(old)) == Some(Dispute::Contradiction);
        let waits = !self.remaining_wait(&new.type_, Dispute::Contradiction, now).is_zero();
        (published.status == new.status && contradicts && waits).then_some(old)
    }

    /// Records that `own` was written over `stored`, as far as [`Self::to_write`] has it.
    pub fn written(&mut self, stored: &[Condition], own: &[Condition], now: Instant) {
        for new in own {
            if self.unanswered(stored, new, now).is_some() {
                continue;
            }
            let old = get(stored, &new.type_);
            let before = self.published.get(&new.type_);
            let answered = self.dispute(&new.type_, old).filter(|dispute| {
                before.is_some_and(|published| match dispute {
                    Dispute::PutBack => published.fingerprint == fingerprint(new),
                    Dispute::Contradiction => published.status == new.status,
                })
            });
            if let Some(old) = old.filter(|_| before.is_none() || answered == Some(Dispute::PutBack)) {
                self.remember(old);
            }
            self.remember(new);
            let published = self.set_published(new);
            if let Some(dispute) = answered {
                published.answers[dispute as usize].add(now);
            }
        }
    }

    /// Records that `own` needed no write.
    pub fn unchanged(&mut self, stored: &[Condition], own: &[Condition], now: Instant) {
        for new in own {
            if get(stored, &new.type_).is_none_or(|old| fingerprint(old) != fingerprint(new)) {
                continue;
            }
            self.remember(new);
            let published = self.set_published(new);
            for dispute in [Dispute::PutBack, Dispute::Contradiction] {
                published.answers[dispute as usize].reset_if_undisputed(&dispute.pace(), now);
            }
        }
    }

    /// Which stored conditions among its `own` need a reconcile: those that dispute ours, once they may be answered.
    pub fn heeded(
        &self,
        stored: &[Condition],
        own: impl Iterator<Item = ConditionType>,
        now: Instant,
    ) -> Vec<(&'static str, u64)> {
        let mut heeded = Vec::new();
        for kind in own.map(ConditionType::as_str) {
            let old = get(stored, kind);
            let may_be_answered = self.wait(kind, old, now) == Some(Duration::ZERO);
            if may_be_answered || !self.published.contains_key(kind) {
                heeded.push((kind, old.map_or(0, fingerprint)));
            }
        }
        heeded
    }

    /// How long until the first open dispute may be answered.
    pub fn next_answer(&self, stored: &[Condition], now: Instant) -> Option<Duration> {
        let kinds = self.published.keys();
        let waits = kinds.filter_map(|kind| self.wait(kind, get(stored, kind), now));
        waits.filter(|wait| !wait.is_zero()).min()
    }

    /// Stores what is published now. A dispute of a new status is answered at once again.
    fn set_published(&mut self, new: &Condition) -> &mut PublishedCondition {
        let before = self
            .published
            .get(&new.type_)
            .filter(|published| published.status == new.status);
        let published = PublishedCondition {
            status: new.status.clone(),
            reason: new.reason.clone(),
            fingerprint: fingerprint(new),
            answers: before.map(|published| published.answers).unwrap_or_default(),
        };
        self.published
            .entry(new.type_.clone())
            .insert_entry(published)
            .into_mut()
    }

    fn remember(&mut self, condition: &Condition) {
        let hash = dated(condition);
        self.earlier.retain(|one| *one != hash);
        self.earlier.truncate(KNOWN - 1);
        self.earlier.push_front(hash);
    }

    /// How a stored condition disputes what was published; none if it does not, or if that does not matter.
    fn dispute(&self, kind: &str, stored: Option<&Condition>) -> Option<Dispute> {
        let published = self.published.get(kind)?;
        let Some(old) = stored else {
            return Some(Dispute::Contradiction);
        };
        if fingerprint(old) == published.fingerprint {
            return None;
        }
        if self.earlier.contains(&dated(old)) {
            return Some(Dispute::PutBack);
        }
        let names_another = published.reason == Reason::OtherControllerActive.as_str();
        let otherwise = old.status != published.status || (names_another && old.reason != published.reason);
        otherwise.then_some(Dispute::Contradiction)
    }

    /// How long the answer about a condition has to wait; none if there is nothing to answer.
    fn wait(&self, kind: &str, stored: Option<&Condition>, now: Instant) -> Option<Duration> {
        let dispute = self.dispute(kind, stored)?;
        Some(self.remaining_wait(kind, dispute, now))
    }

    fn remaining_wait(&self, kind: &str, dispute: Dispute, now: Instant) -> Duration {
        let published = self.published.get(kind);
        published.map_or(Duration::ZERO, |published| {
            published.answers[dispute as usize].remaining_wait(&dispute.pace(), now)
        })
    }
}

#[cfg(test)]
mod tests;
