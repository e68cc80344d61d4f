//! Long-running operations: what is known of one while it runs and after it ended.
//!
//! An operation ends when the first call comes at or after its end; what its end does to the resource is the
//! decision of the resource's type.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::ErrorDetail;
use super::id::ResourceId;
use super::kind::Stack;

/// What an operation does to its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Verb {
    Put,
    Delete,
    /// Changes nothing; its payload is its answer.
    Post,
}

/// The word that status URLs answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum OperationStatus {
    InProgress,
    Succeeded,
    Failed,
    Canceled,
}

impl OperationStatus {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::InProgress => "InProgress",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Canceled => "Canceled",
        }
    }
}

/// How an operation will end, decided when it begins.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) enum Outcome {
    #[default]
    Succeed,
    Fail(ErrorDetail),
    Cancel,
}

/// One operation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Operation {
    pub(crate) id: String,
    pub(crate) seq: u64,
    /// `PutSubnetOperation`, `UpsertPrivateDnsZone`.
    pub(crate) name: String,
    pub(crate) stack: Stack,
    pub(crate) verb: Verb,
    pub(crate) target: ResourceId,
    pub(crate) target_type: String,
    pub(crate) region: String,
    pub(crate) api_version: String,
    pub(crate) started: Timestamp,
    /// Nothing for one that never ends.
    pub(crate) ends: Option<Timestamp>,
    pub(crate) outcome: Outcome,
    pub(crate) status: OperationStatus,
    pub(crate) error: Option<ErrorDetail>,
    /// Its status URL is gone.
    pub(crate) lost: bool,
    /// Seconds for `Retry-After` while it runs; 0 sends none.
    pub(crate) retry_after_s: u32,
    /// What the type needs to end it.
    pub(crate) payload: Value,
}

impl Operation {
    pub(crate) fn running(&self) -> bool {
        self.status == OperationStatus::InProgress
    }
}

/// How long an ended operation can still be asked for.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(24);
/// How many ended ones are kept at most.
const MOST_ENDED: usize = 10_000;

/// All operations and the order in which the running ones end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Operations {
    all: BTreeMap<String, Operation>,
    due: BTreeSet<(Timestamp, u64, String)>,
    /// Those that have ended, in the order in which they did.
    ended: VecDeque<(Timestamp, String)>,
    next: u64,
}

impl Operations {
    pub(crate) fn get(&self, id: &str) -> Option<&Operation> {
        self.all.get(&id.to_ascii_lowercase())
    }

    /// Adds one that has begun and gives it its place in the order.
    pub(crate) fn begin(&mut self, mut operation: Operation) {
        operation.seq = self.next;
        self.next += 1;
        if let Some(ends) = operation.ends {
            self.due.insert((ends, operation.seq, operation.id.clone()));
        }
        let (id, over, started) = (operation.id.clone(), !operation.running(), operation.started);
        self.all.insert(id.clone(), operation);
        if over {
            self.over(id, started);
        }
    }

    /// Remembers that one has ended, and forgets those that ended long ago.
    fn over(&mut self, id: String, now: Timestamp) {
        self.ended.push_back((now, id));
        let old = |ended: &(Timestamp, String)| now.duration_since(ended.0) > REMEMBERED;
        while self.ended.len() > MOST_ENDED || self.ended.front().is_some_and(old) {
            if let Some((_, id)) = self.ended.pop_front() {
                self.all.remove(&id);
            }
        }
    }

    /// Takes the first that is over at `now`, with its final status and error already set.
    pub(crate) fn end_one(&mut self, now: Timestamp) -> Option<Operation> {
        let first = self.due.first().filter(|(ends, _, _)| *ends <= now)?.clone();
        self.due.remove(&first);
        let operation = self.all.get_mut(&first.2)?;
        (operation.status, operation.error) = match operation.outcome.clone() {
            Outcome::Succeed => (OperationStatus::Succeeded, None),
            Outcome::Fail(error) => (OperationStatus::Failed, Some(error)),
            Outcome::Cancel => (
                OperationStatus::Canceled,
                Some(superseded(&operation.name, &operation.id, None)),
            ),
        };
        let ended = operation.clone();
        if matches!(ended.verb, Verb::Put | Verb::Delete) {
            operation.payload = Value::Null;
        }
        self.over(first.2, first.0);
        Some(ended)
    }

