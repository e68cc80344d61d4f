//! Both control-plane-operators at once, for a hand-over.

use anyhow::{Result, ensure};
use e2e::eventually;
use e2e::ground::Call;
use e2e::hosted_cluster::{Condition, HostedCluster, conditions};
use e2e::hyperlink::Role;
use e2e::site::SOON;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};

use crate::site::{Site, ends, situation};

const OTHER: &str = "OtherControllerActive";
const DNS: &str = "AzurePrivateDNSAvailable";

#[test]
fn both_guest_sides_for_a_hand_over() {
    situation(async |site| {
        let cluster = site.their_cluster("two-writers").await?;
        cluster.create(&site.ground).await?;
        let (ho, go_cpo) = (site.ho(&cluster).await?, site.go_cpo(&cluster).await?);
        site.heals(&cluster).await?;
        site.recorded(&cluster).await?;
        let watch = site.watch(&cluster);
        let heard = site.listen(&cluster)?;
        let cpo = site.cpo(&cluster).await?;
        // Theirs writes over the condition with its next pass; the Event stays.
        eventually("the other writer is named", SOON, async || {
            let events = reasons(site, &cluster).await?;
            ensure!(events.iter().any(|reason| reason == OTHER), "{events:?}");
            let named = |said: &Condition| said.reason == OTHER && e2e::runbook::quotes(said).is_ok();
            ensure!(heard.ever(DNS, named), "no condition says so");
            Ok(())
        })
        .await?;

        // From now on nothing of DNS is written by us, whatever they wipe.
        let since = site.ground.oracle().last_call().await?;
        for _ in 0..2 {
            let round = site.ground.oracle().last_call().await?;
            site.looked_at_all(&cluster, Role::Cpo, round).await?;
        }
        let writes = site.our_writes(&cluster, since).await?;
        let dns: Vec<&Call> = writes
            .iter()
            .filter(|call| call.path.contains("privateDnsZones"))
            .collect();
        ensure!(dns.is_empty(), "{dns:?}");

        // Zones that are written again and again are right all the same.
        let moving = |said: &Condition| said.reason == "Provisioning";
        ensure!(!heard.ever(DNS, moving), "names were wrong for a while");

        go_cpo.stop().await?;
        eventually(
            "nobody else is named any more, in words that theirs has not",
            SOON,
            async || {
                let all = conditions(&site.custom_resource(&cluster).await?);
                let dns = all.iter().find(|one| one.kind == DNS);
                ensure!(dns.is_some_and(|one| one.reason == "ZoneShadowsBaseDomain"), "{all:?}");
                Ok(())
            },
        )
        .await?;
        watch.never_failed().await?;
        site.heals(&cluster).await?;
        site.all_hold(&cluster).await?;
        site.goes(&cluster, &[]).await?;
        ends(ho).await?;
        ends(cpo).await
    });
}

/// The reasons of all Events about the cluster's control plane.
async fn reasons(site: &Site, cluster: &HostedCluster) -> Result<Vec<String>> {
    let api: Api<Event> = Api::namespaced(site.ground.client()?, &cluster.control_plane_namespace());
    let all = api.list(&ListParams::default()).await?;
    Ok(all.into_iter().filter_map(|event| event.reason).collect())
}
