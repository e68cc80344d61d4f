//! Two clusters that name what only one may have: the newer one is refused and heals when the older one goes; the older one
//! notices nothing.

use anyhow::{Result, ensure};
use e2e::hosted_cluster::HostedCluster;
use serde_json::{Value, json};

use e2e::site::{SOON, Site, situation};

/// HostedCluster and HostedControlPlane say the same.
fn both(ground: &e2e::Ground, name: &str, spec: &Value) -> HostedCluster {
    let patch = json!({"spec": spec});
    HostedCluster::new(ground, name)
        .with_hosted_cluster(patch.clone())
        .with_control_plane(patch)
}

async fn refused_beside(site: &Site, older: &HostedCluster, newer: &HostedCluster, reason: &str) -> Result<()> {
    let before = site.seen(&older.link_service(&site.ground)).await?;
    newer.create(&site.ground).await?;
    site.refuses_all(
        newer,
        &["AzureInternalLoadBalancerAvailable", "AzurePLSCreated"],
        reason,
    )
    .await?;
    site.says(newer, "AzurePLSCreated", reason).await?;
    site.heals(older).await?;
    ensure!(
        site.seen(&older.link_service(&site.ground)).await? == before,
        "the older one's was changed"
    );
    let own = newer.infra_id();
    let calls = site.ground.oracle().journal(0).await?;
    let asked = calls.iter().find(|call| call.path.contains(&own) && call.is_write());
    ensure!(asked.is_none(), "written for the refused one: {asked:?}");
    Ok(())
}

#[test]
fn cluster_id_that_an_older_cluster_has() {
    situation(async |site| {
        let older = HostedCluster::new(&site.ground, "first-id");
        older.create(&site.ground).await?;
        site.heals(&older).await?;
        let newer = both(&site.ground, "second-id", &json!({"clusterID": older.cluster_id()}));
        refused_beside(site, &older, &newer, "DuplicateIdentity").await?;
        older.delete(&site.ground, SOON).await?;
        site.heals(&newer).await?;
        newer.delete(&site.ground, SOON).await
    });
}

#[test]
fn host_name_that_an_older_cluster_has() {
    situation(async |site| {
        let older = HostedCluster::new(&site.ground, "first-host").with_base_domain("claimed.example.com");
        older.create(&site.ground).await?;
        site.heals(&older).await?;
        let host = json!({"hostname": "api-first-host.claimed.example.com"});
        let plain = |service: &str| json!({"service": service, "servicePublishingStrategy": {"type": "Route"}});
        let api = json!({"service": "APIServer", "servicePublishingStrategy": {"type": "Route", "route": host}});
        let services = json!([api, plain("OAuthServer"), plain("Konnectivity"), plain("Ignition")]);
        let newer = both(&site.ground, "second-host", &json!({"services": services}));
        refused_beside(site, &older, &newer, "HostNameClaimed").await?;
        older.delete(&site.ground, SOON).await?;
        newer.becomes_available(&site.ground, SOON).await?;
        newer.delete(&site.ground, SOON).await?;
        site.nothing_is_left_of(&newer, &[]).await
    });
}
