//! The condition of a workload cluster, written item by item: the list is all controllers', and none of its items but
//! this role's is touched.

use jiff::Timestamp;
use json_patch::{Patch, PatchOperation};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::patch::{add, remove, replace, test};
use super::reason::Problem;
use crate::api::capi::{AzureCluster, CapiCondition};
use crate::api::markers::capz::CONDITION;

/// The message of a condition that is True, as the reference has it.
const READY: &str = "GiantSwarm Private Link definitions have been added";

/// The patch of the status that publishes a problem, or none; `None` if the cluster shows just that already.
pub fn patch(cluster: &AzureCluster, problem: Option<&Problem>, now: Timestamp) -> Option<Patch> {
    let all = cluster.conditions().iter().enumerate();
    let mut own = all.filter(|(_, condition)| condition.kind == CONDITION);
    let first = own.next();
    let surplus: Vec<usize> = own.map(|(at, _)| at).collect();
    let current = first.map(|(_, condition)| condition);
    let is_written = current.is_none_or(|current| differs(current, problem));
    if !is_written && surplus.is_empty() {
        return None;
    }
    let mut operations = vec![test(
        &["metadata", "resourceVersion"],
        json!(cluster.resource_version()),
    )];
    operations.extend(remove_all(surplus));
    if is_written {
        operations.extend(write(cluster, first, problem, now));
    }
    Some(Patch(operations))
}

/// The patch of the status that removes the condition; `None` if the cluster does not have it.
pub fn removal(cluster: &AzureCluster) -> Option<Patch> {
    let all = cluster.conditions().iter().enumerate();
    let own: Vec<usize> = all
        .filter(|(_, condition)| condition.kind == CONDITION)
        .map(|(at, _)| at)
        .collect();
    if own.is_empty() {
        return None;
    }
    let mut operations = vec![test(
        &["metadata", "resourceVersion"],
        json!(cluster.resource_version()),
    )];
    operations.extend(remove_all(own));
    Some(Patch(operations))
}

/// Removes the conditions at these positions, the last first, so that each position is still that of its condition.
fn remove_all(own: Vec<usize>) -> impl Iterator<Item = PatchOperation> {
    own.into_iter().rev().flat_map(|at| {
        let at = at.to_string();
        [
            test(&["status", "conditions", &at, "type"], json!(CONDITION)),
            remove(&["status", "conditions", &at]),
        ]
    })
}

fn write(
    cluster: &AzureCluster,
    first: Option<(usize, &CapiCondition)>,
    problem: Option<&Problem>,
    now: Timestamp,
) -> Vec<PatchOperation> {
    let new = condition(first.map(|(_, condition)| condition), problem, now);
    if let Some((at, _)) = first {
        let at = at.to_string();
        return vec![
            test(&["status", "conditions", &at, "type"], json!(CONDITION)),
            replace(&["status", "conditions", &at], new),
        ];
    }
    let mut operations = Vec::new();
    if cluster.status.is_none() {
        operations.push(add(&["status"], json!({})));
    }
    if cluster.status.as_ref().is_none_or(|status| status.conditions.is_none()) {
        operations.push(add(&["status", "conditions"], json!([])));
    }
    operations.push(add(&["status", "conditions", "-"], new));
    operations
}

/// The status of a condition with this problem, or none.
pub fn status(problem: Option<&Problem>) -> &'static str {
    if problem.is_none() { "True" } else { "False" }
}

/// The message of a condition with this problem, or none.
pub fn message(problem: Option<&Problem>) -> &str {
    problem.map_or(READY, |problem| &problem.message)
}

fn differs(current: &CapiCondition, problem: Option<&Problem>) -> bool {
    let (reason, severity) = problem.map_or(("", ""), |problem| {
        (problem.reason.as_str(), problem.reason.severity().as_str())
    });
    current.status != status(problem)
        || current.message != message(problem)
        || current.reason != reason
        || current.severity != severity
}

