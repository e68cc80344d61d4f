//! What each controller watches.

use std::sync::Arc;

use futures::{Stream, StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Service;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use tokio::time::Instant;

use super::azure::access::Context;
use super::custom_resource::CustomResource;
use super::hosted_cluster;
use super::reconciler::{KeyOf, ReconcilesCustomResource, ServedResource};
use crate::api::markers::{EXTERNAL_LABEL, EXTERNAL_VALUE, OAUTH, PRIVATE_ROUTER, SERVICES};
use crate::api::prune::prune_control_plane;
use crate::api::{AzurePrivateLinkService, HostedCluster, HostedControlPlane};
use crate::hypershift::cluster_index::ClusterIndex;
use crate::hypershift::names;
use crate::metrics::{Controller as Label, KubeResource, Watched};
use crate::observer::{self, Observer};
use crate::runtime::concurrency_limit::{ConcurrencyLimit, Requester};
use crate::runtime::reconcile::{self, Runner};
use crate::runtime::watch::{Scope, Watchable, changes, each, gone, pages, stored};
use crate::runtime::work_queue::{Action, WorkQueue};

mod whom;

use whom::{concerned, control_planes_of, hosted_cluster_of, in_its_namespace, of_its_name, siblings};

impl Watchable for AzurePrivateLinkService {
    const WATCHED: Watched = Watched::PrivateLinkService;
}

impl ServedResource for AzurePrivateLinkService {
    const WRITES: KubeResource = KubeResource::PrivateLinkService;
    const STATUS_WRITES: KubeResource = KubeResource::LinkServiceStatus;
}

impl Watchable for HostedCluster {
    const WATCHED: Watched = Watched::HostedCluster;
}

impl Watchable for HostedControlPlane {
    const WATCHED: Watched = Watched::HostedControlPlane;
}

impl Watchable for Service {
    const WATCHED: Watched = Watched::Service;
}

/// Like [`Scope::changes`], for a controller that remembers what it observed in Azure: others may have led some of the
/// objects.
pub(super) fn changes_for<C: ReconcilesCustomResource>(
    scope: &Scope,
    runner: &Arc<Runner<C>>,
) -> impl Stream<Item = ()> + Send + use<C> {
    let cx = Arc::clone(&runner.cx);
    let runner = Arc::clone(runner);
    let again = each(scope.again.clone()).inspect(move |()| cx.cloud.observations.others_were_at_it());
    stream::select(again, each(scope.health.relists())).inspect(move |()| runner.pacer.wake_all())
}

/// The events of a watch.
type Heard<K> = Result<watcher::Event<K>, watcher::Error>;

/// The watch events of all HostedClusters, which live in other namespaces than their control planes.
pub fn hosted_cluster_events(
    scope: &Scope,
    client: kube::Client,
) -> impl Stream<Item = Heard<HostedCluster>> + Send + use<> {
    scope.events_of(Api::<HostedCluster>::all(client), pages(), |_| {})
}

/// The same events once `cluster_index` has them.
fn indexed(
    clusters: impl Stream<Item = Heard<HostedCluster>> + Send,
    cluster_index: Arc<ClusterIndex>,
) -> impl Stream<Item = Heard<HostedCluster>> + Send {
    clusters.inspect_ok(move |event| cluster_index.cluster(event))
}

/// A watch of the objects of this name.
fn named(name: &str) -> watcher::Config {
    pages().fields(&format!("metadata.name={name}"))
}

/// The Services of this name that change.
fn services(
    scope: &Scope,
    client: &kube::Client,
    name: &str,
) -> impl Stream<Item = Result<Service, watcher::Error>> + Send + use<> {
    scope.events::<Service>(client, named(name)).touched_objects()
}

/// The custom resources for the work queue. Their next reconcile reads again, because something that is read for them
/// has changed.
pub(super) fn woken<C: ReconcilesCustomResource>(
    runner: &Runner<C>,
    all: Vec<Arc<C::Object>>,
) -> Vec<ObjectRef<C::Object>> {
    for cr in &all {
        runner.pacer.wake(&cr.uid().unwrap_or_default());
    }
    all.iter().map(|cr| ObjectRef::from_obj(cr.as_ref())).collect()
}

/// The custom resource that is next in the write queue of a resource, for the work queue: its reconcile is due now.
fn next_writer<C: ReconcilesCustomResource>(runner: &Runner<C>, id: &KeyOf<C>) -> Option<ObjectRef<C::Object>> {
    let (uid, waiting) = runner.cx.awaiting.take(id)?;
    runner.pacer.due(&uid, Instant::now());
    Some(ObjectRef::new(&waiting.name).within(&waiting.namespace))
}

/// Drops what is kept of each custom resource that is gone: it is not reconciled any more.
pub(super) fn forget_gone<C: ReconcilesCustomResource>(
    runner: &Arc<Runner<C>>,
) -> impl FnMut(&watcher::Event<C::Object>) + Send + use<C> {
    let runner = Arc::clone(runner);
    gone(move |uid| runner.forget(uid))
}

/// Runs a controller for the HO role, over the custom resources, the HostedClusters that they name, and the control
/// planes and Services of their namespaces.
pub async fn link_services<C: ReconcilesCustomResource<Object = AzurePrivateLinkService>>(
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

/// Runs a controller for the CPO role, over the custom resources and the control planes that own them; and over all
/// HostedClusters, where these vouch for them.
pub async fn endpoints<C: ReconcilesCustomResource<Object = AzurePrivateLinkService>>(
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

/// Runs the observer for the CPO role, over the control planes, the Services that publish them and their custom
/// resources. `cloud` is the Azure cloud that this process serves.
pub async fn control_planes(
    cx: Arc<Context>,
    cloud: &'static str,
    scope: Scope,
    planes: impl Stream<Item = Heard<HostedControlPlane>> + Send + 'static,
) {
    let client = cx.runtime.kube.clone();
    let label = pages().labels(&format!("{EXTERNAL_LABEL}={EXTERNAL_VALUE}"));
    let (external, external_events) = stored(scope.events::<Service>(&client, label));
    let custom = cx.resources.follow();
    let observer = Arc::new(Observer::new(cx, cloud, external));
    let planes = planes.inspect_ok({
        let observer = Arc::clone(&observer);
        gone(move |uid| observer.forget(uid))
    });
    let (reader, planes) = stored::<HostedControlPlane>(planes);
    let router = services(&scope, &client, PRIVATE_ROUTER);
    let oauth = services(&scope, &client, OAUTH);
    let of_service = {
        let known = reader.clone();
        move |service| control_planes_of(&known, &service)
    };
    let of_custom_resources = {
        let known = reader.clone();
        custom.flat_map(move |cr| stream::iter(control_planes_of(&known, cr.as_ref())))
    };
    let queue = WorkQueue::new(changes(planes), reader)
        .watches(router, of_service.clone())
        .watches(oauth, of_service.clone())
        .watches(external_events.touched_objects(), of_service)
        .reconcile_on(of_custom_resources)
        .reconcile_all_on(scope.changes());
    let limit = ConcurrencyLimit::new(Label::Observer, scope.concurrency);
    reconcile::run_each(queue, limit, scope.stop, move |control_plane, limit| {
        let observer = Arc::clone(&observer);
        async move {
            let cx = observer.context();
            let namespace = control_plane.namespace().unwrap_or_default();
            if cx.excluded.contains(&namespace) {
                return Action::AwaitChange;
            }
            let work = || observer::reconcile(control_plane, Arc::clone(&observer));
            let action = limit.take(&cx.runtime.metrics, Requester::of(&namespace), work).await;
            action.unwrap_or(Action::AwaitChange)
        }
    })
    .await;
}

/// Runs a controller for the HO role where it sums up conditions, over HostedClusters and the custom resources that
/// name them.
pub async fn hosted_clusters(
    cx: Arc<Context>,
    scope: Scope,
    clusters: impl Stream<Item = Heard<HostedCluster>> + Send + 'static,
) {
    let only = scope.namespace.clone();
    let clusters = clusters.inspect_ok({
        let cx = Arc::clone(&cx);
        gone(move |uid| {
            cx.published.forget(uid);
            cx.runtime.retries.over(uid);
        })
    });
    let (reader, clusters) = stored(clusters);
    let named = cx.resources.follow().filter_map(async |cr| hosted_cluster_of(&cr));
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

#[cfg(test)]
mod tests;
