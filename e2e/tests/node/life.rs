//! A cluster's life on the Pods of both releases, which are as restricted as the chart asks.

use anyhow::{Context, Result, ensure};
use e2e::hosted_cluster::HostedCluster;
use e2e::node::{self, images::HYPERLINK};
use e2e::shared_env::nothing_is_left_of;

use crate::pods::{Pods, SOON, cpo, ho};

#[test]
fn cluster_lives_on_restricted_pods() {
    node::scenario(&[HYPERLINK], async |cluster| {
        let installed = cluster.installed();
        let pods = Pods::install(cluster, &ho(installed)?, &cpo(installed)?).await?;
        for release in ["ho", "cpo"] {
            for pod in pods.of(release).await?.keys() {
                is_restricted(&pods, pod).await?;
            }
        }
        let test_env = cluster.test_env();
        let hosted = HostedCluster::new(test_env, "on-pods").with_base_domain("apps.example.com");
        hosted.create(test_env).await?;
        hosted.becomes_available(test_env, SOON).await?;
        hosted.becomes_reachable(test_env, SOON).await?;
        test_env.oracle().drift_delete(&hosted.endpoint()).await?;
        hosted.becomes_reachable(test_env, SOON).await?;
        hosted.delete(test_env, SOON).await?;
        nothing_is_left_of(test_env, &hosted, &[]).await
    });
}

/// Fails unless the program runs as the chart asks: nobody's user, no capability, no way to more, filtered system
/// calls, a read-only root.
async fn is_restricted(pods: &Pods<'_>, pod: &str) -> Result<()> {
    let process = pods.process(pod).await?;
    let status = pods.cluster.run("cat", &[&format!("/proc/{process}/status")])?;
    for (field, expected) in [
        ("Uid", "65532\t65532\t65532\t65532"),
        ("NoNewPrivs", "1"),
        ("CapEff", "0000000000000000"),
        ("CapBnd", "0000000000000000"),
        ("Seccomp", "2"),
    ] {
        let line = status.lines().find_map(|line| line.strip_prefix(&format!("{field}:")));
        ensure!(line.map(str::trim) == Some(expected), "{pod}: {field}: {line:?}");
    }
    let mounts = pods.cluster.run("cat", &[&format!("/proc/{process}/mountinfo")])?;
    let root = mounts.lines().find(|line| line.split(' ').nth(4) == Some("/"));
    let options = root.and_then(|line| line.split(' ').nth(5)).context("no root")?;
    ensure!(options.split(',').any(|one| one == "ro"), "{pod}: {options}");
    Ok(())
}
