//! A leader that the API server cannot be reached from, while Azure can.

use anyhow::ensure;
use e2e::azure_sim::Preset;
use e2e::hosted_cluster::HostedCluster;
use e2e::hyperlink::Role;
use e2e::pipe::Pipe;
use e2e::{Ground, scenario};
use jiff::Timestamp;

use crate::candidate::{Candidate, Identity, LIFE, RENEW_DEADLINE, SOON};
use crate::evidence::{built_once, delay_answers_to_writes, writes, wrote_nothing_since};

#[test]
fn leader_cut_off_from_the_api_server_writes_nothing_after_its_deadline_and_the_standby_finishes() {
    scenario(async {
        let ground = Ground::local(Preset::Fast).await?;
        let before = ground.resource_ids().await?;
        let pipe = Pipe::to(&ground.admin().config()).await?;
        let first = Candidate::start_through(&ground, Role::Cpo, Identity::First, Some(&pipe)).await?;
        first.leads().await?;
        let twin = Candidate::start(&ground, Role::Cpo, Identity::Twin).await?;
        twin.stands_by().await?;
        let ho = Candidate::start(&ground, Role::Ho, Identity::First).await?;

        // The answer to its first write comes after the deadline, and there is more to write then.
        let late = RENEW_DEADLINE.as_millis() as u64 + 1_000;
        delay_answers_to_writes(&ground, &first, late).await?;
        let cluster = HostedCluster::new(&ground, "cut").with_base_domain("apps.example.com");
        cluster.create(&ground).await?;
        writes(&ground, &first).await?;
        pipe.cut();
        // The last renewal that was answered began before this.
        let deadline = Timestamp::now() + RENEW_DEADLINE;

        ensure!(first.ends(SOON).await? == 1, "ends as one that has lost");
        twin.leads().await?;
        cluster.becomes_available(&ground, LIFE).await?;
        cluster.becomes_reachable(&ground, LIFE).await?;
        wrote_nothing_since(&ground, &first, deadline).await?;
        built_once(&ground).await?;

        cluster.delete(&ground, LIFE).await?;
        for candidate in [twin, ho] {
            candidate.hyperlink.stop().await?;
        }
        let network = [cluster.resource_group(), cluster.vnet(), cluster.subnet()].map(|id| id.to_lowercase());
        let left = ground.resource_ids().await?;
        let extra: Vec<_> = left
            .iter()
            .filter(|&id| !before.contains(id) && !network.contains(id))
            .collect();
        ensure!(extra.is_empty(), "left behind: {extra:?}");
        Ok(())
    });
}
