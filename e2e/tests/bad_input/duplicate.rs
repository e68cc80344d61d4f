//! Two clusters that name what only one may have. The newer one is refused, and heals when the older one is deleted.
//! The older one is not affected.

use anyhow::{Result, ensure};
use e2e::hosted_cluster::HostedCluster;
use serde_json::{Value, json};

use e2e::shared_env::{SOON, SharedEnv, situation};

/// A cluster with this spec on both its HostedCluster and its HostedControlPlane.
fn both(test_env: &e2e::TestEnv, name: &str, spec: &Value) -> HostedCluster {
    let patch = json!({"spec": spec});
    HostedCluster::new(test_env, name)
        .with_hosted_cluster(patch.clone())
        .with_control_plane(patch)
}

async fn refused_beside(
    shared_env: &SharedEnv,
    older: &HostedCluster,
    newer: &HostedCluster,
    reason: &str,
) -> Result<()> {
    let before = shared_env.observed(&older.link_service(&shared_env.test_env)).await?;
    newer.create(&shared_env.test_env).await?;
    shared_env
        .refuses_all(
            newer,
            &["AzureInternalLoadBalancerAvailable", "AzurePLSCreated"],
            reason,
        )
        .await?;
    shared_env.has_condition(newer, "AzurePLSCreated", reason).await?;
    shared_env.heals(older).await?;
    ensure!(
        shared_env.observed(&older.link_service(&shared_env.test_env)).await? == before,
        "the older one's was changed"
    );
    let own = newer.infra_id();
    let calls = shared_env.test_env.oracle().journal(0).await?;
    let asked = calls.iter().find(|call| call.path.contains(&own) && call.is_write());
    ensure!(asked.is_none(), "written for the refused one: {asked:?}");
    Ok(())
}

#[test]
fn cluster_id_that_an_older_cluster_has() {
    situation(async |shared_env| {
        let older = HostedCluster::new(&shared_env.test_env, "first-id");
        older.create(&shared_env.test_env).await?;
        shared_env.heals(&older).await?;
        let newer = both(
            &shared_env.test_env,
            "second-id",
            &json!({"clusterID": older.cluster_id()}),
        );
        refused_beside(shared_env, &older, &newer, "DuplicateIdentity").await?;
        older.delete(&shared_env.test_env, SOON).await?;
        shared_env.heals(&newer).await?;
        newer.delete(&shared_env.test_env, SOON).await
    });
}

#[test]
fn host_name_that_an_older_cluster_has() {
    situation(async |shared_env| {
        let older = HostedCluster::new(&shared_env.test_env, "first-host").with_base_domain("claimed.example.com");
        older.create(&shared_env.test_env).await?;
        shared_env.heals(&older).await?;
        let host = json!({"hostname": "api-first-host.claimed.example.com"});
        let plain = |service: &str| json!({"service": service, "servicePublishingStrategy": {"type": "Route"}});
        let api = json!({"service": "APIServer", "servicePublishingStrategy": {"type": "Route", "route": host}});
        let services = json!([api, plain("OAuthServer"), plain("Konnectivity"), plain("Ignition")]);
        let newer = both(&shared_env.test_env, "second-host", &json!({"services": services}));
        refused_beside(shared_env, &older, &newer, "HostNameClaimed").await?;
        older.delete(&shared_env.test_env, SOON).await?;
        newer.becomes_available(&shared_env.test_env, SOON).await?;
        newer.delete(&shared_env.test_env, SOON).await?;
        shared_env.nothing_is_left_of(&newer, &[]).await
    });
}
