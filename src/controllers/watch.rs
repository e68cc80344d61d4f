//! What each controller watches.

use std::fmt::Debug;
use std::sync::Arc;

use futures::{Stream, StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Service;
use kube::core::NamespaceResourceScope;
use kube::runtime::controller::Action;
use kube::runtime::reflector::{ObjectRef, Store, store};
use kube::runtime::{Controller, WatchStreamExt, reflector, watcher};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::watch::Receiver;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::hosted_cluster;
use super::reconciler::ReconcilesCustomResource;
use crate::api::markers::{EXTERNAL_LABEL, EXTERNAL_VALUE, OAUTH, PRIVATE_ROUTER};
use crate::api::{AzurePrivateLinkService, HostedCluster, HostedControlPlane, Prune, other_writer};
use crate::azure::arm::id::ResourceId;
use crate::hypershift::cluster_index::ClusterIndex;
use crate::hypershift::names;
use crate::metrics::{Controller as Label, Watched};
use crate::observer::{self, Observer};
use crate::runtime::concurrency_limit::ConcurrencyLimit;
use crate::runtime::reconcile::{self, Runner};
use crate::runtime::watch_health::WatchHealth;

mod heard;
mod whom;

use heard::{changes, gone};
use whom::{concerned, control_planes_of, hosted_cluster_of, in_its_namespace, siblings};

/// An object that can be watched.
trait Watchable:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Prune
    + Clone
    + Debug
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    /// The resource that it is.
    const WATCHED: Watched;
}

impl Watchable for AzurePrivateLinkService {
    const WATCHED: Watched = Watched::PrivateLinkService;
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

/// How the controllers of a role run.
#[derive(Clone)]
pub struct Scope {
    /// The only namespace to serve; none means all.
    pub namespace: Option<String>,
    /// How many reconciles run at once.
    pub concurrency: u16,
    /// When this is cancelled, running reconciles end and no new ones begin.
    pub stop: CancellationToken,
    /// A change of this reconciles all objects again.
    pub again: Receiver<()>,
    /// Where the health of the watches is recorded.
    pub health: Arc<WatchHealth>,
}

impl Scope {
    /// An item each time that all objects are to be reconciled again.
    fn changes(&self) -> impl Stream<Item = ()> + Send + use<> {
        stream::select(each(self.again.clone()), each(self.health.relists()))
    }

    /// Like [`Self::changes`], for a controller that remembers what it observed in Azure: others may have led some of
    /// the objects.
    fn changes_for<R: ReconcilesCustomResource>(
        &self,
        runner: &Arc<Runner<R>>,
    ) -> impl Stream<Item = ()> + Send + use<R> {
        let cx = Arc::clone(&runner.cx);
        let runner = Arc::clone(runner);
        let again = each(self.again.clone()).inspect(move |()| cx.arm.observations.others_were_at_it());
        stream::select(again, each(self.health.relists())).inspect(move |()| runner.pacer.wake_all())
    }

    /// The watch events of the objects in scope.
    fn events<K: Watchable>(
        &self,
        client: &kube::Client,
        which: watcher::Config,
    ) -> impl Stream<Item = Result<watcher::Event<K>, watcher::Error>> + Send + use<K> {
        self.events_of(self.api(client), which, |_| {})
    }

    /// The watch events of all HostedClusters, which live in other namespaces than their control planes, once
    /// `cluster_index` has them.
    fn hosted_clusters(
        &self,
        client: kube::Client,
        cluster_index: &Arc<ClusterIndex>,
    ) -> impl Stream<Item = Result<watcher::Event<HostedCluster>, watcher::Error>> + Send + use<> {
        let cluster_index = Arc::clone(cluster_index);
        self.events_of(Api::<HostedCluster>::all(client), pages(), |_| {})
            .inspect_ok(move |event| cluster_index.cluster(event))
    }

    /// The Services of this name that change.
    fn services(
        &self,
        client: &kube::Client,
        name: &str,
    ) -> impl Stream<Item = Result<Service, watcher::Error>> + Send + use<> {
        let named = pages().fields(&format!("metadata.name={name}"));
        self.events::<Service>(client, named).touched_objects()
    }

    fn api<K: Watchable>(&self, client: &kube::Client) -> Api<K> {
        match &self.namespace {
            Some(namespace) => Api::namespaced(client.clone(), namespace),
            None => Api::all(client.clone()),
        }
    }

