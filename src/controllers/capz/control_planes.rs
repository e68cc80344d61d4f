//! The gates of new control planes: each KubeadmControlPlane is paused until they are open.

use std::sync::Arc;

use futures::{Stream, TryStreamExt};
use kube::api::Patch;
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Api, Resource, ResourceExt};
use serde_json::{Value, json};

use super::reference_lease::{LeaseObserver, ReferenceLease};
use crate::api::ClusterRef;
use crate::api::capi::{AzureCluster, Cluster, KubeadmControlPlane};
use crate::api::markers::capz::{PAUSED, PAUSED_HERE};
use crate::capz::cluster::reference;
use crate::capz::gates::{GateInputs, Pause, decide, infrastructure, owner};
use crate::controllers::watch::Heard;
use crate::metrics::{Controller as Label, KubeResource, KubeVerb, ReconcileResult, Watched};
use crate::runtime::call::{ReconcileError, changing, within};
use crate::runtime::concurrency_limit::{ConcurrencyLimit, Requester};
use crate::runtime::event::{Event, What};
use crate::runtime::requeue::Requeue;
use crate::runtime::watch::{Scope, Watchable, gone, pages, stored};
use crate::runtime::work_queue::{Action, WorkQueue};
use crate::runtime::{Runtime, guard, reconcile};

/// The note of the Event about a pause of somebody else.
const NOT_OURS: &str =
    "all gates are open, but somebody else has paused this control plane: Hyperlink leaves that pause";

impl Watchable for KubeadmControlPlane {
    const WATCHED: Watched = Watched::KubeadmControlPlane;
}

/// What the reconciles of control planes work with.
pub(super) struct Gatekeeper {
    pub(super) runtime: Runtime,
    pub(super) management: ClusterRef,
    pub(super) gates: Vec<String>,
    pub(super) azure_clusters: Store<AzureCluster>,
    pub(super) reference: ReferenceLease,
}

/// Runs the controller until the scope's end; `changed` are the AzureClusters that change.
pub(super) async fn run(
    keeper: Gatekeeper,
    scope: Scope,
    changed: impl Stream<Item = Heard<AzureCluster>> + Send + 'static,
    (clusters, cluster_events): (Store<Cluster>, impl Stream<Item = Heard<Cluster>> + Send + 'static),
) {
    let kube = keeper.runtime.kube.clone();
    let (known, control_planes) = stored(scope.events::<KubeadmControlPlane>(&kube, pages()));
    let of_management = keeper.management.clone();
    let in_namespace = |known: Store<KubeadmControlPlane>| {
        move |namespace: Option<String>| -> Vec<ObjectRef<KubeadmControlPlane>> {
            let all = known.state().into_iter();
            let concerned = all.filter(|one| namespace.is_none() || one.metadata.namespace == namespace);
            concerned.map(|one| ObjectRef::from_obj(one.as_ref())).collect()
        }
    };
    let (of_cluster, of_azure_cluster) = (in_namespace(known.clone()), in_namespace(known.clone()));
    let keeper = Arc::new(keeper);
    let forgets = Arc::clone(&keeper);
    let control_planes = control_planes.inspect_ok(gone(move |uid| {
        forgets.runtime.retries.over(uid);
        forgets.runtime.events.forget(uid);
    }));
    let queue = WorkQueue::new(control_planes.touched_objects(), known)
        .watches(cluster_events.touched_objects(), move |cluster: Cluster| {
            of_cluster(cluster.namespace())
        })
        .watches(changed.touched_objects(), move |cluster: AzureCluster| {
            let is_management = reference(&cluster) == of_management;
            of_azure_cluster(cluster.namespace().filter(|_| !is_management))
        })
        .reconcile_all_on(scope.changes());
    let limit = ConcurrencyLimit::new(Label::KubeadmControlPlane, scope.concurrency);
    reconcile::run_each(queue, limit, scope.stop, move |control_plane, limit| {
        let (keeper, clusters) = (Arc::clone(&keeper), clusters.clone());
        async move {
            let namespace = control_plane.namespace().unwrap_or_default();
            let work = || {
                let reconcile = keeper.reconcile(&control_plane, &clusters);
                guard::counted(
                    &keeper.runtime,
                    Label::KubeadmControlPlane,
                    control_plane.as_ref(),
                    reconcile,
                )
            };
            let action = limit
                .take(&keeper.runtime.metrics, Requester::of(&namespace), work)
                .await;
            action.unwrap_or(Action::AwaitChange)
        }
    })
    .await;
}

impl Gatekeeper {
    async fn reconcile(
        &self,
        control_plane: &KubeadmControlPlane,
        clusters: &Store<Cluster>,
    ) -> Result<(ReconcileResult, Option<Requeue>), ReconcileError> {
        if self.reference.leads() {
            let again = Requeue::new(LeaseObserver::EVERY, Requeue::POLL);
            return Ok((ReconcileResult::Waiting, Some(again)));
        }
        let namespace = control_plane.namespace().unwrap_or_default();
        let decided = self.decide(control_plane, &namespace, clusters);
        let object = control_plane.object_ref(&());
        let event = (decided == Pause::NotOurs).then(|| Event::new(What::ForeignPause, NOT_OURS));
        self.runtime.events.stands(&object, "pause", event).await;
        if matches!(decided, Pause::LeftAlone | Pause::NotOurs) {
            return Ok((ReconcileResult::Ready, None));
        }
        let api: Api<KubeadmControlPlane> = Api::namespaced(self.runtime.kube.clone(), &namespace);
        let found = within(api.get_opt(&control_plane.name_any())).await?;
        let Some(fresh) = found.filter(|found| found.uid() == control_plane.uid()) else {
            return Ok((ReconcileResult::Ready, None));
        };
        let annotations = match self.decide(&fresh, &namespace, clusters) {
            Pause::LeftAlone | Pause::NotOurs => return Ok((ReconcileResult::Ready, None)),
            Pause::Held(gates) => json!({PAUSED: "true", PAUSED_HERE: gates}),
            Pause::Released => json!({PAUSED: Value::Null, PAUSED_HERE: Value::Null}),
        };
        let patch = json!({"metadata": {"annotations": annotations, "resourceVersion": fresh.resource_version()}});
        changing(api.patch(&fresh.name_any(), &self.runtime.patch_params(), &Patch::Merge(patch))).await?;
        self.runtime
            .metrics
            .kube_write(KubeResource::KubeadmControlPlane, KubeVerb::Patch);
        Ok((ReconcileResult::Ready, None))
    }

    fn decide(&self, control_plane: &KubeadmControlPlane, namespace: &str, clusters: &Store<Cluster>) -> Pause {
        let ClusterRef { namespace: own, name } = &self.management;
        let management = self.azure_clusters.get(&ObjectRef::new(name).within(own));
        let cluster = owner(control_plane).and_then(|name| find(clusters, namespace, name));
        let named = cluster.as_deref().and_then(infrastructure);
        let infrastructure = named.and_then(|name| find(&self.azure_clusters, namespace, name));
        let inputs = GateInputs {
            management: management.as_deref(),
            cluster: cluster.as_deref(),
            infrastructure: infrastructure.as_deref(),
        };
        decide(control_plane, inputs, &self.gates)
    }
}

fn find<K: Resource<DynamicType = ()> + Clone + 'static>(
    store: &Store<K>,
    namespace: &str,
    name: &str,
) -> Option<Arc<K>> {
    store.get(&ObjectRef::new(name).within(namespace))
}

#[cfg(test)]
mod tests;
