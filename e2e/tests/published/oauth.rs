//! OAuth with a load balancer of its own has a path of its own.

use anyhow::{Context, Result, ensure};
use e2e::eventually;
use e2e::hosted_cluster::{HostedCluster, OAUTH, ROUTER};
use kube::api::DeleteParams;
use serde_json::json;

use e2e::site::{SOON, Site, patch, situation};

/// The UID of a custom resource, once it is another than `before`.
async fn uid(site: &Site, cluster: &HostedCluster, name: &str, before: Option<&str>) -> Result<String> {
    let client = site.ground.client()?;
    eventually(&format!("{name} is there"), SOON, || async {
        let found = cluster.get_custom_resource(&client, name).await?;
        let uid = found
            .and_then(|found| found.metadata.uid)
            .context("no custom resource")?;
        ensure!(Some(uid.as_str()) != before, "it is still the one before");
        Ok(uid)
    })
    .await
}

async fn delete(site: &Site, cluster: &HostedCluster, name: &str) -> Result<()> {
    let client = site.ground.client()?;
    let api = cluster.api(&client, "AzurePrivateLinkService", &cluster.control_plane_namespace());
    api.delete(name, &DeleteParams::default()).await?;
    Ok(())
}

#[test]
fn strategy_of_oauth_counts_as_it_is_now() {
    situation(async |site| {
        // Its Service is internal all the time; only the strategy turns.
        let cluster = HostedCluster::new(&site.ground, "turning").with_oauth_load_balancer();
        let by = |kind: &str| {
            json!({"spec": {"services": [
                {"service": "APIServer", "servicePublishingStrategy": {"type": "Route"}},
                {"service": "OAuthServer", "servicePublishingStrategy": {"type": kind}},
                {"service": "Konnectivity", "servicePublishingStrategy": {"type": "Route"}},
                {"service": "Ignition", "servicePublishingStrategy": {"type": "Route"}}]}})
        };
        let cluster = cluster.with_control_plane(by("Route"));
        cluster.create(&site.ground).await?;
        uid(site, &cluster, ROUTER, None).await?;
        let client = site.ground.client()?;
        ensure!(
            cluster.get_custom_resource(&client, OAUTH).await?.is_none(),
            "published by a route"
        );

        let control_planes = cluster.api(&client, "HostedControlPlane", &cluster.control_plane_namespace());
        patch(&control_planes, cluster.name(), by("LoadBalancer")).await?;
        let first = uid(site, &cluster, OAUTH, None).await?;
        // A custom resource is never taken away, but from then on it is not made either.
        patch(&control_planes, cluster.name(), by("Route")).await?;
        let router = uid(site, &cluster, ROUTER, None).await?;
        delete(site, &cluster, ROUTER).await?;
        uid(site, &cluster, ROUTER, Some(&router)).await?;
        ensure!(uid(site, &cluster, OAUTH, None).await? == first, "it was made again");
        delete(site, &cluster, OAUTH).await?;
        eventually("the custom resource of OAuth is gone", SOON, || async {
            ensure!(
                cluster.get_custom_resource(&client, OAUTH).await?.is_none(),
                "it is there"
            );
            Ok(())
        })
        .await?;
        // The next custom resource of the router comes after any of OAuth would have come.
        let router = uid(site, &cluster, ROUTER, None).await?;
        delete(site, &cluster, ROUTER).await?;
        uid(site, &cluster, ROUTER, Some(&router)).await?;
        ensure!(
            cluster.get_custom_resource(&client, OAUTH).await?.is_none(),
            "it came back"
        );
        cluster.delete(&site.ground, SOON).await?;
        site.nothing_is_left_of(&cluster, &[]).await
    });
}
