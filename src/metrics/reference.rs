//! The reference of all metrics, as Markdown, from what is registered.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use prometheus::core::Desc;
use prometheus::proto::MetricType;

use super::capz::{self, ENTRIES, READY};
use super::changes::{CHANGES, kinds};
use super::labels::{Controller, IdentityResult, KubeResource, KubeVerb, ManagementWrite, ReconcileResult, Watched};
use super::objects::quotas::QUOTAS;
use super::objects::{OTHER, STATES, STATUSES};
use crate::api::capi::IdentityType;
use crate::api::condition::{ConditionType, Reason};
use crate::api::{LedRole, Platform};
use crate::aws;
use crate::aws::api::action::Action;
use crate::azure::arm::ports::CallVerb;
use crate::azure::arm::throttle::BUDGETS;
use crate::azure::kinds::Kind;
use crate::capz::reason as capz_reason;
use crate::engine::failure::Class;
use crate::hypershift::conditions::Since;

/// How the names of role `capz`'s own metrics begin.
const OF_CAPZ: &str = "hyperlink_capz_";

const INTRODUCTION: &str = "# Metrics

Written by `hyperlink metrics`; do not edit. Served on `/metrics` of every process; where it is served, and to whom, is
in `hyperlink run --help`. Metrics of custom resources come from leaders alone, from each role, and from a process for
all namespaces also of those that have one of their own: take the `max` over processes, and count by platform and name,
`count(max by (platform, control_plane, name) (…))`. Most counters have no series before something was counted. The
unit, `seconds` or `bytes`, is the end of the name; metrics without a unit count things.

| metric | type | labels | meaning |
|---|---|---|---|
";

/// An entry for each metric, and one for each label with the metrics where it has the same values.
pub(super) fn markdown(described: &[(Desc, MetricType)]) -> String {
    let mut metrics: Vec<_> = described.iter().collect();
    metrics.sort_by_key(|(desc, _)| &desc.fq_name);
    let mut text = String::from(INTRODUCTION);
    let mut labels = BTreeMap::<_, Vec<_>>::new();
    for (desc, kind) in metrics {
        let name = &desc.fq_name;
        let names = quoted(&desc.variable_labels);
        let kind = format!("{kind:?}").to_lowercase();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| `{name}` | {kind} | {names} | {} |", desc.help);
        for label in &desc.variable_labels {
            labels.entry((label, values(name, label))).or_default().push(name);
        }
    }
    text.push_str("\n## Labels\n\n| label | values | metrics |\n|---|---|---|\n");
    for ((label, values), metrics) in labels {
        let _ = writeln!(text, "| `{label}` | {values} | {} |", quoted(metrics));
    }
    text
}

/// The values of a metric's label, or what they are where they are not known in advance.
fn values(metric: &str, label: &str) -> String {
    match (label, metric) {
        ("action", _) => quoted(Action::ALL.iter().map(|action| action.name())),
        ("budget", _) => quoted(BUDGETS),
        ("change", _) => quoted(CHANGES),
        ("class", _) => quoted(Class::ALL.map(Class::label)) + ", without an error `ok`",
        ("commit", _) => "of this program's source".into(),
        ("control_plane", _) => "namespace of the custom resource".into(),
        ("controller", _) => quoted(Controller::LABELS),
        ("kind", "hyperlink_changes_total" | "hyperlink_changes_of_one_resource") => quoted(kinds()),
        ("kind", "hyperlink_aws_call_budget_exhausted_total") => quoted(aws::kinds::Kind::ALL.map(|kind| kind.label())),
        ("kind", _) => quoted(Kind::ALL.map(Kind::label)),
        ("cluster_namespace", _) => "namespace of the AzureCluster".into(),
        ("name", name) if name.starts_with(OF_CAPZ) => "name of the AzureCluster".into(),
        ("name", _) => "name of the custom resource".into(),
        ("platform", _) => quoted(Platform::ALL),
        ("quota", _) => quoted(QUOTAS),
        ("reason", "hyperlink_requeues_total") => {
            "`resync`, `read_due`, `list_due`, `poll`, `other_writer`, `conflict`, `failed`, `panicked`, \
             `may_come_late`, `nat_prefix_refused`, or the reason of the condition that time may change"
                .into()
        }
        ("reason", name) if name.starts_with(OF_CAPZ) => {
            let reasons = capz_reason::Reason::ALL.iter().map(|reason| reason.as_str());
            let first = (name == "hyperlink_capz_clusters").then_some(READY);
            quoted(first.into_iter().chain(reasons).chain([capz::OTHER]))
        }
        ("reason", _) => quoted(Reason::ALL.iter().map(|reason| reason.as_str()).chain([OTHER])),
        ("resource", "hyperlink_watches_failing") => quoted(Watched::LABELS),
        ("resource", _) => quoted(KubeResource::LABELS),
        ("result", "hyperlink_capz_identities") => quoted(IdentityResult::LABELS),
        ("result", name) if name.starts_with(OF_CAPZ) => quoted(ManagementWrite::LABELS),
        ("result", _) => quoted(ReconcileResult::LABELS),
        ("role", _) => quoted(LedRole::ALL.map(LedRole::as_str)) + "; on AWS with the platform",
        ("since", _) => quoted(Since::ALL.map(Since::label)),
        ("state", name) if name.starts_with(OF_CAPZ) => quoted(ENTRIES),
        ("state", _) => quoted(STATES),
        ("status", "hyperlink_arm_calls_total" | "hyperlink_aws_calls_total") => "the HTTP status; 0: no answer".into(),
        ("status", _) => quoted(STATUSES),
        ("type", name) if name.starts_with(OF_CAPZ) => quoted(IdentityType::ALL.map(IdentityType::as_str)),
        ("type", _) => quoted(ConditionType::ALL.map(ConditionType::as_str)),
        ("verb", "hyperlink_kube_writes_total") => quoted(KubeVerb::LABELS),
        ("verb", _) => quoted(CallVerb::ALL.map(CallVerb::label)),
        ("version", _) => "of this program".into(),
        _ => String::new(),
    }
}

fn quoted(words: impl IntoIterator<Item = impl std::fmt::Display>) -> String {
    let quoted: Vec<_> = words.into_iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}
