//! A client of a simulator's control API.

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The control API at one address.
#[derive(Clone, Debug)]
pub(crate) struct ControlApi {
    base: String,
    http: reqwest::Client,
}

impl ControlApi {
    pub(crate) fn new(base: String) -> Self {
        Self {
            base,
            http: reqwest::Client::new(),
        }
    }

    /// The base URL.
    pub(crate) fn url(&self) -> &str {
        &self.base
    }

    pub(crate) async fn send(
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

    pub(crate) async fn get<T: serde::de::DeserializeOwned>(&self, path: &str, query: &[(&str, &str)]) -> Result<T> {
        let text = self.send(reqwest::Method::GET, path, query, None).await?;
        serde_json::from_str(&text).with_context(|| format!("simulator: GET {path}: {text}"))
    }
}