fn condition(current: Option<&CapiCondition>, problem: Option<&Problem>, now: Timestamp) -> Value {
    let since = current.filter(|current| current.status == status(problem) && !current.last_transition_time.is_empty());
    let seconds = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let since = since.map_or_else(|| seconds.to_string(), |current| current.last_transition_time.clone());
    let mut new = json!({"type": CONDITION, "status": status(problem), "lastTransitionTime": since,
        "message": message(problem)});
    if let Some(problem) = problem {
        new["reason"] = json!(problem.reason.as_str());
        new["severity"] = json!(problem.reason.severity().as_str());
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capz::reason::Reason;
    use crate::capz::samples::{Sample, workload};

    const NOW: &str = "2026-02-03T04:05:06.789Z";

    fn patched(sample: &Sample, problem: Option<&Problem>) -> Option<Value> {
        let patch = patch(&sample.cluster(), problem, NOW.parse().unwrap())?;
        let mut object = sample.0.clone();
        json_patch::patch(&mut object, &patch).unwrap();
        Some(object["status"]["conditions"].clone())
    }

    fn waiting() -> Problem {
        Problem::new(Reason::WaitingForEndpoint, "not yet")
    }

    fn own(status: &str, message: &str) -> Value {
        json!({"type": CONDITION, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z", "message": message})
    }

    #[test]
    fn first_condition_of_a_new_cluster_is_added() {
        let mut sample = workload("wc");
        sample.0.as_object_mut().unwrap().remove("status");
        let expected = json!([{"type": CONDITION, "status": "False", "severity": "Info", "reason": "WaitingForEndpoint",
            "message": "not yet", "lastTransitionTime": "2026-02-03T04:05:06Z"}]);
        assert_eq!(patched(&sample, Some(&waiting())).unwrap(), expected);
    }

    #[test]
    fn conditions_of_others_are_left_as_they_are() {
        let theirs = json!({"type": "Ready", "status": "True", "unknown": 7});
        let conditions = json!([
            theirs,
            own("False", "old"),
            theirs,
            own("True", "second"),
            own("True", "third")
        ]);
        let sample = workload("wc").with("/status/conditions", conditions);
        let found = patched(&sample, None).unwrap();
        let mut ready = own("True", READY);
        ready["lastTransitionTime"] = json!("2026-02-03T04:05:06Z");
        assert_eq!(found, json!([theirs, ready, theirs]));
    }

    #[test]
    fn what_is_shown_already_is_not_written() {
        let sample = workload("wc").with("/status/conditions", json!([own("True", READY)]));
        assert_eq!(patched(&sample, None), None);
        assert!(patched(&sample, Some(&waiting())).is_some());
    }

    #[test]
    fn time_is_that_of_the_last_change_of_the_status() {
        let sample = workload("wc").with("/status/conditions", json!([own("False", "old")]));
        let found = patched(&sample, Some(&waiting())).unwrap();
        assert_eq!(found[0]["lastTransitionTime"], "2026-01-01T00:00:00Z");
    }

    #[test]
    fn condition_is_removed_where_no_side_is_private() {
        let theirs = json!({"type": "Ready", "status": "True"});
        let sample = workload("wc").with(
            "/status/conditions",
            json!([own("True", "x"), theirs, own("False", "y")]),
        );
        let mut object = sample.0.clone();
        json_patch::patch(&mut object, &removal(&sample.cluster()).unwrap()).unwrap();
        assert_eq!(object["status"]["conditions"], json!([theirs]));
        assert_eq!(removal(&workload("wc").cluster()), None);
    }

    #[test]
    fn condition_that_somebody_else_moved_is_not_overwritten() {
        let sample = workload("wc").with("/status/conditions", json!([own("False", "old")]));
        let patch = patch(&sample.cluster(), None, NOW.parse().unwrap()).unwrap();
        let mut other = sample
            .with("/status/conditions", json!([{"type": "Ready", "status": "True"}]))
            .0;
        assert!(json_patch::patch(&mut other, &patch).is_err());
    }
}
