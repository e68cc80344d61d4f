//! Clusters that Hyperlink has made, and that HyperShift's controllers take over.

use anyhow::ensure;
use e2e::azure_sim::{GO_CPO_CLIENT, GO_HO_CLIENT};
use e2e::eventually;
use e2e::site::{SOON, calls_about};
use kube::ResourceExt;

use crate::site::{ends, situation};

#[test]
fn cluster_goes_back_without_a_gap_and_is_deleted_by_theirs() {
    situation(async |site| {
        let cluster = site.cluster("given-back");
        cluster.create(&site.ground).await?;
        let (ho, cpo) = (site.ho(&cluster).await?, site.cpo(&cluster).await?);
        site.heals(&cluster).await?;
        let before = site.custom_resource(&cluster).await?;
        let watch = site.watch(&cluster);
        ends(cpo).await?;
        ends(ho).await?;
        let since = site.ground.oracle().last_call().await?;
        let (go_ho, go_cpo) = (site.go_ho(&cluster).await?, site.go_cpo(&cluster).await?);
        // A whole pass of each ends with its words.
        for (kind, message) in [
            ("AzurePLSCreated", "Azure Private Link Service is ready"),
            (
                "AzurePrivateDNSAvailable",
                "Base domain private DNS zone and A records are available",
            ),
        ] {
            eventually(&format!("{kind} is theirs"), SOON, async || {
                let found = site.custom_resource(&cluster).await?;
                let all = e2e::hosted_cluster::conditions(&found);
                let said = all.iter().find(|one| one.kind == kind);
                ensure!(
                    said.is_some_and(|one| one.status == "True" && one.message == message),
                    "{all:?}"
                );
                Ok(())
            })
            .await?;
        }
        let calls = calls_about(&site.ground, &cluster, since).await?;
        for client in [GO_HO_CLIENT, GO_CPO_CLIENT] {
            let own = || calls.iter().filter(|call| call.principal.as_deref() == Some(client));
            ensure!(own().count() > 0, "{client} has not called");
            let refused: Vec<_> = own().filter(|call| call.status >= 400).collect();
            ensure!(refused.is_empty(), "{refused:?}");
        }
        let after = site.custom_resource(&cluster).await?;
        ensure!(after.finalizers() == before.finalizers(), "{:?}", after.finalizers());
        watch.never_failed().await?;
        site.goes(&cluster, &[&cluster.own_nat_subnet(&site.ground)]).await?;
        go_ho.stop().await?;
        go_cpo.stop().await
    });
}
