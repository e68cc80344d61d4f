//! Reads and changes a given Azure through ARM.

use std::sync::Arc;

use anyhow::Result;
use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::arm::{Arm, TAG};
use super::reachable::Walk;
use crate::test_env::{Oracle, Reachable};

/// ARM as an oracle for the resources that bear the run's prefix.
pub(super) struct ArmOracle {
    arm: Arc<Arm>,
    client: kube::Client,
    walked: Mutex<Option<Instant>>,
}

impl ArmOracle {
    pub(super) fn new(arm: Arc<Arm>, client: kube::Client) -> Self {
        Self {
            arm,
            client,
            walked: Mutex::default(),
        }
    }

    async fn inside(&self, group: &str) -> Result<Vec<Value>> {
        let mut found = Vec::new();
        for resource in self.arm.list(&format!("{group}/resources")).await? {
            // The list may still have a resource that is gone.
            if let Some(whole) = self.arm.get(resource["id"].as_str().unwrap_or_default()).await? {
                found.push(whole);
            }
        }
        Ok(found)
    }
}

#[async_trait]
impl Oracle for ArmOracle {
    /// One walk takes many reads, and Azure grants a limited number in five minutes. So there is a pause between two
    /// walks.
    async fn reachable(&self, vnet: &str, name: &str) -> Result<Reachable> {
        let mut walked = self.walked.lock().await;
        if let Some(last) = *walked {
            tokio::time::sleep_until(last + self.arm.pace()).await;
        }
        let found = Walk::new(&self.arm, &self.client, vnet).by_name(name).await;
        *walked = Some(Instant::now());
        found
    }

    async fn resources(&self, prefix: &str) -> Result<Vec<Value>> {
        let mut found = Vec::new();
        for group in self.arm.groups().await? {
            found.extend(self.inside(&group).await?);
            found.push(json!({"id": group}));
        }
        if let Some(vnet) = &self.arm.bounds().cluster_vnet {
            let subnets = self.arm.list(&format!("{vnet}/subnets")).await?;
            let own = |subnet: &Value| self.arm.bounds().owns(subnet["id"].as_str().unwrap_or_default());
            found.extend(subnets.into_iter().filter(own));
        }
        let prefix = prefix.to_ascii_lowercase();
        let below = |one: &Value| {
            one["id"]
                .as_str()
                .is_some_and(|id| id.to_ascii_lowercase().starts_with(&prefix))
        };
        found.retain(below);
        Ok(found)
    }

    async fn drift_put(&self, id: &str, resource: &Value) -> Result<()> {
        let mut resource = resource.clone();
        let is_group = !id.to_ascii_lowercase().contains("/providers/");
        if is_group {
            resource["tags"] = json!({TAG: self.arm.bounds().prefix.as_str()});
        }
        self.arm.put(id, &resource).await
    }

    async fn drift_delete(&self, id: &str) -> Result<()> {
        self.arm.delete(id).await
    }
}
