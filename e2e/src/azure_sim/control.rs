//! The simulator's control API, which reads and changes the simulated Azure without going through ARM.

use anyhow::{Context, Result, bail};
use async_trait::async_trait;
use serde_json::Value;

use crate::test_env::{Call, Journal, Oracle, Reachable};

/// A client of the simulator's control API.
#[derive(Clone, Debug)]
pub(super) struct Control {
    pub(super) base: String,
    pub(super) http: reqwest::Client,
}

impl Control {
    pub(super) async fn send(
        &self,
        method: reqwest::Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<String> {
        let mut request = self
            .http
            .request(method.clone(), format!("{}{path}", self.base))
            .query(query);
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().await?;
        let (status, text) = (answer.status(), answer.text().await?);
        if !status.is_success() {
            bail!("simulator: {method} {path}: {status}: {text}");
        }
        Ok(text)
    }

    async fn get<T: serde::de::DeserializeOwned>(&self, path: &str, query: &[(&str, &str)]) -> Result<T> {
        let text = self.send(reqwest::Method::GET, path, query, None).await?;
        serde_json::from_str(&text).with_context(|| format!("simulator: GET {path}: {text}"))
    }
}

#[async_trait]
impl Oracle for Control {
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
impl Journal for Control {
    async fn journal(&self, since: u64) -> Result<Vec<Call>> {
        self.get("/journal", &[("since", &since.to_string())]).await
    }
}
