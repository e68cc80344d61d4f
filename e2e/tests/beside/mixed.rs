//! One side is Hyperlink's, the other HyperShift's, for a whole life.

use anyhow::{Result, ensure};
use e2e::eventually;
use e2e::shared_env::{SOON, said};

use crate::mixed_env::{Heard, ends, situation};

const AVAILABLE: &str = "AzurePrivateLinkServiceAvailable";

#[test]
fn our_management_side_with_their_guest_side() {
    situation(async |mixed_env| {
        let cluster = mixed_env.cluster("our-ho");
        cluster.create(&mixed_env.test_env).await?;
        let (ho, cpo) = (mixed_env.ho(&cluster).await?, mixed_env.go_cpo(&cluster).await?);
        mixed_env.heals(&cluster).await?;
        // Theirs puts back, with the lists that it has read, what ours has said before.
        mixed_env.all_hold(&cluster).await?;
        mixed_env.goes(&cluster, &[]).await?;
        cpo.stop().await?;
        ends(ho).await
    });
}

#[test]
fn their_management_side_with_our_guest_side() {
    situation(async |mixed_env| {
        let cluster = mixed_env.their_cluster("our-cpo").await?;
        cluster.create(&mixed_env.test_env).await?;
        let comes = mixed_env.listen(&cluster)?;
        let (ho, cpo) = (mixed_env.go_ho(&cluster).await?, mixed_env.cpo(&cluster).await?);
        mixed_env.heals(&cluster).await?;
        mixed_env.all_hold(&cluster).await?;
        turned_twice_at_most(&comes)?;
        let goes = mixed_env.listen(&cluster)?;
        // The reference never removes a NAT subnet.
        mixed_env
            .goes(&cluster, &[&cluster.own_nat_subnet(&mixed_env.test_env)])
            .await?;
        turned_twice_at_most(&goes)?;
        ho.stop().await?;
        ends(cpo).await
    });
}

/// Theirs says at every event that all is well: it is contradicted once at once.
fn turned_twice_at_most(heard: &Heard) -> Result<()> {
    let turns = ["True", "False"].map(|status| heard.turns(AVAILABLE, status));
    ensure!(turns.iter().all(|turns| *turns <= 2), "to True and to False: {turns:?}");
    Ok(())
}

/// Theirs keeps an endpoint whatever it leads to, and reports it as it was.
#[test]
fn service_that_was_made_anew_misses_their_endpoint() {
    situation(async |mixed_env| {
        let cluster = mixed_env.cluster("cut-off");
        cluster.create(&mixed_env.test_env).await?;
        let (ho, cpo) = (mixed_env.ho(&cluster).await?, mixed_env.go_cpo(&cluster).await?);
        mixed_env.heals(&cluster).await?;
        let oracle = mixed_env.test_env.oracle();
        oracle.drift_delete(&cluster.link_service(&mixed_env.test_env)).await?;
        eventually("the missing connection is named", SOON, async || {
            let found = mixed_env.custom_resource(&cluster).await?;
            said(&found, "AzurePLSCreated", "EndpointNotConnected")
        })
        .await?;
        oracle.drift_delete(&cluster.endpoint()).await?;
        mixed_env.heals(&cluster).await?;
        mixed_env.all_hold(&cluster).await?;
        mixed_env.goes(&cluster, &[]).await?;
        cpo.stop().await?;
        ends(ho).await
    });
}
