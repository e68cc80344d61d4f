//! OAuth with a load balancer of its own has a path of its own.

use anyhow::{Context, Result, ensure};
use e2e::eventually;
use e2e::hosted_cluster::{ADDITIONAL_SUBSCRIPTION, HostedCluster, OAUTH, ROUTER};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use e2e::shared_env::{SOON, SharedEnv, patch, situation};

/// The UID of a custom resource, once it is there.
async fn uid(shared_env: &SharedEnv, cluster: &HostedCluster, name: &str) -> Result<String> {
    let client = shared_env.test_env.client()?;
    eventually(&format!("{name} is there"), SOON, || async {
        let found = cluster.get_custom_resource(&client, name).await?;
        found.and_then(|found| found.metadata.uid).context("no custom resource")
    })
    .await
}

/// Patches the control plane, these allowed subscriptions included, and waits until the observer has applied both.
async fn change(shared_env: &SharedEnv, cluster: &HostedCluster, mut with: Value, allowed: Value) -> Result<()> {
    let client = shared_env.test_env.client()?;
    with["spec"]["platform"]["azure"]["private"]["privateLink"]["additionalAllowedSubscriptions"] = allowed.clone();
    let control_planes = cluster.api(&client, "HostedControlPlane", &cluster.control_plane_namespace());
    patch(&control_planes, cluster.name(), with).await?;
    eventually("the observer has seen it", SOON, || async {
        let router = cluster.get_link_service(&client).await?.context("no custom resource")?;
        let observed = &router.data["spec"]["additionalAllowedSubscriptions"];
        ensure!(*observed == allowed, "{observed}");
        Ok(())
    })
    .await
}

#[test]
fn strategy_of_oauth_counts_as_it_is_now() {
    situation(async |shared_env| {
        // Its Service is internal all the time; only the strategy changes.
        let nat = shared_env.test_env.create_nat_subnet("turning").await?;
        let cluster = HostedCluster::new(&shared_env.test_env, "turning")
            .with_nat_subnet(&nat)
            .with_oauth_load_balancer();
        let by = |kind: &str| {
            json!({"spec": {"services": [
                {"service": "APIServer", "servicePublishingStrategy": {"type": "Route"}},
                {"service": "OAuthServer", "servicePublishingStrategy": {"type": kind}},
                {"service": "Konnectivity", "servicePublishingStrategy": {"type": "Route"}},
                {"service": "Ignition", "servicePublishingStrategy": {"type": "Route"}}]}})
        };
        let cluster = cluster.with_control_plane(by("Route"));
        cluster.create(&shared_env.test_env).await?;
        uid(shared_env, &cluster, ROUTER).await?;
        let client = shared_env.test_env.client()?;
        ensure!(
            cluster.get_custom_resource(&client, OAUTH).await?.is_none(),
            "published by a route"
        );

        change(shared_env, &cluster, by("LoadBalancer"), Value::Null).await?;
        let first = uid(shared_env, &cluster, OAUTH).await?;
        shared_env.heals(&cluster).await?;
        // The observer never deletes a custom resource, but from then on it does not create it either.
        change(shared_env, &cluster, by("Route"), json!([ADDITIONAL_SUBSCRIPTION])).await?;
        ensure!(uid(shared_env, &cluster, OAUTH).await? == first, "it was made again");
        let api = cluster.api(&client, "AzurePrivateLinkService", &cluster.control_plane_namespace());
        api.delete(OAUTH, &DeleteParams::default()).await?;
        eventually("the custom resource of OAuth is gone", SOON, || async {
            ensure!(
                cluster.get_custom_resource(&client, OAUTH).await?.is_none(),
                "it is there"
            );
            Ok(())
        })
        .await?;
        change(shared_env, &cluster, by("Route"), Value::Null).await?;
        ensure!(
            cluster.get_custom_resource(&client, OAUTH).await?.is_none(),
            "it came back"
        );
        cluster.delete(&shared_env.test_env, SOON).await?;
        shared_env.nothing_is_left_of(&cluster, &[]).await
    });
}
