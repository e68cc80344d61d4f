//! What a reconcile would do, as data that can be printed: the decision itself, what it was made from, and what would
//! be written into Kubernetes. Pure.
//!
//! Serialized are ids, states, reasons and fields of the status; never tags, bodies or tokens.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Serialize;
use serde_json::Value;

use super::cloud::{ListFacts, ServedCloud};
use super::custom_resource::CustomResource;
use super::decision::{Decision, Lifecycle};
use super::facts::Facts;
use super::report::{Report, conditions_patch, fields_patch};
use crate::api::Role;
use crate::engine::cloud::{Cloud, ResourceKind};
use crate::engine::plan::{Outcome, Step, Verb, Why};
use crate::engine::resource::Observed;
use crate::hypershift::conditions;
use crate::hypershift::intent::{self, OwnFields};
use crate::runtime::requeue::Requeue;

/// What a reconcile of one role would do.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[serde(bound = "")]
pub struct Preview<C: Cloud> {
    /// The role that reconciles.
    pub role: Role,
    /// Whether anything is to be done, is under way, or is in the way.
    pub pending: bool,
    /// Whether something could not be read, so that more may have to be done.
    pub unreadable: bool,
    /// What is done with the custom resource.
    pub lifecycle: Lifecycle,
    /// Steps, problem and pause.
    #[serde(flatten)]
    pub decision: Decision<C>,
    /// What is known of Kubernetes and the cloud.
    pub facts: Vec<Fact>,
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

/// A finalizer that would be set or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FinalizerChange {
    /// `set` or `remove`.
    pub verb: &'static str,
    /// The object's kind.
    pub kind: Cow<'static, str>,
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
    /// The condition as it would be; none if it would be removed.
    pub would_be: Option<ConditionSummary>,
}

/// The content of a condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConditionSummary {
    /// `True` or `False`.
    pub status: String,
    /// The reason, in one word.
    pub reason: String,
    /// The message for people.
    pub message: String,
}

impl<C: ServedCloud> Preview<C> {
    /// A reconcile that does nothing; `known` is what Kubernetes shows around the custom resource.
    pub fn new(role: Role, lifecycle: Lifecycle, known: Vec<Fact>) -> Self {
        Self {
            role,
            pending: false,
            unreadable: false,
            lifecycle,
            decision: Decision::default(),
            facts: known,
            finalizers: Vec::new(),
            intent: None,
            fields: Vec::new(),
            conditions: Vec::new(),
            requeue_after_seconds: None,
            requeue_reason: None,
        }
    }

    /// Adds what was read of the cloud, in an order that does not change.
    pub fn add_facts(&mut self, facts: &Facts<C>) {
        for (id, observed) in &facts.reads {
            self.unreadable |= matches!(observed, Observed::ReadFailed(_));
            self.facts.push(Fact {
                kind: C::kind_of(id).map_or("resource", |kind| kind.label()),
                id: id.to_string(),
                state: state(observed),
            });
        }
        for list in facts.lists.shown() {
            self.unreadable |= list.found.is_err();
            self.facts.push(Fact {
                kind: list.kind.label(),
                id: list.scope,
                state: match list.found {
                    Ok(count) => format!("{count} {}", list.rows),
                    Err(error) => error.to_string(),
                },
            });
        }
        // Kinds of Kubernetes begin with a capital letter, so they stay in front.
        self.facts.sort();
    }

