//! What the controller watches.

use std::sync::Arc;

use futures::{Stream, StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::Api;
use kube::runtime::{WatchStreamExt, watcher};

use super::EndpointServiceController;
use crate::api::markers::aws::{KARPENTER_SUBNETS, SERVICES};
use crate::api::prune::prune_control_plane;
use crate::api::{AWSEndpointService, HostedCluster, HostedControlPlane, NodePool};
use crate::controllers::reconciler::ServedResource;
use crate::controllers::watch::whom::{concerned, in_its_namespace, of_its_name};
use crate::controllers::watch::{Heard, changes_for, forget_gone, indexed, named, woken};
use crate::hypershift::names::control_plane_namespace;
use crate::hypershift::node_pools::cluster_of;
use crate::metrics::{KubeResource, Watched};
use crate::runtime::reconcile::{self, Runner};
use crate::runtime::watch::{Scope, Watchable, changes, pages};
use crate::runtime::work_queue::WorkQueue;

impl Watchable for AWSEndpointService {
    const WATCHED: Watched = Watched::EndpointService;
}

impl ServedResource for AWSEndpointService {
    const WRITES: KubeResource = KubeResource::EndpointService;
    const STATUS_WRITES: KubeResource = KubeResource::EndpointServiceStatus;
}

impl Watchable for NodePool {
    const WATCHED: Watched = Watched::NodePool;
}

impl Watchable for ConfigMap {
    const WATCHED: Watched = Watched::ConfigMap;
}

/// Runs the controller over the custom resources, the HostedClusters with their NodePools, and the control planes,
/// Services and Karpenter's lists in their namespaces.
pub async fn run(
    runner: Arc<Runner<EndpointServiceController>>,
    scope: Scope,
    clusters: impl Stream<Item = Heard<HostedCluster>> + Send + 'static,
) {
    let client = runner.cx.runtime.kube.clone();
    let cluster_index = Arc::clone(&runner.reconciler.cluster_index);
    let node_pools = Arc::clone(&runner.reconciler.node_pools);
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
    let subnets = scope.events::<ConfigMap>(&client, named(KARPENTER_SUBNETS));
    let pools = scope.events_of(Api::<NodePool>::all(client), pages(), |_| {});
    let pools = pools.inspect_ok(move |event| node_pools.heard(event));
    let known = runner.cx.resources.store();
    let in_namespace = |runner: &Arc<Runner<EndpointServiceController>>| {
        let runner = Arc::clone(runner);
        move |namespace: &str| woken(&runner, runner.cx.resources.of_namespace(namespace))
    };
    let (of_pool, of_subnets) = (in_namespace(&runner), in_namespace(&runner));
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
        .watches(pools.touched_objects(), move |pool| {
            let namespace = cluster_of(&pool).map(|cluster| control_plane_namespace(&cluster));
            namespace.map(|namespace| of_pool(&namespace)).unwrap_or_default()
        })
        .watches(subnets.touched_objects(), move |list| {
            of_subnets(&list.metadata.namespace.unwrap_or_default())
        })
        .reconcile_on(runner.cx.resources.promoted())
        .reconcile_all_on(changes_for(&scope, &runner));
    reconcile::run(queue, runner, scope.concurrency, scope.stop).await;
}