    /// The watch events of these objects, without what nobody reads. `whole` is called with each object before that is
    /// dropped.
    fn events_of<K: Watchable, W: FnMut(&K) + Send + 'static>(
        &self,
        api: Api<K>,
        which: watcher::Config,
        mut whole: W,
    ) -> impl Stream<Item = Result<watcher::Event<K>, watcher::Error>> + Send + use<K, W> {
        let events = watcher(api, which).default_backoff().modify(move |object| {
            whole(object);
            object.prune();
        });
        self.health.observe(K::WATCHED, events)
    }
}

/// An item each time that the signal changes.
fn each(signal: Receiver<()>) -> impl Stream<Item = ()> + Send {
    stream::unfold(signal, async |mut signal| {
        signal.changed().await.ok()?;
        Some(((), signal))
    })
}

/// Small pages: a page is held in memory whole, and an object may have more than a megabyte before it is pruned.
fn pages() -> watcher::Config {
    watcher::Config::default().page_size(10)
}

/// A store of the objects in these events, and the events themselves once they are in it.
///
/// A store's own `wait_until_ready` is of no use here: it wakes one waiter only, and that is the controller.
fn stored<K: Watchable>(
    events: impl Stream<Item = Result<watcher::Event<K>, watcher::Error>> + Send + 'static,
) -> (
    Store<K>,
    impl Stream<Item = Result<watcher::Event<K>, watcher::Error>> + Send + 'static,
) {
    let (reader, writer) = store();
    (reader, reflector(writer, events))
}

/// The custom resources for the work queue. Their next reconcile reads again, because something that is read for them
/// has changed.
fn woken<R: ReconcilesCustomResource>(
    runner: &Runner<R>,
    all: Vec<Arc<AzurePrivateLinkService>>,
) -> Vec<ObjectRef<AzurePrivateLinkService>> {
    for cr in &all {
        runner.pacer.wake(&cr.uid().unwrap_or_default());
    }
    all.iter().map(|cr| ObjectRef::from_obj(cr.as_ref())).collect()
}

/// The custom resource that is next in the write queue of a resource, for the work queue: its reconcile is due now.
fn next_writer<R: ReconcilesCustomResource>(
    runner: &Runner<R>,
    id: &ResourceId,
) -> Option<ObjectRef<AzurePrivateLinkService>> {
    let (uid, waiting) = runner.cx.awaiting.take(id)?;
    runner.pacer.due(&uid, Instant::now());
    Some(waiting)
}

/// Drops what is kept of each custom resource that is gone: it is not reconciled any more.
fn forget_gone<R: ReconcilesCustomResource>(
    runner: &Arc<Runner<R>>,
) -> impl FnMut(&watcher::Event<AzurePrivateLinkService>) + Send + use<R> {
    let runner = Arc::clone(runner);
    gone(move |uid| runner.forget(uid))
}

/// Runs a controller for the HO role, over the custom resources and the HostedClusters that they name.
pub async fn link_services<R: ReconcilesCustomResource>(
    runner: Arc<Runner<R>>,
    scope: Scope,
    cluster_index: Arc<ClusterIndex>,
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
    let clusters = scope.hosted_clusters(client, &cluster_index);
    let known = runner.cx.resources.store();
    let next_writers = {
        let runner = Arc::clone(&runner);
        let next_writers = runner.cx.arm.observations.next_in_queue();
        next_writers.filter_map(move |id| std::future::ready(next_writer(&runner, &id)))
    };
    let controller = Controller::for_stream(resources.touched_objects(), known)
        .watches_stream(changes(clusters), {
            let runner = Arc::clone(&runner);
            move |cluster| woken(&runner, concerned(&runner.cx.resources, &cluster_index, &cluster))
        })
        .reconcile_on(runner.cx.resources.promoted())
        .reconcile_on(next_writers)
        .reconcile_all_on(scope.changes_for(&runner));
    reconcile::run(controller, runner, scope.concurrency, scope.stop).await;
}

