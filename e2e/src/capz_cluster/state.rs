//! What the objects of a cluster hold, and changes by hand.

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use super::objects::{AZURE_CLUSTER, CLUSTER, CONTROL_PLANE, IDENTITY};
use super::{CapzCluster, NODE_SUBNET};
use crate::{CapzEnv, eventually};

impl CapzCluster {
    /// The AzureClusters of its namespace.
    pub fn azure_clusters(&self, client: &Client) -> Api<DynamicObject> {
        api(client, &self.namespace, AZURE_CLUSTER)
    }

    /// The AzureClusterIdentities of its namespace.
    pub fn identities(&self, client: &Client) -> Api<DynamicObject> {
        api(client, &self.namespace, IDENTITY)
    }

    /// The Clusters of its namespace.
    pub fn clusters(&self, client: &Client) -> Api<DynamicObject> {
        api(client, &self.namespace, CLUSTER)
    }

    /// The KubeadmControlPlanes of its namespace.
    pub fn control_planes(&self, client: &Client) -> Api<DynamicObject> {
        api(client, &self.namespace, CONTROL_PLANE)
    }

    /// Its AzureCluster.
    ///
    /// # Errors
    ///
    /// There is none.
    pub async fn get(&self, env: &CapzEnv) -> Result<DynamicObject> {
        Ok(self.azure_clusters(&env.client()?).get(&self.name).await?)
    }

    /// The names of its entries, in the order of subnets and entries.
    ///
    /// # Errors
    ///
    /// There is no AzureCluster.
    pub async fn entry_names(&self, env: &CapzEnv) -> Result<Vec<String>> {
        let object = self.get(env).await?;
        let names = entries(&object).map(|(_, entry)| entry["name"].as_str().unwrap_or_default().to_owned());
        Ok(names.collect())
    }

    /// An annotation of its AzureCluster.
    ///
    /// # Errors
    ///
    /// There is no AzureCluster.
    pub async fn annotation(&self, env: &CapzEnv, name: &str) -> Result<Option<String>> {
        Ok(self.get(env).await?.annotations().get(name).cloned())
    }

    /// All conditions of this type of its AzureCluster, in their order.
    ///
    /// # Errors
    ///
    /// There is no AzureCluster.
    pub async fn conditions(&self, env: &CapzEnv, kind: &str) -> Result<Vec<Value>> {
        let object = self.get(env).await?;
        let all = object.data["status"]["conditions"].as_array().into_iter().flatten();
        Ok(all.filter(|one| one["type"] == kind).cloned().collect())
    }

    /// Fails unless a condition of its AzureCluster is True.
    ///
    /// # Errors
    ///
    /// It is not; the error holds the conditions of that type.
    pub async fn has_true(&self, env: &CapzEnv, kind: &str) -> Result<()> {
        let found = self.conditions(env, kind).await?;
        ensure!(
            found.first().is_some_and(|one| one["status"] == "True"),
            "{kind}: {found:?}"
        );
        Ok(())
    }

