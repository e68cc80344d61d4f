//! Role `capz`: private endpoints for clusters made by Cluster API on Azure. It writes entries, annotations and one
//! condition of AzureClusters; in Azure it only reads.
//!
//! `management_cluster` writes the entries that all workload clusters need in the management cluster, in one decision
//! over all of them. `workload_cluster` does the rest for one cluster: finalizer, the entry of the gateway, addresses,
//! condition.

mod addresses;
pub mod cluster_api;
mod control_planes;
mod dropped_endpoints;
mod dry_run;
mod event;
mod identities;
mod management_cluster;
pub mod preview;
mod provider_configs;
mod provider_ids;
pub mod reference_lease;
mod served_links;
mod shown;
mod sides;
mod watch;
mod workload_cluster;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Api, ResourceExt};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use crate::api::ClusterRef;
use crate::api::capi::{AzureCluster, AzureClusterSpec};
use crate::capz::assignments::{ClusterState, Snapshot};
use crate::capz::entry::Change;
use crate::capz::ledger::Ledger;
use crate::engine::plan;
use crate::metrics::{ENDPOINT_ENTRY, KubeResource, KubeVerb, ObservedEntries};
use crate::runtime::Runtime;
use crate::runtime::call::{ReconcileError, changing, within};
use crate::runtime::polls::Polls;
pub use dry_run::dry_run;
use identities::Identities;
pub use identities::IdentitySettings;
use reference_lease::ReferenceLease;
use served_links::ServedLinks;
pub use watch::run;

/// The settings of the role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The AzureCluster of the management cluster.
    pub management: ClusterRef,
    /// The cloud of this process, as AzureClusters spell it.
    pub cloud: &'static str,
    /// The conditions of an AzureCluster for which a new control plane waits.
    pub gates: Vec<String>,
    /// Whether objects of the Azure Service Operator are deleted whose entries were removed.
    pub deletes_dropped: bool,
}

/// What all reconciles of the role work with.
pub struct Context {
    /// What does not depend on what is reconciled.
    pub runtime: Runtime,
    settings: Settings,
    clusters: Store<AzureCluster>,
    identities: Identities,
    polls: Polls,
    decided: Mutex<Decided>,
    /// Wakes workload clusters.
    wake: UnboundedSender<ObjectRef<AzureCluster>>,
    reference: ReferenceLease,
    /// The only namespace whose workload clusters are served; none means all.
    only: Option<String>,
    /// Held from the read of the management cluster to its write, and while it is read whether a cluster may be let go.
    writing: tokio::sync::Mutex<()>,
}

/// What was decided last on the entries of the management cluster.
#[derive(Default)]
struct Decided {
    /// The desired entries of each workload cluster, by its UID.
    of: HashMap<String, ClusterState>,
    /// The UIDs in the ledger of which reads have shown that no such cluster exists.
    gone: BTreeSet<String>,
    /// When the management cluster was written last.
    written: Option<Instant>,
    /// How many entries the management cluster had with it.
    entries: ObservedEntries,
    /// What is known of workload clusters whose links the API server may hide.
    served_links: ServedLinks,
    /// How many private endpoints are still in Azure long after their entries were removed.
    left_behind: usize,
    /// What every workload cluster depends on.
    management: Option<AzureClusterSpec>,
}

impl Context {
    /// A context in which nothing is decided yet; `clusters` and `identities` have what the API server shows.
    fn new(
        runtime: Runtime,
        settings: Settings,
        identities: Identities,
        clusters: Store<AzureCluster>,
        only: Option<String>,
        wake: UnboundedSender<ObjectRef<AzureCluster>>,
    ) -> Self {
        Self {
            runtime,
            settings,
            clusters,
            identities,
            polls: Polls::default(),
            decided: Mutex::default(),
            wake,
            reference: ReferenceLease::default(),
            only,
            writing: tokio::sync::Mutex::default(),
        }
    }

    fn decided<T>(&self, with: impl FnOnce(&mut Decided) -> T) -> T {
        with(&mut self.decided.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_management(&self, cluster: &AzureCluster) -> bool {
        crate::capz::cluster::reference(cluster) == self.settings.management
    }

    /// The management cluster, as the watch shows it.
    fn management(&self) -> Option<Arc<AzureCluster>> {
        let ClusterRef { namespace, name } = &self.settings.management;
        self.clusters.get(&ObjectRef::new(name).within(namespace))
    }

    /// All workload clusters, as the watch shows them.
    fn workloads(&self) -> Vec<Arc<AzureCluster>> {
        let mut all = self.clusters.state();
        all.retain(|cluster| !self.is_management(cluster));
        all
    }

    /// What `question` finds in a snapshot with this management cluster.
    fn with_snapshot<T>(&self, management: &AzureCluster, question: impl FnOnce(&Snapshot<'_>) -> T) -> T {
        let workloads = self.workloads();
        let workloads: Vec<&AzureCluster> = workloads.iter().map(Arc::as_ref).collect();
        let ledger = Ledger::read(management);
        let (gone, hidden) =
            self.decided(|decided| (decided.gone.clone(), decided.served_links.hidden(&workloads, &ledger)));
        question(&Snapshot {
            management,
            workloads: &workloads,
            cloud: self.settings.cloud,
            only: self.only.as_deref(),
            gone: &gone,
            hidden: &hidden,
        })
    }

    fn api(&self, namespace: &str) -> Api<AzureCluster> {
        Api::namespaced(self.runtime.kube.clone(), namespace)
    }

    /// A cluster as the API server has it now.
    async fn read(&self, cluster: &ClusterRef) -> Result<Option<AzureCluster>, ReconcileError> {
        within(self.api(&cluster.namespace).get_opt(&cluster.name)).await
    }

    /// Patches a cluster that was just read; returns it as it is then.
    async fn patch(&self, cluster: &AzureCluster, patch: json_patch::Patch) -> Result<AzureCluster, ReconcileError> {
        let api = self.api(&cluster.namespace().unwrap_or_default());
        let patch = kube::api::Patch::<()>::Json(patch);
        let written = changing(api.patch(&cluster.name_any(), &self.runtime.patch_params(), &patch)).await;
        self.runtime
            .metrics
            .kube_write(KubeResource::AzureCluster, KubeVerb::Patch);
        written.map_err(ReconcileError::guarded)
    }
}

impl Context {
    /// Counts a change of an entry of this cluster; `was_there` says that it has had it before.
    fn count(&self, change: &Change, of: &ClusterRef, was_there: bool) {
        let id = format!("{of}/{}", change.name());
        let change = match change {
            Change::Add { .. } if !was_there => plan::Change::Created,
            Change::Add { .. } | Change::Repair { .. } => plan::Change::Repaired(Vec::new()),
            Change::Remove { .. } => return,
        };
        self.runtime.metrics.changed(ENDPOINT_ENTRY, &id, &change);
    }
}

/// The assignments of one workload cluster that changed, by its UID.
fn changed(before: &HashMap<String, ClusterState>, now: &HashMap<String, ClusterState>) -> BTreeSet<String> {
    let uids = before.keys().chain(now.keys());
    let differs = |uid: &&String| before.get(*uid) != now.get(*uid);
    uids.filter(differs).cloned().collect()
}

/// How often a patch is tried again that met another writer, before the reconcile is.
const MOST_TRIES: usize = 5;

/// The time between two writes of the management cluster: many workload clusters that come together are served by one.
const BETWEEN_WRITES: Duration = Duration::from_millis(400);

#[cfg(test)]
mod tests;
