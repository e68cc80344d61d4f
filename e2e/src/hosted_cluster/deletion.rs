//! How HyperShift deletes a hosted cluster, and in which order.

use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::json;

use super::{HYPERSHIFT_FINALIZER, HostedCluster};
use crate::Target;
use crate::wait::eventually;

impl HostedCluster {
    /// Deletes the cluster as HyperShift does and waits until it is gone.
    ///
    /// First it deletes the HostedControlPlane, and removes HyperShift's finalizer when all others are removed. Then it
    /// deletes the namespace with what is left in it, and then the HostedCluster.
    ///
    /// # Errors
    ///
    /// Something still exists after `timeout`; the error says what blocks its deletion.
    pub async fn delete(&self, target: &Target, timeout: Duration) -> Result<()> {
        let client = target.client()?;
        let hosted_clusters = self.api(&client, "HostedCluster", &self.namespace);
        hosted_clusters.delete(&self.name, &DeleteParams::default()).await?;
        self.delete_control_plane(&client, timeout).await?;
        self.delete_namespace(&client, timeout).await?;
        release(&hosted_clusters, &self.name).await?;
        eventually("the HostedCluster is gone", timeout, || async {
            ensure_gone(hosted_clusters.get_opt(&self.name).await?)
        })
        .await
    }

    /// Deletes the HostedCluster alone and waits until it is gone.
    ///
    /// # Errors
    ///
    /// It still exists after `timeout`.
    pub async fn delete_hosted_cluster(&self, client: &kube::Client, timeout: Duration) -> Result<()> {
        let hosted_clusters = self.api(client, "HostedCluster", &self.namespace);
        hosted_clusters.delete(&self.name, &DeleteParams::default()).await?;
        release(&hosted_clusters, &self.name).await?;
        eventually("the HostedCluster is gone", timeout, || async {
            ensure_gone(hosted_clusters.get_opt(&self.name).await?)
        })
        .await
    }

    /// Deletes the HostedControlPlane and waits until it is gone.
    ///
    /// # Errors
    ///
    /// It still exists after `timeout`.
    pub async fn delete_control_plane(&self, client: &kube::Client, timeout: Duration) -> Result<()> {
        let control_planes = self.api(client, "HostedControlPlane", &self.control_plane_namespace());
        control_planes.delete(&self.name, &DeleteParams::default()).await?;
        eventually(
            "the HostedControlPlane is held by HyperShift alone",
            timeout,
            || async {
                let Some(found) = control_planes.get_opt(&self.name).await? else {
                    return Ok(());
                };
                let finalizers = found.metadata.finalizers.unwrap_or_default();
                ensure!(finalizers == [HYPERSHIFT_FINALIZER], "finalizers {finalizers:?}");
                Ok(())
            },
        )
        .await?;
        release(&control_planes, &self.name).await?;
        eventually("the HostedControlPlane is gone", timeout, || async {
            ensure_gone(control_planes.get_opt(&self.name).await?)
        })
        .await
    }

    /// Deletes the namespace of the control plane and waits until it is gone.
    ///
    /// # Errors
    ///
    /// It still exists after `timeout`.
    pub async fn delete_namespace(&self, client: &kube::Client, timeout: Duration) -> Result<()> {
        delete_namespace(client, &self.control_plane_namespace(), timeout).await
    }
}

/// Deletes a namespace and waits until it is gone.
///
/// # Errors
///
/// It still exists after `timeout`; the error says what is left in it.
pub(crate) async fn delete_namespace(client: &kube::Client, name: &str, timeout: Duration) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.delete(name, &DeleteParams::default()).await?;
    eventually("the namespace is gone", timeout, || async {
        let Some(left) = namespaces.get_opt(name).await? else {
            return Ok(());
        };
        let conditions = left.status.and_then(|status| status.conditions).unwrap_or_default();
        let held: Vec<_> = conditions
            .into_iter()
            .filter(|one| one.status == "True")
            .filter_map(|one| one.message)
            .collect();
        Err(anyhow!("{held:?}"))
    })
    .await
}

fn ensure_gone(found: Option<DynamicObject>) -> Result<()> {
    found.map_or(Ok(()), |found| {
        Err(anyhow!("finalizers {:?}", found.metadata.finalizers))
    })
}

/// Removes HyperShift's finalizer, and only that one.
///
/// # Errors
///
/// The API server refuses.
pub async fn release(api: &Api<DynamicObject>, name: &str) -> Result<()> {
    let Some(found) = api.get_opt(name).await? else {
        return Ok(());
    };
    let left: Vec<_> = found
        .metadata
        .finalizers
        .unwrap_or_default()
        .into_iter()
        .filter(|one| one != HYPERSHIFT_FINALIZER)
        .collect();
    let patch = json!({"metadata": {"finalizers": left, "resourceVersion": found.metadata.resource_version}});
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}
