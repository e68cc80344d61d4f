//! CAPZ: it makes Private Link Services and private endpoints in Azure from AzureClusters, and writes what it has
//! changed as JSON merge patches, computed from what it has read.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use futures::FutureExt;
use jiff::Timestamp;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::azure_cluster::AzureCluster;
use super::history::{History, LAG};
use super::{Reconcile, controller, endpoints, link_services, service_operator};
use crate::capz_cluster::{AZURE_CLUSTER, CapzCluster, api, resource};
use crate::capz_env::CAPZ_CLIENT;
use crate::go_controllers::GoOperator;
use crate::go_controllers::arm::Arm;
use crate::{CapzEnv, eventually};

/// CAPZ's finalizer on AzureClusters.
const FINALIZER: &str = "azurecluster.infrastructure.cluster.x-k8s.io";
const MANAGER: &str = "cluster-api-provider-azure-manager";

/// How long a watch may take to show what was written.
const CATCHING_UP: Duration = Duration::from_secs(10);

/// What becomes of a private endpoint whose entry was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// Giant Swarm's fork deletes it.
    Fork,
    /// Upstream leaves it, with its `PrivateEndpoint` object of the Azure Service Operator.
    Upstream,
}

/// How CAPZ behaves.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The fork, or upstream.
    pub variant: Variant,
    /// How many of the last writes a reconcile does not see, if they are younger than 2 s.
    pub stale_by: usize,
    /// The time between a change and its reconcile.
    pub delay: Duration,
}

impl Settings {
    /// The fork, which reacts at once and reads what is there.
    pub const FORK: Self = Self {
        variant: Variant::Fork,
        stale_by: 0,
        delay: Duration::ZERO,
    };
    /// Upstream, likewise.
    pub const UPSTREAM: Self = Self {
        variant: Variant::Upstream,
        ..Self::FORK
    };
}

/// A running CAPZ. Dropping this value stops it at once.
#[derive(Debug)]
pub struct Capz {
    operator: GoOperator,
    provider: Arc<Provider>,
    runs: watch::Sender<bool>,
}

impl Capz {
    /// Starts CAPZ for the AzureClusters of these namespaces, which need not exist yet.
    ///
    /// # Errors
    ///
    /// Azure issues no token.
    pub async fn start(env: &CapzEnv, namespaces: &[&str], settings: Settings) -> Result<Self> {
        let (runs, running) = watch::channel(true);
        let provider = Arc::new(Provider {
            client: env.client()?,
            arm: env.arm(CAPZ_CLIENT).await?,
            history: History::default(),
            settings,
            running,
        });
        let mut controllers = Vec::new();
        for namespace in namespaces {
            let azure_clusters = provider.azure_clusters(namespace);
            let history = Arc::clone(&provider);
            let recorded = azure_clusters.clone();
            let recording = async move {
                history.history.record(recorded).await;
                Ok(())
            };
            controllers.push(recording.boxed());
            controllers.push(controller(
                azure_clusters,
                resource(AZURE_CLUSTER),
                Arc::clone(&provider),
            ));
            controllers.push(service_operator::controller(&provider.client, namespace, &provider.arm));
        }
        Ok(Self {
            operator: GoOperator::of(controllers),
            provider,
            runs,
        })
    }

    /// Has it react to nothing until [`Capz::resume`]. What it has begun goes on.
    pub fn pause(&self) {
        self.runs.send_replace(false);
    }

    /// Has it react again, to what it has missed too.
    pub fn resume(&self) {
        self.runs.send_replace(true);
    }

    /// Writes the whole array of subnets of a cluster, as it was before the last `stale_by` writes, though others may
    /// have changed it since. Returns what this has made of the cluster.
    ///
    /// # Errors
    ///
    /// CAPZ does not know the cluster yet, or the API server refuses.
    pub async fn rewrite_subnets(&self, cluster: &CapzCluster, stale_by: usize) -> Result<DynamicObject> {
        let read = self.provider.read_stale(cluster, stale_by).await?;
        let subnets = &read.data["spec"]["networkSpec"]["subnets"];
        let patch = json!({"spec": {"networkSpec": {"subnets": subnets}}});
        self.provider.patch(&read, &patch).await
    }

