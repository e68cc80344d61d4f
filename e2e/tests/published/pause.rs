//! A paused cluster is left alone until the pause is over; a cluster that is being deleted is never paused.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::eventually;
use e2e::hosted_cluster::HostedCluster;
use jiff::Timestamp;
use serde_json::{Value, json};

use e2e::shared_env::{SOON, SharedEnv, patch, situation};

async fn pause(shared_env: &SharedEnv, cluster: &HostedCluster, until: Value) -> Result<()> {
    let client = shared_env.test_env.client()?;
    let api = cluster.api(&client, "HostedControlPlane", &cluster.control_plane_namespace());
    patch(&api, cluster.name(), json!({"spec": {"pausedUntil": until}}))
        .await
        .map(drop)
}

#[test]
fn paused_control_plane_resumes_and_can_be_deleted_while_paused() {
    situation(async |shared_env| {
        let paused = json!({"spec": {"pausedUntil": "T"}});
        let cluster = HostedCluster::new(&shared_env.test_env, "paused").with_control_plane(paused);
        cluster.create(&shared_env.test_env).await?;
        let client = shared_env.test_env.client()?;
        eventually("the pause is told", SOON, || async {
            let log = std::fs::read_to_string(shared_env.cpo.process().log())?;
            let is_logged = log
                .lines()
                .any(|line| line.contains("\"clusters-paused\"") && line.contains("the cluster is paused"));
            ensure!(is_logged, "it is not");
            Ok(())
        })
        .await?;
        ensure!(cluster.get_link_service(&client).await?.is_none(), "a custom resource");
        pause(shared_env, &cluster, json!("no pause at all")).await?;
        shared_env.heals(&cluster).await?;
        pause(shared_env, &cluster, json!("9999-12-31T23:59:59Z")).await?;
        cluster.delete(&shared_env.test_env, SOON).await?;
        shared_env.nothing_is_left_of(&cluster, &[]).await
    });
}

#[test]
fn pause_that_ends_by_itself_is_over_then_and_not_before() {
    situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, "napping");
        cluster.create(&shared_env.test_env).await?;
        shared_env.heals(&cluster).await?;
        // Longer than the interval at which ready resources are read here.
        let end = Timestamp::now() + Duration::from_secs(15);
        pause(shared_env, &cluster, json!(end.to_string())).await?;
        let since = shared_env.test_env.oracle().last_call().await?;
        shared_env.test_env.oracle().drift_delete(&cluster.endpoint()).await?;
        cluster.becomes_reachable(&shared_env.test_env, SOON).await?;
        let calls = shared_env.test_env.oracle().journal(since).await?;
        let repair = calls
            .iter()
            .find(|call| call.is_write() && call.path.eq_ignore_ascii_case(&cluster.endpoint()));
        let repair = repair.context("no repair")?;
        // Other situations advance the simulator's clock, so this machine's clock counts.
        ensure!(Timestamp::now() >= end, "repaired before {end}: {repair:?}");
        shared_env.heals_and_is_deleted(&cluster).await
    });
}
