//! What each controller watches, and which object an event is for.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Service;
use kube::core::NamespaceResourceScope;
use kube::runtime::controller::Action;
use kube::runtime::reflector::{ObjectRef, Store, store};
use kube::runtime::{Controller, WatchStreamExt, reflector, watcher};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::watch::Receiver;
use tokio_util::sync::CancellationToken;

use super::claims::{Claim, Holder};
use super::context::Context;
use super::hosted_cluster;
use super::neighbours::{ControlPlanes, Neighbours};
use super::places::Places;
use super::run::{Reconciler, Runner};
use super::watch_health::WatchHealth;
use crate::api::markers::{CLUSTER_ANNOTATION, EXTERNAL_LABEL, EXTERNAL_VALUE, OAUTH, PRIVATE_ROUTER, SERVICES};
use crate::api::{AzurePrivateLinkService, ClusterRef, HostedCluster, HostedControlPlane, Reason};
use crate::metrics::{Controller as Label, Watched};
use crate::names;
use crate::observer::{self, Observer};

mod heard;

use heard::{changes, gone};

/// An object that can be watched.
trait Watchable:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
    /// Of which resource.
    const WATCHED: Watched;
}

impl Watchable for AzurePrivateLinkService {
    const WATCHED: Watched = Watched::LinkService;
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
    /// Passes at once.
    pub concurrency: u16,
    /// Running passes end, nothing new begins.
    pub stop: CancellationToken,
    /// All objects are to be looked at again when this changes.
    pub again: Receiver<()>,
    /// Where it is told how the watches stand.
    pub health: Arc<WatchHealth>,
}

impl Scope {
    /// An item each time that all objects are to be looked at again.
    fn changes(&self) -> impl Stream<Item = ()> + Send + use<> {
        stream::select(each(self.again.clone()), each(self.health.listed_anew()))
    }

    /// The same for who remembers what it saw in Azure: others may have led some of the objects.
    fn changes_for(&self, cx: &Arc<Context>) -> impl Stream<Item = ()> + Send + use<> {
        let cx = Arc::clone(cx);
        let again = each(self.again.clone()).inspect(move |()| cx.memory.others_were_at_it());
        stream::select(again, each(self.health.listed_anew()))
    }

    /// What is told of the objects in scope.
    fn events<K: Watchable>(
        &self,
        client: &kube::Client,
        which: watcher::Config,
    ) -> impl Stream<Item = Result<watcher::Event<K>, watcher::Error>> + Send + use<K> {
        let api = match &self.namespace {
            Some(namespace) => Api::namespaced(client.clone(), namespace),
            None => Api::all(client.clone()),
        };
        self.events_of(api, which)
    }

    /// The same of others, without what nobody reads.
    fn events_of<K: Watchable>(
        &self,
        api: Api<K>,
        which: watcher::Config,
    ) -> impl Stream<Item = Result<watcher::Event<K>, watcher::Error>> + Send + use<K> {
        let events = watcher(api, which)
            .default_backoff()
            .modify(|object| object.meta_mut().managed_fields = None);
        self.health.observe(K::WATCHED, events)
    }
}

/// An item each time that something is told.
fn each(told: Receiver<()>) -> impl Stream<Item = ()> + Send {
    stream::unfold(told, async |mut told| {
        told.changed().await.ok()?;
        Some(((), told))
    })
}

/// Small pages keep the first list from being held in memory twice.
fn pages() -> watcher::Config {
    watcher::Config::default().page_size(50)
}

/// A store of the objects that these events tell of, and the same events once they are in it.
///
/// A store's own `wait_until_ready` is not for us: it wakes one waiter only, and that is the controller.
fn stored<K: Watchable>(
    events: impl Stream<Item = Result<watcher::Event<K>, watcher::Error>> + Send + 'static,
) -> (
    Store<K>,
    impl Stream<Item = Result<watcher::Event<K>, watcher::Error>> + Send + 'static,
) {
    let (reader, writer) = store();
    (reader, reflector(writer, events))
}

/// Nothing is kept of a custom resource that is gone: it comes to no pass any more.
fn forgets<R: Reconciler>(
    runner: &Arc<Runner<R>>,
) -> impl FnMut(&watcher::Event<AzurePrivateLinkService>) + Send + use<R> {
    let runner = Arc::clone(runner);
    gone(move |uid| runner.forget(uid))
}

