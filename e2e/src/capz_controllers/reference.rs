//! The hand of the operator that Hyperlink replaces, azure-private-endpoint-operator 0.7.0: it writes exactly what that
//! writes, in the same form, for tests that take over from it.

use anyhow::{Context, Result};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::capz_cluster::{CapzCluster, LoadBalancer, entries};
use crate::capz_env::CAPZ_CLIENT;
use crate::go_controllers::arm::Arm;
use crate::{CapzEnv, eventually};

/// Its finalizer on workload clusters.
pub const FINALIZER: &str = "azure-private-endpoint-operator.giantswarm.io/azurecluster";
/// Its annotation with the address of the API server's private endpoint.
pub const API_SERVER_IP: &str = "azure-private-endpoint-operator.giantswarm.io/private-link-apiserver-ip";
/// Its annotation with the address of the gateway's private endpoint.
pub const MANAGEMENT_INGRESS_IP: &str = "azure-private-endpoint-operator.giantswarm.io/private-link-mc-ingress-ip";
/// Its condition.
pub const CONDITION: &str = "GSPrivateLinksReady";
/// The name of its lease.
pub const LEASE: &str = "0934d11a.giantswarm.io";

const MANAGER: &str = "azure-private-endpoint-operator";
const MESSAGE: &str = "GiantSwarm Private Link definitions have been added";

/// The entry that it has in the management cluster for a link of a workload cluster.
pub fn link_entry(management: &CapzCluster, workload: &CapzCluster, link: &str) -> Value {
    let name = format!("{link}-privateendpoint");
    management.entry(&name, &format!("{link}-connection"), &workload.link_service(link))
}

/// The entry that it has in a workload cluster for the gateway of the management cluster. It takes the name of that
/// cluster for the name of its resource group.
pub fn gateway_entry(management: &CapzCluster, workload: &CapzCluster) -> Value {
    let name = format!("{}-to-{}-gateway", workload.name(), management.name());
    let own_group = management.clone().in_resource_group(management.name());
    let service = own_group.link_service(&management.gateway_link());
    workload.entry(
        &format!("{name}-privateendpoint"),
        &format!("{name}-connection"),
        &service,
    )
}

/// The operator, for one management cluster.
#[derive(Debug)]
pub struct ReferenceOperator {
    management: CapzCluster,
    arm: Arm,
}

impl ReferenceOperator {
    /// Readies it.
    ///
    /// # Errors
    ///
    /// Azure issues no token.
    pub async fn new(env: &CapzEnv, management: &CapzCluster) -> Result<Self> {
        Ok(Self {
            management: management.clone(),
            arm: env.arm(CAPZ_CLIENT).await?,
        })
    }

    /// Serves a workload cluster until it has all annotations: finalizer, entries, addresses, condition. A CAPZ has to
    /// make the private endpoints meanwhile.
    ///
    /// # Errors
    ///
    /// The API server refuses, or a private endpoint gets no address in time.
    pub async fn serve(&self, env: &CapzEnv, workload: &CapzCluster) -> Result<()> {
        self.add_finalizer(env, workload).await?;
        if workload.load_balancer() == LoadBalancer::Internal {
            for link in workload.links() {
                let entry = link_entry(&self.management, workload, link.name());
                add_entry(env, &self.management, &entry).await?;
                self.annotate(env, workload, API_SERVER_IP, &self.management, &entry)
                    .await?;
            }
        }
        if self.management.load_balancer() == LoadBalancer::Internal {
            let entry = gateway_entry(&self.management, workload);
            add_entry(env, workload, &entry).await?;
            self.annotate(env, workload, MANAGEMENT_INGRESS_IP, workload, &entry)
                .await?;
            set_condition(env, workload).await?;
        }
        Ok(())
    }

    async fn add_finalizer(&self, env: &CapzEnv, workload: &CapzCluster) -> Result<()> {
        let object = workload.get(env).await?;
        let mut finalizers = object.finalizers().to_vec();
        if !finalizers.iter().any(|one| one == FINALIZER) {
            finalizers.push(FINALIZER.to_owned());
            let patch = json!({"metadata": {"finalizers": finalizers}});
            patch_as_operator(env, workload, &patch).await?;
        }
        Ok(())
    }

