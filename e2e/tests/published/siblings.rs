//! Two custom resources of one control plane share a zone: each can be deleted and recreated without an effect on the
//! other.

use anyhow::{Context, Result, ensure};
use e2e::eventually;
use e2e::hosted_cluster::{HostedCluster, OAUTH, ROUTER};
use kube::api::DeleteParams;

use e2e::shared_env::{SOON, SharedEnv, situation};

/// Deletes a custom resource, which is then recreated. Until then the names of the other one stay reachable.
async fn is_deleted_and_recreated(
    shared_env: &SharedEnv,
    cluster: &HostedCluster,
    name: &str,
    others: &[&str],
) -> Result<()> {
    let client = shared_env.test_env.client()?;
    let api = cluster.api(&client, "AzurePrivateLinkService", &cluster.control_plane_namespace());
    let before = api.get(name).await?.metadata.uid;
    api.delete(name, &DeleteParams::default()).await?;
    let unreachable = eventually(&format!("{name} goes"), SOON, || async {
        for host in others {
            let found = shared_env.test_env.oracle().reachable(&cluster.vnet(), host).await?;
            if !found.ok {
                return Ok(Some(format!("{host} while {name} goes: {:?}", found.why)));
            }
        }
        let now = cluster.get_custom_resource(&client, name).await?;
        ensure!(now.is_none_or(|now| now.metadata.uid != before), "it is there");
        Ok(None)
    })
    .await?;
    ensure!(unreachable.is_none(), "{unreachable:?}");
    shared_env.heals(cluster).await
}

#[test]
fn either_is_recreated_while_the_names_of_the_other_work() {
    situation(async |shared_env| {
        let nat = shared_env.test_env.create_nat_subnet("twins").await?;
        let cluster = HostedCluster::new(&shared_env.test_env, "twins")
            .with_nat_subnet(&nat)
            .with_base_domain("twins.example.net")
            .with_oauth_load_balancer();
        cluster.create(&shared_env.test_env).await?;
        shared_env.heals(&cluster).await?;
        let links = format!("{}/virtualNetworkLinks/", cluster.zones()[1]);
        let found = shared_env.test_env.oracle().resources(&links).await?;
        ensure!(found.len() == 1, "one link serves both: {found:?}");

        let router = [
            "api.twins.hypershift.local",
            "x.apps.twins.hypershift.local",
            "api-twins.twins.example.net",
        ];
        is_deleted_and_recreated(shared_env, &cluster, OAUTH, &router).await?;
        is_deleted_and_recreated(shared_env, &cluster, ROUTER, &["oauth-twins.twins.example.net"]).await?;

        let client = shared_env.test_env.client()?;
        let oauth = cluster.get_custom_resource(&client, OAUTH).await?.context("none")?;
        let named = oauth.data.pointer("/status/dnsZoneName").cloned().unwrap_or_default();
        ensure!(
            named == "twins.hypershift.local",
            "HyperShift's own operator needs it: {named}"
        );
        cluster.delete(&shared_env.test_env, SOON).await?;
        shared_env.nothing_is_left_of(&cluster, &[]).await
    });
}

#[test]
fn oauth_name_leads_to_the_router_without_a_custom_resource() {
    situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, "merging")
            .with_base_domain("merging.example.net")
            .with_oauth_load_balancer();
        cluster.create(&shared_env.test_env).await?;
        shared_env.heals(&cluster).await?;
        let client = shared_env.test_env.client()?;
        let namespace = cluster.control_plane_namespace();
        let services: kube::Api<k8s_openapi::api::core::v1::Service> =
            kube::Api::namespaced(client.clone(), &namespace);
        services.delete(OAUTH, &DeleteParams::default()).await?;
        let api = cluster.api(&client, "AzurePrivateLinkService", &namespace);
        api.delete(OAUTH, &DeleteParams::default()).await?;
        eventually("oauth leads to the router", SOON, || async {
            let host = "oauth-merging.merging.example.net";
            let found = shared_env.test_env.oracle().reachable(&cluster.vnet(), host).await?;
            ensure!(found.ok, "{:?}", found.why);
            let reached = found.path.last().map(|hop| hop.id.clone()).unwrap_or_default();
            ensure!(reached == format!("{namespace}/{ROUTER}"), "it leads to {reached}");
            Ok(())
        })
        .await?;
        cluster.delete(&shared_env.test_env, SOON).await?;
        shared_env.nothing_is_left_of(&cluster, &[]).await
    });
}
