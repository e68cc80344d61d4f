//! Objects that are deleted in any order: nothing hangs, nothing leaks.

use anyhow::{Context, Result, ensure};
use e2e::eventually;
use e2e::hosted_cluster::{HostedCluster, release};
use kube::api::DeleteParams;

use e2e::shared_env::{SOON, SharedEnv, patch, situation};

/// Waits until the custom resource and all its resources in Azure are gone; then deletes the namespace.
async fn leaves_an_empty_namespace(shared_env: &SharedEnv, cluster: &HostedCluster) -> Result<()> {
    let client = shared_env.test_env.client()?;
    eventually("the custom resource is gone", SOON, || async {
        ensure!(cluster.get_link_service(&client).await?.is_none(), "it is there");
        Ok(())
    })
    .await?;
    shared_env.nothing_is_left_of(cluster, &[]).await?;
    cluster.delete_namespace(&client, SOON).await
}

#[test]
fn custom_resource_deleted_alone_comes_back() {
    situation(async |shared_env| {
        let cluster = shared_env.lives("alone").await?;
        let client = shared_env.test_env.client()?;
        let api = cluster.api(&client, "AzurePrivateLinkService", &cluster.control_plane_namespace());
        let before = api.get("private-router").await?.metadata.uid;
        api.delete("private-router", &DeleteParams::default()).await?;
        eventually("there is a new custom resource", SOON, || async {
            let now = cluster.get_link_service(&client).await?.context("none")?.metadata.uid;
            ensure!(now != before, "the old one is there");
            Ok(())
        })
        .await?;
        shared_env.heals(&cluster).await?;
        cluster.delete(&shared_env.test_env, SOON).await?;
        shared_env.nothing_is_left_of(&cluster, &[]).await
    });
}

#[test]
fn control_plane_deleted_while_its_namespace_stays() {
    situation(async |shared_env| {
        let cluster = shared_env.lives("headless").await?;
        let client = shared_env.test_env.client()?;
        cluster.delete_control_plane(&client, SOON).await?;
        leaves_an_empty_namespace(shared_env, &cluster).await
    });
}

#[test]
fn control_plane_torn_away_by_hand() {
    situation(async |shared_env| {
        let cluster = shared_env.lives("torn-away").await?;
        let client = shared_env.test_env.client()?;
        let control_planes = cluster.api(&client, "HostedControlPlane", &cluster.control_plane_namespace());
        // No finalizer holds it: it is gone at once, and the garbage collector deletes what it owned.
        let stripped = serde_json::json!({"metadata": {"finalizers": null}});
        patch(&control_planes, cluster.name(), stripped).await?;
        control_planes
            .delete(cluster.name(), &DeleteParams::background())
            .await?;
        ensure!(control_planes.get_opt(cluster.name()).await?.is_none(), "it is there");
        leaves_an_empty_namespace(shared_env, &cluster).await
    });
}

#[test]
fn namespace_deleted_first() {
    situation(async |shared_env| {
        let cluster = shared_env.lives("evicted").await?;
        let client = shared_env.test_env.client()?;
        let namespaces: kube::Api<k8s_openapi::api::core::v1::Namespace> = kube::Api::all(client.clone());
        let name = cluster.control_plane_namespace();
        namespaces.delete(&name, &DeleteParams::default()).await?;
        let control_planes = cluster.api(&client, "HostedControlPlane", &name);
        eventually("only HyperShift holds the HostedControlPlane", SOON, || async {
            let Some(found) = control_planes.get_opt(cluster.name()).await? else {
                return Ok(());
            };
            let held = found.metadata.finalizers.unwrap_or_default();
            ensure!(held == ["hypershift.openshift.io/finalizer"], "{held:?}");
            Ok(())
        })
        .await?;
        release(&control_planes, cluster.name()).await?;
        eventually("the namespace is gone", SOON, || async {
            let left = namespaces.get_opt(&name).await?;
            ensure!(left.is_none(), "{:?}", left.and_then(|left| left.status));
            Ok(())
        })
        .await?;
        shared_env.nothing_is_left_of(&cluster, &[]).await
    });
}

#[test]
fn hosted_cluster_gone_first() {
    situation(async |shared_env| {
        let cluster = shared_env.lives("orphan").await?;
        let client = shared_env.test_env.client()?;
        cluster.delete_hosted_cluster(&client, SOON).await?;
        cluster.delete_control_plane(&client, SOON).await?;
        cluster.delete_namespace(&client, SOON).await?;
        shared_env.nothing_is_left_of(&cluster, &[]).await
    });
}

#[test]
fn everything_deleted_while_it_is_being_made() {
    situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, "aborted").with_base_domain("aborted.example.com");
        cluster.create(&shared_env.test_env).await?;
        eventually("the guest's side has written", SOON, || async {
            let calls = shared_env.calls_about(&cluster).await?;
            let guests = calls.iter().filter(|call| call.path.contains("/privateDnsZones/"));
            ensure!(guests.into_iter().any(e2e::test_env::Call::is_write), "none");
            Ok(())
        })
        .await?;
        let client = shared_env.test_env.client()?;
        for (kind, name, finalizer) in [
            (
                "HostedControlPlane",
                cluster.name(),
                "hypershift.openshift.io/azure-pls-endpoint-cleanup",
            ),
            (
                "AzurePrivateLinkService",
                "private-router",
                "hypershift.openshift.io/azure-private-link-service",
            ),
        ] {
            let found = cluster
                .api(&client, kind, &cluster.control_plane_namespace())
                .get(name)
                .await?;
            let held = found.metadata.finalizers.unwrap_or_default();
            ensure!(held.iter().any(|one| one == finalizer), "{kind} is not held: {held:?}");
        }
        cluster.delete(&shared_env.test_env, SOON).await?;
        shared_env.nothing_is_left_of(&cluster, &[]).await
    });
}