    /// Applies a JSON merge patch to its AzureCluster.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn patch(&self, env: &CapzEnv, patch: &Value) -> Result<DynamicObject> {
        let api = self.azure_clusters(&env.client()?);
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        Ok(api.patch(&self.name, &params, &patch).await?)
    }

    /// Sets or removes an annotation of its AzureCluster.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn annotate(&self, env: &CapzEnv, name: &str, value: Option<&str>) -> Result<()> {
        let patch = json!({"metadata": {"annotations": {name: value}}});
        self.patch(env, &patch).await.map(drop)
    }

    /// Adds an entry to the subnet of its nodes, by hand.
    ///
    /// # Errors
    ///
    /// There is no such subnet, or the API server refuses.
    pub async fn add_entry(&self, env: &CapzEnv, entry: &Value) -> Result<()> {
        self.change_entries(env, |entries| entries.push(entry.clone())).await
    }

    /// Removes the entry of this name from the subnet of its nodes, by hand.
    ///
    /// # Errors
    ///
    /// There is no such subnet, or the API server refuses.
    pub async fn remove_entry(&self, env: &CapzEnv, name: &str) -> Result<()> {
        self.change_entries(env, |entries| entries.retain(|entry| entry["name"] != name))
            .await
    }

    /// Changes the entries of that subnet; tries again while others write.
    async fn change_entries(&self, env: &CapzEnv, change: impl Fn(&mut Vec<Value>)) -> Result<()> {
        eventually("nobody else writes", env.patience(), || async {
            let object = self.get(env).await?;
            let mut subnets = object.data["spec"]["networkSpec"]["subnets"].clone();
            let all = subnets.as_array_mut().context("no subnets")?;
            let subnet = all.iter_mut().find(|subnet| subnet["name"] == NODE_SUBNET);
            let subnet = subnet.context("no subnet of nodes")?;
            let mut entries = subnet["privateEndpoints"].as_array().cloned().unwrap_or_default();
            change(&mut entries);
            subnet["privateEndpoints"] = entries.into();
            let patch = json!({"metadata": {"resourceVersion": object.metadata.resource_version},
                "spec": {"networkSpec": {"subnets": subnets}}});
            self.patch(env, &patch).await.map(drop)
        })
        .await
    }

    /// An entry by which a private endpoint of this cluster connects to a Private Link Service.
    pub fn entry(&self, name: &str, connection: &str, link_service: &str) -> Value {
        json!({"name": name, "location": self.location, "privateLinkServiceConnections": [
            {"name": connection, "privateLinkServiceID": link_service}]})
    }

    /// Sets conditions of its AzureCluster as an administrator; others stay. Tries again while others write.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn set_conditions(&self, env: &CapzEnv, conditions: &[(&str, &str)]) -> Result<()> {
        let api = self.azure_clusters(&env.client()?);
        let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        eventually("nobody else writes", env.patience(), || async {
            let object = self.get(env).await?;
            let mut all = object.data["status"]["conditions"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            all.retain(|one| !conditions.iter().any(|(kind, _)| one["type"] == *kind));
            let given = conditions.iter();
            all.extend(given.map(|(kind, status)| json!({"type": kind, "status": status, "lastTransitionTime": now})));
            let patch = json!({"metadata": {"resourceVersion": object.metadata.resource_version},
                "status": {"conditions": all}});
            api.patch_status(&self.name, &PatchParams::default(), &Patch::Merge(patch))
                .await?;
            Ok(())
        })
        .await
    }

    /// Has its Cluster show that the infrastructure is provisioned, as Cluster API's core does once the AzureCluster is
    /// ready. From then on a manager of kubeadm control planes creates the control plane.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn set_provisioned(&self, env: &CapzEnv) -> Result<()> {
        let api = self.clusters(&env.client()?);
        let endpoint = json!({"spec": {"controlPlaneEndpoint": {"host": self.api_host(), "port": 6443}}});
        api.patch(&self.name, &PatchParams::default(), &Patch::Merge(endpoint))
            .await?;
        let status = json!({"status": {"initialization": {"infrastructureProvisioned": true}}});
        api.patch_status(&self.name, &PatchParams::default(), &Patch::Merge(status))
            .await?;
        Ok(())
    }

    /// Sets whether its KubeadmControlPlane shows that the control plane is initialized.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn set_initialized(&self, env: &CapzEnv, initialized: bool) -> Result<()> {
        let patch = json!({"status": {"initialization": {"controlPlaneInitialized": initialized}}});
        let api = self.control_planes(&env.client()?);
        api.patch_status(&self.name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }
}

/// The entries of an AzureCluster, each with the name of its subnet, in the order of subnets and entries.
pub fn entries(object: &DynamicObject) -> impl Iterator<Item = (&str, &Value)> {
    let subnets = object.data["spec"]["networkSpec"]["subnets"]
        .as_array()
        .into_iter()
        .flatten();
    subnets.flat_map(|subnet| {
        let name = subnet["name"].as_str().unwrap_or_default();
        let entries = subnet["privateEndpoints"].as_array().into_iter().flatten();
        entries.map(move |entry| (name, entry))
    })
}

pub(crate) fn api(client: &Client, namespace: &str, kind: (&str, &str, &str)) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &resource(kind))
}

pub(crate) fn resource((group, version, kind): (&str, &str, &str)) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}
