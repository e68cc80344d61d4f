//! What an administrator and HyperShift create before Hyperlink begins, step by step.

use anyhow::{Context, Result};
use serde_json::json;

use super::HostedCluster;
use super::objects::merge;
use crate::Target;

impl HostedCluster {
    /// Creates what an administrator and HyperShift create before Hyperlink begins: the workers' network in Azure, the
    /// HostedCluster, the control plane's namespace, the HostedControlPlane and the Services.
    ///
    /// # Errors
    ///
    /// Azure or the API server refuses.
    pub async fn create(&self, target: &Target) -> Result<()> {
        self.create_guest_network(target).await?;
        self.create_namespaces(target).await?;
        if self.hosted_cluster_patch.is_some() {
            self.create_hosted_cluster(target).await?;
        }
        let owner = self.create_control_plane(target).await?;
        self.create_services(target, Some(&owner)).await
    }

    /// Creates the namespaces of the HostedCluster and of the control plane.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn create_namespaces(&self, target: &Target) -> Result<()> {
        let names = [self.namespace.as_str(), &self.control_plane_namespace()];
        let namespace = |name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}).to_string();
        let text = names.map(namespace).join("\n---\n");
        target.apply_yaml(&text).await.map(drop)
    }

    /// Creates the HostedControlPlane and returns its uid.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn create_control_plane(&self, target: &Target) -> Result<String> {
        let text = self.hosted_control_plane().to_string();
        let applied = target.apply_yaml(&text).await?;
        let uid = applied
            .last()
            .and_then(|control_plane| control_plane.metadata.uid.clone());
        uid.context("no uid")
    }

    /// Creates the Services. The HostedControlPlane with this uid owns them, or nobody yet. Existing Services get the
    /// owner.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn create_services(&self, target: &Target, owner: Option<&str>) -> Result<()> {
        let services = self.services().iter();
        let text: Vec<_> = services.map(|name| self.service(name, owner).to_string()).collect();
        target.apply_yaml(&text.join("\n---\n")).await.map(drop)
    }

    /// Creates the HostedCluster. [`HostedCluster::create`] does so too, unless
    /// [`HostedCluster::without_hosted_cluster`] says otherwise.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn create_hosted_cluster(&self, target: &Target) -> Result<()> {
        let mut object = self.hosted_cluster();
        if let Some(patch) = &self.hosted_cluster_patch {
            merge(&mut object, patch);
        }
        target.apply_yaml(&object.to_string()).await.map(drop)
    }

    /// Creates the workers' network in Azure.
    ///
    /// # Errors
    ///
    /// Azure refuses.
    pub async fn create_guest_network(&self, target: &Target) -> Result<()> {
        let oracle = target.oracle();
        oracle
            .drift_put(&self.resource_group(), &json!({"location": self.location}))
            .await?;
        let vnet = json!({"location": self.location, "properties": {
            "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
            "subnets": [{"name": "default", "properties": {
                "addressPrefix": "10.0.0.0/24", "privateEndpointNetworkPolicies": "Disabled"}}]}});
        oracle.drift_put(&self.vnet(), &vnet).await
    }
}
