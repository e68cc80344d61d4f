//! What a reconcile would do, as data that can be printed: facts, steps, and what would be written into Kubernetes.
//! Pure.
//!
//! Holds ids, states, reasons and fields of the status; never tags, bodies or tokens.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Serialize;
use serde_json::Value;

use super::conclusion::Conclusion;
use super::decision::{Decision, Lifecycle};
use super::facts::Facts;
use super::intent;
use super::report::{Report, conditions_patch, fields_patch};
use crate::api::{AzurePrivateLinkService, Role, held_by};
use crate::azure::error::ArmError;
use crate::azure::id::ResourceId;
use crate::azure::plan::{Outcome, Step, Verb, Why};
use crate::azure::resource::{Kind, Observed};
use crate::conditions;
use crate::runtime::requeue::Requeue;

/// What a reconcile has read and decided, up to where it would send the first write.
pub struct DryRun {
    /// What is done with the custom resource.
    pub lifecycle: Lifecycle,
    /// What Kubernetes shows around the object.
    pub inputs: Vec<Fact>,
    /// What was read of Azure.
    pub facts: Facts,
    /// What the reconcile decided.
    pub decision: Decision,
    /// What follows the steps of a teardown.
    pub conclusion: Conclusion,
    /// What it would report once its steps are sent, unless it is paused or releases the object.
    pub report: Option<Report>,
    /// The finalizers that it would set on other objects.
    pub holds: Vec<FinalizerChange>,
    /// When the next reconcile would be due.
    pub requeue: Option<Requeue>,
}

impl DryRun {
    /// For an object that is being deleted and does not have the role's finalizer.
    pub fn nothing(inputs: Vec<Fact>) -> Self {
        Self {
            lifecycle: Lifecycle::Nothing,
            inputs,
            facts: Facts::default(),
            decision: Decision::default(),
            conclusion: Conclusion::Report,
            report: None,
            holds: Vec::new(),
            requeue: None,
        }
    }
}

/// The outcome of each step if Azure accepts it: a record is ready at once, everything else is in progress.
pub fn as_sent(steps: &[Step]) -> Vec<Outcome> {
    let sent = |step: &Step| match (step.writes(), step.kind) {
        (false, _) => Outcome::Nothing,
        (true, Kind::Record) => Outcome::Ready,
        (true, _) => Outcome::Accepted,
    };
    steps.iter().map(sent).collect()
}

/// What a reconcile of one role would do.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// The role, `ho` or `cpo`.
    pub role: &'static str,
    /// Whether anything is to be done, is under way, or is in the way.
    pub pending: bool,
    /// Whether something could not be read, so that more may have to be done.
    pub unreadable: bool,
    /// `build`, `teardown` or `nothing`.
    pub lifecycle: &'static str,
    /// Whether the cluster is paused: nothing is read or changed.
    pub paused: bool,
    /// What prevents all steps.
    pub problem: Option<ConditionSummary>,
    /// What is known of Kubernetes and Azure.
    pub facts: Vec<Fact>,
    /// The steps in the order in which they would be sent.
    pub steps: Vec<PreviewStep>,
    /// Finalizers that would be set or removed.
    pub finalizers: Vec<FinalizerChange>,
    /// What would be recorded before the first write, unless it is recorded already.
    pub intent: Option<Value>,
    /// Plain fields of the status that would change.
    pub fields: Vec<FieldChange>,
    /// All conditions of the role.
    pub conditions: Vec<ConditionChange>,
    /// After how many seconds the next reconcile would be due.
    pub requeue_after_seconds: Option<u64>,
    /// Why the next reconcile would be due then.
    pub requeue_reason: Option<&'static str>,
}

/// Something that is known, and how it was found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Fact {
    /// The kind of object or resource.
    pub kind: &'static str,
    /// Its id or name; the scope, for a list.
    pub id: String,
    /// The state it is in.
    pub state: String,
}

