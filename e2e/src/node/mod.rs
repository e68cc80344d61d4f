//! A cluster with a node: a control plane, and a machine on which the kubelet runs Pods in containers. Tests load the
//! images; nothing is pulled.
//!
//! The machine is a set of Linux namespaces, and the control plane is in its network. Tests run in that network too, so
//! `127.0.0.1` and the addresses of Services are those of the machine.

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
/// The node's address, which the API server and the cluster's DNS have too.
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 200, 0, 1);
/// The network of the Services' addresses.
pub const SERVICE_NETWORK: &str = "10.96.0.0/16";
/// The network of the Pods' addresses.
const POD_NETWORK: &str = "10.244.0.0/24";
/// The domain in which Services have names.
const CLUSTER_DOMAIN: &str = "cluster.local";
/// The image of Pods' sandboxes: a static busybox.
pub const SANDBOX: &str = "localhost/sandbox:1";

const START: Duration = Duration::from_secs(120);

/// A running cluster. Dropping this value ends all of it.
#[derive(Debug)]
pub struct Cluster {
    // Drop order: clients before servers, and the machine and the directory last.
    dns: Dns,
    programs: Programs,
    installed: Installed,
    machine: Machine,
    dir: RunDir,
}

/// Runs one test on a cluster of its own, in its network, with these images on the node. Where no node or no image is
/// possible, it reports the test as skipped.
///
/// # Panics
///
/// When the test fails.
pub fn scenario(images: &[&str], test: impl AsyncFnOnce(&Cluster) -> Result<()> + Send) {
    // In the machine's network nothing can be downloaded.
    let Some(archives) = prepare(images).transpose() else {
        return;
    };
    // A thread that has entered the network stays in it.
    let joined = std::thread::scope(|scope| scope.spawn(|| on_a_machine(archives, test)).join());
    if let Err(panic) = joined {
        std::panic::resume_unwind(panic);
    }
}

/// Builds the cluster's programs and images; returns the archives of the images. Where no node or no image is possible,
/// it reports the test as skipped and returns none.
fn prepare(images: &[&str]) -> Result<Option<Vec<PathBuf>>> {
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

fn on_a_machine(archives: Result<Vec<PathBuf>>, test: impl AsyncFnOnce(&Cluster) -> Result<()>) {
    // The threads of the runtime start in the network of this thread.
    let prepared = archives.and_then(|archives| {
        let machine = Machine::start(ADDRESS)?;
        machine.enter()?;
        Ok((machine, archives))
    });
    crate::scenario(async {
        let (machine, archives) = prepared?;
        let cluster = Cluster::start(machine, &archives).await?;
        test(&cluster).await?;
        cluster.check()
    });
}

impl Cluster {
    async fn start(machine: Machine, archives: &[PathBuf]) -> Result<Self> {
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
        archives.iter().try_for_each(|archive| cluster.load(archive))?;
        cluster.is_ready(true).await?;
        Ok(cluster)
    }

    /// Fails if a program has ended that should run.
    ///
    /// # Errors
    ///
    /// A program has ended; the error holds the end of its log.
    pub fn check(&self) -> Result<()> {
        self.control_plane().check()?;
        self.programs.check()?;
        self.dns.check()
    }

    /// Waits until the node's condition `Ready` is True, or is no longer True.
    ///
    /// # Errors
    ///
    /// That does not happen in time, or a program has ended.
    pub async fn is_ready(&self, ready: bool) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.control_plane().client()?);
        eventually(&format!("the node is ready: {ready}"), START, || async {
            if let Err(error) = self.check() {
                return Ok(Err(error));
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

    /// The releases of the chart and the objects that they refer to.
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

    /// Loads the images of an archive into the node's containerd, as kind does.
    ///
    /// # Errors
    ///
    /// The file is no archive of images.
    pub fn load(&self, archive: &Path) -> Result<()> {
        let archive = archive.to_string_lossy();
        self.ctr(&["images", "import", "--all-platforms", "--digests", &archive])
            .map(drop)
    }

    /// Runs containerd's own client, in the namespace of the kubelet's containers; returns its standard output.
    ///
    /// # Errors
    ///
    /// The client fails; the error holds its output.
    pub fn ctr(&self, arguments: &[&str]) -> Result<String> {
        self.machine.run("ctr", &[&["--namespace=k8s.io"], arguments].concat())
    }

    /// Runs a program on the node to its end, as root; returns its standard output.
    ///
    /// # Errors
    ///
    /// The program fails; the error holds its output.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        self.machine.run(program, arguments)
    }

    /// A line of shell that runs `line` on the node; the caller has to be in this test's network.
    pub fn shell(&self, line: &str) -> String {
        self.machine.shell(line)
    }

    /// Kills the kubelet. The containers continue to run.
    ///
    /// # Errors
    ///
    /// The kubelet does not run.
    pub fn kill_kubelet(&self) -> Result<()> {
        self.programs.kill_kubelet()
    }

    /// Starts a kubelet that was killed.
    ///
    /// # Errors
    ///
    /// The process cannot be started.
    pub fn start_kubelet(&self) -> Result<()> {
        self.programs.start_kubelet()
    }
}

/// Allows the API server to request logs of the kubelet and to execute commands in containers.
async fn bind_kubelet_client(control_plane: &ControlPlane) -> Result<()> {
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": KUBELET_CLIENT},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:kubelet-api-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": KUBELET_CLIENT}]});
    control_plane.apply_yaml(&binding.to_string()).await.map(drop)
}
