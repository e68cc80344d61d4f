//! A real Kubernetes control plane: etcd, kube-apiserver and kube-controller-manager.
//!
//! RBAC is on, and so is OwnerReferencesPermissionEnforcement, which OpenShift turns on and
//! which asks for rights that a plain cluster does not. No kubelet and no scheduler: nothing
//! ever runs in this cluster, and load balancers come from the simulator's cloud controller.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, DynamicObject};
use tokio::sync::OnceCell;

use crate::kubeconfig::Access;
use crate::pki::{Authority, write_signing_key};
use crate::process::{Process, Program};
use crate::run_dir::RunDir;
use crate::wait::eventually;

/// Every request once, when it is answered: who, what, with which result. Written before the
/// answer goes out, so whoever has the answer finds it here.
const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
";

const START: Duration = Duration::from_secs(60);

const PORT_TAKEN: &str = "address already in use";

/// How often to try when another program takes one of our ports first.
const ATTEMPTS: usize = 3;

/// A running control plane with HyperShift's CRDs. Dropping it ends it.
#[derive(Debug)]
pub struct ControlPlane {
    // In this order: clients end before their servers, and the directory goes last.
    processes: Vec<Process>,
    admin: Access,
    server: String,
    dir: RunDir,
}

impl ControlPlane {
    /// The `iss` of ServiceAccount tokens.
    pub const TOKEN_ISSUER: &str = "https://kubernetes.default.svc";

