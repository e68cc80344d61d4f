//! One side is Hyperlink's, the other HyperShift's, for a whole life.

use std::time::Instant;

use anyhow::{Result, ensure};
use e2e::eventually;
use e2e::shared_env::{SOON, ensure_condition};

use crate::mixed_env::{ConditionHistory, ends, situation};

const AVAILABLE: &str = "AzurePrivateLinkServiceAvailable";

#[test]
fn our_management_side_with_their_guest_side() {
    situation(async |mixed_env| {
        let cluster = mixed_env.cluster("our-ho");
        cluster.create(&mixed_env.test_env).await?;
        let (ho, cpo) = (mixed_env.ho(&cluster).await?, mixed_env.go_cpo(&cluster).await?);
        mixed_env.heals(&cluster).await?;
        // Theirs writes the list of conditions that it has read, and so restores what Hyperlink published earlier.
        mixed_env.all_hold(&cluster).await?;
        mixed_env.delete(&cluster, &[]).await?;
        cpo.stop().await?;
        ends(ho).await
    });
}

#[test]
fn their_management_side_with_our_guest_side() {
    situation(async |mixed_env| {
        let cluster = mixed_env.their_cluster("our-cpo").await?;
        cluster.create(&mixed_env.test_env).await?;
        let created = Instant::now();
        let while_created = mixed_env.listen(&cluster)?;
        let (ho, cpo) = (mixed_env.go_ho(&cluster).await?, mixed_env.cpo(&cluster).await?);
        mixed_env.heals(&cluster).await?;
        mixed_env.all_hold(&cluster).await?;
        few_contradictions(&while_created, created)?;
        let deleted = Instant::now();
        let while_deleted = mixed_env.listen(&cluster)?;
        // The reference never removes a NAT subnet.
        mixed_env
            .delete(&cluster, &[&cluster.own_nat_subnet(&mixed_env.test_env)])
            .await?;
        few_contradictions(&while_deleted, deleted)?;
        ho.stop().await?;
        ends(cpo).await
    });
}

/// HyperShift's operator reports at every event that all is well: Hyperlink contradicts it with each status at once a
/// single time, and then at most once a minute, which matters on a slow machine only. What it puts back of what it has
/// read is answered eight times at once, and then every 10 s.
fn few_contradictions(history: &ConditionHistory, since: Instant) -> Result<()> {
    let minutes = usize::try_from(since.elapsed().as_secs() / 60)?;
    let changes = history.changes(AVAILABLE);
    for status in ["True", "False"] {
        let count = changes.iter().filter(|change| change.status == status).count();
        ensure!(
            count <= 2 + minutes,
            "{count} to {status} in {minutes} min: {changes:#?}"
        );
    }
    let answers = 8 + usize::try_from(since.elapsed().as_secs() / 10)?;
    let turns = history.turns(AVAILABLE);
    ensure!(
        turns <= 2 * (changes.len() + answers),
        "{turns} turns, {answers} answers: {changes:#?}"
    );
    Ok(())
}

/// HyperShift's guest side keeps an endpoint whatever it leads to, and reports it as it was.
#[test]
fn recreated_service_misses_their_endpoint() {
    situation(async |mixed_env| {
        let cluster = mixed_env.cluster("cut-off");
        cluster.create(&mixed_env.test_env).await?;
        let (ho, cpo) = (mixed_env.ho(&cluster).await?, mixed_env.go_cpo(&cluster).await?);
        mixed_env.heals(&cluster).await?;
        let oracle = mixed_env.test_env.oracle();
        oracle.drift_delete(&cluster.link_service(&mixed_env.test_env)).await?;
        eventually("the missing connection is named", SOON, async || {
            let found = mixed_env.custom_resource(&cluster).await?;
            ensure_condition(&found, "AzurePLSCreated", "EndpointNotConnected")
        })
        .await?;
        oracle.drift_delete(&cluster.endpoint()).await?;
        mixed_env.heals(&cluster).await?;
        mixed_env.all_hold(&cluster).await?;
        mixed_env.delete(&cluster, &[]).await?;
        cpo.stop().await?;
        ends(ho).await
    });
}