    /// Writes all conditions of a cluster, likewise.
    ///
    /// # Errors
    ///
    /// As [`Capz::rewrite_subnets`].
    pub async fn rewrite_conditions(&self, cluster: &CapzCluster, stale_by: usize) -> Result<()> {
        let read = self.provider.read_stale(cluster, stale_by).await?;
        let conditions = &read.data["status"]["conditions"];
        let patch = json!({"status": {"conditions": conditions}});
        self.provider.patch_status(&read, &patch).await
    }

    /// Stops it, and fails if it has ended before.
    ///
    /// # Errors
    ///
    /// A controller failed or panicked.
    pub async fn stop(self) -> Result<()> {
        self.operator.stop().await
    }
}

struct Provider {
    client: Client,
    arm: Arm,
    history: History,
    settings: Settings,
    running: watch::Receiver<bool>,
}

impl std::fmt::Debug for Provider {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut this = formatter.debug_struct("Provider");
        this.field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Reconcile for Provider {
    async fn reconcile(&self, object: &DynamicObject) -> Result<Action> {
        self.running.clone().wait_for(|runs| *runs).await?;
        tokio::time::sleep(self.settings.delay).await;
        let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
        let Some(newest) = self.azure_clusters(&namespace).get_opt(&name).await? else {
            return Ok(Action::await_change());
        };
        let read = self.history.stale(&namespace, &name, self.settings.stale_by, LAG);
        let read = read
            .filter(|_| self.settings.stale_by > 0)
            .unwrap_or_else(|| newest.clone());
        if newest.metadata.deletion_timestamp.is_some() {
            return self.tear_down(&newest).await;
        }
        self.set_finalizer(&newest, true).await?;
        let failure = self.build(&read).await?;
        match failure {
            Some(error) => Err(error),
            None if read.metadata.resource_version != newest.metadata.resource_version => Ok(Action::requeue(LAG)),
            None => Ok(Action::await_change()),
        }
    }
}

impl Provider {
    fn azure_clusters(&self, namespace: &str) -> Api<DynamicObject> {
        api(&self.client, namespace, AZURE_CLUSTER)
    }

    /// The version of a cluster before the last `by` writes, counted from the one that stands there now.
    async fn read_stale(&self, cluster: &CapzCluster, by: usize) -> Result<DynamicObject> {
        let (namespace, name) = (cluster.namespace(), cluster.name());
        eventually("CAPZ has read what stands there", CATCHING_UP, || async {
            let newest = self.azure_clusters(namespace).get_metadata(name).await?;
            let version = newest.metadata.resource_version.as_deref();
            ensure!(self.history.is_at(namespace, name, version));
            Ok(())
        })
        .await?;
        let read = self.history.stale(namespace, name, by, Duration::MAX);
        read.with_context(|| format!("CAPZ has not read {name}"))
    }

    /// Makes what is missing in Azure, and writes what has come of it. Returns the first failure.
    async fn build(&self, read: &DynamicObject) -> Result<Option<anyhow::Error>> {
        let cluster = AzureCluster::of(read)?;
        let links = link_services::reconcile(&self.arm, &cluster).await;
        let endpoints = endpoints::reconcile(&self.arm, &cluster).await;
        match self.settings.variant {
            Variant::Fork => endpoints::delete_dropped(&self.arm, &cluster).await?,
            Variant::Upstream => service_operator::create_objects(&self.client, &cluster).await?,
        }
        let mut changed = read.clone();
        for subnet in changed.data["spec"]["networkSpec"]["subnets"]
            .as_array_mut()
            .into_iter()
            .flatten()
        {
            let id = cluster.subnet(subnet["name"].as_str().unwrap_or_default());
            subnet["id"] = id.into();
        }
        if !changed.data["status"].is_object() {
            changed.data["status"] = json!({});
        }
        changed.data["status"]["ready"] = true.into();
        for (kind, outcome) in [("PrivateLinksReady", &links), ("PrivateEndpointsReady", &endpoints)] {
            set_condition(&mut changed.data["status"]["conditions"], kind, outcome);
        }
        set_condition(&mut changed.data["status"]["conditions"], "Ready", &Ok(true));
        self.write(read, &changed).await?;
        Ok(links.err().or(endpoints.err()))
    }

