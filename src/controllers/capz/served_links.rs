//! Asks for the definition of AzureClusters and for the cluster itself before the links of one count as gone.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::api::DynamicObject;
use kube::discovery::ApiResource;
use kube::{Api, Resource, ResourceExt};
use tokio::time::Instant;

use super::Context;
use crate::api::capi::AzureCluster;
use crate::capz::cluster::{links, reference, uid};
use crate::capz::ledger::Ledger;
use crate::capz::reason::Problem;
use crate::capz::served_links::{has_links, has_lost_its_links, not_served, served_again};
use crate::runtime::call::within;
use crate::runtime::event::{Event, What};
use crate::runtime::rate::{Limit, Rates};

/// The problem of the management cluster that links are hidden.
const HIDDEN: &str = "hidden links";

/// How often the definition is read. Beyond that what is there stays for the time being.
const READS: Limit = Limit {
    burst: 10,
    interval: Duration::from_secs(5),
};
/// How long the API server may hide links after it shows a definition that has them.
const CATCHES_UP: Duration = Duration::from_secs(60);

pub(super) fn reads() -> Rates {
    Rates::within(READS)
}

/// Notes of which workload clusters the API server hides the links, or may; returns whether there are any.
pub(super) async fn check(cx: &Context, management: &AzureCluster) -> bool {
    let ledger = Ledger::read(management);
    let mut doubtful = cx.workloads();
    let existing: BTreeSet<&str> = doubtful.iter().map(|cluster| uid(cluster)).collect();
    cx.decided(|decided| decided.without_links.retain(|uid, _| existing.contains(uid.as_str())));
    doubtful.retain(|cluster| has_lost_its_links(cluster, &ledger) && !is_known(cx, cluster));
    let mut hidden = BTreeSet::new();
    let are_served = !doubtful.is_empty() && are_served(cx).await;
    for cluster in doubtful {
        if !are_served || problem(cx, &cluster).await.is_some() {
            hidden.insert(uid(&cluster).to_owned());
        }
    }
    let are_hidden = !hidden.is_empty();
    cx.decided(|decided| decided.hidden = hidden);
    are_hidden
}

/// Tells of it on the management cluster when it begins.
pub(super) async fn show(cx: &Context, management: &AzureCluster, are_hidden: bool) {
    let event = are_hidden.then(|| Event::new(What::Refused, not_served().message));
    let object = management.object_ref(&());
    cx.runtime.events.stands(&object, HIDDEN, event).await;
}

/// Why it is not certain that a cluster has no links, if it shows none any more.
pub(super) async fn uncertainty(cx: &Context, cluster: &AzureCluster, management: &AzureCluster) -> Option<Problem> {
    if !has_lost_its_links(cluster, &Ledger::read(management)) || is_known(cx, cluster) {
        return None;
    }
    if are_served(cx).await {
        problem(cx, cluster).await
    } else {
        Some(not_served())
    }
}

/// Whether a read has shown that this version of a cluster has no links.
fn is_known(cx: &Context, cluster: &AzureCluster) -> bool {
    cx.decided(|decided| decided.without_links.get(uid(cluster)) == cluster.metadata.resource_version.as_ref())
}

/// Why it is not certain that a cluster has no links, while the API server serves links: what the watch has shown may be
/// older.
async fn problem(cx: &Context, cluster: &AzureCluster) -> Option<Problem> {
    let found = cx.read(&reference(cluster)).await.ok().flatten();
    let found = found.filter(|found| uid(found) == uid(cluster));
    let Some(version) = found.as_ref().filter(|found| links(found).is_empty()) else {
        // The event of its condition brings the cluster as it is.
        return Some(served_again());
    };
    let version = version.resource_version().unwrap_or_default();
    cx.decided(|decided| decided.without_links.insert(uid(cluster).to_owned(), version));
    (!is_known(cx, cluster)).then(served_again)
}

/// Whether links are certainly served.
async fn are_served(cx: &Context) -> bool {
    let now = Instant::now();
    let was_hidden = cx
        .decided(|decided| decided.not_served)
        .is_some_and(|at| now < at + CATCHES_UP);
    if cx.definition_reads.take(HIDDEN, now).is_err() {
        return false;
    }
    let definitions = ApiResource {
        group: "apiextensions.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "apiextensions.k8s.io/v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        plural: "customresourcedefinitions".to_owned(),
    };
    let api: Api<DynamicObject> = Api::all_with(cx.runtime.kube.clone(), &definitions);
    let name = format!("{}.{}", AzureCluster::plural(&()), AzureCluster::group(&()));
    match within(api.get(&name)).await {
        Ok(found) if has_links(&found.data, &AzureCluster::version(&())) => !was_hidden,
        Ok(_) => {
            cx.decided(|decided| decided.not_served = Some(now));
            false
        }
        Err(error) => {
            tracing::warn!(%error, "the definition of AzureClusters cannot be read");
            false
        }
    }
}

#[cfg(test)]
mod tests;
