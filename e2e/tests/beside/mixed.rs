//! One side is Hyperlink's, the other HyperShift's, for a whole life.

use anyhow::{Result, ensure};
use e2e::eventually;
use e2e::site::{SOON, said};

use crate::site::{Heard, ends, situation};

const AVAILABLE: &str = "AzurePrivateLinkServiceAvailable";

#[test]
fn our_management_side_with_their_guest_side() {
    situation(async |site| {
        let cluster = site.cluster("our-ho");
        cluster.create(&site.ground).await?;
        let (ho, cpo) = (site.ho(&cluster).await?, site.go_cpo(&cluster).await?);
        site.heals(&cluster).await?;
        // Theirs puts back, with the lists that it has read, what ours has said before.
        site.all_hold(&cluster).await?;
        site.goes(&cluster, &[]).await?;
        cpo.stop().await?;
        ends(ho).await
    });
}

#[test]
fn their_management_side_with_our_guest_side() {
    situation(async |site| {
        let cluster = site.their_cluster("our-cpo").await?;
        cluster.create(&site.ground).await?;
        let comes = site.listen(&cluster)?;
        let (ho, cpo) = (site.go_ho(&cluster).await?, site.cpo(&cluster).await?);
        site.heals(&cluster).await?;
        site.all_hold(&cluster).await?;
        turned_twice_at_most(&comes)?;
        let goes = site.listen(&cluster)?;
        // The reference never removes a NAT subnet.
        site.goes(&cluster, &[&cluster.own_nat_subnet(&site.ground)]).await?;
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
    situation(async |site| {
        let cluster = site.cluster("cut-off");
        cluster.create(&site.ground).await?;
        let (ho, cpo) = (site.ho(&cluster).await?, site.go_cpo(&cluster).await?);
        site.heals(&cluster).await?;
        let oracle = site.ground.oracle();
        oracle.drift_delete(&cluster.link_service(&site.ground)).await?;
        eventually("the missing connection is named", SOON, async || {
            let found = site.custom_resource(&cluster).await?;
            said(&found, "AzurePLSCreated", "EndpointNotConnected")
        })
        .await?;
        oracle.drift_delete(&cluster.endpoint()).await?;
        site.heals(&cluster).await?;
        site.all_hold(&cluster).await?;
        site.goes(&cluster, &[]).await?;
        cpo.stop().await?;
        ends(ho).await
    });
}
