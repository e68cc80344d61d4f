//! What the role watches: AzureClusters and their identities.

use std::sync::Arc;

use futures::{Stream, TryStreamExt, stream};
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Api, ResourceExt};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::cluster_api::{self, VersionChanged};
use super::control_planes::{self, Gatekeeper};
use super::identities::{Identities, IdentitySettings};
use super::provider_configs::{Provider, ProviderEvents};
use super::{Context, Decided, Settings, dropped_endpoints, management_cluster, served_links, shown, workload_cluster};
use crate::api::ClusterRef;
use crate::api::capi::{AzureCluster, AzureClusterIdentity, Cluster};
use crate::api::prune::prune_workload;
use crate::capz::cluster::{is_deleting, is_held, reference};
use crate::capz::gateway;
use crate::capz::identity::named;
use crate::controllers::watch::Heard;
use crate::metrics::{Controller as Label, Watched};
use crate::runtime::concurrency_limit::{ConcurrencyLimit, Requester};
use crate::runtime::watch::{Scope, Watchable, gone, pages, stored, twice};
use crate::runtime::work_queue::{Action, WorkQueue};
use crate::runtime::{Runtime, guard, reconcile};

impl Watchable for AzureCluster {
    const WATCHED: Watched = Watched::AzureCluster;
}

impl Watchable for Cluster {
    const WATCHED: Watched = Watched::Cluster;
}

impl Watchable for AzureClusterIdentity {
    const WATCHED: Watched = Watched::AzureClusterIdentity;
}

/// Runs the controllers until the scope's end: those of AzureClusters and ProviderConfigs, and, if there are gates, that
/// of control planes.
///
/// `other_leads` is called with the holder when the other operator begins to lead, and with none when it ends.
///
/// # Errors
/// Cluster API is served in another version than this process reads.
pub async fn run(
    runtimes: [Runtime; 3],
    settings: Settings,
    identity_settings: IdentitySettings,
    scope: Scope,
    other_leads: impl Fn(Option<&str>),
) -> Result<(), VersionChanged> {
    let [runtime, of_gates, of_provider] = runtimes;
    let kube = runtime.kube.clone();
    // The management cluster may be in another namespace than those that are served.
    let clusters = scope.events_of(Api::<AzureCluster>::all(kube.clone()), pages(), |_| {});
    let management = settings.management.clone();
    let clusters = clusters.modify(move |cluster| keep_read(cluster, &management));
    let (reader, clusters) = stored(clusters);
    let (clusters, again) = twice(clusters);
    // The first of the two takes along the second, which may end early.
    let (for_provider, again) = twice(again);
    let identities = scope.events_of(Api::<AzureClusterIdentity>::all(kube.clone()), pages(), |_| {});
    let (known, identities) = stored(identities);
    let (identities, of_users) = twice(identities);
    let (core, core_events) = stored(scope.events::<Cluster>(&kube, pages()));
    let (core_events, gates_events) = twice(core_events);
    let (wake, woken) = unbounded_channel();
    let usable = Identities::new(identity_settings, known);
    let only = scope.namespace.clone();
    let cx = Context::new(runtime, settings, usable, reader.clone(), only, wake);
    let keeper = Gatekeeper {
        runtime: of_gates,
        management: cx.settings.management.clone(),
        gates: cx.settings.gates.clone(),
        azure_clusters: reader,
        reference: cx.reference.clone(),
    };
    let cx = Arc::new(cx);
    shown::show(&cx);
    let queue = queue(&cx, clusters, identities, woken).reconcile_all_on(scope.changes());
    let reconciles = run_queue(&cx, queue, scope.clone());
    let follows = cx.reference.follow(kube, |holder| {
        other_leads(holder);
        // What was not done meanwhile is due.
        for cluster in cx.clusters.state().iter().filter(|_| holder.is_none()) {
            let _ = cx.wake.send(ObjectRef::from_obj(cluster.as_ref()));
        }
    });
    let events = ProviderEvents {
        known: core.clone(),
        clusters: core_events,
        azure_clusters: for_provider,
        identities: of_users,
    };
    let provider = Provider::new(of_provider, Arc::clone(&cx)).run(events, scope.clone());
    let dropped = dropped_endpoints::follow(&cx);
    let gates = async {
        if !keeper.gates.is_empty() {
            control_planes::run(keeper, scope, again, (core, gates_events)).await;
        }
    };
    let controllers = async { tokio::join!(reconciles, provider, gates) };
    let links = served_links::follow(&cx);
    let follows = async { tokio::join!(follows, dropped, links) };
    let version = cluster_api::change(&cx.runtime.kube, cx.runtime.resync);
    tokio::select! {
        _ = controllers => Ok(()),
        _ = follows => Ok(()),
        changed = version => Err(changed),
    }
}

/// Drops what is read of the management cluster alone, if this is another one.
pub(super) fn keep_read(cluster: &mut AzureCluster, management: &ClusterRef) {
    let own = reference(cluster);
    if own != *management {
        prune_workload(cluster, |entry| gateway::is_way(entry, &own.name, &management.name));
    }
}