/// One step of a decision.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PreviewStep {
    /// `keep`, `put`, `delete`, `wait` or `refuse`.
    pub verb: &'static str,
    /// The resource's kind.
    pub kind: &'static str,
    /// The resource's id.
    pub id: String,
    /// Why the step is taken.
    pub why: String,
    /// The fields that differ.
    pub fields: Vec<&'static str>,
}

/// A finalizer that would be set or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FinalizerChange {
    /// `set` or `remove`.
    pub verb: &'static str,
    /// The object's kind.
    pub kind: &'static str,
    /// The name of the finalizer.
    pub finalizer: &'static str,
}

/// A status field that would change.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    /// The name of the field.
    pub field: String,
    /// The value as it is; null where there is none.
    pub is: Value,
    /// The value as it would be; null where it would be removed.
    pub would_be: Value,
}

/// A condition as it is and as it would be.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConditionChange {
    /// The type of the condition.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The condition as it is.
    pub is: Option<ConditionSummary>,
    /// The condition as it would be.
    pub would_be: ConditionSummary,
}

/// The content of a condition; of a problem, without the status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConditionSummary {
    /// `True` or `False`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The reason, in one word.
    pub reason: String,
    /// The message for people.
    pub message: String,
}

impl Preview {
    /// What a reconcile of `cr` would do, from its dry run.
    pub fn of(role: Role, cr: &AzurePrivateLinkService, dry_run: DryRun, now: Timestamp) -> Self {
        let (lifecycle, decision) = (dry_run.lifecycle, &dry_run.decision);
        let due = intent::due(cr, role, &decision.steps);
        let intent = decision
            .intent
            .as_deref()
            .filter(|_| due)
            .filter(|text| intent::patch(cr, role, text).is_some());
        let releases = matches!(dry_run.conclusion, Conclusion::Release(_));
        let sets = intent.is_some() && cr.metadata.deletion_timestamp.is_none();
        let held = held_by(cr, role.finalizer());
        let own = match (releases, sets && !held) {
            (true, _) => Some("remove"),
            (_, true) => Some("set"),
            _ => None,
        };
        let own = own.map(|verb| FinalizerChange {
            verb,
            kind: "AzurePrivateLinkService",
            finalizer: role.finalizer(),
        });
        let reports = dry_run.conclusion == Conclusion::Report && !decision.paused;
        let report = dry_run.report.as_ref().filter(|_| reports);
        let finalizers: Vec<_> = dry_run.holds.iter().cloned().chain(own).collect();
        let fields = report.map(|report| field_changes(cr, report)).unwrap_or_default();
        let conditions_change = report.is_some_and(|report| conditions_patch(cr, &report.dated(cr, now)).is_some());
        let active = decision.problem.is_some() || decision.steps.iter().any(|step| !is_idle(step));
        let writes_kube = intent.is_some() || !finalizers.is_empty() || !fields.is_empty() || conditions_change;
        Self {
            role: role.as_str(),
            pending: lifecycle != Lifecycle::Nothing && !decision.paused && (active || writes_kube),
            unreadable: unreadable(&dry_run.facts),
            lifecycle: match lifecycle {
                Lifecycle::Build => "build",
                Lifecycle::Teardown => "teardown",
                Lifecycle::Nothing => "nothing",
            },
            paused: decision.paused,
            problem: decision.problem.as_ref().map(|problem| ConditionSummary {
                status: None,
                reason: problem.reason.as_str().to_owned(),
                message: problem.message.clone(),
            }),
            facts: dry_run.inputs.into_iter().chain(facts(&dry_run.facts)).collect(),
            steps: decision.steps.iter().map(step).collect(),
            finalizers,
            intent: intent.and_then(|text| serde_json::from_str(text).ok()),
            fields,
            conditions: report.map(|report| condition_changes(cr, report)).unwrap_or_default(),
            requeue_after_seconds: dry_run.requeue.map(|requeue| requeue.after.as_secs()),
            requeue_reason: dry_run.requeue.map(|requeue| requeue.why),
        }
    }
}

