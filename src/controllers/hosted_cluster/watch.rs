//! What the controller watches.

use std::sync::Arc;

use futures::{Stream, StreamExt, TryStreamExt};
use kube::runtime::WatchStreamExt;

use crate::api::HostedCluster;
use crate::controllers::azure::access::Context;
use crate::controllers::hosted_cluster;
use crate::controllers::watch::Heard;
use crate::controllers::watch::whom::hosted_cluster_of;
use crate::hypershift::names;
use crate::metrics::Controller as Label;
use crate::runtime::concurrency_limit::{ConcurrencyLimit, Requester};
use crate::runtime::reconcile;
use crate::runtime::watch::{Scope, gone, stored};
use crate::runtime::work_queue::{Action, WorkQueue};

/// Runs a controller for the HO role where it sums up conditions, over HostedClusters and the custom resources that
/// name them.
pub async fn run(cx: Arc<Context>, scope: Scope, clusters: impl Stream<Item = Heard<HostedCluster>> + Send + 'static) {
    let only = scope.namespace.clone();
    let clusters = clusters.inspect_ok({
        let cx = Arc::clone(&cx);
        gone(move |uid| {
            cx.published.forget(uid);
            cx.runtime.retries.over(uid);
        })
    });
    let (reader, clusters) = stored(clusters);
    let named = cx
        .resources
        .follow()
        .filter_map(async |cr| hosted_cluster_of(cr.as_ref()));
    let queue = WorkQueue::new(clusters.touched_objects(), reader)
        .reconcile_on(named)
        .reconcile_all_on(scope.changes());
    let limit = ConcurrencyLimit::new(Label::HostedCluster, scope.concurrency);
    reconcile::run_each(queue, limit, scope.stop, move |cluster, limit| {
        let cx = Arc::clone(&cx);
        let only = only.clone();
        async move {
            let namespace = names::control_plane_namespace(&hosted_cluster::reference(&cluster));
            let work = || hosted_cluster::reconcile(cluster, Arc::clone(&cx), only.as_deref());
            let action = limit.take(&cx.runtime.metrics, Requester::of(&namespace), work).await;
            action.unwrap_or(Action::AwaitChange)
        }
    })
    .await;
}
