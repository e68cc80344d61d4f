//! What is told of the custom resources that a controller keeps in memory: how many have which condition, and whether all are there.

use std::sync::Arc;

use hyperlink::api::{AzurePrivateLinkService, ConditionType, Status};
use hyperlink::conditions;
use hyperlink::http::ReadinessItem;
use hyperlink::metrics::{ConditionCount, Metrics};
use kube::runtime::reflector::Store;
use tokio_util::sync::CancellationToken;

/// Counts conditions from the store, and tells readiness when the store is filled.
pub(super) fn observe_store(
    store: Store<AzurePrivateLinkService>,
    filled: CancellationToken,
    metrics: Arc<Metrics>,
    synced: ReadinessItem,
) {
    metrics.count_conditions_with(move || count_conditions(&store));
    tokio::spawn(async move {
        filled.cancelled().await;
        synced.ready_as("running");
    });
}

fn count_conditions(store: &Store<AzurePrivateLinkService>) -> Vec<ConditionCount> {
    let objects = store.state();
    let status_of = |cr: &AzurePrivateLinkService, kind| {
        let found = cr
            .status
            .as_ref()
            .and_then(|status| conditions::get(&status.conditions, kind));
        [Status::True, Status::False]
            .into_iter()
            .find(|s| found.is_some_and(|c| c.status == s.as_str()))
    };
    let kinds = ConditionType::ALL.into_iter();
    kinds
        .flat_map(|condition| [Some(Status::True), Some(Status::False), None].map(|status| (condition, status)))
        .map(|(condition, status)| ConditionCount {
            condition,
            status,
            objects: objects.iter().filter(|cr| status_of(cr, condition) == status).count(),
        })
        .collect()
}
