//! A cluster with a node: a control plane, and a machine on which the kubelet runs Pods in containers, out of images that are
//! brought to it. Nothing is pulled.
//!
//! The machine is a set of namespaces, and the control plane is in its network. Tests are there too: what is at `127.0.0.1` or
//! has a Service's address is so inside.

pub mod images;
mod kubectl;
mod machine;
mod programs;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::api::Api;
use serde_json::json;

pub use self::kubectl::Kubectl;
use self::machine::Machine;
use self::programs::{Dns, Programs};
use crate::azure_sim::Preset;
use crate::control_plane::{self, ControlPlane, KUBELET_CLIENT, Listens};
use crate::helm::Helm;
use crate::installed::Installed;
use crate::run_dir::RunDir;
use crate::test_env::TestEnv;
use crate::wait::eventually;

/// The node's name.
pub const NODE: &str = "node-1";
/// The node's address, at which the API server and the cluster's DNS are too.
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 200, 0, 1);
/// Where Services have their addresses.
pub const SERVICE_NETWORK: &str = "10.96.0.0/16";
/// Where Pods have theirs.
const POD_NETWORK: &str = "10.244.0.0/24";
/// What the names of Services end with.
const CLUSTER_DOMAIN: &str = "cluster.local";
/// The image of Pods' sandboxes: a static busybox.
pub const SANDBOX: &str = "localhost/sandbox:1";

const START: Duration = Duration::from_secs(120);

/// A running cluster. Dropping it ends all of it.
#[derive(Debug)]
pub struct Cluster {
    // In this order: clients end before their servers, and what they run on last.
    dns: Dns,
    programs: Programs,
    installed: Installed,
    machine: Machine,
    dir: RunDir,
}

/// Runs one test on a cluster of its own, in its network, with these images on the node; or says why there can be none.
///
/// # Panics
///
/// When the test fails.
pub fn scenario(images: &[&str], test: impl AsyncFnOnce(&Cluster) -> Result<()> + Send) {
    // Inside nothing can be fetched.
    let Some(brought) = bring(images).transpose() else {
        return;
    };
    // A thread that has been in the network does not come back.
    let ended = std::thread::scope(|scope| scope.spawn(|| on_a_machine(brought, test)).join());
    if let Err(panic) = ended {
        std::panic::resume_unwind(panic);
    }
}

/// Builds what the cluster is made of; the archives of the images. Nothing, and a word about it, where there can be no node or no image.
fn bring(images: &[&str]) -> Result<Option<Vec<PathBuf>>> {
    if !machine::is_possible()? {
        return Ok(None);
    }
    let mut archives = Vec::new();
    for name in images {
        let Some(image) = images::built(name)? else {
            return Ok(None);
        };
        archives.push(image.archive);
    }
    control_plane::programs(Listens::ForNodes(ADDRESS))?;
    Helm::new(None)?;
    crate::binaries::executable("armsim")?;
    Ok(Some(archives))
}

fn on_a_machine(images: Result<Vec<PathBuf>>, test: impl AsyncFnOnce(&Cluster) -> Result<()>) {
    // The threads of the runtime are where this one is when they begin.
    let test_env = images.and_then(|images| {
        let machine = Machine::start(ADDRESS)?;
        machine.enter()?;
        Ok((machine, images))
    });
    crate::scenario(async {
        let (machine, images) = test_env?;
        let cluster = Cluster::start(machine, &images).await?;
        test(&cluster).await?;
        cluster.check()
    });
}

impl Cluster {
    async fn start(machine: Machine, images: &[PathBuf]) -> Result<Self> {
        let dir = RunDir::new("node")?;
        let installed = Installed::on(TestEnv::with_nodes(ADDRESS, Preset::Fast).await?).await?;
        let control_plane = installed.test_env.control_plane();
        bind_kubelet_client(control_plane).await?;
        let programs = Programs::start(&machine, control_plane, dir.path()).await?;
        let dns = Dns::start(&machine, control_plane, dir.path())?;
        let cluster = Self {
            dns,
            programs,
            installed,
            machine,
            dir,
        };
        cluster.load(&programs::sandbox(cluster.dir.path())?)?;
        images.iter().try_for_each(|image| cluster.load(image))?;
        cluster.is_ready(true).await?;
        Ok(cluster)
    }

