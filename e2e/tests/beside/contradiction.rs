//! HyperShift's management side, which reports at every event that all is well when it is not.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::azure_sim::GO_HO_CLIENT;
use e2e::hosted_cluster::{HostedCluster, conditions};
use e2e::shared_env::{SOON, patch, refused};
use e2e::{eventually, roles};
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::mixed_env::{MixedEnv, ends, situation};

const AVAILABLE: &str = "AzurePrivateLinkServiceAvailable";

/// When a correction by Hyperlink is overwritten, the next one waits for a minute, and each after that twice as long.
#[test]
fn few_status_writes_beside_a_management_side_that_contradicts() {
    situation(async |mixed_env| {
        let (own_writes, their_reads) = contradicted(mixed_env).await?;
        ensure!(
            own_writes <= 1,
            "{own_writes} of our own status writes against {their_reads} of their passes"
        );
        Ok(())
    });
}

/// Number of reads by HyperShift's operator, after each of which it could contradict.
const READS: usize = 60;

/// How often Hyperlink wrote the status, and how often HyperShift's operator read the service in the same time.
async fn contradicted(mixed_env: &'static MixedEnv) -> Result<(usize, usize)> {
    let (cluster, zone) = unavailable(mixed_env).await?;
    let (ho, cpo) = (mixed_env.go_ho(&cluster).await?, mixed_env.cpo(&cluster).await?);
    they_have_the_last_word(mixed_env, &cluster).await?;

    let since = (
        status_writes(mixed_env, &cluster)?,
        mixed_env.test_env.oracle().last_call().await?,
    );
    let their_reads = eventually("they have looked often", SOON, async || {
        touch(mixed_env, &cluster).await?;
        let count = reads(mixed_env, &cluster, since.1).await?;
        ensure!(count >= READS, "{count} times only");
        Ok(count)
    })
    .await?;
    let own_writes = status_writes(mixed_env, &cluster)? - since.0;
    // The write that is allowed may have come last.
    eventually("they contradict to the end", SOON, async || {
        touch(mixed_env, &cluster).await?;
        has_status(mixed_env, &cluster, "True").await
    })
    .await?;
    mixed_env
        .delete(&cluster, &[&zone, &cluster.own_nat_subnet(&mixed_env.test_env)])
        .await?;
    ho.stop().await?;
    ends(cpo).await?;
    Ok((own_writes, their_reads))
}

/// A cluster whose guest side can never become available, and why: a customer's zone has the name of the internal one.
async fn unavailable(mixed_env: &MixedEnv) -> Result<(HostedCluster, String)> {
    let cluster = mixed_env.their_cluster("contradicted").await?;
    let (oracle, location) = (mixed_env.test_env.oracle(), &mixed_env.test_env.azure().location);
    oracle
        .drift_put(&cluster.resource_group(), &json!({"location": location}))
        .await?;
    let zone = cluster.zones().remove(0);
    oracle
        .drift_put(&zone, &json!({"location": "global", "tags": {"owner": "customer"}}))
        .await?;
    cluster.create(&mixed_env.test_env).await?;
    Ok((cluster, zone))
}

/// Waits until Hyperlink's guest side has reported the problem, was contradicted, and has not written for five seconds.
async fn they_have_the_last_word(mixed_env: &MixedEnv, cluster: &HostedCluster) -> Result<()> {
    let calm = Mutex::new((0, Instant::now()));
    eventually(
        "our guest side is at rest, and they have the last word",
        SOON,
        async || {
            let found = mixed_env.custom_resource(cluster).await?;
            refused(&found, &["AzurePrivateDNSAvailable"], "NotOurs")?;
            has_status(mixed_env, cluster, "True").await?;
            let writes = status_writes(mixed_env, cluster)?;
            let mut calm = calm.lock().await;
            if calm.0 != writes {
                *calm = (writes, Instant::now());
            }
            ensure!(calm.1.elapsed() > Duration::from_secs(5), "{writes} writes so far");
            Ok(())
        },
    )
    .await
}

/// How often HyperShift's operator has read the service since a call.
async fn reads(mixed_env: &MixedEnv, cluster: &HostedCluster, since: u64) -> Result<usize> {
    let (calls, service) = (
        mixed_env.test_env.oracle().journal(since).await?,
        cluster.link_service(&mixed_env.test_env),
    );
    let reads = calls
        .iter()
        .filter(|call| call.principal.as_deref() == Some(GO_HO_CLIENT) && call.path.eq_ignore_ascii_case(&service));
    Ok(reads.count())
}

/// Changes the custom resource: HyperShift's operator reconciles at every event.
async fn touch(mixed_env: &MixedEnv, cluster: &HostedCluster) -> Result<()> {
    let namespace = cluster.control_plane_namespace();
    let custom = cluster.api(&mixed_env.test_env.client()?, "AzurePrivateLinkService", &namespace);
    let label = json!({"metadata": {"labels": {"touched": uuid::Uuid::new_v4().to_string()}}});
    patch(&custom, "private-router", label).await.map(drop)
}

async fn has_status(mixed_env: &MixedEnv, cluster: &HostedCluster, status: &str) -> Result<()> {
    let found = mixed_env.custom_resource(cluster).await?;
    let all = conditions(&found);
    let condition = all.iter().find(|one| one.kind == AVAILABLE);
    ensure!(condition.is_some_and(|one| one.status == status), "{all:?}");
    Ok(())
}

/// Number of status writes by Hyperlink's guest side that the API server has accepted.
fn status_writes(mixed_env: &MixedEnv, cluster: &HostedCluster) -> Result<usize> {
    let log = std::fs::read_to_string(mixed_env.test_env.control_plane().audit_log())?;
    let account = format!("system:serviceaccount:{}:cpo", roles::NAMESPACE);
    let namespace = cluster.control_plane_namespace();
    let mut writes = 0;
    // The last line may be half written.
    for line in log
        .lines()
        .filter(|line| line.contains(&account) && line.contains(&namespace))
    {
        let Ok(event) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        let object = event.get("objectRef").context("an event without an object")?;
        let is_status = object["resource"] == "azureprivatelinkservices" && object["subresource"] == "status";
        // A write with an outdated resource version is refused, changes nothing, and is sent again.
        let is_accepted = event["responseStatus"]["code"] == 200;
        if is_status && is_accepted && event["user"]["username"] == account && object["namespace"] == namespace {
            writes += 1;
        }
    }
    Ok(writes)
}
