//! A namespace that is deleted at any moment of its cluster's life: its deletion completes, and leaves nothing in
//! Azure.

use anyhow::{Result, ensure};
use e2e::eventually;
use e2e::hosted_cluster::{HostedCluster, NAMESPACE, release};
use e2e::shared_env::{SOON, SharedEnv, situation};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams};
use rstest::rstest;

/// Waits until a resource of this type was written for the cluster.
async fn is_written(shared_env: &SharedEnv, cluster: &HostedCluster, kind: &str) -> Result<()> {
    eventually(&format!("a write to {kind}"), SOON, || async {
        let calls = shared_env.calls_about(cluster).await?;
        let written = calls
            .iter()
            .any(|call| call.is_write() && call.path.contains(&format!("/{kind}/")));
        ensure!(written, "none among {} calls", calls.len());
        Ok(())
    })
    .await
}

#[rstest]
#[case::before_anything_was_written("evicted-at-once", None)]
#[case::when_the_nat_subnet_is_made("evicted-early", Some("subnets"))]
#[case::when_the_link_service_is_made("evicted-served", Some("privateLinkServices"))]
#[case::when_the_zone_is_made("evicted-zoned", Some("privateDnsZones"))]
#[case::when_the_endpoint_is_made("evicted-connected", Some("privateEndpoints"))]
fn namespace_is_deleted_at_any_moment(#[case] name: &str, #[case] written: Option<&str>) {
    situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, name).with_base_domain(&format!("{name}.example.com"));
        cluster.create(&shared_env.test_env).await?;
        if let Some(kind) = written {
            is_written(shared_env, &cluster, kind).await?;
        }
        let client = shared_env.test_env.client()?;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let namespace = cluster.control_plane_namespace();
        namespaces.delete(&namespace, &DeleteParams::default()).await?;
        let control_planes = cluster.api(&client, "HostedControlPlane", &namespace);
        eventually("the namespace is gone", SOON, || async {
            // HyperShift removes its finalizer as soon as it is the only one on the HostedControlPlane.
            let found = control_planes.get_opt(cluster.name()).await?;
            if let Some(held) = found.and_then(|found| found.metadata.finalizers)
                && held == ["hypershift.openshift.io/finalizer"]
            {
                release(&control_planes, cluster.name()).await?;
            }
            let left = namespaces.get_opt(&namespace).await?;
            ensure!(left.is_none(), "{:?}", left.and_then(|left| left.status));
            Ok(())
        })
        .await?;
        let hosted_clusters = cluster.api(&client, "HostedCluster", NAMESPACE);
        hosted_clusters.delete(cluster.name(), &DeleteParams::default()).await?;
        release(&hosted_clusters, cluster.name()).await?;
        shared_env.nothing_is_left_of(&cluster, &[]).await
    });
}