    /// Builds the programs if they are missing and starts a control plane of its own.
    ///
    /// # Errors
    ///
    /// The programs cannot be built, or one of them does not come up; the end of its log is in
    /// the error.
    pub async fn start() -> Result<Self> {
        crate::scenario::install_tls_provider();
        let programs = programs()?;
        let mut attempt = 1;
        loop {
            match Self::try_start(&programs).await {
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

    async fn try_start(programs: &Path) -> Result<Self> {
        let dir = RunDir::new("control-plane")?;
        let pki = Authority::new(dir.path())?;
        let server = format!("https://127.0.0.1:{}", free_port()?);
        let admin_token = uuid::Uuid::new_v4().to_string();
        let manager_token = uuid::Uuid::new_v4().to_string();
        std::fs::write(
            dir.path().join("tokens.csv"),
            format!(
                "{admin_token},admin,admin,system:masters\n\
                 {manager_token},system:kube-controller-manager,system:kube-controller-manager,system:masters\n"
            ),
        )?;
        let admin = access(&dir, &pki, &server, "admin", &admin_token).await?;
        let manager = access(&dir, &pki, &server, "kube-controller-manager", &manager_token).await?;

        let (etcd, etcd_url) = start_etcd(programs, &dir, &pki)?;
        let apiserver = start_apiserver(programs, &dir, &pki, &etcd_url, &server)?;
        let mut this = Self {
            processes: vec![apiserver, etcd],
            admin,
            server,
            dir,
        };
        this.ready().await.inspect_err(|_| this.keep_logs())?;
        // The garbage collector looks for new kinds every 30 s only, so it starts after the CRDs.
        crate::crds::install(&this.client()?)
            .await
            .inspect_err(|_| this.keep_logs())?;
        this.processes
            .insert(0, start_controller_manager(programs, &this.dir, &manager)?);
        this.controllers_work().await.inspect_err(|_| this.keep_logs())?;
        Ok(this)
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

    /// Waits for something that never comes once a process has ended.
    async fn up(&self, what: &str, probe: impl AsyncFn() -> Result<()>) -> Result<()> {
        eventually(what, START, || async {
            if let Err(ended) = self.check() {
                return Ok(Err(ended));
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

    /// Makes a ServiceAccount, and its namespace, and asks for a token as a pod would have it.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn service_account(&self, namespace: &str, name: &str) -> Result<Access> {
        self.admin.service_account(self.dir.path(), namespace, name).await
    }

    /// A token of a ServiceAccount, for the API server or for another audience, good for a day.
    ///
    /// # Errors
    ///
    /// There is no such ServiceAccount, or the API server refuses.
    pub async fn token(&self, namespace: &str, name: &str, audience: Option<&str>) -> Result<String> {
        self.admin.token(namespace, name, audience).await
    }

    /// The keys that check these tokens, as a JWKS.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn token_keys(&self) -> Result<serde_json::Value> {
        let request = http::Request::get("/openid/v1/jwks").body(Vec::new())?;
        Ok(self.client()?.request(request).await?)
    }

    /// Applies a stream of YAML documents, server-side, as the administrator. `status` is left
    /// out where it is a subresource.
    ///
    /// # Errors
    ///
    /// A document is no object, its kind is not served, or the API server refuses it.
    pub async fn apply_yaml(&self, text: &str) -> Result<Vec<DynamicObject>> {
        self.admin.apply_yaml(text).await
    }
}

/// Where the programs are; builds them if need be, which takes minutes.
///
/// # Errors
///
/// The build fails.
pub fn programs() -> Result<PathBuf> {
    let script = crate::repository().join("hack/testenv/build");
    let output = Command::new(&script)
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| format!("run {}", script.display()))?;
    if !output.status.success() {
        bail!("{} failed: {}", script.display(), output.status);
    }
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}

async fn access(dir: &RunDir, pki: &Authority, server: &str, user: &str, token: &str) -> Result<Access> {
    Access::write(
        &dir.path().join(format!("{user}.kubeconfig")),
        server,
        pki.pem(),
        user,
        token,
    )
    .await
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn start_etcd(programs: &Path, dir: &RunDir, pki: &Authority) -> Result<(Process, String)> {
    let tls = pki.sign("etcd", &[])?;
    let url = format!("https://127.0.0.1:{}", free_port()?);
    let peer = format!("http://127.0.0.1:{}", free_port()?);
    let process = Program::new(programs.join("etcd"))
        .flag("data-dir", dir.path().join("etcd"))
        .flag("listen-client-urls", &url)
        .flag("advertise-client-urls", &url)
        .flag("listen-peer-urls", &peer)
        .flag("initial-advertise-peer-urls", &peer)
        .flag("initial-cluster", format!("default={peer}"))
        .flag("cert-file", &tls.certificate)
        .flag("key-file", &tls.key)
        .flag("client-cert-auth", "true")
        .flag("trusted-ca-file", pki.file())
        // Nothing has to survive the machine.
        .flag("unsafe-no-fsync", "true")
        .spawn("etcd", dir.path())?;
    Ok((process, url))
}

fn start_apiserver(programs: &Path, dir: &RunDir, pki: &Authority, etcd: &str, server: &str) -> Result<Process> {
    let tls = pki.sign("kube-apiserver", &["localhost", "kubernetes.default.svc"])?;
    let accounts = dir.path().join("service-accounts.key");
    let accounts_public = dir.path().join("service-accounts.pub");
    let policy = dir.path().join("audit-policy.yaml");
    write_signing_key(&accounts, &accounts_public)?;
    std::fs::write(&policy, AUDIT_POLICY)?;
    let (_, port) = server.rsplit_once(':').ok_or_else(|| anyhow!("no port in {server}"))?;
    Program::new(programs.join("kube-apiserver"))
        .flag("bind-address", "127.0.0.1")
        .flag("secure-port", port)
        .flag("tls-cert-file", &tls.certificate)
        .flag("tls-private-key-file", &tls.key)
        .flag("etcd-servers", etcd)
        .flag("etcd-cafile", pki.file())
        .flag("etcd-certfile", &tls.certificate)
        .flag("etcd-keyfile", &tls.key)
        .flag("token-auth-file", dir.path().join("tokens.csv"))
        .flag("authorization-mode", "RBAC")
        .flag("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
        .flag("service-account-issuer", ControlPlane::TOKEN_ISSUER)
        .flag("service-account-key-file", &accounts_public)
        .flag("service-account-signing-key-file", &accounts)
        .flag("service-cluster-ip-range", "10.96.0.0/16")
        .flag("endpoint-reconciler-type", "none")
        .flag("audit-policy-file", &policy)
        .flag("audit-log-path", dir.path().join("audit.log"))
        .spawn("kube-apiserver", dir.path())
}

fn start_controller_manager(programs: &Path, dir: &RunDir, access: &Access) -> Result<Process> {
    Program::new(programs.join("kube-controller-manager"))
        .flag("kubeconfig", access.path())
        .flag(
            "controllers",
            "namespace-controller,garbage-collector-controller,serviceaccount-controller",
        )
        .flag("leader-elect", "false")
        .flag("secure-port", "0")
        .flag("kube-api-qps", "200")
        .flag("kube-api-burst", "400")
        .spawn("kube-controller-manager", dir.path())
}
