//! The real manager of Cluster API's kubeadm control planes.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};

use super::CapzEnv;
use crate::control_plane::free_port;
use crate::process::{Process, Program};

const START: Duration = Duration::from_secs(60);

/// The phases that change CRDs, which tests share.
const MIGRATION_PHASES: &str = "StorageVersionMigration,CleanupManagedFields";

/// A running manager of the KubeadmControlPlanes of one namespace. Dropping this value kills it.
#[derive(Debug)]
pub struct KubeadmManager {
    process: Process,
}

impl KubeadmManager {
    /// Builds the manager if it is missing, starts it as a cluster administrator, and waits until it is ready.
    ///
    /// # Errors
    ///
    /// The build fails or the process ends; the error holds the end of its log.
    pub async fn start(env: &CapzEnv, namespace: &str) -> Result<Self> {
        let certificates = env.dir().join(format!("webhook-{namespace}"));
        std::fs::create_dir_all(&certificates)?;
        let files = env
            .control_plane()
            .authority()
            .sign("kubeadm-webhook", &["localhost"])?;
        std::fs::copy(files.certificate, certificates.join("tls.crt"))?;
        std::fs::copy(files.key, certificates.join("tls.key"))?;
        let health = format!("127.0.0.1:{}", free_port()?);
        let process = Program::new(programs()?.join("kubeadm"))
            .without_our_environment()
            .flag("kubeconfig", env.admin().path())
            .flag("namespace", namespace)
            .flag("health-addr", &health)
            .flag("diagnostics-address", "0")
            .flag("webhook-port", free_port()?.to_string())
            .flag("webhook-cert-dir", &certificates)
            .flag("skip-crd-migration-phases", MIGRATION_PHASES)
            .spawn(&format!("kubeadm-{namespace}"), env.dir())?;
        let url = format!("http://{health}/readyz");
        let ready = async || {
            let answer = reqwest::get(&url).await?;
            ensure!(answer.status().is_success(), "{}", answer.status());
            Ok(())
        };
        process.until("the manager is ready", START, ready).await?;
        Ok(Self { process })
    }

    /// Its process.
    pub fn process(&self) -> &Process {
        &self.process
    }
}

/// The directory of Cluster API's managers. Builds them if they are missing, which takes minutes.
fn programs() -> Result<PathBuf> {
    let script = crate::repository().join("hack/capi/build");
    let output = Command::new(&script).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("run {}", script.display()))?;
    if !output.status.success() {
        return Err(anyhow!("{}: {}", script.display(), output.status));
    }
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}
