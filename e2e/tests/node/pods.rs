//! The releases `ho` and `cpo` as Pods, and what the cluster shows of them.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::azure_sim::{CPO_CLIENT, HO_CLIENT};
pub(crate) use e2e::installed::HOME;
use e2e::installed::Installed;
use e2e::node::{Cluster, Kubectl};
use e2e::pod::WEBHOOK_AUDIENCE;
use e2e::{eventually, patient};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

/// Timeout for anything in which the kubelet has a part.
pub(crate) const SOON: Duration = Duration::from_secs(240);

/// Where a Pod finds the token that it shows to Azure.
const TOKENS: &str = "/var/run/secrets/azure/tokens";

/// Both releases on the node.
pub(crate) struct Pods<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) kubectl: Kubectl,
    pods: Api<Pod>,
    leases: Api<Lease>,
}

/// The values of the management side.
pub(crate) fn ho(installed: &Installed) -> Result<Value> {
    with_a_projected_token(installed, installed.ho_with_managed_identity()?, HO_CLIENT)
}

/// The values of the guest side.
pub(crate) fn cpo(installed: &Installed) -> Result<Value> {
    with_a_projected_token(installed, installed.cpo_of_many()?, CPO_CLIENT)
}

/// Adds the image that is on the node, and the token that the kubelet projects for Azure, as the webhook of Azure
/// workload identity would.
fn with_a_projected_token(installed: &Installed, mut values: Value, client: &str) -> Result<Value> {
    values["image"] = json!({"repository": "localhost/hyperlink", "pullPolicy": "Never"});
    values["azure"] = json!({"credential": "workload-identity", "clientId": client,
        "tenantId": installed.test_env.azure().tenant, "tokenFile": format!("{TOKENS}/token")});
    let token =
        json!({"serviceAccountToken": {"audience": WEBHOOK_AUDIENCE, "path": "token", "expirationSeconds": 3600}});
    for (list, item) in [
        (
            "extraVolumes",
            json!({"name": "azure-token", "projected": {"sources": [token]}}),
        ),
        (
            "extraVolumeMounts",
            json!({"name": "azure-token", "mountPath": TOKENS, "readOnly": true}),
        ),
    ] {
        let items = values[list].as_array_mut().context("an example without that list")?;
        items.push(item);
    }
    Ok(values)
}

