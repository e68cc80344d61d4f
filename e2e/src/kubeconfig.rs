//! Kubeconfig files: which user talks to which API server with which token, and what an administrator does with one.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use base64::Engine;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::config::{Cluster, KubeConfigOptions, Kubeconfig};
use kube::discovery::{Scope, pinned_kind};
use serde_json::{Value, json};

/// A kubeconfig on disk, and its configuration for clients in this process.
#[derive(Clone, Debug)]
pub struct Access {
    path: PathBuf,
    cluster: Cluster,
    config: kube::Config,
}

impl Access {
    /// Writes the kubeconfig of `user`.
    ///
    /// # Errors
    ///
    /// The file cannot be written, or the certificate is not PEM.
    pub async fn write(path: &Path, server: &str, ca_pem: &str, user: &str, token: &str) -> Result<Self> {
        let ca = base64::engine::general_purpose::STANDARD.encode(ca_pem);
        let cluster = json!({"server": server, "certificate-authority-data": ca});
        Self::write_for(path, &cluster, user, token).await
    }

    async fn write_for(path: &Path, cluster: &Value, user: &str, token: &str) -> Result<Self> {
        let text = serde_json::to_string_pretty(&json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
            "current-context": "test",
        }))?;
        replace(path, &text).with_context(|| format!("write {}", path.display()))?;
        Self::read(path, None).await
    }

    /// Reads a kubeconfig and selects this context, or else its current one.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is not a kubeconfig, or it has no such context.
    pub async fn read(path: &Path, context: Option<&str>) -> Result<Self> {
        let kubeconfig = Kubeconfig::read_from(path).with_context(|| format!("read {}", path.display()))?;
        let selected = context.or(kubeconfig.current_context.as_deref()).unwrap_or_default();
        let found = kubeconfig.contexts.iter().find(|one| one.name == selected);
        let cluster_name = found
            .and_then(|one| one.context.as_ref())
            .map(|one| one.cluster.clone());
        let cluster_name = cluster_name.with_context(|| format!("{} has no context {selected:?}", path.display()))?;
        let cluster = kubeconfig.clusters.iter().find(|one| one.name == cluster_name);
        let cluster = cluster.and_then(|one| one.cluster.clone());
        let cluster = cluster.with_context(|| format!("{} has no cluster {cluster_name:?}", path.display()))?;
        let options = KubeConfigOptions {
            context: Some(selected.to_owned()),
            ..KubeConfigOptions::default()
        };
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        Ok(Self {
            path: path.to_owned(),
            cluster,
            config,
        })
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The configuration, for callers that build their own client.
    pub fn config(&self) -> kube::Config {
        self.config.clone()
    }

    /// A new client. It belongs to the current tokio runtime and must not outlive it, so every test creates its own.
    ///
    /// # Errors
    ///
    /// The TLS configuration is refused.
    pub fn client(&self) -> Result<kube::Client> {
        Ok(kube::Client::try_from(self.config())?)
    }

    /// Creates a ServiceAccount and its namespace, and requests a token like a Pod's. Writes its kubeconfig into `dir`.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn service_account(&self, dir: &Path, namespace: &str, name: &str) -> Result<Self> {
        let client = self.client()?;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let accounts: Api<ServiceAccount> = Api::namespaced(client, namespace);
        let apply = PatchParams::apply("e2e");
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        namespaces.patch(namespace, &apply, &Patch::Apply(body)).await?;
        let body = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
        accounts.patch(name, &apply, &Patch::Apply(body)).await?;
        let token = self.token(namespace, name, None).await?;
        let path = dir.join(format!("{namespace}.{name}.kubeconfig"));
        let cluster = serde_json::to_value(&self.cluster)?;
        Self::write_for(&path, &cluster, &format!("{namespace}.{name}"), &token).await
    }

    /// A token of a ServiceAccount, for the API server or for another audience, valid for a day.
    ///
    /// # Errors
    ///
    /// There is no such ServiceAccount, or the API server refuses.
    pub async fn token(&self, namespace: &str, name: &str, audience: Option<&str>) -> Result<String> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client()?, namespace);
        let request = TokenRequest {
            spec: TokenRequestSpec {
                audiences: audience.into_iter().map(str::to_owned).collect(),
                expiration_seconds: Some(86_400),
                ..Default::default()
            },
            ..Default::default()
        };
        let answer = accounts
            .create_token_request(name, &PostParams::default(), &request)
            .await?;
        Ok(answer.status.context("a TokenRequest without an answer")?.token)
    }

    /// Applies a stream of YAML documents, server-side. The API server ignores `status` where it is a subresource.
    ///
    /// # Errors
    ///
    /// A document is no object, its kind is not served, or the API server refuses it.
    pub async fn apply_yaml(&self, text: &str) -> Result<Vec<DynamicObject>> {
        let client = self.client()?;
        let mut applied = Vec::new();
        for document in serde_saphyr::from_multiple(text)? {
            applied.push(apply(&client, document).await?);
        }
        Ok(applied)
    }
}

async fn apply(client: &kube::Client, document: Value) -> Result<DynamicObject> {
    let object: DynamicObject = serde_json::from_value(document).context("not a Kubernetes object")?;
    let name = object.metadata.name.clone().context("an object without a name")?;
    let types = object.types.clone().context("an object without a kind")?;
    let (kind, capabilities) = pinned_kind(client, &(&types).try_into()?).await?;
    let api: Api<DynamicObject> = match (capabilities.scope, &object.metadata.namespace) {
        (Scope::Cluster, _) => Api::all_with(client.clone(), &kind),
        (Scope::Namespaced, Some(namespace)) => Api::namespaced_with(client.clone(), namespace, &kind),
        (Scope::Namespaced, None) => bail!("{} {name} has no namespace", kind.kind),
    };
    api.patch(&name, &PatchParams::apply("e2e").force(), &Patch::Apply(&object))
        .await
        .with_context(|| format!("apply {} {name}", kind.kind))
}

/// Writes a file in one step: processes of tests that share an environment read it while another one is started.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let new = path.with_extension(uuid::Uuid::new_v4().simple().to_string());
    std::fs::write(&new, text)?;
    std::fs::rename(new, path)
}
