//! The programs of a node, with their settings: containerd, the kubelet and kube-proxy. Also the cluster's scheduler
//! and DNS.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, ListParams};
use serde_json::json;
use tokio::task::JoinHandle;

use super::machine::Machine;
use super::{ADDRESS, CLUSTER_DOMAIN, NODE, POD_NETWORK, SANDBOX, START};
use crate::control_plane::{self, ControlPlane};
use crate::process::{Process, Program};

/// The container runtime. Its sockets, state and images are below `/run` and `/var/lib`, which are the machine's own.
const CONTAINERD: &str = "/usr/bin/containerd";
const CONTAINERD_SOCKET: &str = "unix:///run/containerd/containerd.sock";

/// How often the DNS reads the Services again.
const NAMES: Duration = Duration::from_millis(300);

/// All programs of one node.
#[derive(Debug)]
pub(super) struct Programs {
    kubelet: Mutex<Option<Process>>,
    kubelet_program: Program,
    others: Vec<Process>,
    dir: PathBuf,
}

impl Programs {
    pub(super) async fn start(machine: &Machine, control_plane: &ControlPlane, dir: &Path) -> Result<Self> {
        let programs = control_plane::programs(control_plane.listens())?;
        let kubeconfig = |user: &str| control_plane.dir().join(format!("{user}.kubeconfig"));
        let containerd = machine
            .program(Path::new(CONTAINERD))
            .flag("config", containerd_config(dir)?)
            .spawn("containerd", dir)?;
        let answers = async || machine.run("ctr", &["--namespace=k8s.io", "images", "ls"]);
        // A kubelet exits if containerd does not answer.
        containerd.until("containerd answers", START, answers).await?;
        let proxy = machine
            .program(&programs.join("kube-proxy"))
            .flag("kubeconfig", kubeconfig("kube-proxy"))
            .flag("hostname-override", NODE)
            .flag("proxy-mode", "iptables")
            .flag("cluster-cidr", POD_NETWORK)
            // 0 leaves these limits alone, because they apply to the host's whole kernel.
            .flag("conntrack-max-per-core", "0")
            .flag("conntrack-tcp-timeout-established", "0")
            .flag("conntrack-tcp-timeout-close-wait", "0");
        let scheduler = Program::new(programs.join("kube-scheduler"))
            .flag("kubeconfig", kubeconfig("kube-scheduler"))
            .flag("leader-elect", "false")
            .flag("secure-port", "0");
        let kubelet_program = machine
            .program(&programs.join("kubelet"))
            .flag("config", kubelet_config(machine, control_plane, dir)?)
            .flag("kubeconfig", kubeconfig("kubelet"))
            .flag("hostname-override", NODE)
            .flag("node-ip", ADDRESS.to_string());
        let others = vec![
            proxy.spawn("kube-proxy", dir)?,
            scheduler.spawn("kube-scheduler", dir)?,
            containerd,
        ];
        let kubelet = kubelet_program.spawn("kubelet", dir)?;
        Ok(Self {
            kubelet: Mutex::new(Some(kubelet)),
            kubelet_program,
            others,
            dir: dir.to_owned(),
        })
    }

    /// Fails if one of the programs has ended.
    pub(super) fn check(&self) -> Result<()> {
        let kubelet = self.kubelet.lock().unwrap_or_else(PoisonError::into_inner);
        kubelet.iter().chain(&self.others).try_for_each(Process::check)
    }

    /// Kills the kubelet. What it has started continues to run.
    pub(super) fn kill_kubelet(&self) -> Result<()> {
        let running = self.kubelet.lock().unwrap_or_else(PoisonError::into_inner).take();
        let running = running.context("the kubelet does not run")?;
        // The known process is nsenter, which ends when its child, the kubelet, ends.
        crate::process::signal(running.child()?, "KILL")
    }

    /// Starts the kubelet again.
    pub(super) fn start_kubelet(&self) -> Result<()> {
        let mut kubelet = self.kubelet.lock().unwrap_or_else(PoisonError::into_inner);
        *kubelet = Some(self.kubelet_program.spawn("kubelet-again", &self.dir)?);
        Ok(())
    }
}

/// Builds the image [`SANDBOX`]; returns its archive.
pub(super) fn sandbox(dir: &Path) -> Result<PathBuf> {
    let file = dir.join("sandbox.tar");
    let script = crate::repository().join("hack/testenv/sandbox");
    let output = Command::new(script).arg(&file).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(file)
}

