//! ARM as the run itself uses it, through the transport that ships. It reads everything, and writes only what bears the
//! run's prefix.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use bytes::Bytes;
use http::{Method, Request};
use hyperlink::azure::arm::auth::AuthError;
use hyperlink::azure::arm::transport::{Transport, TransportError};
use serde_json::Value;
use url::Url;

use super::settings::Prefix;
use crate::eventually;

/// The tag of every resource group that a run creates; its value is the prefix.
pub const TAG: &str = "hyperlink-e2e";

const GROUPS: &str = "2024-07-01";
const NETWORK: &str = "2024-05-01";
const PRIVATE_DNS: &str = "2024-06-01";

/// What the run may write in Azure.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// The prefix that resource groups, and subnets in the cluster's VNet, have to bear.
    pub prefix: Prefix,
    /// The subscription of all resources.
    pub subscription: String,
    /// The cluster's VNet, where the run has not created it.
    pub cluster_vnet: Option<String>,
}

impl Bounds {
    /// Whether the run owns the resource of this id.
    pub fn owns(&self, id: &str) -> bool {
        let id = id.to_ascii_lowercase();
        let groups = format!(
            "/subscriptions/{}/resourcegroups/",
            self.subscription.to_ascii_lowercase()
        );
        if id.contains("/../") || id.contains('%') || id.contains('?') || id.contains('#') {
            return false;
        }
        let group = id.strip_prefix(&groups).and_then(|rest| rest.split('/').next());
        if group.is_some_and(|group| group != self.prefix.as_str() && self.prefix.owns(group)) {
            return true;
        }
        let subnets = self
            .cluster_vnet
            .as_ref()
            .map(|vnet| format!("{}/subnets/", vnet.to_ascii_lowercase()));
        let subnet = subnets.and_then(|subnets| id.strip_prefix(&subnets).map(str::to_owned));
        subnet.is_some_and(|name| !name.contains('/') && self.prefix.owns(&name))
    }
}

/// One subscription's ARM.
pub struct Arm {
    transport: Box<dyn Transport>,
    endpoint: Url,
    bounds: Bounds,
    patience: Duration,
}

/// A final answer: the body of a success, or none for "404 Not Found".
type Answer = Option<Value>;

impl Arm {
    /// ARM within these bounds; every wait ends after `patience`.
    pub fn new(transport: Box<dyn Transport>, endpoint: Url, bounds: Bounds, patience: Duration) -> Self {
        Self {
            transport,
            endpoint,
            bounds,
            patience,
        }
    }

    /// The bounds of what may be written.
    pub fn bounds(&self) -> &Bounds {
        &self.bounds
    }

    /// How long to wait between two polls.
    pub fn pace(&self) -> Duration {
        self.patience / 240
    }

    /// Reads one resource; none if it does not exist.
    ///
    /// # Errors
    ///
    /// ARM refuses or does not answer.
    pub async fn get(&self, id: &str) -> Result<Answer> {
        self.retry(&format!("GET {id}"), || self.send(Method::GET, id, None))
            .await
    }

    /// Reads a list, all pages.
    ///
    /// # Errors
    ///
    /// ARM refuses or does not answer.
    pub async fn list(&self, path: &str) -> Result<Vec<Value>> {
        let mut items = Vec::new();
        let mut url = self.url(path);
        loop {
            let page = self
                .retry(&format!("GET {path}"), || self.request(Method::GET, url.clone(), None))
                .await?;
            let Some(mut page) = page else {
                return Ok(items);
            };
            items.extend(page["value"].as_array_mut().map(std::mem::take).unwrap_or_default());
            match page["nextLink"].as_str() {
                Some(next) if !next.is_empty() => url = next.parse()?,
                _ => return Ok(items),
            }
        }
    }

    /// Creates or replaces one of the run's own resources and waits until it is ready.
    ///
    /// # Errors
    ///
    /// The run does not own it, or Azure refuses or takes too long.
    pub async fn put(&self, id: &str, body: &Value) -> Result<()> {
        self.ensure_own(id)?;
        self.retry(&format!("PUT {id}"), || self.send(Method::PUT, id, Some(body)))
            .await?;
        self.retry(&format!("{id} is there"), || async {
            let found = match self.send(Method::GET, id, None).await? {
                Ok(found) => found.context("it is not there")?,
                refused => return Ok(refused),
            };
            match state(&found) {
                "Failed" | "Canceled" => Ok(Err(anyhow!("{id} has failed"))),
                "" | "Succeeded" => Ok(Ok(None)),
                other => bail!("it is {other}"),
            }
        })
        .await
        .map(drop)
    }

    /// Deletes one of the run's own resources and waits until it is gone.
    ///
    /// # Errors
    ///
    /// The run does not own it, or Azure refuses or takes too long.
    pub async fn delete(&self, id: &str) -> Result<()> {
        self.ensure_own(id)?;
        self.retry(&format!("{id} is gone"), || async {
            let found = match self.send(Method::GET, id, None).await? {
                Ok(Some(found)) => found,
                final_answer => return Ok(final_answer),
            };
            if state(&found) != "Deleting"
                && let Err(refused) = self.send(Method::DELETE, id, None).await?
            {
                return Ok(Err(refused));
            }
            bail!("it is {}", state(&found))
        })
        .await
        .map(drop)
    }

