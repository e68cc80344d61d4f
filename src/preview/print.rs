//! Prints a plan: as text for people, as JSON for programs.

use hyperlink::controllers::preview::{ConditionChange, ConditionSummary, Preview};
use hyperlink::telemetry::escape_control;
use serde_json::json;

use super::Plan;

impl Plan {
    /// One JSON object.
    pub(crate) fn json(&self) -> anyhow::Result<String> {
        let whole = json!({
            "namespace": self.object.namespace,
            "name": self.object.name,
            "pending": self.pending(),
            "roles": self.roles,
        });
        Ok(format!("{}\n", serde_json::to_string_pretty(&whole)?))
    }

    /// Lines for people.
    pub(crate) fn text(&self) -> String {
        let lines = self.roles.iter().flat_map(|preview| self.lines(preview));
        // Text from objects must not control a terminal, nor add lines.
        lines.map(|line| escape_control(&line) + "\n").collect()
    }

    fn lines(&self, preview: &Preview) -> Vec<String> {
        let (namespace, name) = (&self.object.namespace, &self.object.name);
        let mut lines = vec![format!(
            "{namespace}/{name}, role {}: {}",
            preview.role,
            verdict(preview)
        )];
        let problem = preview.problem.iter();
        lines.extend(problem.map(|problem| format!("  {}: {}", problem.reason, problem.message)));
        let facts = preview.facts.iter();
        section(
            &mut lines,
            "Facts",
            facts.map(|fact| format!("{} {}: {}", fact.kind, fact.id, fact.state)),
        );
        let steps = preview.steps.iter();
        section(
            &mut lines,
            "Steps",
            steps.map(|step| format!("{:<6} {} {}: {}", step.verb, step.kind, step.id, step.why)),
        );
        section(&mut lines, "Kubernetes", kubernetes(preview));
        section(&mut lines, "Conditions", preview.conditions.iter().map(condition));
        if let (Some(seconds), Some(reason)) = (preview.requeue_after_seconds, preview.requeue_reason) {
            lines.push(format!("The next reconcile would be due in {seconds} s: {reason}."));
        }
        lines
    }
}

fn section(lines: &mut Vec<String>, title: &str, all: impl Iterator<Item = String>) {
    let mut all = all.map(|one| format!("  {one}")).peekable();
    lines.extend(all.peek().map(|_| title.to_owned()));
    lines.extend(all);
}

fn verdict(preview: &Preview) -> String {
    let due = preview
        .steps
        .iter()
        .filter(|step| matches!(step.verb, "put" | "delete"));
    match (due.count(), preview.lifecycle) {
        _ if preview.unreadable => "something could not be read, the plan is not complete".to_owned(),
        _ if preview.paused => "nothing to do, the cluster is paused".to_owned(),
        (_, "nothing") => "nothing to do, the role holds nothing of it".to_owned(),
        _ if !preview.pending => "nothing to do".to_owned(),
        (0, lifecycle) => format!("{lifecycle}, not settled, nothing to send to Azure"),
        (1, lifecycle) => format!("{lifecycle}, 1 step to send to Azure"),
        (many, lifecycle) => format!("{lifecycle}, {many} steps to send to Azure"),
    }
}

fn kubernetes(preview: &Preview) -> impl Iterator<Item = String> {
    let finalizers = preview
        .finalizers
        .iter()
        .map(|change| format!("{} finalizer {} of the {}", change.verb, change.finalizer, change.kind));
    let intent = preview.intent.iter().map(|intent| format!("record intent {intent}"));
    let fields = preview
        .fields
        .iter()
        .map(|change| format!("status.{}: {} -> {}", change.field, change.is, change.would_be));
    finalizers.chain(intent).chain(fields)
}

fn condition(change: &ConditionChange) -> String {
    let would_be = summary(&change.would_be);
    match &change.is {
        Some(is) if *is == change.would_be => format!("{} stays {would_be}", change.kind),
        Some(is) => format!("{} {} -> {would_be}", change.kind, summary(is)),
        None => format!("{} none -> {would_be}", change.kind),
    }
}

fn summary(summary: &ConditionSummary) -> String {
    let status = summary.status.as_deref().unwrap_or_default();
    format!("{status} {} ({})", summary.reason, summary.message)
}

#[cfg(test)]
mod tests;
