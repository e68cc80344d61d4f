//! What the role watches: AzureClusters and their identities.

use std::sync::Arc;

use futures::{Stream, TryStreamExt, future, stream};
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, ResourceExt};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::identities::{Identities, IdentitySettings};
use super::reference_lease::ReferenceLease;
use super::{Context, Decided, Settings, management_cluster, workload_cluster};
use crate::api::capi::{AzureCluster, AzureClusterIdentity};
use crate::metrics::{Controller as Label, Watched};
use crate::runtime::concurrency_limit::{ConcurrencyLimit, Requester};
use crate::runtime::watch::{Scope, Watchable, gone, pages, stored};
use crate::runtime::work_queue::{Action, WorkQueue};
use crate::runtime::{Runtime, guard, reconcile};

impl Watchable for AzureCluster {
    const WATCHED: Watched = Watched::AzureCluster;
}

impl Watchable for AzureClusterIdentity {
    const WATCHED: Watched = Watched::AzureClusterIdentity;
}

/// Runs the controller of AzureClusters until the scope's end.
pub async fn run(runtime: Runtime, settings: Settings, identity_settings: IdentitySettings, scope: Scope) {
    let kube = runtime.kube.clone();
    let own_namespace = settings.management.namespace.clone();
    // The management cluster may be in another namespace than those that are served.
    let clusters: Api<AzureCluster> = Api::all(kube.clone());
    let only = scope.namespace.clone();
    let served = move |cluster: &AzureCluster| {
        let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
        only.as_ref().is_none_or(|only| only == namespace) || namespace == own_namespace
    };
    let (reader, clusters) = stored(scope.events_of(clusters, pages(), |_| {}));
    let identities = scope.events_of(Api::<AzureClusterIdentity>::all(kube.clone()), pages(), |_| {});
    let (known, identities) = stored(identities);
    let (wake, woken) = unbounded_channel();
    let cx = Arc::new(Context {
        runtime,
        clusters: reader.clone(),
        identities: Identities::new(identity_settings, known),
        polls: Default::default(),
        decided: std::sync::Mutex::new(Decided::default()),
        wake,
        reference: ReferenceLease::default(),
        settings,
    });
    let forget = {
        let cx = Arc::clone(&cx);
        gone(move |uid| cx.runtime.retries.over(uid))
    };
    let management = ObjectRef::new(&cx.settings.management.name).within(&cx.settings.management.namespace);
    let queue = WorkQueue::new(stream::empty(), reader.clone())
        .watches(clusters.inspect_ok(forget).touched_objects(), {
            let (cx, management) = (Arc::clone(&cx), management.clone());
            move |cluster: AzureCluster| concerned(&cx, &management, &cluster)
        })
        .watches(identities.touched_objects(), {
            let reader = reader.clone();
            // Few change, and any cluster may use one.
            move |_| {
                reader
                    .state()
                    .iter()
                    .map(|cluster| ObjectRef::from_obj(cluster.as_ref()))
                    .collect::<Vec<_>>()
            }
        })
        .reconcile_on(each(woken))
        .reconcile_all_on(scope.changes());
    let limit = ConcurrencyLimit::new(Label::AzureCluster, scope.concurrency);
    let reconciles = reconcile::run_each(queue, limit, scope.stop.clone(), {
        let cx = Arc::clone(&cx);
        move |cluster, limit| {
            let (cx, is_served) = (Arc::clone(&cx), served(&cluster));
            async move {
                if is_served {
                    admitted(&cx, &cluster, &limit).await
                } else {
                    Action::AwaitChange
                }
            }
        }
    });
    let follows = cx.reference.follow(kube);
    future::select(Box::pin(reconciles), Box::pin(follows)).await;
}

/// The clusters that a change of one concerns: itself, and the management cluster, whose reconcile decides for all. If
/// that one is gone, all.
fn concerned(
    cx: &Context,
    management: &ObjectRef<AzureCluster>,
    cluster: &AzureCluster,
) -> Vec<ObjectRef<AzureCluster>> {
    if !cx.is_management(cluster) {
        return vec![management.clone(), ObjectRef::from_obj(cluster)];
    }
    if cx.management().is_some() {
        return vec![management.clone()];
    }
    cx.decided(|decided| *decided = Decided::default());
    cx.clusters
        .state()
        .iter()
        .map(|cluster| ObjectRef::from_obj(cluster.as_ref()))
        .collect()
}

fn each(receiver: UnboundedReceiver<ObjectRef<AzureCluster>>) -> impl Stream<Item = ObjectRef<AzureCluster>> + Send {
    stream::unfold(receiver, async |mut receiver| Some((receiver.recv().await?, receiver)))
}

async fn admitted(cx: &Arc<Context>, cluster: &AzureCluster, limit: &ConcurrencyLimit) -> Action {
    let namespace = cluster.namespace().unwrap_or_default();
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
    let action = limit.take(&cx.runtime.metrics, Requester::of(&namespace), work).await;
    action.unwrap_or(Action::AwaitChange)
}
