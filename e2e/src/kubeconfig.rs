//! Kubeconfig files: who talks to which API server with which token.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;

/// A kubeconfig on disk, and the same for clients in this process.
#[derive(Clone, Debug)]
pub struct Access {
    path: PathBuf,
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
        let text = serde_json::to_string_pretty(&json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority-data": ca}}],
            "users": [{"name": user, "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
            "current-context": "test",
        }))?;
        std::fs::write(path, &text).with_context(|| format!("write {}", path.display()))?;
        Self::read(path).await
    }

    /// Reads a kubeconfig and takes its current context.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is not a kubeconfig.
    pub async fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
        let kubeconfig = Kubeconfig::from_yaml(&text)?;
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        Ok(Self {
            path: path.to_owned(),
            config,
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The configuration, for a client of one's own making.
    pub fn config(&self) -> kube::Config {
        self.config.clone()
    }

    /// A new client. It belongs to the current tokio runtime and must not outlive it, so every
    /// test makes its own.
    ///
    /// # Errors
    ///
    /// The TLS configuration is refused.
    pub fn client(&self) -> Result<kube::Client> {
        Ok(kube::Client::try_from(self.config())?)
    }
}
