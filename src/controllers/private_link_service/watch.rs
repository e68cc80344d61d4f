//! What the controller watches.

use std::sync::Arc;

use futures::{Stream, StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Service;
use kube::runtime::{WatchStreamExt, watcher};

use crate::api::markers::SERVICES;
use crate::api::prune::prune_control_plane;
use crate::api::{AzurePrivateLinkService, HostedCluster, HostedControlPlane};
use crate::controllers::reconciler::ReconcilesCustomResource;
use crate::controllers::watch::whom::{concerned, in_its_namespace, of_its_name};
use crate::controllers::watch::{Heard, changes_for, forget_gone, indexed, named, next_writer, woken};
use crate::hypershift::cluster_index::ClusterIndex;
use crate::runtime::reconcile::{self, Runner};
use crate::runtime::watch::{Scope, changes, pages};
use crate::runtime::work_queue::WorkQueue;

/// Runs a controller for the HO role, over the custom resources, the HostedClusters that they name, and the control
/// planes and Services of their namespaces.
pub async fn run<C: ReconcilesCustomResource<Object = AzurePrivateLinkService>>(
    runner: Arc<Runner<C>>,
    scope: Scope,
    cluster_index: Arc<ClusterIndex>,
    clusters: impl Stream<Item = Heard<HostedCluster>> + Send + 'static,
) {
    let client = runner.cx.runtime.kube.clone();
    let heard = {
        let cx = Arc::clone(&runner.cx);
        let cluster_index = Arc::clone(&cluster_index);
        let mut forget = forget_gone(&runner);
        move |event: &watcher::Event<_>| {
            cluster_index.resource(event);
            cx.resources.heard(event);
            forget(event);
        }
    };
    let resources = scope.events(&client, pages()).inspect_ok(heard);
    let clusters = indexed(clusters, Arc::clone(&cluster_index));
    let planes = scope.metadata_events::<HostedControlPlane>(&client, pages(), prune_control_plane);
    let services = SERVICES.map(|name| {
        let services = scope.metadata_events::<Service>(&client, named(name), |_| {});
        services.touched_objects().boxed()
    });
    let known = runner.cx.resources.store();
    let next_writers = {
        let runner = Arc::clone(&runner);
        let next_writers = runner.cx.cloud.observations.next_in_queue();
        next_writers.filter_map(move |id| std::future::ready(next_writer(&runner, &id)))
    };
    let queue = WorkQueue::new(resources.touched_objects(), known)
        .watches(changes(clusters), {
            let runner = Arc::clone(&runner);
            move |cluster| woken(&runner, concerned(&runner.cx.resources, &cluster_index, &cluster))
        })
        .watches(changes(planes), {
            let runner = Arc::clone(&runner);
            move |control_plane| woken(&runner, in_its_namespace(&runner.cx.resources, &control_plane))
        })
        .watches(stream::select_all(services), {
            let runner = Arc::clone(&runner);
            move |service| woken(&runner, of_its_name(&runner.cx.resources, &service))
        })
        .reconcile_on(runner.cx.resources.promoted())
        .reconcile_on(next_writers)
        .reconcile_all_on(changes_for(&scope, &runner));
    reconcile::run(queue, runner, scope.concurrency, scope.stop).await;
}
