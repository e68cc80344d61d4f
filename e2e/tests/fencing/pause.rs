//! A process that is stopped for longer than its lease and then continues, as a paused virtual machine does.

use anyhow::ensure;
use e2e::azure_sim::Preset;
use e2e::hosted_cluster::HostedCluster;
use e2e::hyperlink::Role;
use e2e::{TestEnv, scenario};
use jiff::Timestamp;

use crate::candidate::{Candidate, Identity, LIFE, SOON};
use crate::evidence::{built_once, delay_answers_to_writes, kube_writes, writes, wrote_nothing_since};

#[test]
fn process_stopped_past_its_lease_sends_nothing_afterwards() {
    scenario(async {
        let test_env = TestEnv::local(Preset::Fast).await?;
        let first = Candidate::start(&test_env, Role::Cpo, Identity::First).await?;
        first.leads().await?;
        let twin = Candidate::start(&test_env, Role::Cpo, Identity::Twin).await?;
        twin.stands_by().await?;
        let _ho = Candidate::start(&test_env, Role::Ho, Identity::First).await?;

        // Long enough to be stopped in the middle of a reconcile: the answer waits for it when it continues, and there
        // is more to write.
        delay_answers_to_writes(&test_env, &first, 2_000).await?;
        let cluster = HostedCluster::new(&test_env, "paused").with_base_domain("apps.example.com");
        cluster.create(&test_env).await?;
        writes(&test_env, &first, 0).await?;
        first.process().signal("STOP")?;
        twin.leads().await?;
        let continued_at = Timestamp::now();
        first.process().signal("CONT")?;

        ensure!(first.ends(SOON).await? == 1, "ends as one that has lost");
        cluster.becomes_available(&test_env, LIFE).await?;
        wrote_nothing_since(&test_env, &first, continued_at).await?;
        let all = kube_writes(&test_env, &first, Timestamp::UNIX_EPOCH)?;
        ensure!(!all.is_empty(), "it has written before");
        let late = kube_writes(&test_env, &first, continued_at)?;
        ensure!(late.is_empty(), "written after the take-over: {late:#?}");
        built_once(&test_env).await
    });
}
