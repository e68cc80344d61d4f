//! What exists of a cluster before Hyperlink begins, step by step, and its deletion.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::api::{Api, DeleteParams, DynamicObject};
use serde_json::json;

use super::{CapzCluster, LoadBalancer, NODE_SUBNET};
use crate::{CapzEnv, crds, eventually};

/// The frontend of a gateway's Service.
const GATEWAY_FRONTEND: &str = "gateway";

impl CapzCluster {
    /// Creates its network and load balancer in Azure, and all its objects. A cluster of a resource group that exists
    /// adds its network to it. Returns its AzureCluster as it was created.
    ///
    /// # Errors
    ///
    /// The simulator or the API server refuses.
    pub async fn create(&self, env: &CapzEnv) -> Result<DynamicObject> {
        self.create_resources(env).await?;
        self.create_objects(env).await
    }

    /// Creates its network, and the load balancer of a private API server, which stands behind it.
    ///
    /// # Errors
    ///
    /// The simulator refuses.
    pub async fn create_resources(&self, env: &CapzEnv) -> Result<()> {
        for (id, resource) in self.resources() {
            env.oracle().drift_put(&id, &resource).await?;
        }
        if self.load_balancer == LoadBalancer::Internal {
            for frontend in self.frontends() {
                publish(env, &self.load_balancer_id(), &frontend, &self.api_service()).await?;
            }
        }
        Ok(())
    }

    /// Creates its namespace, identity, Cluster, AzureCluster and KubeadmControlPlane; and the template of its
    /// machines, where Cluster API's own CRDs are on this machine. Returns the AzureCluster as it was created.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn create_objects(&self, env: &CapzEnv) -> Result<DynamicObject> {
        if self.identity_of == self.name {
            self.create_identity(env).await?;
        }
        let owner = self.create_cluster(env).await?;
        let created = env.apply_yaml(&self.azure_cluster(&owner).to_string()).await?;
        if crds::capi::are_real() {
            env.apply_yaml(&self.machine_template().to_string()).await?;
        }
        env.apply_yaml(&self.control_plane(&owner).to_string()).await?;
        created.into_iter().next().context("no AzureCluster was created")
    }

    /// Creates its namespace, and its identity alone.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn create_identity(&self, env: &CapzEnv) -> Result<()> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        let objects = [namespace].into_iter().chain(self.secret(env)).chain([self.identity()]);
        for object in objects {
            env.apply_yaml(&object.to_string()).await?;
        }
        Ok(())
    }

    /// Creates its Cluster alone; returns the uid.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn create_cluster(&self, env: &CapzEnv) -> Result<String> {
        let created = env.apply_yaml(&self.cluster().to_string()).await?;
        let uid = created.into_iter().next().and_then(|cluster| cluster.metadata.uid);
        uid.context("a Cluster without a uid")
    }

    /// Creates the gateway of a management cluster, with its Private Link Service, which is visible to these
    /// subscriptions and approves them.
    ///
    /// # Errors
    ///
    /// The simulator refuses.
    pub async fn create_gateway(&self, env: &CapzEnv, allowed: &[&str]) -> Result<()> {
        let balancer = self.gateway_load_balancer();
        let resource = self.internal_load_balancer(&[GATEWAY_FRONTEND.to_owned()], NODE_SUBNET);
        env.oracle().drift_put(&balancer, &resource).await?;
        publish(env, &balancer, GATEWAY_FRONTEND, &self.gateway_service()).await?;
        let service = json!({"location": self.location, "properties": {
            "loadBalancerFrontendIpConfigurations": [
                {"id": format!("{balancer}/frontendIPConfigurations/{GATEWAY_FRONTEND}")}],
            "ipConfigurations": [{"name": "nat", "properties": {
                "primary": true, "privateIPAllocationMethod": "Dynamic", "subnet": {"id": self.node_subnet()}}}],
            "visibility": {"subscriptions": allowed},
            "autoApproval": {"subscriptions": allowed}}});
        env.oracle()
            .drift_put(&self.link_service(&self.gateway_link()), &service)
            .await
    }

    /// Deletes KubeadmControlPlane, AzureCluster and Cluster, as Cluster API does: the Cluster last, once the others
    /// are gone. The identity stays.
    ///
    /// # Errors
    ///
    /// They are not gone in time.
    pub async fn delete(&self, env: &CapzEnv, timeout: Duration) -> Result<()> {
        let client = env.client()?;
        let all = [
            self.control_planes(&client),
            self.azure_clusters(&client),
            self.clusters(&client),
        ];
        for api in all {
            self.delete_object(&api, timeout).await?;
        }
        Ok(())
    }

    /// Asks for the deletion of an object of its name, and waits until it is gone.
    ///
    /// # Errors
    ///
    /// It is not gone in time; the error names its finalizers.
    pub async fn delete_object(&self, api: &Api<DynamicObject>, timeout: Duration) -> Result<()> {
        match api.delete(&self.name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
            asked => drop(asked?),
        }
        eventually(&format!("{} is gone", self.name), timeout, || async {
            let object = api.get_opt(&self.name).await?;
            let finalizers = object.and_then(|object| object.metadata.finalizers);
            ensure!(finalizers.is_none(), "finalizers: {finalizers:?}");
            Ok(())
        })
        .await
    }
}

/// Sets what stands behind a frontend.
async fn publish(env: &CapzEnv, balancer: &str, frontend: &str, service: &str) -> Result<()> {
    let body = json!({"load_balancer": balancer, "frontend": frontend, "name": service});
    let answer = env.control().send(reqwest::Method::PUT, "/services", &[], Some(&body));
    answer.await.map(drop)
}
