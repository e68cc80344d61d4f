//! What happens to containers, Pods and nodes every day. A path is repaired all the same, if necessary by another
//! leader.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use e2e::eventually;
use e2e::hosted_cluster::HostedCluster;
use e2e::node::images::HYPERLINK;
use e2e::node::{self, NODE};
use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;

use crate::pods::{HOME, Pods, SOON, cpo, ho, ready};

const ROLES: [&str; 2] = ["ho", "cpo"];
/// A lease as OpenShift's own operators have it.
const LEASE: Duration = Duration::from_secs(137);
/// How long the node has no kubelet.
const AWAY: Duration = Duration::from_secs(60);

#[test]
fn path_is_healed_whatever_happens_to_pods_and_node() {
    node::scenario(&[HYPERLINK], async |cluster| {
        let installed = cluster.installed();
        let pods = Pods::install(cluster, &ho(installed)?, &cpo(installed)?).await?;
        let hosted = HostedCluster::new(cluster.test_env(), "disturbed");
        hosted.create(cluster.test_env()).await?;
        hosted.becomes_available(cluster.test_env(), SOON).await?;
        killed_containers_are_started_again(&pods).await?;
        heals(&pods, &hosted).await?;
        drained_node_keeps_a_leader_of_each_role(&pods, &hosted).await?;
        heals(&pods, &hosted).await?;
        node_without_a_kubelet_keeps_serving(&pods, &hosted).await?;
        heals(&pods, &hosted).await?;
        upgrades_deletions_and_rollbacks_hand_over(&pods, &hosted).await?;
        heals(&pods, &hosted).await
    });
}

/// Fails unless Hyperlink repairs what was changed on either side.
async fn heals(pods: &Pods<'_>, hosted: &HostedCluster) -> Result<()> {
    let test_env = pods.cluster.test_env();
    hosted.becomes_reachable(test_env, SOON).await?;
    test_env.oracle().drift_delete(&hosted.endpoint()).await?;
    hosted.becomes_reachable(test_env, SOON).await?;
    e2e::tenant::time_of_repair(test_env, hosted, SOON).await.map(drop)
}

async fn killed_containers_are_started_again(pods: &Pods<'_>) -> Result<()> {
    for role in ROLES {
        let leader = pods.leader(role).await?;
        pods.signal(&leader, "KILL").await?;
        let container = pods.restarted(&leader, 1).await?;
        let terminated = container.last_state.and_then(|state| state.terminated);
        ensure!(
            terminated.as_ref().is_some_and(|end| end.exit_code == 137),
            "{terminated:?}"
        );
        pods.leader(role).await?;
    }
    Ok(())
}

/// There is only one node: the disruption budget keeps one Pod of each release on it, until there is room again.
async fn drained_node_keeps_a_leader_of_each_role(pods: &Pods<'_>, hosted: &HostedCluster) -> Result<()> {
    let drain = [
        "drain",
        NODE,
        "--ignore-daemonsets",
        "--delete-emptydir-data",
        "--timeout=15s",
    ];
    let drained = pods.kubectl.output(&drain)?;
    let printed = String::from_utf8_lossy(&drained.stderr);
    ensure!(!drained.status.success(), "the node was drained");
    for role in ROLES {
        let pod = format!("pods/\"{role}-hyperlink-");
        let is_protected = printed
            .lines()
            .any(|line| line.contains(&pod) && line.contains("disruption budget"));
        ensure!(is_protected, "{role}: {printed}");
        let left = pods.of(role).await?;
        let running = left.values().filter(|pod| ready(pod)).count();
        ensure!(running == 1 && left.len() == 2, "{role}: {running} of {}", left.len());
    }
    heals(pods, hosted).await?;
    pods.kubectl.run(&["uncordon", NODE])?;
    for role in ROLES {
        pods.ready(role, 2).await?;
    }
    Ok(())
}

/// A leader that stops releases its lease: with a long one, the next leads long before it would have expired.
async fn upgrades_deletions_and_rollbacks_hand_over(pods: &Pods<'_>, hosted: &HostedCluster) -> Result<()> {
    let installed = pods.cluster.installed();
    let long = format!("--lease-duration={}s", LEASE.as_secs());
    for role in ROLES {
        let before = pods.of(role).await?;
        let mut values = if role == "ho" { ho(installed)? } else { cpo(installed)? };
        values["settings"]["leaseDuration"] = format!("{}s", LEASE.as_secs()).into();
        installed.install(role, &values)?;
        pods.rolled_out(role)?;
        let upgraded = pods.of(role).await?;
        let others = before.keys().all(|name| !upgraded.contains_key(name));
        ensure!(
            others && pods.arguments(role).await?.contains(&long),
            "{role}: nothing was rolled out"
        );
        let leader = pods.leader(role).await?;
        heals(pods, hosted).await?;

        pods.kubectl
            .run(&["--namespace", HOME, "delete", "pod", &leader, "--wait=false"])?;
        hands_over(pods, role, &leader).await?;
        pods.is_gone(&leader).await?;
        pods.ready(role, 2).await?;

        let leader = pods.leader(role).await?;
        installed.helm.run(&["rollback", role, "1", "--namespace", HOME])?;
        hands_over(pods, role, &leader).await?;
        pods.rolled_out(role)?;
        ensure!(
            !pods.arguments(role).await?.contains(&long),
            "{role}: nothing was rolled back"
        );
    }
    Ok(())
}

/// Fails unless another one leads before the lease of this one would have expired.
async fn hands_over(pods: &Pods<'_>, role: &str, leader: &str) -> Result<()> {
    let began = Instant::now();
    pods.leader_other_than(role, leader).await?;
    ensure!(began.elapsed() < LEASE, "{role}: after {:?}", began.elapsed());
    Ok(())
}

/// The cluster considers the node dead, but its containers run, lead and repair; no other Pod replaces them yet.
async fn node_without_a_kubelet_keeps_serving(pods: &Pods<'_>, hosted: &HostedCluster) -> Result<()> {
    let mut before = Vec::new();
    for role in ROLES {
        for pod in pods.of(role).await?.keys() {
            before.push((pod.clone(), pods.container(pod).await?.container_id));
        }
    }
    pods.cluster.kill_kubelet()?;
    let back = Instant::now() + AWAY;
    pods.cluster.is_ready(false).await?;
    let all: Api<Pod> = Api::namespaced(pods.cluster.test_env().client()?, HOME);
    eventually("no Pod counts as ready", SOON, || async {
        let left = all.list(&Default::default()).await?.items;
        ensure!(!left.iter().any(ready), "one does");
        Ok(())
    })
    .await?;
    heals(pods, hosted).await?;
    tokio::time::sleep_until(back.into()).await;
    pods.cluster.start_kubelet()?;
    pods.cluster.is_ready(true).await?;
    for role in ROLES {
        pods.ready(role, 2).await?;
    }
    for (pod, container) in before {
        ensure!(
            pods.container(&pod).await?.container_id == container,
            "{pod} was started anew"
        );
    }
    Ok(())
}
