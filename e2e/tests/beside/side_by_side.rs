//! Both control-plane-operators at once, for a hand-over.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};
use e2e::eventually;
use e2e::ground::Call;
use e2e::hosted_cluster::{HostedCluster, conditions};
use e2e::hyperlink::Role;
use e2e::site::SOON;
use futures::TryStreamExt;
use kube::runtime::{WatchStreamExt, watcher};

use crate::site::{Site, ends, situation};

const OTHER: &str = "OtherControllerActive";

#[test]
fn both_guest_sides_for_a_hand_over() {
    situation(async |site| {
        let cluster = site.their_cluster("two-writers").await?;
        cluster.create(&site.ground).await?;
        let (ho, go_cpo) = (site.ho(&cluster).await?, site.go_cpo(&cluster).await?);
        site.heals(&cluster).await?;
        site.recorded(&cluster).await?;
        let (watch, said) = (site.watch(&cluster), reasons(site, &cluster)?);
        let cpo = site.cpo(&cluster).await?;
        // Theirs writes over it with its next pass.
        eventually("the other writer is named", SOON, async || {
            let said = said.lock().unwrap_or_else(PoisonError::into_inner);
            ensure!(said.contains(OTHER), "{said:?}");
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

        go_cpo.stop().await?;
        eventually("nobody else is named any more", SOON, async || {
            let all = conditions(&site.custom_resource(&cluster).await?);
            ensure!(all.iter().all(|one| one.reason != OTHER), "{all:?}");
            Ok(())
        })
        .await?;
        site.heals(&cluster).await?;
        watch.never_failed().await?;
        site.goes(&cluster, &[]).await?;
        ends(ho).await?;
        ends(cpo).await
    });
}

/// Every reason that a condition of the cluster's custom resource has from now on.
fn reasons(site: &Site, cluster: &HostedCluster) -> Result<Arc<Mutex<BTreeSet<String>>>> {
    let said = Arc::new(Mutex::new(BTreeSet::new()));
    let (all, client) = (Arc::clone(&said), site.ground.client()?);
    let namespace = cluster.control_plane_namespace();
    let api = cluster.api(&client, "AzurePrivateLinkService", &namespace);
    tokio::spawn(async move {
        let changes = watcher(api, watcher::Config::default()).applied_objects();
        let noted = changes.try_for_each(async |found| {
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            all.extend(conditions(&found).into_iter().map(|one| one.reason));
            Ok(())
        });
        // It ends with the runtime.
        let _ = noted.await;
    });
    Ok(said)
}
