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
use crate::api::{AWSEndpointService, AzurePrivateLinkService, ClusterRef, ConditionType, Status};
use crate::controllers::contention::PublishedConditions;
use crate::controllers::custom_resource::CustomResource;
use crate::hypershift::conditions;

/// A custom resource whose conditions are summed up on its HostedCluster.
pub trait AggregatedResource: CustomResource {
    /// The conditions that are summed up.
    const TYPES: &'static [ConditionType];
    /// The one of them that reports that the custom resources cannot be listed.
    const UNLISTED: &'static [ConditionType];
    /// Whether a HostedCluster without custom resources has the conditions, too.
    const ALWAYS: bool;

    /// Whether a HostedCluster is to have these conditions.
    fn concerns(spec: &ClusterSpec) -> bool;

    /// Whether a custom resource in the namespace of a control plane that names no HostedCluster counts.
    const UNNAMED: bool;
}

impl AggregatedResource for AzurePrivateLinkService {
    const TYPES: &'static [ConditionType] = &Self::CONDITIONS;
    const UNLISTED: &'static [ConditionType] = &[ConditionType::AzurePrivateLinkServiceAvailable];
    const ALWAYS: bool = false;
    /// The observer names the HostedCluster.
    const UNNAMED: bool = false;

    /// On Azure, and not by Swift.
    fn concerns(spec: &ClusterSpec) -> bool {
        spec.azure()
            .is_some_and(|azure| azure.private_type() != Some(PrivateType::Other))
    }
}

impl AggregatedResource for AWSEndpointService {
    const TYPES: &'static [ConditionType] = &Self::CONDITIONS;
    const UNLISTED: &'static [ConditionType] = &[ConditionType::AWSEndpointAvailable];
    const ALWAYS: bool = true;
    /// Role `ho` names the HostedCluster, once its identity is proven.
    const UNNAMED: bool = true;

    /// On AWS, public ones too.
    fn concerns(spec: &ClusterSpec) -> bool {
        spec.aws().is_some()
    }
}

/// The conditions of some types that a HostedCluster should have.
#[derive(Debug, Clone, PartialEq)]
pub struct DesiredConditions {
    types: &'static [ConditionType],
    /// One of each type; none if there is nothing to report.
    pub conditions: Vec<Condition>,
}

impl DesiredConditions {
    /// The conditions of these types that a HostedCluster has.
    pub fn shown(&self, hosted: &Value) -> Vec<Condition> {
        shown(hosted, self.types)
    }

    /// Whether they are to be written. HyperShift sums up too, whatever its flags are. A condition of its own with our
    /// status stays, whatever its message; one with another status is answered at intervals.
    pub fn to_be_written(&self, shown: &[Condition], published: &PublishedConditions, now: Instant) -> bool {
        let stale = self.conditions.is_empty() && !shown.is_empty();
        stale || published.to_be_written(shown, &self.conditions, now)
    }

    /// The merge patch that sets `new` in place of them, guarded by the version that was read. Conditions of other types
    /// stay as they are.
    pub fn patch(&self, hosted: &Value, new: &[Condition]) -> Value {
        let others = stored(hosted).iter().filter(|condition| !is_of(condition, self.types));
        let all: Vec<Value> = others.cloned().chain(new.iter().map(|new| json!(new))).collect();
        let version = &hosted["metadata"]["resourceVersion"];
        json!({"metadata": {"resourceVersion": version}, "status": {"conditions": all}})
    }
}

/// The desired conditions of a HostedCluster by the custom resources in the namespace of its control plane. `None` where
/// these cannot be told from those of others, which HyperShift would sum up.
pub fn desired_conditions<R: AggregatedResource>(
    hosted: &Value,
    cluster: &ClusterRef,
    found: &[impl Borrow<R>],
    now: Timestamp,
) -> Option<DesiredConditions> {
    let mut own: Vec<&R> = found.iter().map(Borrow::borrow).collect();
    let name = cluster.to_string();
    own.retain(|cr| {
        cr.annotations()
            .get(CLUSTER_ANNOTATION)
            .map_or(R::UNNAMED, |named| *named == name)
    });
    own.sort_by_key(|cr| cr.name_any());
    let of_others = own.is_empty() && !found.is_empty();
    let reported = !own.is_empty() || R::ALWAYS;
    let kinds = R::TYPES.iter().filter(|_| reported);
    let conditions = kinds.map(|kind| condition(hosted, *kind, summed_up(*kind, &own), now));
    (!of_others).then(|| DesiredConditions {
        types: R::TYPES,
        conditions: conditions.collect(),
    })
}

/// The desired condition of a HostedCluster while the custom resources cannot be listed, and why. It touches no other.
pub fn unlisted_condition<R: AggregatedResource>(
    hosted: &Value,
    namespace: &str,
    why: &str,
    now: Timestamp,
) -> DesiredConditions {
    let resources = R::plural(&());
    let summary = || Summary {
        status: "Unknown",
        reason: "NotFound",
        message: format!("error listing {resources} in namespace {namespace}: {why}"),
    };
    let kinds = R::UNLISTED.iter();
    DesiredConditions {
        types: R::UNLISTED,
        conditions: kinds.map(|kind| condition(hosted, *kind, summary(), now)).collect(),
    }
}

fn condition(hosted: &Value, kind: ConditionType, summary: Summary, now: Timestamp) -> Condition {
    let shown = shown(hosted, &[kind]);
    Condition {
        type_: kind.as_str().to_owned(),
        last_transition_time: conditions::last_transition(&shown, kind, summary.status, now),
        status: summary.status.to_owned(),
        reason: summary.reason.to_owned(),
        message: summary.message,
        observed_generation: hosted["metadata"]["generation"].as_i64(),
    }
}

fn stored(hosted: &Value) -> &[Value] {
    let all = hosted.pointer("/status/conditions").and_then(Value::as_array);
    all.map(Vec::as_slice).unwrap_or_default()
}

fn shown(hosted: &Value, types: &[ConditionType]) -> Vec<Condition> {
    let own = stored(hosted).iter().filter(|condition| is_of(condition, types));
    own.filter_map(|condition| Condition::deserialize(condition).ok())
        .collect()
}

fn is_of(condition: &Value, types: &[ConditionType]) -> bool {
    types.iter().any(|kind| condition["type"] == kind.as_str())
}

/// What the custom resources report of one condition, in HyperShift's words.
struct Summary {
    status: &'static str,
    reason: &'static str,
    message: String,
}

/// The summary of one condition. What no custom resource reports is Unknown; one False outweighs all.
fn summed_up<R: CustomResource>(kind: ConditionType, crs: &[&R]) -> Summary {
    let reported = crs.iter().filter_map(|cr| conditions::get(cr.conditions(), kind));
    let reported: Vec<_> = reported.collect();
    let failing = reported.iter().filter(|one| one.status == Status::False.as_str());
    let failing: Vec<&str> = failing.map(|one| one.message.as_str()).collect();
    if reported.is_empty() {
        return Summary {
            status: "Unknown",
            reason: "StatusUnknown",
            message: format!("{} conditions not found", R::kind(&())),
        };
    }
    if failing.is_empty() {
        return Summary {
            status: Status::True.as_str(),
            reason: kind.success().as_str(),
            message: "All is well".to_owned(),
        };
    }
    Summary {
        status: Status::False.as_str(),
        reason: R::ERROR.as_str(),
        message: failing.join("; "),
    }
}

#[cfg(test)]
mod tests;