    /// The ids of this run's resource groups: those that bear its prefix and its tag.
    ///
    /// # Errors
    ///
    /// ARM refuses or does not answer.
    pub async fn groups(&self) -> Result<Vec<String>> {
        let all = self
            .list(&format!("/subscriptions/{}/resourceGroups", self.bounds.subscription))
            .await?;
        let own = all
            .into_iter()
            .filter(|group| group["tags"][TAG] == self.bounds.prefix.as_str());
        let ids = own.filter_map(|group| group["id"].as_str().map(str::to_owned));
        Ok(ids.filter(|id| self.bounds.owns(id)).collect())
    }

    fn ensure_own(&self, id: &str) -> Result<()> {
        ensure!(
            self.bounds.owns(id),
            "{id} does not bear the prefix {}",
            self.bounds.prefix
        );
        Ok(())
    }

    /// Repeats `probe` until it gives a final answer. Its outer error is temporary, its inner one final.
    async fn retry<F>(&self, what: &str, probe: impl Fn() -> F) -> Result<Answer>
    where
        F: Future<Output = Result<Result<Answer>>>,
    {
        eventually(what, self.patience, || async {
            let response = probe().await;
            if response.is_err() {
                tokio::time::sleep(self.pace()).await;
            }
            response
        })
        .await?
        .with_context(|| what.to_owned())
    }

    async fn send(&self, method: Method, id: &str, body: Option<&Value>) -> Result<Result<Answer>> {
        self.request(method, self.url(id), body).await
    }

    /// Sends one request. The outer error is temporary, the inner one final.
    async fn request(&self, method: Method, url: Url, body: Option<&Value>) -> Result<Result<Answer>> {
        let request = Request::builder().method(method).uri(url.as_str());
        let request = request
            .header("accept", "application/json")
            .header("content-type", "application/json");
        let bytes = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        let answer = match self.transport.send(request.body(bytes)?).await {
            Ok(answer) => answer,
            Err(error) if is_transient(&error) => return Err(error.into()),
            Err(error) => return Ok(Err(error.into())),
        };
        let status = answer.status().as_u16();
        let json: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
        let error_text = || format!("{status} {}: {}", json["error"]["code"], json["error"]["message"]);
        match status {
            404 => Ok(Ok(None)),
            200..=299 => Ok(Ok(Some(json))),
            408 | 409 | 412 | 429 | 500.. => bail!(error_text()),
            _ => Ok(Err(anyhow!(error_text()))),
        }
    }

    fn url(&self, path: &str) -> Url {
        let mut url = self.endpoint.clone();
        url.set_path(path);
        url.set_query(Some(&format!("api-version={}", version(path))));
        url
    }
}

/// Whether another attempt may succeed.
fn is_transient(error: &TransportError) -> bool {
    matches!(
        error,
        TransportError::Timeout | TransportError::Connection(_) | TransportError::Token(AuthError::Unreachable { .. })
    )
}

fn state(resource: &Value) -> &str {
    resource["properties"]["provisioningState"].as_str().unwrap_or_default()
}

fn version(path: &str) -> &'static str {
    let path = path.to_ascii_lowercase();
    if path.contains("/privatednszones") {
        PRIVATE_DNS
    } else if path.contains("/microsoft.network/") {
        NETWORK
    } else {
        GROUPS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_bears_the_prefix_may_be_written() {
        let vnet = "/subscriptions/S/resourceGroups/cluster/providers/Microsoft.Network/virtualNetworks/v";
        let bounds = Bounds {
            prefix: "hle2e-abcd".parse().unwrap(),
            subscription: "S".into(),
            cluster_vnet: Some(vnet.into()),
        };
        for own in [
            "/subscriptions/s/resourceGroups/hle2e-abcd-management",
            "/subscriptions/S/resourcegroups/HLE2E-abcd-plain-12345/providers/Microsoft.Network/virtualNetworks/x",
            &format!("{vnet}/subnets/hle2e-abcd-plain-12345-pls-nat"),
        ] {
            assert!(bounds.owns(own), "{own}");
        }
        for foreign in [
            "/subscriptions/S",
            "/subscriptions/S/resourceGroups/cluster",
            "/subscriptions/S/resourceGroups/hle2e-abcde-management",
            "/subscriptions/other/resourceGroups/hle2e-abcd-management",
            "/subscriptions/S/resourceGroups/hle2e-abcd-x/../cluster",
            "/subscriptions/S/resourceGroups/hle2e-abcd-x%2f..%2fcluster",
            vnet,
            &format!("{vnet}/subnets/nodes"),
            &format!("{vnet}/subnets/hle2e-abcd-x/more"),
        ] {
            assert!(!bounds.owns(foreign), "{foreign}");
        }
    }
}
