//! What etcd holds for an API server.
//!
//! Source: <https://etcd.io/docs/v3.5/dev-guide/api_grpc_gateway/>

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::pki::{Authority, KeyFiles};

/// Where the API server keeps its objects.
const PREFIX: &str = "/registry/";
/// The first key behind them: `0` follows `/`.
const END: &str = "/registry0";
/// The most operations that etcd takes in one transaction.
const AT_ONCE: usize = 128;

/// Each key with the number of its last change.
pub(super) type Revisions = BTreeMap<String, String>;

#[derive(Deserialize)]
struct Found {
    #[serde(default)]
    kvs: Vec<One>,
}

#[derive(Deserialize)]
struct One {
    key: String,
    mod_revision: String,
}

/// How to reach etcd.
#[derive(Clone, Debug)]
pub(super) struct Etcd {
    pub(super) url: String,
    pub(super) client: KeyFiles,
}

impl Etcd {
    /// All keys of the API server.
    ///
    /// # Errors
    ///
    /// etcd does not answer.
    pub(super) async fn revisions(&self, authority: &Authority) -> Result<Revisions> {
        let range = json!({"key": encoded(PREFIX), "range_end": encoded(END), "keys_only": true});
        let found: Found = serde_json::from_value(self.post(authority, "/v3/kv/range", &range).await?)?;
        let decoded = found.kvs.into_iter().map(|one| {
            let key = String::from_utf8(BASE64_STANDARD.decode(&one.key)?)?;
            Ok((key, one.mod_revision))
        });
        decoded.collect()
    }

    /// Deletes keys. To the API server and everybody who watches, the objects are deleted, finalizers or not.
    ///
    /// # Errors
    ///
    /// etcd does not answer, or refuses.
    pub(super) async fn delete(&self, authority: &Authority, keys: &[String]) -> Result<()> {
        for keys in keys.chunks(AT_ONCE) {
            let deletions = keys
                .iter()
                .map(|key| json!({"request_delete_range": {"key": encoded(key)}}));
            let all = json!({"success": deletions.collect::<Vec<_>>()});
            self.post(authority, "/v3/kv/txn", &all).await?;
        }
        Ok(())
    }

    async fn post(&self, authority: &Authority, path: &str, body: &Value) -> Result<Value> {
        let [key, certificate] = [&self.client.key, &self.client.certificate].map(std::fs::read);
        let http = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([reqwest::Certificate::from_pem(authority.pem().as_bytes())?])
            .identity(reqwest::Identity::from_pem(&[key?, certificate?].concat())?)
            .build()?;
        let answer = http.post(format!("{}{path}", self.url)).json(body).send().await?;
        let (status, text) = (answer.status(), answer.text().await?);
        ensure!(status.is_success(), "etcd: {path}: {status}: {text}");
        serde_json::from_str(&text).with_context(|| format!("etcd: {path}: {text}"))
    }
}

fn encoded(key: &str) -> String {
    BASE64_STANDARD.encode(key)
}
