//! The conditions of a HostedCluster about its private path: its custom resources' conditions, summed up as HyperShift
//! does. Pure.

use std::borrow::Borrow;
use std::time::Instant;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::hypershift::{ClusterSpec, PrivateType};
use crate::api::markers::CLUSTER_ANNOTATION;
use crate::api::{AzurePrivateLinkService, ClusterRef, ConditionType, Reason, Status};
use crate::controllers::contention::PublishedConditions;
use crate::controllers::custom_resource::CustomResource;
use crate::hypershift::conditions;

/// Whether a HostedCluster is to have these conditions: on Azure, and not by Swift.
pub fn concerns(spec: &ClusterSpec) -> bool {
    spec.azure()
        .is_some_and(|azure| azure.private_type() != Some(PrivateType::Other))
}

/// The conditions of our types that a HostedCluster has.
pub fn shown_conditions(hosted: &Value) -> Vec<Condition> {
    let own = stored(hosted).iter().filter(|condition| is_own(condition));
    own.filter_map(|condition| Condition::deserialize(condition).ok())
        .collect()
}

/// The desired conditions of a HostedCluster. `None` where its custom resources cannot be told from those of others,
/// which HyperShift would sum up; empty when there is no custom resource.
pub fn desired_conditions(
    hosted: &Value,
    cluster: &ClusterRef,
    found: &[impl Borrow<AzurePrivateLinkService>],
    now: Timestamp,
) -> Option<Vec<Condition>> {
    let name = cluster.to_string();
    let mut own: Vec<&AzurePrivateLinkService> = found
        .iter()
        .map(Borrow::borrow)
        .filter(|cr| cr.annotations().get(CLUSTER_ANNOTATION) == Some(&name))
        .collect();
    own.sort_by_key(|cr| cr.name_any());
    if own.is_empty() {
        return found.is_empty().then(Vec::new);
    }
    let generation = hosted["metadata"]["generation"].as_i64();
    let shown = shown_conditions(hosted);
    let all = AzurePrivateLinkService::CONDITIONS.into_iter().map(|kind| {
        let summary = summed_up(kind, &own);
        Condition {
            type_: kind.as_str().to_owned(),
            last_transition_time: conditions::last_transition(&shown, kind, summary.status, now),
            status: summary.status.to_owned(),
            reason: summary.reason.to_owned(),
            message: summary.message,
            observed_generation: generation,
        }
    });
    Some(all.collect())
}

/// Whether `desired` is to be written. HyperShift sums up too, whatever its flags are. A condition of its own with our
/// status stays, whatever its message; one with another status is answered at intervals.
pub fn to_be_written(
    shown: &[Condition],
    desired: &[Condition],
    published: &PublishedConditions,
    now: Instant,
) -> bool {
    let stale = desired.is_empty() && !shown.is_empty();
    stale || published.to_be_written(shown, desired, now)
}

/// The merge patch that sets `desired`, guarded by the version that was read. Conditions of others stay as they are.
pub fn patch(hosted: &Value, desired: &[Condition]) -> Value {
    let others = stored(hosted).iter().filter(|condition| !is_own(condition)).cloned();
    let all: Vec<Value> = others.chain(desired.iter().map(|new| json!(new))).collect();
    let version = &hosted["metadata"]["resourceVersion"];
    json!({"metadata": {"resourceVersion": version}, "status": {"conditions": all}})
}

fn stored(hosted: &Value) -> &[Value] {
    let all = hosted.pointer("/status/conditions").and_then(Value::as_array);
    all.map(Vec::as_slice).unwrap_or_default()
}

fn is_own(condition: &Value) -> bool {
    AzurePrivateLinkService::CONDITIONS
        .iter()
        .any(|kind| condition["type"] == kind.as_str())
}

/// What the custom resources report of one condition, in HyperShift's words.
struct Summary {
    status: &'static str,
    reason: &'static str,
    message: String,
}

/// The summary of one condition. What no custom resource reports is Unknown; one False outweighs all.
fn summed_up(kind: ConditionType, crs: &[&AzurePrivateLinkService]) -> Summary {
    let reported = crs.iter().filter_map(|cr| conditions::get(cr.conditions(), kind));
    let reported: Vec<_> = reported.collect();
    let failing = reported.iter().filter(|one| one.status == Status::False.as_str());
    let failing: Vec<&str> = failing.map(|one| one.message.as_str()).collect();
    if reported.is_empty() {
        return Summary {
            status: "Unknown",
            reason: "StatusUnknown",
            message: "AzurePrivateLinkService conditions not found".to_owned(),
        };
    }
    if failing.is_empty() {
        return Summary {
            status: Status::True.as_str(),
            reason: Reason::AzureSuccess.as_str(),
            message: "All is well".to_owned(),
        };
    }
    Summary {
        status: Status::False.as_str(),
        reason: Reason::AzureError.as_str(),
        message: failing.join("; "),
    }
}

#[cfg(test)]
mod tests;
