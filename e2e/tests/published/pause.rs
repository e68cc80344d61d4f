//! A paused cluster is left alone until it is not paused any more; what goes is never paused.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::eventually;
use e2e::hosted_cluster::HostedCluster;
use jiff::Timestamp;
use serde_json::{Value, json};

use e2e::site::{SOON, Site, patch, situation};

async fn pause(site: &Site, cluster: &HostedCluster, until: Value) -> Result<()> {
    let client = site.ground.client()?;
    let api = cluster.api(&client, "HostedControlPlane", &cluster.control_plane_namespace());
    patch(&api, cluster.name(), json!({"spec": {"pausedUntil": until}}))
        .await
        .map(drop)
}

#[test]
fn paused_control_plane_is_served_when_it_goes_on_and_goes_while_it_is_paused() {
    situation(async |site| {
        let paused = json!({"spec": {"pausedUntil": "T"}});
        let cluster = HostedCluster::new(&site.ground, "paused").with_control_plane(paused);
        cluster.create(&site.ground).await?;
        let client = site.ground.client()?;
        eventually("the pause is told", SOON, || async {
            let log = std::fs::read_to_string(site.cpo.process().log())?;
            let told = log
                .lines()
                .any(|line| line.contains("\"clusters-paused\"") && line.contains("the cluster is paused"));
            ensure!(told, "it is not");
            Ok(())
        })
        .await?;
        ensure!(cluster.get_link_service(&client).await?.is_none(), "a custom resource");
        pause(site, &cluster, json!("no pause at all")).await?;
        site.heals(&cluster).await?;
        pause(site, &cluster, json!("9999-12-31T23:59:59Z")).await?;
        cluster.delete(&site.ground, SOON).await?;
        site.nothing_is_left_of(&cluster, &[]).await
    });
}

#[test]
fn pause_that_ends_by_itself_is_over_then_and_not_before() {
    situation(async |site| {
        let cluster = HostedCluster::new(&site.ground, "napping");
        cluster.create(&site.ground).await?;
        site.heals(&cluster).await?;
        // Longer than settled resources are left unlooked at here.
        let end = Timestamp::now() + Duration::from_secs(15);
        pause(site, &cluster, json!(end.to_string())).await?;
        let since = site.ground.oracle().last_call().await?;
        site.ground.oracle().drift_delete(&cluster.endpoint()).await?;
        cluster.becomes_reachable(&site.ground, SOON).await?;
        let calls = site.ground.oracle().journal(since).await?;
        let repair = calls
            .iter()
            .find(|call| call.is_write() && call.path.eq_ignore_ascii_case(&cluster.endpoint()));
        let repair = repair.context("no repair")?;
        // The simulator's clock is set forward by other situations, so what counts is ours.
        ensure!(Timestamp::now() >= end, "repaired before {end}: {repair:?}");
        site.heals_and_goes(&cluster).await
    });
}