fn containerd_config(dir: &Path) -> Result<PathBuf> {
    let networks = dir.join("cni");
    std::fs::create_dir(&networks)?;
    let bridge = json!({"type": "bridge", "bridge": "pods", "isGateway": true, "ipMasq": true, "hairpinMode": true,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": POD_NETWORK}]], "routes": [{"dst": "0.0.0.0/0"}]}});
    let list = json!({"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge]});
    std::fs::write(networks.join("pods.conflist"), list.to_string())?;
    let file = dir.join("containerd.toml");
    // Without CAP_SYS_RESOURCE, root cannot give a process a lower OOM score than its parent's. A profile of AppArmor
    // would apply to the host's whole kernel.
    let text = format!(
        "version = 2\n\
         [plugins.\"io.containerd.grpc.v1.cri\"]\nsandbox_image = \"{SANDBOX}\"\nrestrict_oom_score_adj = true\ndisable_apparmor = true\n\
         [plugins.\"io.containerd.internal.v1.opt\"]\npath = \"/var/lib/containerd/opt\"\n\
         [plugins.\"io.containerd.grpc.v1.cri\".cni]\nbin_dir = \"/usr/lib/cni\"\nconf_dir = \"{}\"\n",
        networks.display()
    );
    std::fs::write(&file, text)?;
    Ok(file)
}

fn kubelet_config(machine: &Machine, control_plane: &ControlPlane, dir: &Path) -> Result<PathBuf> {
    let pki = control_plane.authority();
    let tls = pki.sign("kubelet", &[NODE, &ADDRESS.to_string()])?;
    let config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": false}, "webhook": {"enabled": true},
            "x509": {"clientCAFile": pki.file()}},
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": machine.cgroup(),
        "clusterDNS": [ADDRESS],
        "clusterDomain": CLUSTER_DOMAIN,
        "containerRuntimeEndpoint": CONTAINERD_SOCKET,
        // Tests must not depend on how full the host's disk is.
        "evictionHard": {},
        "failCgroupV1": false,
        "failSwapOn": false,
        "resolvConf": "",
        "tlsCertFile": tls.certificate,
        "tlsPrivateKeyFile": tls.key,
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
    });
    let file = dir.join("kubelet.json");
    std::fs::write(&file, config.to_string())?;
    Ok(file)
}

/// The cluster's DNS: dnsmasq, for which a task writes the names of Services. Dropping this value ends both.
#[derive(Debug)]
pub(super) struct Dns {
    dnsmasq: Process,
    names: JoinHandle<()>,
}

impl Dns {
    pub(super) fn start(machine: &Machine, control_plane: &ControlPlane, dir: &Path) -> Result<Self> {
        let hosts = dir.join("hosts");
        std::fs::create_dir(&hosts)?;
        let dnsmasq = machine
            .program(Path::new("/usr/sbin/dnsmasq"))
            .arg("--keep-in-foreground")
            .arg("--conf-file=/dev/null")
            .arg("--no-resolv")
            .arg("--no-hosts")
            .arg("--pid-file")
            .arg("--user=root")
            .arg("--group=root")
            // There is no upstream server to ask.
            .arg("--local=/#/")
            .arg("--bind-interfaces")
            .flag("listen-address", ADDRESS.to_string())
            // dnsmasq watches this directory for changes.
            .flag("hostsdir", &hosts)
            .spawn("dnsmasq", dir)?;
        let services: Api<Service> = Api::all(control_plane.client()?);
        Ok(Self {
            dnsmasq,
            names: tokio::spawn(async move {
                let mut known = BTreeMap::new();
                loop {
                    // In between, dnsmasq answers from the files of the last round.
                    if let Ok(found) = services.list(&ListParams::default()).await {
                        write_hosts(&hosts, &mut known, &found.items);
                    }
                    tokio::time::sleep(NAMES).await;
                }
            }),
        })
    }

    pub(super) fn check(&self) -> Result<()> {
        self.dnsmasq.check()
    }
}

impl Drop for Dns {
    fn drop(&mut self) {
        self.names.abort();
    }
}

/// Writes a file for each Service whose address is new.
fn write_hosts(hosts: &Path, known: &mut BTreeMap<String, String>, services: &[Service]) {
    for service in services {
        let Some((name, line)) = line(service) else { continue };
        if known.get(&name) != Some(&line) && std::fs::write(hosts.join(&name), &line).is_ok() {
            known.insert(name, line);
        }
    }
}

/// The Service's name, and its line in a hosts file; none for a Service without an address.
fn line(service: &Service) -> Option<(String, String)> {
    let (name, namespace) = (service.metadata.name.as_ref()?, service.metadata.namespace.as_ref()?);
    let address = service
        .spec
        .as_ref()?
        .cluster_ip
        .as_deref()
        .filter(|one| *one != "None")?;
    let name = format!("{name}.{namespace}");
    let line = format!("{address} {name}.svc.{CLUSTER_DOMAIN}\n");
    Some((name, line))
}