    /// Gives a running operation another end; nothing for one that never ends.
    pub(crate) fn reschedule(&mut self, id: &str, ends: Option<Timestamp>) {
        let Some(operation) = self.all.get_mut(id).filter(|operation| operation.running()) else {
            return;
        };
        if let Some(before) = operation.ends {
            self.due.remove(&(before, operation.seq, operation.id.clone()));
        }
        if let Some(ends) = ends {
            self.due.insert((ends, operation.seq, operation.id.clone()));
        }
        operation.ends = ends;
    }

    /// Fails a running operation at its end instead of what was planned.
    pub(crate) fn fail(&mut self, id: &str, error: ErrorDetail) {
        if let Some(operation) = self.all.get_mut(id) {
            operation.status = OperationStatus::Failed;
            operation.error = Some(error);
        }
    }

    /// Ends a running operation because another one took its place.
    pub(crate) fn supersede(&mut self, id: &str, by: (&str, &str), now: Timestamp) {
        let Some(operation) = self.all.get_mut(id).filter(|operation| operation.running()) else {
            return;
        };
        if let Some(ends) = operation.ends {
            self.due.remove(&(ends, operation.seq, operation.id.clone()));
        }
        operation.ends = Some(now);
        operation.status = OperationStatus::Canceled;
        operation.error = Some(superseded(&operation.name, &operation.id, Some(by)));
        operation.payload = Value::Null;
        let id = operation.id.clone();
        self.over(id, now);
    }

    /// Those that still run, oldest first.
    pub(crate) fn running(&self) -> Vec<&Operation> {
        let mut running: Vec<&Operation> = self.all.values().filter(|operation| operation.running()).collect();
        running.sort_by_key(|operation| operation.seq);
        running
    }
}

fn superseded(name: &str, id: &str, by: Option<(&str, &str)>) -> ErrorDetail {
    let (by_name, by_id) = by.unwrap_or((name, "00000000-0000-0000-0000-000000000000"));
    let detail = format!("Operation {name} ({id}) was canceled and superseded by operation {by_name} ({by_id}).");
    ErrorDetail::new("Canceled", "Operation was canceled.")
        .because(ErrorDetail::new("CanceledAndSupersededDueToAnotherOperation", detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(id: usize, ends: i64) -> Operation {
        serde_json::from_value(serde_json::json!({
            "id": id.to_string(), "seq": 0, "name": "PutSubnetOperation", "stack": "Network", "verb": "Put",
            "target": "/subscriptions/s/resourceGroups/g", "target_type": "", "region": "", "api_version": "",
            "started": "1970-01-01T00:00:00Z", "ends": Timestamp::from_second(ends).unwrap(), "outcome": "Succeed",
            "status": "InProgress", "error": null, "lost": false, "retry_after_s": 0, "payload": {"big": true},
        }))
        .unwrap()
    }

    #[test]
    fn only_the_last_that_ended_are_remembered_and_all_that_run() {
        let mut operations = Operations::default();
        operations.begin(running(0, 1_000_000));
        for id in 1..=MOST_ENDED + 5 {
            operations.begin(running(id, 1));
            if id % 2 == 0 {
                operations.supersede(&id.to_string(), ("x", "y"), Timestamp::UNIX_EPOCH);
            } else {
                operations.end_one(Timestamp::from_second(2).unwrap()).unwrap();
            }
        }
        assert_eq!(operations.all.len(), MOST_ENDED + 1);
        assert!(operations.get("0").is_some_and(Operation::running));
        assert!(operations.get("5").is_none());
        assert!(operations.get("6").is_some_and(|oldest| oldest.payload.is_null()));
    }
}