/// Whether a step needs no action. What others use too is left to them for good.
fn is_idle(step: &Step) -> bool {
    matches!((&step.verb, &step.why), (Verb::Keep, _) | (Verb::Refuse, Why::InUse(_)))
}

fn step(step: &Step) -> PreviewStep {
    PreviewStep {
        verb: match step.verb {
            Verb::Keep => "keep",
            Verb::Put(_) => "put",
            Verb::Delete => "delete",
            Verb::Wait => "wait",
            Verb::Refuse => "refuse",
        },
        kind: step.kind.label(),
        id: step.id.to_string(),
        why: step.why.to_string(),
        fields: match &step.why {
            Why::Differs(fields) | Why::Replace(fields) => fields.clone(),
            _ => Vec::new(),
        },
    }
}

fn unreadable(facts: &Facts) -> bool {
    facts
        .reads
        .values()
        .any(|observed| matches!(observed, Observed::ReadFailed(_)))
        || facts.frontends.values().any(Result::is_err)
        || facts.inside.values().any(Result::is_err)
}

/// What was read of Azure, in an order that does not change.
fn facts(facts: &Facts) -> Vec<Fact> {
    let mut all: Vec<_> = facts.reads.iter().map(|(id, observed)| fact_of(id, observed)).collect();
    for ((subscription, group), found) in &facts.frontends {
        let group = group.as_ref().map(|group| format!("/resourceGroups/{group}"));
        all.push(Fact {
            kind: Kind::LoadBalancer.label(),
            id: format!("/subscriptions/{subscription}{}", group.unwrap_or_default()),
            state: counted(found, "internal frontends"),
        });
    }
    for ((kind, zone), found) in &facts.inside {
        all.push(Fact {
            kind: kind.label(),
            id: zone.to_string(),
            state: counted(found, "in it"),
        });
    }
    all.sort();
    all
}

fn fact_of(id: &ResourceId, observed: &Observed) -> Fact {
    let kind = Kind::ALL.into_iter().find(|kind| id.is(*kind));
    let state = match observed {
        Observed::Found(body) => {
            let state = body.pointer("/properties/provisioningState").and_then(Value::as_str);
            state.unwrap_or("there").to_owned()
        }
        Observed::Absent => "absent".to_owned(),
        Observed::Pending => "being made".to_owned(),
        Observed::WriteFailed(error) | Observed::DeleteFailed(error) | Observed::ReadFailed(error) => error.to_string(),
    };
    Fact {
        kind: kind.map_or("resource", Kind::label),
        id: id.to_string(),
        state,
    }
}

fn counted<T>(found: &Result<Vec<T>, ArmError>, what: &str) -> String {
    match found {
        Ok(list) => format!("{} {what}", list.len()),
        Err(error) => error.to_string(),
    }
}

fn field_changes(cr: &AzurePrivateLinkService, report: &Report) -> Vec<FieldChange> {
    let current = serde_json::to_value(&cr.status).unwrap_or_default();
    let patch = fields_patch(cr, report).unwrap_or_default();
    let changes = patch["status"].as_object().into_iter().flatten();
    let change = |(field, would_be): (&String, &Value)| FieldChange {
        field: field.clone(),
        is: current.get(field).cloned().unwrap_or_default(),
        would_be: would_be.clone(),
    };
    changes.map(change).collect()
}

fn condition_changes(cr: &AzurePrivateLinkService, report: &Report) -> Vec<ConditionChange> {
    let status = cr.status.as_ref();
    let current = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
    let summary = |condition: &Condition| ConditionSummary {
        status: Some(condition.status.clone()),
        reason: condition.reason.clone(),
        message: condition.message.clone(),
    };
    let change = |new: &conditions::NewCondition| ConditionChange {
        kind: new.kind.as_str(),
        is: conditions::get(current, new.kind).map(summary),
        would_be: ConditionSummary {
            status: Some(new.status.as_str().to_owned()),
            reason: new.reason.as_str().to_owned(),
            message: new.message.clone(),
        },
    };
    report.conditions.iter().map(change).collect()
}

#[cfg(test)]
mod tests;