/// The custom resources and the HostedClusters that they name, for the HO role.
pub async fn link_services<R: Reconciler>(
    runner: Arc<Runner<R>>,
    scope: Scope,
    neighbours: Arc<Neighbours>,
    shown: impl FnOnce(Store<AzurePrivateLinkService>),
) {
    let client = runner.cx.kube.clone();
    let heard = {
        let neighbours = Arc::clone(&neighbours);
        let mut forgets = forgets(&runner);
        move |event: &watcher::Event<_>| {
            neighbours.resource(event);
            forgets(event);
        }
    };
    let resources = scope.events(&client, pages()).inspect_ok(heard);
    let (reader, resources) = stored(resources);
    let known = reader.clone();
    // HostedClusters live in other namespaces than their control planes.
    let clusters = scope.events_of(Api::<HostedCluster>::all(client), pages()).inspect_ok({
        let neighbours = Arc::clone(&neighbours);
        move |event| neighbours.cluster(event)
    });
    let controller = Controller::for_stream(resources.touched_objects(), reader.clone())
        .watches_stream(changes(clusters), move |cluster| {
            concerned(&known, &neighbours, &cluster)
        });
    shown(reader);
    let controller = controller.reconcile_all_on(scope.changes_for(&runner.cx));
    super::run::run(controller, runner, scope.concurrency, scope.stop).await;
}

/// The custom resources to which a HostedCluster matters: its own, those of clusters that name what it names, and those
/// that were refused for what another one had.
fn concerned(
    known: &Store<AzurePrivateLinkService>,
    neighbours: &Neighbours,
    cluster: &HostedCluster,
) -> Vec<ObjectRef<AzurePrivateLinkService>> {
    let mut named = BTreeSet::from([Holder::of(cluster).object]);
    {
        let clusters = neighbours.clusters();
        let claims = Claim::of_cluster(cluster);
        let rivals = claims.iter().flat_map(|claim| clusters.holders(claim));
        named.extend(rivals.map(|holder| holder.object.clone()));
    }
    let names: BTreeSet<String> = named.iter().map(ToString::to_string).collect();
    let namespaces: BTreeSet<String> = named.iter().map(names::control_plane_namespace).collect();
    references(known, move |cr| {
        let annotation = cr.annotations().get(CLUSTER_ANNOTATION);
        annotation.is_some_and(|name| names.contains(name))
            || cr
                .metadata
                .namespace
                .as_ref()
                .is_some_and(|namespace| namespaces.contains(namespace))
            || is_contested(cr)
    })
}

fn is_contested(cr: &AzurePrivateLinkService) -> bool {
    let contested = [Reason::DuplicateIdentity, Reason::HostNameClaimed].map(Reason::as_str);
    let mut conditions = cr.status.iter().flat_map(|status| &status.conditions);
    conditions.any(|condition| contested.contains(&condition.reason.as_str()))
}

/// The custom resources and the control planes that own them, for the CPO role.
pub async fn endpoints<R: Reconciler>(
    runner: Arc<Runner<R>>,
    scope: Scope,
    control_planes: Arc<ControlPlanes>,
    shown: impl FnOnce(Store<AzurePrivateLinkService>),
) {
    let client = runner.cx.kube.clone();
    let planes = scope
        .events(&client, pages())
        .inspect_ok(move |event| control_planes.control_plane(event));
    let resources = scope.events(&client, pages()).inspect_ok(forgets(&runner));
    let (reader, resources) = stored(resources);
    let again = scope.events::<AzurePrivateLinkService>(&client, pages());
    let (known, relatives) = (reader.clone(), reader.clone());
    let controller = Controller::for_stream(resources.touched_objects(), reader.clone())
        .watches_stream(changes(planes), move |control_plane: HostedControlPlane| {
            references(&known, move |cr| {
                cr.metadata.namespace == control_plane.metadata.namespace
            })
        })
        .watches_stream(again.touched_objects(), move |cr| siblings(&relatives, &cr));
    shown(reader);
    let controller = controller.reconcile_all_on(scope.changes_for(&runner.cx));
    super::run::run(controller, runner, scope.concurrency, scope.stop).await;
}

