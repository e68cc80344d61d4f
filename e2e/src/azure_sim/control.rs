//! The simulator's control API, which reads and changes the simulated Azure without going through ARM.

use anyhow::Result;
use async_trait::async_trait;
use serde_json::Value;

use crate::control_api::ControlApi;
use crate::test_env::{Call, Journal, Oracle, Reachable};

#[async_trait]
impl Oracle for ControlApi {
    async fn reachable(&self, vnet: &str, name: &str) -> Result<Reachable> {
        self.get("/reachable", &[("vnet", vnet), ("name", name)]).await
    }

    async fn resources(&self, prefix: &str) -> Result<Vec<Value>> {
        self.get("/resources", &[("prefix", prefix)]).await
    }

    async fn drift_put(&self, id: &str, resource: &Value) -> Result<()> {
        self.send(reqwest::Method::PUT, &format!("/resources{id}"), &[], Some(resource))
            .await
            .map(drop)
    }

    async fn drift_delete(&self, id: &str) -> Result<()> {
        self.send(reqwest::Method::DELETE, &format!("/resources{id}"), &[], None)
            .await
            .map(drop)
    }
}

#[async_trait]
impl Journal for ControlApi {
    async fn journal(&self, since: u64) -> Result<Vec<Call>> {
        self.get("/journal", &[("since", &since.to_string())]).await
    }
}
