//! Prints a plan: as text for people, as JSON for programs.

mod capz;

use kube::ResourceExt;
use serde_json::{Value, json};

use super::Plan;
use crate::api::{ClusterRef, Role};
use crate::controllers::capz::preview::ClusterPreview;
use crate::controllers::decision::Lifecycle;
use crate::controllers::preview::{ConditionChange, ConditionSummary, Fact, FinalizerChange, Preview};
use crate::engine::cloud::{Cloud, ResourceKind};
use crate::engine::plan::Step;
use crate::telemetry::escape_control;

/// What a reconcile of one role would do, ready to be printed.
#[derive(Debug)]
pub struct RolePlan {
    pub(super) role: Role,
    pub(super) pending: bool,
    pub(super) unreadable: bool,
    lines: Vec<String>,
    json: Value,
}

impl RolePlan {
    /// What a reconcile of `object` would do.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    pub fn of<C: Cloud>(object: &impl ResourceExt, preview: &Preview<C>) -> serde_json::Result<Self> {
        Ok(Self {
            role: preview.role,
            pending: preview.pending,
            unreadable: preview.unreadable,
            lines: lines(object, preview),
            json: serde_json::to_value(preview)?,
        })
    }

    /// What the reconciles of this AzureCluster would do.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    pub fn of_cluster(object: &ClusterRef, preview: &ClusterPreview) -> serde_json::Result<Self> {
        Ok(Self {
            role: preview.role,
            pending: preview.pending,
            unreadable: preview.unreadable,
            lines: capz::lines(object, preview),
            json: serde_json::to_value(preview)?,
        })
    }
}

impl Plan {
    /// One JSON object.
    pub fn json(&self) -> anyhow::Result<String> {
        let whole = json!({
            "namespace": self.object.namespace,
            "name": self.object.name,
            "pending": self.pending(),
            "roles": self.roles.iter().map(|role| &role.json).collect::<Vec<_>>(),
        });
        Ok(format!("{}\n", serde_json::to_string_pretty(&whole)?))
    }

    /// Lines for people.
    pub fn text(&self) -> String {
        let lines = self.roles.iter().flat_map(|role| &role.lines);
        // Text from objects must not control a terminal, nor add lines.
        lines.map(|line| escape_control(line) + "\n").collect()
    }
}

fn lines<C: Cloud>(object: &impl ResourceExt, preview: &Preview<C>) -> Vec<String> {
    let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
    let Preview { role, decision, .. } = preview;
    let mut lines = vec![format!("{namespace}/{name}, role {role}: {}", verdict(preview))];
    let problem = decision.problem.iter();
    lines.extend(problem.map(|problem| format!("  {}: {}", problem.reason.as_str(), problem.message)));
    section(&mut lines, "Facts", preview.facts.iter().map(fact));
    section(&mut lines, "Steps", decision.steps.iter().map(step));
    section(&mut lines, "Kubernetes", kubernetes(preview));
    section(&mut lines, "Conditions", preview.conditions.iter().map(condition));
    lines.extend(requeue(preview.requeue_after_seconds, preview.requeue_reason));
    lines
}

fn section(lines: &mut Vec<String>, title: &str, all: impl Iterator<Item = String>) {
    let mut all = all.map(|one| format!("  {one}")).peekable();
    lines.extend(all.peek().map(|_| title.to_owned()));
    lines.extend(all);
}

fn verdict<C: Cloud>(preview: &Preview<C>) -> String {
    let lifecycle = preview.lifecycle.as_str();
    let writes = preview.decision.steps.iter().filter(|step| step.writes());
    match writes.count() {
        _ if preview.unreadable => "something could not be read, the plan is not complete".to_owned(),
        _ if preview.decision.paused => "nothing to do, the cluster is paused".to_owned(),
        _ if preview.lifecycle == Lifecycle::Nothing => "nothing to do, the role holds nothing of it".to_owned(),
        _ if !preview.pending => "nothing to do".to_owned(),
        0 => format!("{lifecycle}, in progress, nothing to send to {}", C::NAME),
        1 => format!("{lifecycle}, 1 step to send to {}", C::NAME),
        many => format!("{lifecycle}, {many} steps to send to {}", C::NAME),
    }
}

fn fact(fact: &Fact) -> String {
    format!("{} {}: {}", fact.kind, fact.id, fact.state)
}

fn step<C: Cloud>(step: &Step<C>) -> String {
    let verb = step.verb.as_str();
    let kind = step.kind.label();
    format!("{verb:<6} {kind} {}: {}", step.key, step.why)
}

fn kubernetes<C: Cloud>(preview: &Preview<C>) -> impl Iterator<Item = String> {
    let finalizers = preview.finalizers.iter().map(finalizer);
    let intent = preview.intent.iter().map(|intent| format!("record intent {intent}"));
    let fields = preview
        .fields
        .iter()
        .map(|change| format!("status.{}: {} -> {}", change.field, change.is, change.would_be));
    finalizers.chain(intent).chain(fields)
}

fn finalizer(change: &FinalizerChange) -> String {
    format!("{} finalizer {} of the {}", change.verb, change.finalizer, change.kind)
}

fn requeue(seconds: Option<u64>, reason: Option<&str>) -> Option<String> {
    let (seconds, reason) = (seconds?, reason?);
    Some(format!("The next reconcile would be due in {seconds} s: {reason}."))
}

fn condition(change: &ConditionChange) -> String {
    let [is, would_be] = [&change.is, &change.would_be].map(|one| one.as_ref().map_or("none".to_owned(), summary));
    if change.is == change.would_be {
        format!("{} stays {would_be}", change.kind)
    } else {
        format!("{} {is} -> {would_be}", change.kind)
    }
}

fn summary(summary: &ConditionSummary) -> String {
    let words = [summary.status.as_str(), summary.reason.as_str()];
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    format!("{} ({})", words.join(" "), summary.message)
}

#[cfg(test)]
mod tests;