impl<'a> Pods<'a> {
    /// Installs both releases with these values.
    pub(crate) async fn install(cluster: &'a Cluster, ho: &Value, cpo: &Value) -> Result<Pods<'a>> {
        let (client, installed) = (cluster.test_env().client()?, cluster.installed());
        let pods = Self {
            cluster,
            kubectl: cluster.kubectl()?,
            pods: Api::namespaced(client.clone(), HOME),
            leases: Api::namespaced(client, HOME),
        };
        pods.kubectl.run(&[
            "label",
            "namespace",
            HOME,
            "pod-security.kubernetes.io/enforce=restricted",
        ])?;
        installed.install("ho", ho)?;
        installed.install("cpo", cpo)?;
        for release in ["ho", "cpo"] {
            pods.rolled_out(release)?;
            pods.leader(release).await?;
        }
        Ok(pods)
    }

    /// Waits until all Pods of a release's last version are ready, by the kubelet's probes, and no other is left.
    pub(crate) fn rolled_out(&self, release: &str) -> Result<()> {
        let deployment = format!("deployment/{release}-hyperlink");
        let timeout = format!("--timeout={}s", patient(SOON).as_secs());
        self.kubectl
            .run(&["--namespace", HOME, "rollout", "status", &deployment, &timeout])
            .map(drop)
    }

    /// The Pods of a release that are not on their way out, by name.
    pub(crate) async fn of(&self, release: &str) -> Result<BTreeMap<String, Pod>> {
        let labelled = ListParams::default().labels(&format!("app.kubernetes.io/instance={release}"));
        let mut found = BTreeMap::new();
        for pod in self.pods.list(&labelled).await? {
            if pod.metadata.deletion_timestamp.is_none() {
                found.insert(pod.metadata.name.clone().context("a Pod without a name")?, pod);
            }
        }
        Ok(found)
    }

    /// Waits until a ready Pod holds the role's lease; returns its name.
    pub(crate) async fn leader(&self, release: &str) -> Result<String> {
        self.leader_other_than(release, "").await
    }

    /// Waits until a ready Pod other than `not` holds the role's lease; returns its name.
    pub(crate) async fn leader_other_than(&self, release: &str, not: &str) -> Result<String> {
        eventually(&format!("{release} has a leader other than {not:?}"), SOON, || async {
            let lease = self.leases.get(&format!("hyperlink-{release}")).await?;
            let holder = lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
            let pods = self.of(release).await?;
            let leader = pods.keys().find(|name| holder.starts_with(&format!("{name}_")));
            let leader = leader.with_context(|| format!("{holder:?} leads"))?;
            ensure!(leader != not, "{leader} leads");
            ensure!(ready(&pods[leader]), "{leader} is not ready");
            Ok(leader.clone())
        })
        .await
    }

    /// Waits until so many Pods of a release are ready.
    pub(crate) async fn ready(&self, release: &str, number: usize) -> Result<()> {
        eventually(&format!("{number} Pods of {release} are ready"), SOON, || async {
            let pods = self.of(release).await?;
            let now = pods.values().filter(|pod| ready(pod)).count();
            ensure!(now == number && pods.len() == number, "{now} of {}", pods.len());
            Ok(())
        })
        .await
    }

    /// The kubelet's status of the program's container.
    pub(crate) async fn container(&self, pod: &str) -> Result<ContainerStatus> {
        let statuses = self
            .pods
            .get(pod)
            .await?
            .status
            .and_then(|status| status.container_statuses);
        let own = statuses.into_iter().flatten().find(|one| one.name == "hyperlink");
        own.context("no container")
    }

    /// Waits until the kubelet has restarted the container of a Pod that often.
    pub(crate) async fn restarted(&self, pod: &str, times: i32) -> Result<ContainerStatus> {
        eventually(&format!("the container of {pod} was started anew"), SOON, || async {
            let container = self.container(pod).await?;
            ensure!(container.restart_count == times && container.ready, "{container:?}");
            Ok(container)
        })
        .await
    }

    /// The process of a Pod's container, by its id on the node.
    pub(crate) async fn process(&self, pod: &str) -> Result<String> {
        let id = self.container(pod).await?.container_id.context("no container id")?;
        let id = id.trim_start_matches("containerd://");
        let tasks = self.cluster.ctr(&["tasks", "ls"])?;
        let line = tasks
            .lines()
            .find(|line| line.starts_with(id))
            .context("it does not run")?;
        Ok(line.split_whitespace().nth(1).context("no process")?.to_owned())
    }

    /// The program's arguments in the Pods of a release.
    pub(crate) async fn arguments(&self, release: &str) -> Result<Vec<String>> {
        let pods = self.of(release).await?;
        let containers = pods
            .values()
            .filter_map(|pod| pod.spec.as_ref())
            .flat_map(|spec| &spec.containers);
        Ok(containers
            .flat_map(|one| one.args.clone().unwrap_or_default())
            .collect())
    }

    /// Waits until a Pod no longer exists.
    pub(crate) async fn is_gone(&self, pod: &str) -> Result<()> {
        eventually(&format!("{pod} is gone"), SOON, || async {
            ensure!(self.pods.get_opt(pod).await?.is_none(), "it is there");
            Ok(())
        })
        .await
    }

    /// What the kernel counts of the memory of a Pod's container, in bytes: `usage`, `max_usage` or `limit`.
    pub(crate) async fn memory(&self, pod: &str, what: &str) -> Result<u64> {
        let file = memory_file(self.cluster, &self.process(pod).await?, what)?;
        Ok(self.cluster.run("cat", &[&file])?.trim().parse()?)
    }

    /// Leaves a process the memory that it has and no more, and asks the Pod for a page, which takes some.
    pub(crate) async fn take_memory(&self, pod: &str, process: &str) -> Result<()> {
        let (usage, limit) = (
            memory_file(self.cluster, process, "usage")?,
            memory_file(self.cluster, process, "limit")?,
        );
        self.cluster.run("sh", &["-c", &format!("cat {usage} >{limit}")])?;
        let path = format!("/api/v1/namespaces/{HOME}/pods/{pod}:8081/proxy/metrics");
        self.kubectl.run(&["get", "--raw", &path]).map(drop)
    }

    /// Sends a signal to a Pod's program, as the node's administrator.
    pub(crate) async fn signal(&self, pod: &str, signal: &str) -> Result<()> {
        let process = self.process(pod).await?;
        self.cluster.run("kill", &["-s", signal, &process]).map(drop)
    }
}

/// Whether the Pod is ready by the kubelet's probe.
pub(crate) fn ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|one| one.type_ == "Ready" && one.status == "True")
}

/// The file of a process' memory group, on a kernel with control groups of version 1 or 2.
fn memory_file(cluster: &Cluster, process: &str, what: &str) -> Result<String> {
    let groups = cluster.run("cat", &[&format!("/proc/{process}/cgroup")])?;
    let group = |controller: &str| {
        groups
            .lines()
            .find_map(|line| line.split_once(controller))
            .map(|(_, path)| path)
    };
    let found = match group(":memory:") {
        Some(path) => format!("/sys/fs/cgroup/memory{path}/memory.{what}_in_bytes"),
        None => {
            let path = group("0::").context("a process in no group")?;
            let name = match what {
                "usage" => "current",
                "max_usage" => "peak",
                _ => "max",
            };
            format!("/sys/fs/cgroup{path}/memory.{name}")
        }
    };
    Ok(found)
}
