//! What metrics show of the clusters, their entries and identities.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::Context;
use crate::api::capi::AzureCluster;
use crate::api::markers::capz::CONDITION;
use crate::capz::assignments::Assignments;
use crate::capz::cluster::{Access, access, is_deleting, reference};
use crate::capz::reason::Reason;
use crate::metrics::{ObservedCluster, ObservedEntries, ObservedFleet};

/// Makes metrics show what this context knows, while it exists.
pub(super) fn show(cx: &Arc<Context>) {
    let shown = Arc::downgrade(cx);
    cx.runtime.metrics.observe_fleet_with(move || {
        let observed = shown.upgrade().map(|cx| observed(&cx));
        observed.unwrap_or_default()
    });
}

fn observed(cx: &Context) -> ObservedFleet {
    let (management, now) = (cx.management(), Timestamp::now());
    let workloads = cx.workloads();
    let clusters = workloads.iter().filter(|cluster| {
        let is_served = cx.only.is_none() || cx.only == cluster.metadata.namespace;
        is_served && !is_deleting(cluster) && has_condition(cluster, management.as_deref())
    });
    ObservedFleet {
        entries: cx.decided(|decided| decided.entries),
        left_behind: cx.decided(|decided| decided.left_behind),
        clusters: clusters.map(|cluster| observed_cluster(cluster, now)).collect(),
        identities: cx
            .identities
            .by_result(workloads.iter().chain(&management).map(Arc::as_ref)),
    }
}

/// Whether a workload cluster has a side of which its condition tells.
fn has_condition(cluster: &AzureCluster, management: Option<&AzureCluster>) -> bool {
    let is_public = |cluster: &AzureCluster| access(cluster) == Ok(Access::Public);
    !is_public(cluster) || management.is_none_or(|management| !is_public(management))
}

fn observed_cluster(cluster: &AzureCluster, now: Timestamp) -> ObservedCluster {
    let found = cluster.condition(CONDITION);
    let created = cluster.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let since = found.map_or(created, |found| found.last_transition_time.parse().ok());
    let age = since.and_then(|since| Duration::try_from(now.duration_since(since)).ok());
    let named = reference(cluster);
    ObservedCluster {
        namespace: named.namespace,
        name: named.name,
        is_ready: found.is_some_and(|found| found.is_true()),
        reason: found.and_then(|found| {
            let mut all = Reason::ALL.into_iter();
            all.find(|reason| reason.as_str() == found.reason)
        }),
        age: age.unwrap_or_default(),
    }
}

/// How many entries the management cluster has after a decision.
pub(super) fn count(assigned: &Assignments) -> ObservedEntries {
    let states = || assigned.of.values();
    let entries = states().flat_map(|state| &state.entries);
    ObservedEntries {
        desired: states().map(|state| state.entries.len() + state.refused).sum(),
        present: entries.filter(|entry| entry.is_there).count(),
        unclaimed: assigned.unclaimed.len(),
    }
}