/// Runs a controller for the CPO role, over the custom resources and the control planes that own them; and over all
/// HostedClusters, where these vouch for them.
pub async fn endpoints<R: ReconcilesCustomResource>(
    runner: Arc<Runner<R>>,
    scope: Scope,
    hosted_clusters: Option<Arc<ClusterIndex>>,
) {
    let client = runner.cx.runtime.kube.clone();
    let planes = scope.events(&client, pages());
    let contested = {
        let runner = Arc::clone(&runner);
        move |cr: &AzurePrivateLinkService| {
            // Watches keep nothing of the part that shows another writer.
            if other_writer(cr, runner.cx.role, Timestamp::now(), runner.cx.runtime.resync).is_some() {
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
    let controller = Controller::for_stream(resources.touched_objects(), known)
        .watches_stream(changes(planes), {
            let runner = Arc::clone(&runner);
            move |control_plane| woken(&runner, in_its_namespace(&runner.cx.resources, &control_plane))
        })
        .reconcile_on(of_siblings)
        .reconcile_on(runner.cx.resources.promoted());
    let controller = match hosted_clusters {
        None => controller,
        Some(cluster_index) => {
            let clusters = scope.hosted_clusters(client, &cluster_index);
            let runner = Arc::clone(&runner);
            controller.watches_stream(changes(clusters), move |cluster| {
                woken(&runner, concerned(&runner.cx.resources, &cluster_index, &cluster))
            })
        }
    };
    let controller = controller.reconcile_all_on(scope.changes_for(&runner));
    reconcile::run(controller, runner, scope.concurrency, scope.stop).await;
}

/// Runs the observer for the CPO role, over the control planes, the Services that publish them and their custom
/// resources. `cloud` is the Azure cloud that this process serves.
pub async fn control_planes(cx: Arc<Context>, cloud: &'static str, scope: Scope) {
    let client = cx.runtime.kube.clone();
    let label = pages().labels(&format!("{EXTERNAL_LABEL}={EXTERNAL_VALUE}"));
    let (external, external_events) = stored(scope.events::<Service>(&client, label));
    let custom = cx.resources.follow();
    let observer = Arc::new(Observer::new(cx, cloud, external));
    let planes = scope.events(&client, pages()).inspect_ok({
        let observer = Arc::clone(&observer);
        gone(move |uid| observer.forget(uid))
    });
    let (reader, planes) = stored::<HostedControlPlane>(planes);
    let router = scope.services(&client, PRIVATE_ROUTER);
    let oauth = scope.services(&client, OAUTH);
    let of_service = {
        let known = reader.clone();
        move |service| control_planes_of(&known, &service)
    };
    let of_custom_resources = {
        let known = reader.clone();
        custom.flat_map(move |cr| stream::iter(control_planes_of(&known, cr.as_ref())))
    };
    let controller = Controller::for_stream(changes(planes), reader)
        .watches_stream(router, of_service.clone())
        .watches_stream(oauth, of_service.clone())
        .watches_stream(external_events.touched_objects(), of_service)
        .reconcile_on(of_custom_resources)
        .reconcile_all_on(scope.changes());
    let limit = ConcurrencyLimit::new(Label::Observer, scope.concurrency);
    reconcile::run_each(controller, limit, scope.stop, move |control_plane, limit| {
        let observer = Arc::clone(&observer);
        async move {
            let cx = observer.context();
            let namespace = control_plane.namespace().unwrap_or_default();
            if cx.excluded.contains(&namespace) {
                return Action::await_change();
            }
            let work = || observer::reconcile(control_plane, Arc::clone(&observer));
            let action = limit.take(&cx.runtime.metrics, &namespace, work).await;
            action.unwrap_or_else(Action::await_change)
        }
    })
    .await;
}

/// Runs a controller for the HO role where it sums up conditions, over HostedClusters and the custom resources that
/// name them.
pub async fn hosted_clusters(cx: Arc<Context>, scope: Scope) {
    let client = cx.runtime.kube.clone();
    let only = scope.namespace.clone();
    let clusters = scope
        .events_of(Api::<HostedCluster>::all(client), pages(), |_| {})
        .inspect_ok({
            let cx = Arc::clone(&cx);
            gone(move |uid| {
                cx.published.forget(uid);
                cx.runtime.failures.over(uid);
            })
        });
    let (reader, clusters) = stored(clusters);
    let named = cx.resources.follow().filter_map(async |cr| hosted_cluster_of(&cr));
    let controller = Controller::for_stream(clusters.touched_objects(), reader)
        .reconcile_on(named)
        .reconcile_all_on(scope.changes());
    let limit = ConcurrencyLimit::new(Label::HostedCluster, scope.concurrency);
    reconcile::run_each(controller, limit, scope.stop, move |cluster, limit| {
        let cx = Arc::clone(&cx);
        let only = only.clone();
        async move {
            let namespace = names::control_plane_namespace(&hosted_cluster::reference(&cluster));
            let work = || hosted_cluster::reconcile(cluster, Arc::clone(&cx), only.as_deref());
            let action = limit.take(&cx.runtime.metrics, &namespace, work).await;
            action.unwrap_or_else(Action::await_change)
        }
    })
    .await;
}

#[cfg(test)]
mod tests;
