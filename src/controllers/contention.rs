//! When to write a condition of ours that somebody else has written over. Pure: the caller brings the time.
//!
//! Same status in other words is left alone, unless ours names another controller. Another status is answered at once, then
//! at ever longer intervals, so that two writers do not wake each other for ever: four times in ten minutes.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::api::{ConditionType, Reason, Role};

/// So many contradictions in a row are answered at once. A writer that puts back the list as it was before its pass reverts an
/// answer that lands within that pass; the next one lands after it.
const AT_ONCE: u32 = 2;
/// Between two answers after that: at least this long, doubled each time.
const FIRST: Duration = Duration::from_secs(150);
/// The longest that the interval gets.
const MOST: Duration = Duration::from_secs(600);

/// A condition as this process last stated it.
#[derive(Debug, Clone)]
struct Statement {
    status: String,
    reason: String,
    statement: u64,
    /// Contradictions that were answered in a row.
    answers: u32,
    not_before: Option<Instant>,
}

/// The conditions of one object as this process last stated them, by their types.
#[derive(Debug, Clone, Default)]
pub struct Statements(HashMap<String, Statement>);

/// What a condition says; when it last changed does not count.
fn statement(said: &Condition) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&said.status, &said.reason, &said.message, said.observed_generation).hash(&mut hasher);
    hasher.finish()
}

fn get<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// How long to rest after so many answers in a row.
fn rest_after(answers: u32) -> Option<Duration> {
    let doubled = answers.checked_sub(AT_ONCE)?;
    Some(FIRST.saturating_mul(1 << doubled.min(8)).min(MOST))
}

impl Statement {
    /// Whether another writer says something else than was stated, so that it matters.
    fn contradicted(&self, stored: Option<&Condition>) -> bool {
        let names_another = self.reason == Reason::OtherControllerActive.as_str();
        stored.is_none_or(|old| old.status != self.status || (names_another && old.reason != self.reason))
    }

    /// How long a contradiction has to stand still.
    fn rest(&self, now: Instant) -> Option<Duration> {
        let rest = self.not_before?.saturating_duration_since(now);
        (!rest.is_zero()).then_some(rest)
    }
}

impl Statements {
    /// Whether `own` is to be written, where `stored` is what is there.
    pub fn to_be_written(&self, stored: &[Condition], own: &[Condition], now: Instant) -> bool {
        own.iter().any(|new| {
            let old = get(stored, &new.type_);
            if old.is_some_and(|old| statement(old) == statement(new)) {
                return false;
            }
            match self.0.get(&new.type_) {
                // What has become of the object is news, whoever wrote last.
                Some(said) if said.statement == statement(new) => said.contradicted(old) && said.rest(now).is_none(),
                _ => true,
            }
        })
    }

    /// `own` has been written over `stored`.
    pub fn written(&mut self, stored: &[Condition], own: &[Condition], now: Instant) {
        for new in own {
            let old = get(stored, &new.type_);
            let before = self.0.get(&new.type_);
            let answered = before.filter(|said| said.statement == statement(new) && said.contradicted(old));
            let (answers, not_before) = match (answered, before) {
                (Some(said), _) => (said.answers + 1, rest_after(said.answers + 1).map(|rest| now + rest)),
                (None, Some(said)) if said.status == new.status => (said.answers, said.not_before),
                (None, _) => (0, None),
            };
            let said = Statement {
                status: new.status.clone(),
                reason: new.reason.clone(),
                statement: statement(new),
                answers,
                not_before,
            };
            self.0.insert(new.type_.clone(), said);
        }
    }

    /// `own` needed no writing. A contradiction whose time has passed without another one is over.
    pub fn stood(&mut self, stored: &[Condition], own: &[Condition], now: Instant) {
        for new in own {
            if get(stored, &new.type_).is_none_or(|old| statement(old) != statement(new)) {
                continue;
            }
            let open = self.0.remove(&new.type_).filter(|said| said.rest(now).is_some());
            let said = Statement {
                status: new.status.clone(),
                reason: new.reason.clone(),
                statement: statement(new),
                answers: open.as_ref().map_or(0, |said| said.answers),
                not_before: open.and_then(|said| said.not_before),
            };
            self.0.insert(new.type_.clone(), said);
        }
    }

    /// What of the stored conditions of `role` is worth a pass: what another writer says otherwise, once it may be answered.
    pub fn heeded(&self, stored: &[Condition], role: Role, now: Instant) -> Vec<(&'static str, u64)> {
        let of_role = ConditionType::owned_by(role);
        let heeded = of_role.filter_map(|kind| {
            let old = get(stored, kind.as_str());
            match self.0.get(kind.as_str()) {
                Some(said) if !said.contradicted(old) || said.rest(now).is_some() => None,
                _ => Some((kind.as_str(), old.map_or(0, statement))),
            }
        });
        heeded.collect()
    }

    /// When a contradiction that stands may be answered.
    pub fn next_answer(&self, stored: &[Condition], now: Instant) -> Option<Duration> {
        let held = self
            .0
            .iter()
            .filter(|(kind, said)| said.contradicted(get(stored, kind)));
        held.filter_map(|(_, said)| said.rest(now)).min()
    }
}

#[cfg(test)]
mod tests;
