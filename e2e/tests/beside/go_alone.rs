//! The stand-ins for HyperShift's controllers by themselves: they serve a cluster as those do.

use anyhow::{Result, ensure};
use e2e::eventually;
use e2e::shared_env::{SOON, calls_about};
use kube::ResourceExt;

use crate::mixed_env::situation;

#[test]
fn their_controllers_alone_serve_a_whole_life() {
    situation(async |mixed_env| {
        let cluster = mixed_env.their_cluster("theirs").await?;
        cluster.create(&mixed_env.test_env).await?;
        let (ho, cpo) = (mixed_env.go_ho(&cluster).await?, mixed_env.go_cpo(&cluster).await?);
        mixed_env.heals(&cluster).await?;
        let found = mixed_env.custom_resource(&cluster).await?;
        for finalizer in ["azure-pls-cleanup", "azure-private-link-service"] {
            let finalizer = format!("hypershift.openshift.io/{finalizer}");
            ensure!(found.finalizers().contains(&finalizer), "{:?}", found.finalizers());
        }
        eventually("they write for ever", SOON, async || {
            writes_for_ever(&calls_about(&mixed_env.test_env, &cluster, 0).await?)
        })
        .await?;
        // The reference never removes a NAT subnet.
        mixed_env
            .delete(&cluster, &[&cluster.own_nat_subnet(&mixed_env.test_env)])
            .await?;
        ho.stop().await?;
        cpo.stop().await
    });
}

/// Fails unless zones, links and records are written in every reconcile.
fn writes_for_ever(calls: &[e2e::test_env::Call]) -> Result<()> {
    let puts = |kind: &str| {
        calls
            .iter()
            .filter(|call| call.method == "PUT" && call.resource_kind.ends_with(kind))
            .count()
    };
    for kind in ["/privateDnsZones", "/virtualNetworkLinks", "/A"] {
        ensure!(puts(kind) > 2, "{} PUTs of {kind}", puts(kind));
    }
    Ok(())
}
