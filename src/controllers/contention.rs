//! When to write a condition of ours that somebody else has written over. Pure: the caller brings the time.
//!
//! Who writes a list of conditions that was read before we spoke *puts back* what stood then, and means nothing by it: that is
//! answered soon. Who says another status *contradicts*: that is answered once at once, then after a minute at least, doubled
//! each time, so that two writers do not wake each other for ever: four times in ten minutes. Meanwhile what is written besides
//! carries the condition as they say it, whatever is news about it. Same status in other words is left alone, unless ours names
//! another controller.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::api::prune::read_message;
use crate::api::{ConditionType, Reason, Role};

/// How what is stored goes against what this process has stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dispute {
    /// It is an earlier statement of ours, to the second of its transition. Who says the same anew gives it a time of its own.
    PutBack,
    /// Somebody says otherwise, or drops the condition.
    Contradiction,
}

/// How often a dispute is answered.
struct Pace {
    /// So many times in a row at once. An answer that lands within a pass of the other writer's is lost with its next write;
    /// the one to its last write stays.
    at_once: u32,
    /// Between two answers after that: at least this long, doubled each time.
    first: Duration,
    /// The longest that the interval gets. Not disputed for this long after an answer, ours stands.
    most: Duration,
}

impl Dispute {
    fn pace(self) -> Pace {
        match self {
            // HyperShift's control-plane-operator writes its status up to four times in a pass.
            Self::PutBack => Pace {
                at_once: 8,
                first: Duration::from_secs(10),
                most: Duration::from_secs(10),
            },
            Self::Contradiction => Pace {
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
        (self.count, self.last) = (self.count + 1, Some(now));
    }

    /// How long the next one has to wait.
    fn rest(self, pace: &Pace, now: Instant) -> Duration {
        let doubled = self.count.checked_sub(pace.at_once);
        let interval = doubled.map_or(Duration::ZERO, |doubled| {
            pace.first.saturating_mul(1 << doubled.min(8)).min(pace.most)
        });
        self.last
            .map_or(Duration::ZERO, |last| (last + interval).saturating_duration_since(now))
    }

    /// Ours stands: after a while the row is over.
    fn stood(&mut self, pace: &Pace, now: Instant) {
        if self.last.is_some_and(|last| now >= last + pace.most) {
            *self = Self::default();
        }
    }
}

/// A condition as this process last stated it.
#[derive(Debug, Clone)]
struct PublishedCondition {
    status: String,
    reason: String,
    statement: u64,
    /// By the kind of the dispute.
    answers: [Answers; 2],
}

/// So many earlier statements of one object are known again.
const KNOWN: usize = 32;

/// The conditions of one object as this process last stated them, by their types.
#[derive(Debug, Clone, Default)]
pub struct PublishedConditions {
    said: HashMap<String, PublishedCondition>,
    /// What was stated, and what stood before the first statement, each with the second of its transition.
    earlier: VecDeque<u64>,
}

/// What a condition says, as far as watches keep it; when it last changed does not count.
fn statement(said: &Condition) -> u64 {
    let mut hasher = DefaultHasher::new();
    let text = [&said.reason, &said.message].map(|text| read_message(text));
    (&said.status, text, said.observed_generation).hash(&mut hasher);
    hasher.finish()
}

/// What a condition says, and since when.
fn dated(said: &Condition) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&said.type_, statement(said), said.last_transition_time.0.as_second()).hash(&mut hasher);
    hasher.finish()
}

fn get<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

impl PublishedConditions {
    /// Whether `own` is to be written, where `stored` is what is there.
    pub fn to_be_written(&self, stored: &[Condition], own: &[Condition], now: Instant) -> bool {
        own.iter().any(|new| {
            let (old, said) = (get(stored, &new.type_), self.said.get(&new.type_));
            let stands = old.is_some_and(|old| statement(old) == statement(new));
            // What has become of the object is news, whoever wrote last.
            let news = said.is_none_or(|said| said.statement != statement(new));
            let due = news || self.wait(&new.type_, old, now) == Some(Duration::ZERO);
            !stands && due && self.left(stored, new, now).is_none()
        })
    }

    /// What a write of `own` over `stored` carries: it has all conditions in it, also those that are left as they are.
    pub fn to_write(&self, stored: &[Condition], own: &[Condition], now: Instant) -> Vec<Condition> {
        let carried = own.iter().map(|new| self.left(stored, new, now).unwrap_or(new));
        carried.cloned().collect()
    }