    /// Waits until the private endpoint of an entry of `owner` has an address, and sets the annotation.
    async fn annotate(
        &self,
        env: &CapzEnv,
        workload: &CapzCluster,
        annotation: &str,
        owner: &CapzCluster,
        entry: &Value,
    ) -> Result<()> {
        let id = owner.endpoint(entry["name"].as_str().context("an entry without a name")?);
        let address = eventually(&format!("{id} has an address"), env.patience(), || {
            address(&self.arm, &id)
        })
        .await?;
        let patch = json!({"metadata": {"annotations": {annotation: address}}});
        patch_as_operator(env, workload, &patch).await
    }

    /// Leads, as a process of this name in this namespace: the lease is renewed now.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn renew_lease(&self, env: &CapzEnv, namespace: &str, holder: &str) -> Result<()> {
        let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
        let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"namespace": namespace, "name": LEASE},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 0,
                "acquireTime": now, "renewTime": now}});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        env.apply_yaml(&format!("{namespace}\n---\n{lease}")).await.map(drop)
    }

    /// Removes the lease.
    ///
    /// # Errors
    ///
    /// There is none, or the API server refuses.
    pub async fn delete_lease(&self, env: &CapzEnv, namespace: &str) -> Result<()> {
        let leases: Api<Lease> = Api::namespaced(env.client()?, namespace);
        leases.delete(LEASE, &DeleteParams::default()).await?;
        Ok(())
    }
}

/// The address of a private endpoint's network interface.
async fn address(arm: &Arm, id: &str) -> Result<String> {
    let found = arm.get_expanded(id, "&$expand=networkInterfaces").await?;
    let found = found.context("no private endpoint")?;
    let interface = &found["properties"]["networkInterfaces"][0]["properties"];
    let address = interface["ipConfigurations"][0]["properties"]["privateIPAddress"].as_str();
    address.map(str::to_owned).context("no address")
}

/// Adds an entry to the first subnet of nodes, by a patch of all subnets as they were read.
async fn add_entry(env: &CapzEnv, cluster: &CapzCluster, entry: &Value) -> Result<()> {
    let object = cluster.get(env).await?;
    if entries(&object).any(|(_, one)| one["name"] == entry["name"]) {
        return Ok(());
    }
    let mut subnets = object.data["spec"]["networkSpec"]["subnets"].clone();
    let mut all = subnets.as_array_mut().into_iter().flatten();
    let subnet = all
        .find(|subnet| subnet["role"] == "node")
        .context("no subnet of nodes")?;
    let mut entries = subnet["privateEndpoints"].as_array().cloned().unwrap_or_default();
    entries.push(entry.clone());
    subnet["privateEndpoints"] = entries.into();
    patch_as_operator(env, cluster, &json!({"spec": {"networkSpec": {"subnets": subnets}}})).await
}

/// Sets its condition, by a patch of all conditions as they were read.
async fn set_condition(env: &CapzEnv, workload: &CapzCluster) -> Result<()> {
    let object = workload.get(env).await?;
    let mut conditions = object.data["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    conditions.push(json!({"type": CONDITION, "status": "True", "message": MESSAGE, "lastTransitionTime": now}));
    let patch = Patch::Merge(json!({"status": {"conditions": conditions}}));
    let api = workload.azure_clusters(&env.client()?);
    api.patch_status(workload.name(), &params(), &patch).await?;
    Ok(())
}

async fn patch_as_operator(env: &CapzEnv, cluster: &CapzCluster, patch: &Value) -> Result<()> {
    let api = cluster.azure_clusters(&env.client()?);
    api.patch(cluster.name(), &params(), &Patch::Merge(patch)).await?;
    Ok(())
}

fn params() -> PatchParams {
    PatchParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PatchParams::default()
    }
}
