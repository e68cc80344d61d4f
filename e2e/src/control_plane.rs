//! A real Kubernetes control plane: etcd, kube-apiserver and kube-controller-manager.
//!
//! RBAC is on, and so is OwnerReferencesPermissionEnforcement. OpenShift turns it on too, and it requires rights that a
//! plain cluster does not. Without [`crate::node`] no Pod ever runs in this cluster. The simulator's cloud controller
//! provides load balancers.

mod pool;
mod programs;
mod stored;

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, DynamicObject};
use serde_json::json;
use tokio::sync::OnceCell;

pub(crate) use self::programs::KUBELET_CLIENT;
use self::stored::{Etcd, Revisions};
use crate::crds::Platform;
use crate::kubeconfig::Access;
use crate::pki::Authority;
use crate::process::Process;
use crate::run_dir::RunDir;
use crate::wait::eventually;

const START: Duration = Duration::from_secs(60);

const PORT_TAKEN: &str = "address already in use";

/// How many times to try if another program takes a chosen port first.
const ATTEMPTS: usize = 3;

/// A running control plane with HyperShift's CRDs. Dropping this value ends its processes.
#[derive(Debug)]
pub struct ControlPlane {
    // Drop order: clients before servers, and the directory last.
    processes: Vec<Process>,
    admin: Access,
    server: String,
    listens: Listens,
    platform: Platform,
    etcd: Etcd,
    /// What etcd held at the end of the start.
    initial: Revisions,
    pki: Authority,
    dir: RunDir,
}

/// Where a control plane listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listens {
    /// On loopback, at a free port. It has no nodes.
    OnLoopback,
    /// At this address, in a network of its own, in which it has nodes.
    ForNodes(Ipv4Addr),
}

impl Listens {
    /// The address at which clients reach the servers.
    pub fn address(self) -> Ipv4Addr {
        match self {
            Self::OnLoopback => Ipv4Addr::LOCALHOST,
            Self::ForNodes(address) => address,
        }
    }
}

impl ControlPlane {
    /// The `iss` of ServiceAccount tokens.
    pub const TOKEN_ISSUER: &str = "https://kubernetes.default.svc";

    /// Builds the programs if they are missing and starts a new control plane on loopback.
    ///
    /// # Errors
    ///
    /// The programs cannot be built, or one of them does not come up; the error holds the end of its log.
    pub async fn start() -> Result<Self> {
        Self::start_at(Listens::OnLoopback).await
    }

    /// Starts a new control plane that listens at the given address.
    ///
    /// # Errors
    ///
    /// As [`ControlPlane::start`].
    pub async fn start_at(listens: Listens) -> Result<Self> {
        Self::start_with(listens, Platform::Azure).await
    }

    /// Starts a new control plane on loopback that has HyperShift's CRDs for clusters on one cloud.
    ///
    /// # Errors
    ///
    /// As [`ControlPlane::start`].
    pub async fn start_on(platform: Platform) -> Result<Self> {
        Self::start_with(Listens::OnLoopback, platform).await
    }

    async fn start_with(listens: Listens, platform: Platform) -> Result<Self> {
        crate::scenario::install_tls_provider();
        let programs = programs(listens)?;
        let mut attempt = 1;
        loop {
            match Self::try_start(&programs, listens, platform).await {
                Err(error) if attempt < ATTEMPTS && format!("{error:?}").contains(PORT_TAKEN) => {
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }

    /// The control plane that all tests of this process share. It ends with the process.
    ///
    /// # Errors
    ///
    /// As [`ControlPlane::start`]; the next caller tries again.
    pub async fn shared() -> Result<&'static Self> {
        static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
        SHARED.get_or_try_init(Self::start).await
    }

    async fn try_start(programs: &Path, listens: Listens, platform: Platform) -> Result<Self> {
        let dir = RunDir::new("control-plane")?;
        let pki = Authority::new(dir.path())?;
        let port = match listens {
            Listens::OnLoopback => free_port()?,
            // The chart's NetworkPolicy expects the API server at this port.
            Listens::ForNodes(_) => 6443,
        };
        let server = format!("https://{}:{port}", listens.address());
        let users = programs::users(listens);
        programs::write_users(&users, dir.path())?;
        let mut accesses = Vec::new();
        for user in &users {
            let path = dir.path().join(format!("{}.kubeconfig", user.file));
            accesses.push(Access::write(&path, &server, pki.pem(), user.file, &user.token).await?);
        }
        let admin = accesses.into_iter().next().context("no administrator")?;
        let starting = programs::Starting {
            programs,
            dir: dir.path(),
            pki: &pki,
            listens,
        };
        let (etcd_process, etcd) = starting.etcd()?;
        let apiserver = starting.apiserver(&etcd, port)?;
        let mut this = Self {
            processes: vec![apiserver, etcd_process],
            admin,
            server,
            listens,
            platform,
            etcd,
            initial: Revisions::new(),
            pki,
            dir,
        };
        this.ready().await.inspect_err(|_| this.keep_logs())?;
        // The garbage collector discovers new kinds only every 30 s, so it starts after the CRDs are installed.
        crate::crds::install(&this.client()?, platform)
            .await
            .inspect_err(|_| this.keep_logs())?;
        let manager = this.starting(programs).controller_manager()?;
        this.processes.insert(0, manager);
        this.controllers_work().await.inspect_err(|_| this.keep_logs())?;
        this.initial = this.etcd.revisions(&this.pki).await?;
        Ok(this)
    }

    fn starting<'a>(&'a self, programs: &'a Path) -> programs::Starting<'a> {
        programs::Starting {
            programs,
            dir: self.dir.path(),
            pki: &self.pki,
            listens: self.listens,
        }
    }

    async fn ready(&self) -> Result<()> {
        let client = self.client()?;
        self.up("the API server is ready", async || {
            let request = http::Request::get("/readyz").body(Vec::new())?;
            Ok(client.request_text(request).await.map(drop)?)
        })
        .await
    }

    async fn controllers_work(&self) -> Result<()> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client()?, "default");
        self.up("the controllers work", async || {
            Ok(accounts.get("default").await.map(drop)?)
        })
        .await
    }