    /// Writes what CAPZ has changed of what it has read, whatever stands there now.
    async fn write(&self, read: &DynamicObject, changed: &DynamicObject) -> Result<()> {
        let subnets = |object: &DynamicObject| object.data["spec"]["networkSpec"]["subnets"].clone();
        if subnets(read) != subnets(changed) {
            let patch = json!({"spec": {"networkSpec": {"subnets": subnets(changed)}}});
            self.patch(read, &patch).await?;
        }
        let status = &changed.data["status"];
        if read.data["status"] != *status {
            let patch = json!({"status": {"ready": status["ready"], "conditions": status["conditions"]}});
            self.patch_status(read, &patch).await?;
        }
        Ok(())
    }

    async fn patch(&self, read: &DynamicObject, patch: &Value) -> Result<DynamicObject> {
        let api = self.azure_clusters(&read.namespace().unwrap_or_default());
        Ok(api.patch(&read.name_any(), &params(), &Patch::Merge(patch)).await?)
    }

    async fn patch_status(&self, read: &DynamicObject, patch: &Value) -> Result<()> {
        let api = self.azure_clusters(&read.namespace().unwrap_or_default());
        api.patch_status(&read.name_any(), &params(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }

    /// Adds or removes the finalizer.
    async fn set_finalizer(&self, object: &DynamicObject, desired: bool) -> Result<()> {
        if object.finalizers().iter().any(|one| one == FINALIZER) == desired {
            return Ok(());
        }
        let others = object
            .finalizers()
            .iter()
            .map(String::as_str)
            .filter(|one| *one != FINALIZER);
        let finalizers: Vec<_> = others.chain(desired.then_some(FINALIZER)).collect();
        let version = &object.metadata.resource_version;
        let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": version}});
        self.patch(object, &patch).await.map(drop)
    }

    /// Deletes what was made for a cluster, then removes the finalizer. The group and its network stay.
    async fn tear_down(&self, object: &DynamicObject) -> Result<Action> {
        let cluster = AzureCluster::of(object)?;
        let made = endpoints::made(&self.arm, &cluster).await?;
        endpoints::delete(&self.arm, &cluster, made.into_iter()).await?;
        service_operator::delete_objects(&self.client, &cluster).await?;
        for service in self.arm.list(&cluster.network_id("privateLinkServices", "")).await? {
            if cluster.has_made(&service) {
                let id = service["id"]
                    .as_str()
                    .ok_or_else(|| anyhow!("a resource without an id"))?;
                self.arm.delete(id).await?;
            }
        }
        self.set_finalizer(object, false).await?;
        Ok(Action::await_change())
    }
}

fn params() -> PatchParams {
    PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    }
}

/// Sets a condition of Cluster API's v1beta1; leaves it as it is where there was nothing to do.
fn set_condition(conditions: &mut Value, kind: &str, outcome: &Result<bool>) {
    let mut condition = match outcome {
        Ok(false) => return,
        Ok(true) => json!({"type": kind, "status": "True"}),
        Err(error) => {
            let message: String = format!("{error:#}").chars().take(1000).collect();
            json!({"type": kind, "status": "False", "severity": "Error", "reason": "Failed", "message": message})
        }
    };
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(all) = conditions.as_array_mut() else { return };
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    condition["lastTransitionTime"] = now.into();
    match all.iter_mut().find(|one| one["type"] == kind) {
        Some(same) if same["status"] == condition["status"] => {
            condition["lastTransitionTime"] = same["lastTransitionTime"].take();
            *same = condition;
        }
        Some(other) => *other = condition,
        None => all.push(condition),
    }
}
