//! What the controller watches.

use std::sync::Arc;

use futures::{Stream, StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::{WatchStreamExt, watcher};

use crate::api::{AzurePrivateLinkService, HostedControlPlane};
use crate::controllers::custom_resource::CustomResource;
use crate::controllers::reconciler::ReconcilesCustomResource;
use crate::controllers::watch::whom::{concerned, in_its_namespace, siblings};
use crate::controllers::watch::{Heard, changes_for, forget_gone, hosted_cluster_events, indexed, woken};
use crate::hypershift::cluster_index::ClusterIndex;
use crate::runtime::reconcile::{self, Runner};
use crate::runtime::watch::{Scope, changes, pages};
use crate::runtime::work_queue::WorkQueue;

/// Runs a controller for the CPO role, over the custom resources and the control planes that own them; and over all
/// HostedClusters, where these vouch for them.
pub async fn run<C: ReconcilesCustomResource<Object = AzurePrivateLinkService>>(
    runner: Arc<Runner<C>>,
    scope: Scope,
    hosted_clusters: Option<Arc<ClusterIndex>>,
    planes: impl Stream<Item = Heard<HostedControlPlane>> + Send + 'static,
) {
    let client = runner.cx.runtime.kube.clone();
    let contested = {
        let runner = Arc::clone(&runner);
        move |cr: &AzurePrivateLinkService| {
            // Watches keep nothing of the part that shows another writer.
            if cr
                .other_writer(runner.cx.role, Timestamp::now(), runner.cx.runtime.resync)
                .is_some()
            {
                runner.pacer.wake(&cr.uid().unwrap_or_default());
            }
        }
    };
    let heard = {
        let cx = Arc::clone(&runner.cx);
        let mut forget = forget_gone(&runner);
        move |event: &watcher::Event<_>| {
            cx.resources.heard(event);
            forget(event);
        }
    };
    let resources = scope
        .events_of(scope.api(&client), pages(), contested)
        .inspect_ok(heard);
    let known = runner.cx.resources.store();
    let of_siblings = {
        let runner = Arc::clone(&runner);
        let known = known.clone();
        let changed = runner.cx.resources.follow();
        changed.flat_map(move |cr| stream::iter(woken(&runner, siblings(&known, &cr))))
    };
    let queue = WorkQueue::new(resources.touched_objects(), known)
        .watches(changes(planes), {
            let runner = Arc::clone(&runner);
            move |control_plane| woken(&runner, in_its_namespace(&runner.cx.resources, &control_plane))
        })
        .reconcile_on(of_siblings)
        .reconcile_on(runner.cx.resources.promoted());
    let queue = match hosted_clusters {
        None => queue,
        Some(cluster_index) => {
            let clusters = indexed(hosted_cluster_events(&scope, client), Arc::clone(&cluster_index));
            let runner = Arc::clone(&runner);
            queue.watches(changes(clusters), move |cluster| {
                woken(&runner, concerned(&runner.cx.resources, &cluster_index, &cluster))
            })
        }
    };
    let queue = queue.reconcile_all_on(changes_for(&scope, &runner));
    reconcile::run(queue, runner, scope.concurrency, scope.stop).await;
}
