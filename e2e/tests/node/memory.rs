//! Memory as the kernel counts it: the chart's limit holds under a tenant's crowd, and a process that the kernel kills
//! comes back.

use anyhow::{Context, Result, bail, ensure};
use e2e::eventually;
use e2e::hosted_cluster::HostedCluster;
use e2e::node::{self, images::HYPERLINK};
use e2e::tenant::{LARGEST_ANNOTATION, Tenant, time_of_repair};

use crate::pods::{Pods, SOON, cpo, ho};

const ROLES: [&str; 2] = ["ho", "cpo"];
/// The chart's limit.
const LIMIT: u64 = 256 << 20;

#[test]
fn limit_holds_under_a_crowd_and_a_killed_leader_comes_back() {
    node::scenario(&[HYPERLINK], async |cluster| {
        let installed = cluster.installed();
        let pods = Pods::install(cluster, &ho(installed)?, &cpo(installed)?).await?;
        let test_env = cluster.test_env();
        let (other_tenant, crowded) = (
            HostedCluster::new(test_env, "neighbour"),
            HostedCluster::new(test_env, "crowded"),
        );
        for hosted in [&other_tenant, &crowded] {
            hosted.create(test_env).await?;
            hosted.becomes_available(test_env, SOON).await?;
        }
        let tenant = Tenant::of(test_env, &crowded).await?;
        tenant.junk(test_env, 0..200, LARGEST_ANNOTATION).await?;
        time_of_repair(test_env, &other_tenant, SOON).await?;
        for role in ROLES {
            for pod in pods.of(role).await?.keys() {
                let container = pods.container(pod).await?;
                ensure!(container.restart_count == 0, "{container:?}");
                let (limit, most) = (pods.memory(pod, "limit").await?, pods.memory(pod, "max_usage").await?);
                ensure!(
                    limit == LIMIT && most < LIMIT / 2,
                    "{pod}: {} MiB of {}",
                    most >> 20,
                    limit >> 20
                );
            }
        }
        for role in ROLES {
            killed_by_the_kernel_comes_back(&pods, role).await?;
            other_tenant.becomes_reachable(test_env, SOON).await?;
            time_of_repair(test_env, &other_tenant, SOON).await?;
        }
        Ok(())
    });
}

/// Limits the leader to the memory that it has, though it needs more.
async fn killed_by_the_kernel_comes_back(pods: &Pods<'_>, role: &str) -> Result<()> {
    let leader = pods.leader(role).await?;
    let process = pods.process(&leader).await?;
    eventually("the kernel kills the process", SOON, || async {
        if pods.container(&leader).await?.restart_count == 0 {
            pods.take_memory(&leader, &process).await?;
            bail!("it runs");
        }
        Ok(())
    })
    .await?;
    let container = pods.restarted(&leader, 1).await?;
    let terminated = container
        .last_state
        .and_then(|state| state.terminated)
        .context("nothing ended")?;
    ensure!(terminated.reason.as_deref() == Some("OOMKilled"), "{terminated:?}");
    ensure!(
        pods.memory(&leader, "limit").await? == LIMIT,
        "the new container has another limit"
    );
    pods.leader(role).await.map(drop)
}
