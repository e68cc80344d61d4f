//! Asks for the definition of AzureClusters before the links of one count as gone.

use std::sync::Arc;
use std::time::Duration;

use kube::api::DynamicObject;
use kube::discovery::ApiResource;
use kube::{Api, Resource};
use tokio::time::Instant;

use super::Context;
use crate::api::capi::AzureCluster;
use crate::capz::ledger::Ledger;
use crate::capz::served_links::{has_links, has_lost_its_links, not_served};
use crate::runtime::call::within;
use crate::runtime::event::{Event, What};
use crate::runtime::rate::{Limit, Rates};

/// The problem of the management cluster that no links are served.
const NOT_SERVED: &str = "served links";

/// How often it is asked for. Beyond that what is there stays for the time being.
const ASKED: Limit = Limit {
    burst: 10,
    interval: Duration::from_secs(5),
};

/// How often the definition is read.
pub(super) fn asked() -> Rates {
    Rates::within(ASKED)
}

/// Notes whether the API server hides the links of clusters, if one shows none any more; returns it.
pub(super) async fn check(cx: &Context, management: &AzureCluster) -> bool {
    let ledger = Ledger::read(management);
    let workloads = cx.workloads();
    let mut all = workloads.iter().map(Arc::as_ref);
    let are_hidden = all.any(|cluster| has_lost_its_links(cluster, &ledger)) && !are_served(cx).await;
    cx.decided(|decided| decided.links_are_hidden = are_hidden);
    are_hidden
}

/// Tells of it on the management cluster when it begins.
pub(super) async fn show(cx: &Context, management: &AzureCluster, are_hidden: bool) {
    let event = are_hidden.then(|| Event::new(What::Refused, not_served().message));
    let object = management.object_ref(&());
    cx.runtime.events.stands(&object, NOT_SERVED, event).await;
}

/// Whether this cluster shows no links because none are served.
pub(super) async fn are_hidden(cx: &Context, cluster: &AzureCluster, management: &AzureCluster) -> bool {
    has_lost_its_links(cluster, &Ledger::read(management)) && !are_served(cx).await
}

/// Whether they certainly are.
async fn are_served(cx: &Context) -> bool {
    if cx.definition_reads.take(NOT_SERVED, Instant::now()).is_err() {
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
        Ok(found) => has_links(&found.data, &AzureCluster::version(&())),
        Err(error) => {
            tracing::warn!(%error, "the definition of AzureClusters cannot be read");
            false
        }
    }
}