    /// Adds what was decided about `cr`, and the finalizers that are set on other objects before.
    pub fn add_decision<R: CustomResource<Cloud = C>>(
        &mut self,
        cr: &R,
        decision: &Decision<C>,
        holds: Vec<FinalizerChange>,
    ) {
        self.decision = decision.clone();
        self.finalizers = holds;
        let due = intent::due(cr, self.role, cr.is_held_by(self.role), &decision.steps);
        let intent = decision.intent.as_deref().filter(|_| due);
        let patch = |text: &&str| {
            let fields = OwnFields::default();
            intent::patch(cr, self.role, R::finalizer(self.role), Some(text), &fields)
        };
        let intent = intent.filter(|text| patch(text).is_some());
        self.intent = intent.and_then(|text| serde_json::from_str(text).ok());
        let held = cr.is_held_by(self.role);
        if intent.is_some() && !held && cr.meta().deletion_timestamp.is_none() {
            self.change_finalizer::<R>("set");
        }
        let active = decision.problem.is_some() || !decision.steps.iter().all(is_idle);
        let writes = intent.is_some() || !decision.own_fields.is_empty() || !self.finalizers.is_empty();
        self.note(active || writes);
    }

    /// Adds that the custom resource is released.
    pub fn add_release<R: CustomResource>(&mut self) {
        self.change_finalizer::<R>("remove");
        self.note(true);
    }

    /// Adds what would be reported on `cr` once the steps are sent. A paused one is not reported on.
    pub fn add_report(&mut self, cr: &impl CustomResource, report: &Report) {
        if self.decision.paused {
            return;
        }
        let current = cr.status_fields();
        let patch = fields_patch(cr, report).unwrap_or_default();
        for (field, would_be) in patch["status"].as_object().into_iter().flatten() {
            self.fields.push(FieldChange {
                field: field.clone(),
                is: current[field].clone(),
                would_be: would_be.clone(),
            });
        }
        // Times are neither compared nor printed.
        let dated = report.dated(cr, Timestamp::UNIX_EPOCH);
        for (new, condition) in report.conditions.iter().zip(&dated) {
            self.conditions.push(ConditionChange {
                kind: new.kind.as_str(),
                is: conditions::get(cr.conditions(), new.kind).map(ConditionSummary::of),
                would_be: Some(ConditionSummary::of(condition)),
            });
        }
        self.note(!self.fields.is_empty() || conditions_patch(cr, &dated).is_some());
    }

    /// Adds when and why the next reconcile would be due.
    pub fn add_requeue(&mut self, requeue: Requeue) {
        self.requeue_after_seconds = Some(requeue.after.as_secs());
        self.requeue_reason = Some(requeue.why);
    }

    fn change_finalizer<R: CustomResource>(&mut self, verb: &'static str) {
        let change = R::finalizer(self.role).map(|finalizer| FinalizerChange {
            verb,
            kind: R::kind(&()),
            finalizer,
        });
        self.finalizers.extend(change);
    }
    /// A paused custom resource has nothing pending.
    fn note(&mut self, pending: bool) {
        self.pending |= pending && !self.decision.paused;
    }
}

impl ConditionSummary {
    fn of(condition: &Condition) -> Self {
        Self {
            status: condition.status.clone(),
            reason: condition.reason.clone(),
            message: condition.message.clone(),
        }
    }
}

/// The outcome of a step if the cloud accepts it.
pub fn as_sent<C: Cloud>(step: &Step<C>) -> Outcome<C> {
    match (step.writes(), step.kind.rules().written_at_once) {
        (false, _) => Outcome::Nothing,
        (true, true) => Outcome::Ready,
        (true, false) => Outcome::Accepted,
    }
}

/// Whether a step needs no action. What others use too is left to them for good.
fn is_idle<C: Cloud>(step: &Step<C>) -> bool {
    matches!((&step.verb, &step.why), (Verb::Keep, _) | (Verb::Refuse, Why::InUse(_)))
}

/// The state that was observed, in a few words.
fn state<C: Cloud>(observed: &Observed<C>) -> String {
    match observed {
        Observed::Found(body) => C::state(body).unwrap_or("there").to_owned(),
        Observed::Absent => "absent".to_owned(),
        Observed::Pending => "being made".to_owned(),
        Observed::WriteFailed(error) | Observed::DeleteFailed(error) | Observed::ReadFailed(error) => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
