//! What a HostedCluster says of its private path: its custom resources' conditions, summed up as HyperShift does. Pure.

use jiff::Timestamp;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::api::hypershift::{ClusterSpec, PlatformType, PrivateType};
use crate::api::markers::CLUSTER_ANNOTATION;
use crate::api::{AzurePrivateLinkService, ClusterRef, ConditionType, Reason};
use crate::conditions;

/// Whether a HostedCluster is to say anything: on Azure, and not by Swift.
pub fn concerns(spec: &ClusterSpec) -> bool {
    let private = spec.platform.azure.as_ref().and_then(|azure| azure.private.as_ref());
    let other = private.is_some_and(|private| private.kind == Some(PrivateType::Other));
    spec.platform.kind == Some(PlatformType::Azure) && !other
}

/// The merge patch that brings the conditions of a HostedCluster about, guarded by the version that was read; none if
/// nothing but time differs. Conditions of others stay as they are; ours go when there is no custom resource.
pub fn patch(hosted: &Value, cluster: &ClusterRef, found: &[AzurePrivateLinkService], now: Timestamp) -> Option<Value> {
    let stored = hosted.pointer("/status/conditions").and_then(Value::as_array);
    let stored = stored.map(Vec::as_slice).unwrap_or_default();
    let name = cluster.to_string();
    let mut own: Vec<&AzurePrivateLinkService> = found
        .iter()
        .filter(|cr| cr.annotations().get(CLUSTER_ANNOTATION) == Some(&name))
        .collect();
    own.sort_by_key(|cr| cr.name_any());
    let generation = &hosted["metadata"]["generation"];
    let wanted: Vec<Value> = match own.as_slice() {
        [] => Vec::new(),
        crs => ConditionType::ALL
            .into_iter()
            .map(|kind| dated(summed_up(kind, crs), generation, stored, now))
            .collect(),
    };
    let ours = |condition: &&Value| ConditionType::ALL.iter().any(|kind| condition["type"] == kind.as_str());
    let stands = stored.iter().filter(ours).count() == wanted.len() && wanted.iter().all(|new| stored.contains(new));
    if stands {
        return None;
    }
    let others = stored.iter().filter(|condition| !ours(condition)).cloned();
    let all: Vec<Value> = others.chain(wanted).collect();
    let version = &hosted["metadata"]["resourceVersion"];
    Some(json!({"metadata": {"resourceVersion": version}, "status": {"conditions": all}}))
}

/// Type, status, reason and message of one condition. What no custom resource reports is Unknown; one False outweighs all.
fn summed_up(kind: ConditionType, crs: &[&AzurePrivateLinkService]) -> Value {
    let reported = crs
        .iter()
        .filter_map(|cr| conditions::get(&cr.status.as_ref()?.conditions, kind));
    let reported: Vec<_> = reported.collect();
    let failing = reported.iter().filter(|condition| condition.status == "False");
    let failing: Vec<&str> = failing.map(|condition| condition.message.as_str()).collect();
    let (status, reason, message) = match (reported.as_slice(), failing.as_slice()) {
        ([], _) => (
            "Unknown",
            "StatusUnknown",
            "AzurePrivateLinkService conditions not found".to_owned(),
        ),
        (_, []) => ("True", Reason::AzureSuccess.as_str(), "All is well".to_owned()),
        (_, failing) => ("False", Reason::AzureError.as_str(), failing.join("; ")),
    };
    json!({"type": kind.as_str(), "status": status, "reason": reason, "message": message})
}

/// The condition with its generation, and since when it has its status.
fn dated(mut new: Value, generation: &Value, stored: &[Value], now: Timestamp) -> Value {
    let same = stored
        .iter()
        .find(|old| old["type"] == new["type"] && old["status"] == new["status"]);
    let now = json!(now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    new["lastTransitionTime"] = same.map_or(now, |old| old["lastTransitionTime"].clone());
    if !generation.is_null() {
        new["observedGeneration"] = generation.clone();
    }
    new
}

#[cfg(test)]
mod tests;