    /// Waits until `probe` succeeds; fails at once if a process has ended.
    async fn up(&self, what: &str, probe: impl AsyncFn() -> Result<()>) -> Result<()> {
        eventually(what, START, || async {
            if let Err(error) = self.check() {
                return Ok(Err(error));
            }
            Ok(Ok(probe().await?))
        })
        .await??;
        self.check()
    }

    /// Fails if one of the processes has ended, with the end of its log.
    ///
    /// # Errors
    ///
    /// A process has ended.
    pub fn check(&self) -> Result<()> {
        self.processes.iter().rev().try_for_each(Process::check)
    }

    fn keep_logs(&self) {
        if self.dir.keep().is_ok() {
            eprintln!("logs are kept in {}", self.dir.path().display());
        }
    }

    /// Access as a cluster administrator.
    pub fn admin(&self) -> &Access {
        &self.admin
    }

    /// A new client of the cluster administrator, for the current runtime only.
    ///
    /// # Errors
    ///
    /// The TLS configuration is refused.
    pub fn client(&self) -> Result<kube::Client> {
        self.admin.client()
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig_path(&self) -> &Path {
        self.admin.path()
    }

    /// Where the control plane listens.
    pub fn listens(&self) -> Listens {
        self.listens
    }

    /// The certificate authority that signs for its servers and clients.
    pub(crate) fn authority(&self) -> &Authority {
        &self.pki
    }

    /// The URL of the API server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The audit log: one JSON `audit.k8s.io/v1` Event per line, without bodies.
    pub fn audit_log(&self) -> PathBuf {
        self.dir.path().join("audit.log")
    }

    /// The directory of files and logs.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The process ids of all programs.
    pub fn pids(&self) -> Vec<u32> {
        self.processes.iter().map(Process::pid).collect()
    }

    /// The process of the API server.
    pub fn api_server(&self) -> Option<&Process> {
        self.processes.iter().find(|process| process.name() == "kube-apiserver")
    }

    /// Creates a ServiceAccount and its namespace, and requests a token like a Pod's.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn service_account(&self, namespace: &str, name: &str) -> Result<Access> {
        self.admin.service_account(self.dir.path(), namespace, name).await
    }

    /// Creates a ServiceAccount of this name with these rights in all namespaces, and requests its token.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn account_with(&self, name: &str, rules: &serde_json::Value) -> Result<Access> {
        const NAMESPACE: &str = "default";
        let metadata = json!({"name": name});
        let object = |kind| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata});
        let (mut role, mut binding) = (object("ClusterRole"), object("ClusterRoleBinding"));
        role["rules"] = rules.clone();
        binding["roleRef"] = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name});
        binding["subjects"] = json!([{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}]);
        self.apply_yaml(&format!("{role}\n---\n{binding}")).await?;
        self.service_account(NAMESPACE, name).await
    }

    /// A token of a ServiceAccount, for the API server or for another audience, valid for a day.
    ///
    /// # Errors
    ///
    /// There is no such ServiceAccount, or the API server refuses.
    pub async fn token(&self, namespace: &str, name: &str, audience: Option<&str>) -> Result<String> {
        self.admin.token(namespace, name, audience).await
    }

    /// The public keys that verify these tokens, as a JWKS.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn token_keys(&self) -> Result<serde_json::Value> {
        let request = http::Request::get("/openid/v1/jwks").body(Vec::new())?;
        Ok(self.client()?.request(request).await?)
    }

    /// Applies a stream of YAML documents, server-side, as the administrator. The API server ignores `status` where it
    /// is a subresource.
    ///
    /// # Errors
    ///
    /// A document is no object, its kind is not served, or the API server refuses it.
    pub async fn apply_yaml(&self, text: &str) -> Result<Vec<DynamicObject>> {
        self.admin.apply_yaml(text).await
    }
}

/// The directory of the programs. Builds them if they are missing, which takes minutes.
///
/// # Errors
///
/// The build fails.
pub fn programs(listens: Listens) -> Result<PathBuf> {
    let script = crate::repository().join("hack/testenv/build");
    let output = Command::new(&script)
        .args(matches!(listens, Listens::ForNodes(_)).then_some("node"))
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| format!("run {}", script.display()))?;
    if !output.status.success() {
        bail!("{} failed: {}", script.display(), output.status);
    }
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}

/// A port on loopback that nobody listens at.
pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