/// The control planes with the Services that publish them and their custom resources, for the CPO role. `cloud` is the Azure
/// cloud that this process serves.
pub async fn control_planes(cx: Arc<Context>, cloud: &'static str, scope: Scope) {
    let client = cx.kube.clone();
    let services = |which| scope.events::<Service>(&client, which);
    let label = pages().labels(&format!("{EXTERNAL_LABEL}={EXTERNAL_VALUE}"));
    let (external, external_events) = stored(services(label));
    let observer = Arc::new(Observer::new(cx, cloud, external));
    let planes = scope.events(&client, pages()).inspect_ok({
        let observer = Arc::clone(&observer);
        gone(move |uid| observer.forget(uid))
    });
    let (reader, planes) = stored::<HostedControlPlane>(planes);
    let custom = scope.events::<AzurePrivateLinkService>(&client, pages());
    let places = Arc::new(Places::new(Label::Observer, scope.concurrency));
    let over = Arc::clone(&places);
    let named = |name| services(pages().fields(&format!("metadata.name={name}"))).touched_objects();
    let (router, oauth) = (named(PRIVATE_ROUTER), named(OAUTH));
    let of_service = {
        let known = reader.clone();
        move |service| control_planes_of(&known, &service)
    };
    let of_custom_resource = {
        let known = reader.clone();
        move |cr| control_planes_of(&known, &cr)
    };
    let passes = Controller::for_stream(changes(planes), reader)
        .watches_stream(router, of_service.clone())
        .watches_stream(oauth, of_service.clone())
        .watches_stream(external_events.touched_objects(), of_service)
        .watches_stream(custom.touched_objects(), of_custom_resource)
        .reconcile_all_on(scope.changes())
        .graceful_shutdown_on(async move { over.end_with(scope.stop).await })
        .run(
            move |control_plane, observer: Arc<Observer>| {
                let places = Arc::clone(&places);
                async move {
                    let namespace = control_plane.namespace().unwrap_or_default();
                    let work = || {
                        let served = &observer.context().served;
                        served.during(&namespace, observer::reconcile(control_plane, Arc::clone(&observer)))
                    };
                    let ended = places.take(&observer.context().metrics, work).await.flatten();
                    ended.unwrap_or_else(|| Ok(Action::await_change()))
                }
            },
            |_, _, _| Action::requeue(Duration::from_secs(10)),
            observer,
        );
    passes.for_each(async |_| {}).await;
}

/// HostedClusters and the custom resources that name them, for the HO role where it sums up conditions.
pub async fn hosted_clusters(cx: Arc<Context>, scope: Scope) {
    let client = cx.kube.clone();
    let places = Arc::new(Places::new(Label::HostedCluster, scope.concurrency));
    let over = Arc::clone(&places);
    let only = scope.namespace.clone();
    let clusters = scope
        .events_of(Api::<HostedCluster>::all(client.clone()), pages())
        .inspect_ok({
            let cx = Arc::clone(&cx);
            gone(move |uid| {
                cx.stated.forget(uid);
                cx.failures.over(uid);
            })
        });
    let (reader, clusters) = stored(clusters);
    let custom = scope.events::<AzurePrivateLinkService>(&client, pages());
    let passes = Controller::for_stream(clusters.touched_objects(), reader)
        .watches_stream(custom.touched_objects(), |cr: AzurePrivateLinkService| {
            let cluster: Option<ClusterRef> = cr.annotations().get(CLUSTER_ANNOTATION)?.parse().ok();
            cluster.map(|cluster| ObjectRef::new(&cluster.name).within(&cluster.namespace))
        })
        .reconcile_all_on(scope.changes())
        .graceful_shutdown_on(async move { over.end_with(scope.stop).await })
        .run(
            move |cluster, cx: Arc<Context>| {
                let (places, only) = (Arc::clone(&places), only.clone());
                async move {
                    let work = || hosted_cluster::reconcile(cluster, Arc::clone(&cx), only.as_deref());
                    let ended = places.take(&cx.metrics, work).await;
                    ended.unwrap_or_else(|| Ok(Action::await_change()))
                }
            },
            |_, _, _| Action::requeue(Duration::from_secs(10)),
            cx,
        );
    passes.for_each(async |_| {}).await;
}

/// The control plane that owns an object, or those of its namespace: what nobody owns may stand in their way.
fn control_planes_of<K: ResourceExt>(
    known: &Store<HostedControlPlane>,
    object: &K,
) -> Vec<ObjectRef<HostedControlPlane>> {
    let namespace = object.namespace();
    let mut owners = object.owner_references().iter();
    match (owners.find(|owner| owner.kind == "HostedControlPlane"), &namespace) {
        (Some(owner), Some(namespace)) => vec![ObjectRef::new(&owner.name).within(namespace)],
        _ => references(known, |control_plane| control_plane.namespace() == namespace),
    }
}

/// The custom resources that share with this one what serves both.
fn siblings(
    known: &Store<AzurePrivateLinkService>,
    cr: &AzurePrivateLinkService,
) -> Vec<ObjectRef<AzurePrivateLinkService>> {
    let namespace = cr.namespace().unwrap_or_default();
    let others = SERVICES.into_iter().filter(|name| *name != cr.name_any());
    others
        .map(|name| ObjectRef::new(name).within(&namespace))
        .filter(|other| known.get(other).is_some())
        .collect()
}

fn references<K>(known: &Store<K>, fits: impl Fn(&K) -> bool) -> Vec<ObjectRef<K>>
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    known
        .state()
        .iter()
        .filter(|object| fits(object))
        .map(|object| ObjectRef::from_obj(object.as_ref()))
        .collect()
}

#[cfg(test)]
mod tests;
