//! How HyperShift deletes a hosted cluster on AWS, and in which order.

use std::time::Duration;

use anyhow::{Result, ensure};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::json;

use super::AwsHostedCluster;
use crate::AwsEnv;
use crate::hosted_cluster::{NAMESPACE, ROUTER, delete_namespace, release};
use crate::wait::eventually;

/// The finalizer of the CPO role.
const CPO_FINALIZER: &str = "hypershift.openshift.io/control-plane-operator-finalizer";

impl AwsHostedCluster {
    /// Deletes the cluster as HyperShift does and waits until it is gone: first the NodePools, then the
    /// HostedControlPlane, then the custom resources, then the namespace with what is left in it, then the
    /// HostedCluster. What the installer made stays.
    ///
    /// # Errors
    ///
    /// Something still exists after `timeout`; the error says what blocks its deletion.
    pub async fn delete(&self, env: &AwsEnv, timeout: Duration) -> Result<()> {
        let client = env.client()?;
        let hosted_clusters = self.api(&client, "HostedCluster", NAMESPACE);
        hosted_clusters.delete(&self.name, &DeleteParams::default()).await?;
        self.delete_node_pools(&client, timeout).await?;
        self.delete_control_plane(&client, timeout).await?;
        self.delete_custom_resources(&client, timeout).await?;
        delete_namespace(&client, &self.control_plane_namespace(), timeout).await?;
        release(&hosted_clusters, &self.name).await?;
        is_gone(&hosted_clusters, &self.name, timeout).await
    }

    /// Deletes the NodePools and waits until they are gone.
    ///
    /// # Errors
    ///
    /// One still exists after `timeout`.
    pub async fn delete_node_pools(&self, client: &kube::Client, timeout: Duration) -> Result<()> {
        let node_pools = self.api(client, "NodePool", NAMESPACE);
        for number in 1..=self.node_pools.len() {
            let name = self.node_pool_name(number);
            if node_pools.get_opt(&name).await?.is_some() {
                node_pools.delete(&name, &DeleteParams::default()).await?;
            }
            is_gone(&node_pools, &name, timeout).await?;
        }
        Ok(())
    }

    /// Deletes the HostedControlPlane, and with it the guest's API server, and waits until it is gone. Kubernetes then
    /// deletes the Service.
    ///
    /// # Errors
    ///
    /// It still exists after `timeout`.
    pub async fn delete_control_plane(&self, client: &kube::Client, timeout: Duration) -> Result<()> {
        let control_planes = self.api(client, "HostedControlPlane", &self.control_plane_namespace());
        control_planes.delete(&self.name, &DeleteParams::default()).await?;
        release(&control_planes, &self.name).await?;
        is_gone(&control_planes, &self.name, timeout).await
    }

    /// Deletes the custom resources and waits until they are gone.
    ///
    /// # Errors
    ///
    /// One still exists after `timeout`.
    pub async fn delete_custom_resources(&self, client: &kube::Client, timeout: Duration) -> Result<()> {
        let custom_resources = self.custom_resources(client);
        for name in &self.services {
            if custom_resources.get_opt(name).await?.is_some() {
                custom_resources.delete(name, &DeleteParams::default()).await?;
            }
        }
        for name in &self.services {
            is_gone(&custom_resources, name, timeout).await?;
        }
        Ok(())
    }

    /// Waits until the custom resource is being deleted, and takes away the CPO role's finalizer, as HyperShift does
    /// when the guest's identity provider is not valid, or after ten minutes. Returns whether it was still there.
    ///
    /// # Errors
    ///
    /// The custom resource is not being deleted within `timeout`.
    pub async fn strip_cpo_finalizer(&self, client: &kube::Client, timeout: Duration) -> Result<bool> {
        let custom_resources = self.custom_resources(client);
        eventually("the finalizer is taken away", timeout, || async {
            let Some(found) = custom_resources.get_opt(ROUTER).await? else {
                return Ok(false);
            };
            ensure!(found.metadata.deletion_timestamp.is_some(), "it is not being deleted");
            let mut left = found.metadata.finalizers.unwrap_or_default();
            let before = left.len();
            left.retain(|one| one != CPO_FINALIZER);
            let is_there = left.len() < before;
            if is_there {
                let patch =
                    json!({"metadata": {"finalizers": left, "resourceVersion": found.metadata.resource_version}});
                let params = PatchParams::default();
                custom_resources.patch(ROUTER, &params, &Patch::Merge(patch)).await?;
            }
            Ok(is_there)
        })
        .await
    }
}

async fn is_gone(api: &Api<DynamicObject>, name: &str, timeout: Duration) -> Result<()> {
    eventually(&format!("{name} is gone"), timeout, || async {
        let left = api.get_opt(name).await?;
        let finalizers = left.map(|left| left.metadata.finalizers.unwrap_or_default());
        ensure!(finalizers.is_none(), "finalizers {finalizers:?}");
        Ok(())
    })
    .await
}