/// The AzureClusters that are due.
fn queue(
    cx: &Arc<Context>,
    clusters: impl Stream<Item = Heard<AzureCluster>> + Send + 'static,
    identities: impl Stream<Item = Heard<AzureClusterIdentity>> + Send + 'static,
    woken: UnboundedReceiver<ObjectRef<AzureCluster>>,
) -> WorkQueue<AzureCluster> {
    let forget = {
        let cx = Arc::clone(cx);
        gone(move |uid| {
            cx.runtime.retries.over(uid);
            cx.runtime.events.forget(uid);
        })
    };
    let reader = cx.clusters.clone();
    WorkQueue::new(stream::empty(), reader.clone())
        .watches(clusters.inspect_ok(forget).touched_objects(), {
            let cx = Arc::clone(cx);
            move |cluster: AzureCluster| concerned(&cx, &cluster)
        })
        .watches(identities.touched_objects(), {
            let cx = Arc::clone(cx);
            move |identity: AzureClusterIdentity| users(&cx, &reader, &identity)
        })
        .reconcile_on(each(woken))
}

async fn run_queue(cx: &Arc<Context>, queue: WorkQueue<AzureCluster>, scope: Scope) {
    let limit = || ConcurrencyLimit::new(Label::AzureCluster, scope.concurrency);
    let without = Arc::new(limit());
    let (cx, only, stop) = (Arc::clone(cx), scope.namespace, scope.stop);
    let ends = without.end_with(stop.clone());
    let reconciles = reconcile::run_each(queue, limit(), stop, |cluster, with_azure| {
        let namespace = cluster.metadata.namespace.as_ref();
        let is_served = only.is_none() || only.as_ref() == namespace || cx.is_management(&cluster);
        let (cx, without) = (Arc::clone(&cx), Arc::clone(&without));
        async move {
            if is_served {
                admitted(&cx, &cluster, [&with_azure, &without]).await
            } else {
                Action::AwaitChange
            }
        }
    });
    tokio::join!(ends, reconciles);
}

/// The clusters that are read with an identity; all, if the management cluster is.
fn users(
    cx: &Context,
    clusters: &Store<AzureCluster>,
    identity: &AzureClusterIdentity,
) -> Vec<ObjectRef<AzureCluster>> {
    let changed = ClusterRef {
        namespace: identity.namespace().unwrap_or_default(),
        name: identity.name_any(),
    };
    let uses = |cluster: &AzureCluster| named(cluster).is_ok_and(|name| name == changed);
    let is_common = cx.management().is_some_and(|management| uses(&management));
    let all = clusters
        .state()
        .into_iter()
        .filter(|cluster| is_common || uses(cluster));
    all.map(|cluster| ObjectRef::from_obj(cluster.as_ref())).collect()
}

/// The clusters that a change of one concerns: itself, and the management cluster, whose reconcile decides for all. If
/// that one is gone, all.
fn concerned(cx: &Context, cluster: &AzureCluster) -> Vec<ObjectRef<AzureCluster>> {
    let ClusterRef { namespace, name } = &cx.settings.management;
    let management = ObjectRef::new(name).within(namespace);
    if !cx.is_management(cluster) {
        return vec![management, ObjectRef::from_obj(cluster)];
    }
    if cx.management().is_some() {
        return vec![management];
    }
    cx.decided(|decided| *decided = Decided::default());
    cx.clusters
        .state()
        .iter()
        .map(|cluster| ObjectRef::from_obj(cluster.as_ref()))
        .collect()
}

/// What a channel brings.
pub(super) fn each<T: Send + 'static>(receiver: UnboundedReceiver<T>) -> impl Stream<Item = T> + Send {
    stream::unfold(receiver, async |mut receiver| Some((receiver.recv().await?, receiver)))
}

/// Reconciles a cluster with a permit of one of two limits. What reads Azure, which may leave all that do so waiting, has
/// one of its own: neither the management cluster waits for it, nor what is to begin or to end.
async fn admitted(cx: &Arc<Context>, cluster: &AzureCluster, [with_azure, without]: [&ConcurrencyLimit; 2]) -> Action {
    let work = || async {
        let reconcile = async {
            if cx.is_management(cluster) {
                management_cluster::reconcile(cx, cluster).await
            } else {
                workload_cluster::reconcile(cx, cluster).await
            }
        };
        guard::counted(&cx.runtime, Label::AzureCluster, cluster, reconcile).await
    };
    let namespace = cluster.namespace().unwrap_or_default();
    let (limit, requester) = if cx.is_management(cluster) {
        // No namespace has this name.
        (without, "")
    } else if is_deleting(cluster) || !is_held(cluster) {
        (without, namespace.as_str())
    } else {
        (with_azure, namespace.as_str())
    };
    let action = limit.take(&cx.runtime.metrics, Requester::of(requester), work).await;
    action.unwrap_or(Action::AwaitChange)
}

#[cfg(test)]
mod tests;