    /// Fails if a program has ended that should run.
    ///
    /// # Errors
    ///
    /// One has; the end of its log is in the error.
    pub fn check(&self) -> Result<()> {
        self.control_plane().check()?;
        self.programs.check()?;
        self.dns.check()
    }

    /// Waits until the node is ready, or is no longer taken for ready.
    ///
    /// # Errors
    ///
    /// It does not come to that, or a program has ended.
    pub async fn is_ready(&self, ready: bool) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.control_plane().client()?);
        eventually(&format!("the node is ready: {ready}"), START, || async {
            if let Err(ended) = self.check() {
                return Ok(Err(ended));
            }
            let node = nodes.get(NODE).await?;
            let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
            let now = conditions
                .iter()
                .find(|one| one.type_ == "Ready")
                .context("nothing is known")?;
            let message = now.message.as_deref().unwrap_or_default();
            ensure!((now.status == "True") == ready, "{}: {message}", now.status);
            Ok(Ok(()))
        })
        .await?
    }

    /// The name of its control groups, below the root of each hierarchy.
    pub fn cgroup(&self) -> String {
        self.machine.cgroup().trim_start_matches('/').to_owned()
    }

    /// What releases of the chart refer to, and the releases.
    pub fn installed(&self) -> &Installed {
        &self.installed
    }

    /// The cluster and the simulated Azure, as Pods see them.
    pub fn test_env(&self) -> &TestEnv {
        &self.installed.test_env
    }

    fn control_plane(&self) -> &ControlPlane {
        self.test_env().control_plane()
    }

    /// The directory of files and logs.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// kubectl, as the administrator.
    ///
    /// # Errors
    ///
    /// It cannot be built.
    pub fn kubectl(&self) -> Result<Kubectl> {
        let programs = control_plane::programs(self.control_plane().listens())?;
        Ok(Kubectl::new(
            programs.join("kubectl"),
            self.control_plane().kubeconfig_path(),
            self.dir.path(),
        ))
    }

    /// Brings the images of an archive to the node, as kind does.
    ///
    /// # Errors
    ///
    /// It is no archive of images.
    pub fn load(&self, archive: &Path) -> Result<()> {
        let archive = archive.to_string_lossy();
        self.ctr(&["images", "import", "--all-platforms", "--digests", &archive])
            .map(drop)
    }

    /// containerd's own client, in the namespace of the kubelet's containers.
    ///
    /// # Errors
    ///
    /// It fails; with what it has said.
    pub fn ctr(&self, arguments: &[&str]) -> Result<String> {
        self.machine.run("ctr", &[&["--namespace=k8s.io"], arguments].concat())
    }

    /// Runs a program on the node to its end, as root; what it printed.
    ///
    /// # Errors
    ///
    /// It fails; with what it has said.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        self.machine.run(program, arguments)
    }

    /// The line of shell that does the same from this test's network.
    pub fn shell(&self, line: &str) -> String {
        self.machine.shell(line)
    }

    /// Kills the kubelet. The containers go on.
    ///
    /// # Errors
    ///
    /// It does not run.
    pub fn kill_kubelet(&self) -> Result<()> {
        self.programs.kill_kubelet()
    }

    /// Starts a kubelet that was killed.
    ///
    /// # Errors
    ///
    /// The process cannot be made.
    pub fn start_kubelet(&self) -> Result<()> {
        self.programs.start_kubelet()
    }
}

/// The API server may ask the kubelet for logs and for ways into containers.
async fn bind_kubelet_client(control_plane: &ControlPlane) -> Result<()> {
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": KUBELET_CLIENT},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:kubelet-api-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": KUBELET_CLIENT}]});
    control_plane.apply_yaml(&binding.to_string()).await.map(drop)
}