    /// The condition as others say it, if their status contradicts ours and may not be answered yet.
    fn left<'a>(&self, stored: &'a [Condition], new: &Condition, now: Instant) -> Option<&'a Condition> {
        let old = get(stored, &new.type_).filter(|old| old.status != new.status)?;
        let said = self.said.get(&new.type_)?;
        let contradicts = self.dispute(&new.type_, Some(old)) == Some(Dispute::Contradiction);
        let waits = !self.rest(&new.type_, Dispute::Contradiction, now).is_zero();
        (said.status == new.status && contradicts && waits).then_some(old)
    }

    /// `own` has been written over `stored`, as far as [`Self::to_write`] has it.
    pub fn written(&mut self, stored: &[Condition], own: &[Condition], now: Instant) {
        for new in own {
            if self.left(stored, new, now).is_some() {
                continue;
            }
            let old = get(stored, &new.type_);
            let before = self.said.get(&new.type_);
            let answered = self.dispute(&new.type_, old).filter(|dispute| {
                before.is_some_and(|said| match dispute {
                    Dispute::PutBack => said.statement == statement(new),
                    Dispute::Contradiction => said.status == new.status,
                })
            });
            if let Some(old) = old.filter(|_| before.is_none() || answered == Some(Dispute::PutBack)) {
                self.remember(old);
            }
            self.remember(new);
            let said = self.state(new);
            if let Some(dispute) = answered {
                said.answers[dispute as usize].add(now);
            }
        }
    }

    /// `own` needed no writing.
    pub fn stood(&mut self, stored: &[Condition], own: &[Condition], now: Instant) {
        for new in own {
            if get(stored, &new.type_).is_none_or(|old| statement(old) != statement(new)) {
                continue;
            }
            self.remember(new);
            let said = self.state(new);
            for dispute in [Dispute::PutBack, Dispute::Contradiction] {
                said.answers[dispute as usize].stood(&dispute.pace(), now);
            }
        }
    }

    /// What of the stored conditions of `role` is worth a pass: what goes against ours, once it may be answered.
    pub fn heeded(&self, stored: &[Condition], role: Role, now: Instant) -> Vec<(&'static str, u64)> {
        let may_be_answered = |kind: &str| self.wait(kind, get(stored, kind), now) == Some(Duration::ZERO);
        let worth = |kind: &str| !self.said.contains_key(kind) || may_be_answered(kind);
        let of_role = ConditionType::owned_by(role).map(ConditionType::as_str);
        let heeded = of_role.filter(|kind| worth(kind));
        heeded
            .map(|kind| (kind, get(stored, kind).map_or(0, statement)))
            .collect()
    }

    /// When a dispute that stands may be answered.
    pub fn next_answer(&self, stored: &[Condition], now: Instant) -> Option<Duration> {
        let kinds = self.said.keys();
        let waits = kinds.filter_map(|kind| self.wait(kind, get(stored, kind), now));
        waits.filter(|wait| !wait.is_zero()).min()
    }

    /// What is stated now. Another status is defended at once again.
    fn state(&mut self, new: &Condition) -> &mut PublishedCondition {
        let before = self.said.get(&new.type_).filter(|said| said.status == new.status);
        let said = PublishedCondition {
            status: new.status.clone(),
            reason: new.reason.clone(),
            statement: statement(new),
            answers: before.map(|said| said.answers).unwrap_or_default(),
        };
        self.said.entry(new.type_.clone()).insert_entry(said).into_mut()
    }

    fn remember(&mut self, said: &Condition) {
        let said = dated(said);
        self.earlier.retain(|one| *one != said);
        self.earlier.truncate(KNOWN - 1);
        self.earlier.push_front(said);
    }

    /// How what is stored of a condition goes against what was stated; none if it does not, so that it matters.
    fn dispute(&self, kind: &str, stored: Option<&Condition>) -> Option<Dispute> {
        let said = self.said.get(kind)?;
        let Some(old) = stored else {
            return Some(Dispute::Contradiction);
        };
        if statement(old) == said.statement {
            return None;
        }
        if self.earlier.contains(&dated(old)) {
            return Some(Dispute::PutBack);
        }
        let names_another = said.reason == Reason::OtherControllerActive.as_str();
        let otherwise = old.status != said.status || (names_another && old.reason != said.reason);
        otherwise.then_some(Dispute::Contradiction)
    }

    /// How long the answer about a condition has to wait; none if there is nothing to answer.
    fn wait(&self, kind: &str, stored: Option<&Condition>, now: Instant) -> Option<Duration> {
        let dispute = self.dispute(kind, stored)?;
        Some(self.rest(kind, dispute, now))
    }

    fn rest(&self, kind: &str, dispute: Dispute, now: Instant) -> Duration {
        let said = self.said.get(kind);
        said.map_or(Duration::ZERO, |said| {
            said.answers[dispute as usize].rest(&dispute.pace(), now)
        })
    }
}

#[cfg(test)]
mod tests;
