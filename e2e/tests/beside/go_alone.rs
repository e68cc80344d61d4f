//! The stand-ins by themselves: what they are worth as neighbours.

use anyhow::{Result, ensure};
use e2e::eventually;
use e2e::site::{SOON, calls_about};
use kube::ResourceExt;

use crate::site::situation;

#[test]
fn their_controllers_alone_serve_a_whole_life() {
    situation(async |site| {
        let cluster = site.their_cluster("theirs").await?;
        cluster.create(&site.ground).await?;
        let (ho, cpo) = (site.go_ho(&cluster).await?, site.go_cpo(&cluster).await?);
        site.heals(&cluster).await?;
        let found = site.custom_resource(&cluster).await?;
        for finalizer in ["azure-pls-cleanup", "azure-private-link-service"] {
            let finalizer = format!("hypershift.openshift.io/{finalizer}");
            ensure!(found.finalizers().contains(&finalizer), "{:?}", found.finalizers());
        }
        eventually("they write for ever", SOON, async || {
            writes_for_ever(&calls_about(&site.ground, &cluster, 0).await?)
        })
        .await?;
        // The reference never removes a NAT subnet.
        site.goes(&cluster, &[&cluster.own_nat_subnet(&site.ground)]).await?;
        ho.stop().await?;
        cpo.stop().await
    });
}

/// Zones, links and records are written on every pass.
fn writes_for_ever(calls: &[e2e::ground::Call]) -> Result<()> {
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
