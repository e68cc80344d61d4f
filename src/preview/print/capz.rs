//! The lines for one AzureCluster.

use super::{condition, fact, finalizer, requeue, section};
use crate::api::ClusterRef;
use crate::controllers::capz::preview::{ClusterPreview, EntryChange, UnclaimedEntry};
use crate::controllers::decision::Lifecycle;
use crate::controllers::preview::FieldChange;

pub(super) fn lines(object: &ClusterRef, preview: &ClusterPreview) -> Vec<String> {
    let mut lines = vec![format!("{object}, role {}: {}", preview.role, verdict(preview))];
    section(&mut lines, "Facts", preview.facts.iter().map(fact));
    section(&mut lines, "Entries", preview.entries.iter().map(entry));
    section(&mut lines, "Kubernetes", kubernetes(preview));
    section(&mut lines, "Conditions", preview.conditions.iter().map(condition));
    let unclaimed = preview.unclaimed.iter().map(|entry| unclaimed(object, entry));
    section(
        &mut lines,
        "Unclaimed entries, which stay until a person removes them",
        unclaimed,
    );
    lines.extend(requeue(preview.requeue_after_seconds, preview.requeue_reason));
    lines
}

fn verdict(preview: &ClusterPreview) -> String {
    let lifecycle = preview.lifecycle.as_str();
    match preview.entries.len() {
        _ if preview.unreadable => "something could not be read, the plan is not complete".to_owned(),
        _ if preview.lifecycle == Lifecycle::Nothing => "nothing to do, the role holds nothing of it".to_owned(),
        _ if !preview.pending => "nothing to do".to_owned(),
        0 => format!("{lifecycle}, in progress, no entry to change"),
        1 => format!("{lifecycle}, 1 entry to change"),
        many => format!("{lifecycle}, {many} entries to change"),
    }
}

fn entry(change: &EntryChange) -> String {
    let EntryChange {
        verb,
        azure_cluster,
        name,
        private_link_service,
        fields,
    } = change;
    let service = private_link_service.iter().map(|id| format!("connects to {id}"));
    let fields = (!fields.is_empty()).then(|| fields.join(", "));
    let details: Vec<String> = fields.into_iter().chain(service).collect();
    let text = format!("{verb:<6} {name} of AzureCluster {azure_cluster}");
    if details.is_empty() {
        text
    } else {
        format!("{text}: {}", details.join("; "))
    }
}

fn kubernetes(preview: &ClusterPreview) -> impl Iterator<Item = String> {
    let changed = |what: &'static str| {
        move |change: &FieldChange| format!("{what} {}: {} -> {}", change.field, change.is, change.would_be)
    };
    let finalizers = preview.finalizers.iter().map(finalizer);
    let ledger = preview.ledger.iter().map(changed("ledger"));
    finalizers
        .chain(ledger)
        .chain(preview.annotations.iter().map(changed("annotation")))
}

/// The command has no quote but its own, so that names of others cannot add to it.
fn unclaimed(object: &ClusterRef, entry: &UnclaimedEntry) -> String {
    let patch = serde_json::to_string(&entry.removal)
        .unwrap_or_default()
        .replace('\'', "\\u0027");
    format!(
        "{}: kubectl -n {} patch azurecluster {} --type json -p '{patch}'",
        entry.name, object.namespace, object.name
    )
}
