//! The custom resources that Hyperlink maintains for a hosted cluster, and waits for what they report.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, DynamicObject};
use serde::Deserialize;

use super::{HostedCluster, ROUTER};
use crate::Target;
use crate::wait::eventually;

impl HostedCluster {
    /// The custom resource of the cluster's router, if it exists.
    ///
    /// # Errors
    ///
    /// The API server does not answer.
    pub async fn get_link_service(&self, client: &kube::Client) -> Result<Option<DynamicObject>> {
        self.get_custom_resource(client, ROUTER).await
    }

    /// The custom resource of one of the cluster's Services, if it exists.
    ///
    /// # Errors
    ///
    /// The API server does not answer.
    pub async fn get_custom_resource(&self, client: &kube::Client, service: &str) -> Result<Option<DynamicObject>> {
        let api = self.api(client, "AzurePrivateLinkService", &self.control_plane_namespace());
        Ok(api.get_opt(service).await?)
    }

    /// A Service of the control plane, if it exists.
    ///
    /// # Errors
    ///
    /// The API server does not answer.
    pub async fn get_service(&self, client: &kube::Client, name: &str) -> Result<Option<Service>> {
        Ok(Api::namespaced(client.clone(), &self.control_plane_namespace())
            .get_opt(name)
            .await?)
    }

    /// Waits until Hyperlink reports all parts of all paths as available.
    ///
    /// # Errors
    ///
    /// Hyperlink does not within `timeout`; the error holds the conditions.
    pub async fn becomes_available(&self, target: &Target, timeout: Duration) -> Result<()> {
        let client = target.client()?;
        for service in self.services() {
            eventually(&format!("{service} is available"), timeout, || async {
                let found = self.get_custom_resource(&client, service).await?;
                let conditions = conditions(&found.context("no AzurePrivateLinkService")?);
                let summary = conditions
                    .iter()
                    .find(|one| one.kind == "AzurePrivateLinkServiceAvailable");
                ensure!(summary.is_some_and(|one| one.status == "True"), "{conditions:?}");
                Ok(())
            })
            .await?;
        }
        Ok(())
    }

    /// Waits until a worker reaches the right Service under each of its names.
    ///
    /// # Errors
    ///
    /// A worker does not within `timeout`; the error says which hop fails.
    pub async fn becomes_reachable(&self, target: &Target, timeout: Duration) -> Result<()> {
        for name in self.host_names() {
            eventually(&format!("{name} is reachable"), timeout, || async {
                let found = target.oracle().reachable(&self.vnet(), &name).await?;
                ensure!(found.ok, "{}", found.why.unwrap_or_default());
                let (reached, expected) = (found.path.last().map(|hop| &hop.id), self.service_behind(&name));
                ensure!(reached == Some(&expected), "it leads to {reached:?}");
                Ok(())
            })
            .await?;
        }
        Ok(())
    }
}

/// A condition of a custom resource.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Condition {
    /// The condition's type.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The reason, in one word.
    pub reason: String,
    /// The explanation, for a person.
    pub message: String,
    /// When it got this status, to the second.
    #[serde(rename = "lastTransitionTime")]
    pub since: String,
}

/// The conditions of an object; none if it has no well-formed list of them.
pub fn conditions(object: &DynamicObject) -> Vec<Condition> {
    let list = object.data.pointer("/status/conditions").cloned().unwrap_or_default();
    serde_json::from_value(list).unwrap_or_default()
}
