//! What the operator's file allows, while it changes.

use anyhow::{Context, Result, ensure};
use e2e::eventually;
use e2e::hosted_cluster::{HostedCluster, conditions};
use e2e::shared_env::{SOON, patch};
use serde_json::json;

use crate::tenants::{GUEST_SIDE, Tenants, tenants};

/// Triggers the guest side by a change of the custom resource, and waits until it has refused the change.
async fn is_refused_again(tenants: &Tenants, cluster: &HostedCluster) -> Result<()> {
    let client = tenants.shared_env.test_env.client()?;
    let api = cluster.api(&client, "AzurePrivateLinkService", &cluster.control_plane_namespace());
    // The observer reverts it, which is a change too.
    let changed = patch(
        &api,
        "private-router",
        json!({"spec": {"loadBalancerIP": "10.224.0.250"}}),
    )
    .await?;
    let generation = changed.metadata.generation;
    eventually("the change is refused", SOON, || async {
        let found = cluster.get_link_service(&client).await?.context("no custom resource")?;
        let list = found
            .data
            .pointer("/status/conditions")
            .and_then(|list| list.as_array().cloned());
        let list = list.unwrap_or_default();
        let condition = list
            .iter()
            .find(|one| one["type"] == GUEST_SIDE[0])
            .context("no condition")?;
        ensure!(
            condition["reason"] == "ScopeNotAllowed" && condition["observedGeneration"].as_i64() >= generation,
            "{condition}"
        );
        Ok(())
    })
    .await
}

#[test]
fn entry_is_added_taken_away_and_added_again() {
    tenants(async |tenants| {
        let shared_env = &tenants.shared_env;
        let cluster = HostedCluster::new(&shared_env.test_env, "listed").with_base_domain("listed.example.com");
        cluster.create(&shared_env.test_env).await?;
        shared_env.refuses_all(&cluster, &GUEST_SIDE, "ScopeNotAllowed").await?;
        let calls = tenants.guest_calls_about(&cluster).await?;
        ensure!(calls.is_empty(), "{calls:?}");
        tenants.allow(&cluster).await?;
        shared_env.heals(&cluster).await?;

        tenants.forbid(&cluster).await?;
        shared_env.refuses_all(&cluster, &GUEST_SIDE, "ScopeNotAllowed").await?;
        let since = tenants.guest_calls_about(&cluster).await?.len();
        is_refused_again(tenants, &cluster).await?;
        // Nothing is deleted either, and a deletion waits.
        let client = shared_env.test_env.client()?;
        let api = cluster.api(&client, "AzurePrivateLinkService", &cluster.control_plane_namespace());
        api.delete("private-router", &Default::default()).await?;
        let situation = "Private Endpoint and zones stay while they are not allowed";
        eventually(situation, SOON, || async {
            let found = cluster.get_link_service(&client).await?.context("it has gone")?;
            let held = found.metadata.finalizers.clone().unwrap_or_default();
            let all = conditions(&found);
            let is_refused = |kind: &str| {
                all.iter()
                    .any(|one| one.kind == kind && one.reason == "ScopeNotAllowed")
            };
            ensure!(
                found.metadata.deletion_timestamp.is_some() && GUEST_SIDE.iter().all(|kind| is_refused(kind)),
                "{all:?}"
            );
            ensure!(
                held.iter()
                    .any(|one| one == "hypershift.openshift.io/azure-private-link-service"),
                "{held:?}"
            );
            Ok(())
        })
        .await?;
        cluster.becomes_reachable(&shared_env.test_env, SOON).await?;
        let calls = tenants.guest_calls_about(&cluster).await?;
        ensure!(calls.len() == since, "{:?}", &calls[since..]);

        tenants.allow(&cluster).await?;
        eventually("it goes, and another comes", SOON, || async {
            let found = cluster.get_link_service(&client).await?.context("no custom resource")?;
            ensure!(found.metadata.deletion_timestamp.is_none(), "it has not gone");
            Ok(())
        })
        .await?;
        shared_env.heals_and_is_deleted(&cluster).await
    });
}

#[test]
fn damaged_file_is_reported_and_changes_nothing() {
    tenants(async |tenants| {
        let file = tenants.file().await;
        let cpo = &tenants.shared_env.cpo;
        let shows = async |stale: u8, text: &str| {
            eventually(&format!("stale {stale}"), SOON, || async {
                let (_, metrics) = cpo.page("/metrics").await?;
                let line = format!("hyperlink_allowed_scopes_stale {stale}");
                ensure!(metrics.lines().any(|one| one == line), "{metrics}");
                let (status, page) = cpo.page("/readyz").await?;
                ensure!(status == 200 && page.contains(text), "{page}");
                Ok(())
            })
            .await
        };
        file.write("hostedClusters: [{namespace: clusters")?;
        shows(1, "of the last good file, the new one is no use").await?;
        let log = std::fs::read_to_string(cpo.process().log())?;
        ensure!(log.contains("the file of allowed scopes is no use"), "not in the log");
        file.write_entries()?;
        shows(0, "[+] allowed scopes: ").await
    });
}

#[test]
fn throttled_subscription_delays_no_cluster_in_another() {
    tenants(async |tenants| {
        let shared_env = &tenants.shared_env;
        let other = &shared_env.test_env.azure().other_guest_subscription;
        let slow = HostedCluster::new(&shared_env.test_env, "throttled").in_subscription(other);
        let fast = HostedCluster::new(&shared_env.test_env, "unthrottled");
        for cluster in [&slow, &fast] {
            tenants.allow(cluster).await?;
        }
        let path = format!("/subscriptions/{other}/");
        shared_env
            .faults(
                json!([{"match": {"path": path, "times": 1000}, "do": {"status": 429, "code": "TooManyRequests",
            "headers": {"Retry-After": "15"}}}]),
            )
            .await?;
        slow.create(&shared_env.test_env).await?;
        let client = shared_env.test_env.client()?;
        let throttled = || async {
            let found = slow.get_link_service(&client).await?.context("no custom resource")?;
            let all = conditions(&found);
            let is_reported = all
                .iter()
                .any(|one| GUEST_SIDE.contains(&one.kind.as_str()) && one.message.contains("TooManyRequests"));
            ensure!(is_reported, "{all:?}");
            Ok(())
        };
        eventually("the other subscription is throttled", SOON, throttled).await?;
        fast.create(&shared_env.test_env).await?;
        shared_env.heals(&fast).await?;
        throttled().await?;
        shared_env.faults(json!([])).await?;
        shared_env.heals_and_is_deleted(&slow).await?;
        shared_env.heals_and_is_deleted(&fast).await
    });
}
