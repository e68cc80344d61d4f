//! Both control-plane-operators at once, for a hand-over.

use anyhow::{Result, ensure};
use e2e::eventually;
use e2e::hosted_cluster::{Condition, HostedCluster, conditions};
use e2e::hyperlink::Role;
use e2e::shared_env::SOON;
use e2e::test_env::Call;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};

use crate::mixed_env::{MixedEnv, ends, situation};

const OTHER: &str = "OtherControllerActive";
const DNS: &str = "AzurePrivateDNSAvailable";

#[test]
fn both_guest_sides_for_a_hand_over() {
    situation(async |mixed_env| {
        let cluster = mixed_env.their_cluster("two-writers").await?;
        cluster.create(&mixed_env.test_env).await?;
        let (ho, go_cpo) = (mixed_env.ho(&cluster).await?, mixed_env.go_cpo(&cluster).await?);
        mixed_env.heals(&cluster).await?;
        mixed_env.recorded(&cluster).await?;
        let watch = mixed_env.watch(&cluster);
        let history = mixed_env.listen(&cluster)?;
        let cpo = mixed_env.cpo(&cluster).await?;
        // Theirs overwrites the condition in its next reconcile; the Event stays.
        eventually("the other writer is named", SOON, async || {
            let events = reasons(mixed_env, &cluster).await?;
            ensure!(events.iter().any(|reason| reason == OTHER), "{events:?}");
            let named = |condition: &Condition| condition.reason == OTHER && e2e::runbook::quotes(condition).is_ok();
            ensure!(history.ever(DNS, named), "no condition says so");
            Ok(())
        })
        .await?;

        // From now on Hyperlink writes nothing of DNS, whatever HyperShift's operator overwrites.
        let since = mixed_env.test_env.oracle().last_call().await?;
        for _ in 0..2 {
            let round = mixed_env.test_env.oracle().last_call().await?;
            mixed_env.has_read_all(&cluster, Role::Cpo, round).await?;
        }
        let writes = mixed_env.our_writes(&cluster, since).await?;
        let dns: Vec<&Call> = writes
            .iter()
            .filter(|call| call.path.contains("privateDnsZones"))
            .collect();
        ensure!(dns.is_empty(), "{dns:?}");

        // Zones that are written again and again are right all the same.
        let in_progress = |condition: &Condition| condition.reason == "Provisioning";
        ensure!(!history.ever(DNS, in_progress), "names were wrong for a while");

        go_cpo.stop().await?;
        eventually(
            "nobody else is named any more, in words that theirs has not",
            SOON,
            async || {
                let all = conditions(&mixed_env.custom_resource(&cluster).await?);
                let dns = all.iter().find(|one| one.kind == DNS);
                ensure!(dns.is_some_and(|one| one.reason == "ZoneShadowsBaseDomain"), "{all:?}");
                Ok(())
            },
        )
        .await?;
        watch.never_failed().await?;
        mixed_env.heals(&cluster).await?;
        mixed_env.all_hold(&cluster).await?;
        mixed_env.delete(&cluster, &[]).await?;
        ends(ho).await?;
        ends(cpo).await
    });
}

/// The reasons of all Events about the cluster's control plane.
async fn reasons(mixed_env: &MixedEnv, cluster: &HostedCluster) -> Result<Vec<String>> {
    let api: Api<Event> = Api::namespaced(mixed_env.test_env.client()?, &cluster.control_plane_namespace());
    let all = api.list(&ListParams::default()).await?;
    Ok(all.into_iter().filter_map(|event| event.reason).collect())
}
