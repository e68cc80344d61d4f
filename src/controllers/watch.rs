//! What controllers have in common of their watches.

use std::sync::Arc;

use futures::{Stream, StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Service;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use tokio::time::Instant;

use super::reconciler::{KeyOf, ReconcilesCustomResource, ServedResource};
use crate::api::{AzurePrivateLinkService, HostedCluster, HostedControlPlane};
use crate::hypershift::cluster_index::ClusterIndex;
use crate::metrics::{KubeResource, Watched};
use crate::runtime::reconcile::Runner;
use crate::runtime::watch::{Scope, Watchable, each, gone, pages};

pub mod whom;

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

/// Like [`Scope::changes`], for a controller that remembers what it observed in the cloud: others may have led some of the
/// objects.
pub fn changes_for<C: ReconcilesCustomResource>(
    scope: &Scope,
    runner: &Arc<Runner<C>>,
) -> impl Stream<Item = ()> + Send + use<C> {
    let cx = Arc::clone(&runner.cx);
    let runner = Arc::clone(runner);
    let again = each(scope.again.clone()).inspect(move |()| cx.cloud.observations.others_were_at_it());
    stream::select(again, each(scope.health.relists())).inspect(move |()| runner.pacer.wake_all())
}

/// The events of a watch.
pub type Heard<K> = Result<watcher::Event<K>, watcher::Error>;

/// The watch events of all HostedClusters, which live in other namespaces than their control planes.
pub fn hosted_cluster_events(
    scope: &Scope,
    client: kube::Client,
) -> impl Stream<Item = Heard<HostedCluster>> + Send + use<> {
    scope.events_of(Api::<HostedCluster>::all(client), pages(), |_| {})
}

/// The same events once `cluster_index` has them.
pub fn indexed(
    clusters: impl Stream<Item = Heard<HostedCluster>> + Send,
    cluster_index: Arc<ClusterIndex>,
) -> impl Stream<Item = Heard<HostedCluster>> + Send {
    clusters.inspect_ok(move |event| cluster_index.cluster(event))
}

/// A watch of the objects of this name.
pub fn named(name: &str) -> watcher::Config {
    pages().fields(&format!("metadata.name={name}"))
}

/// The Services of this name that change.
pub fn services(
    scope: &Scope,
    client: &kube::Client,
    name: &str,
) -> impl Stream<Item = Result<Service, watcher::Error>> + Send + use<> {
    scope.events::<Service>(client, named(name)).touched_objects()
}

/// The custom resources for the work queue. Their next reconcile reads again, because something that is read for them
/// has changed.
pub fn woken<C: ReconcilesCustomResource>(runner: &Runner<C>, all: Vec<Arc<C::Object>>) -> Vec<ObjectRef<C::Object>> {
    for cr in &all {
        runner.pacer.wake(&cr.uid().unwrap_or_default());
    }
    all.iter().map(|cr| ObjectRef::from_obj(cr.as_ref())).collect()
}

/// The custom resource that is next in the write queue of a resource, for the work queue: its reconcile is due now.
pub fn next_writer<C: ReconcilesCustomResource>(runner: &Runner<C>, id: &KeyOf<C>) -> Option<ObjectRef<C::Object>> {
    let (uid, waiting) = runner.cx.awaiting.take(id)?;
    runner.pacer.due(&uid, Instant::now());
    Some(ObjectRef::new(&waiting.name).within(&waiting.namespace))
}

/// Drops what is kept of each custom resource that is gone: it is not reconciled any more.
pub fn forget_gone<C: ReconcilesCustomResource>(
    runner: &Arc<Runner<C>>,
) -> impl FnMut(&watcher::Event<C::Object>) + Send + use<C> {
    let runner = Arc::clone(runner);
    gone(move |uid| runner.forget(uid))
}

#[cfg(test)]
mod tests;
