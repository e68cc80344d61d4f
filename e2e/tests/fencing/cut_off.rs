//! A leader that cannot reach the API server, but can reach Azure.

use anyhow::ensure;
use e2e::azure_sim::Preset;
use e2e::hosted_cluster::HostedCluster;
use e2e::hyperlink::Role;
use e2e::pipe::Pipe;
use e2e::{TestEnv, scenario};
use jiff::Timestamp;

use crate::candidate::{Candidate, Identity, LIFE, RENEW_DEADLINE, SOON};
use crate::evidence::{built_once, delay_answers_to_writes, writes, wrote_nothing_since};

#[test]
fn cut_off_leader_stops_writing_and_the_standby_finishes() {
    scenario(async {
        let test_env = TestEnv::local(Preset::Fast).await?;
        let before = test_env.resource_ids().await?;
        let pipe = Pipe::to(&test_env.admin().config()).await?;
        let first = Candidate::start_through(&test_env, Role::Cpo, Identity::First, Some(&pipe)).await?;
        first.leads().await?;
        let twin = Candidate::start(&test_env, Role::Cpo, Identity::Twin).await?;
        twin.stands_by().await?;
        let ho = Candidate::start(&test_env, Role::Ho, Identity::First).await?;

        // The answer to its first write comes after the deadline, and there is more to write then.
        let late = RENEW_DEADLINE.as_millis() as u64 + 1_000;
        delay_answers_to_writes(&test_env, &first, late).await?;
        let cluster = HostedCluster::new(&test_env, "cut").with_base_domain("apps.example.com");
        cluster.create(&test_env).await?;
        writes(&test_env, &first, 0).await?;
        pipe.cut();
        // The last renewal that was answered began before this.
        let deadline = Timestamp::now() + RENEW_DEADLINE;

        ensure!(first.ends(SOON).await? == 1, "ends as one that has lost");
        twin.leads().await?;
        cluster.becomes_available(&test_env, LIFE).await?;
        cluster.becomes_reachable(&test_env, LIFE).await?;
        wrote_nothing_since(&test_env, &first, deadline).await?;
        built_once(&test_env).await?;

        cluster.delete(&test_env, LIFE).await?;
        for candidate in [twin, ho] {
            candidate.hyperlink.stop().await?;
        }
        let network = [cluster.resource_group(), cluster.vnet(), cluster.subnet()].map(|id| id.to_lowercase());
        let left = test_env.resource_ids().await?;
        let extra: Vec<_> = left
            .iter()
            .filter(|&id| !before.contains(id) && !network.contains(id))
            .collect();
        ensure!(extra.is_empty(), "left behind: {extra:?}");
        Ok(())
    });
}
