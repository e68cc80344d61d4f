//! A leader that is told to stop: the running pass first, the lease last.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::azure_sim::Preset;
use e2e::hosted_cluster::HostedCluster;
use e2e::hyperlink::Role;
use e2e::{TestEnv, scenario};
use jiff::{SignedDuration, Timestamp};

use crate::candidate::{Candidate, Identity, SOON};
use crate::evidence::{delay_answers_to_writes, writes, wrote_nothing_since};

/// Running passes get this long.
const GRACE: Duration = Duration::from_secs(20);

const BROKEN_OFF: &str = "what was running did not end in time and is broken off";

/// The leader is told to stop in the middle of a write whose answer takes `delay`, and has ended; its standby.
async fn stopped_in_a_write(test_env: &TestEnv, delay: Duration) -> Result<(Candidate, Candidate)> {
    let first = Candidate::start(test_env, Role::Ho, Identity::First).await?;
    first.leads().await?;
    let twin = Candidate::start(test_env, Role::Ho, Identity::Twin).await?;
    twin.stands_by().await?;
    let _cpo = Candidate::start(test_env, Role::Cpo, Identity::First).await?;
    delay_answers_to_writes(test_env, &first, delay.as_millis() as u64).await?;
    HostedCluster::new(test_env, "stopped").create(test_env).await?;
    writes(test_env, &first).await?;
    first.process().signal("TERM")?;
    first.says("stopping").await?;
    let (status, _) = first.hyperlink.page("/livez").await?;
    ensure!(status == 200, "probes are answered while it stops: {status}");
    let (_, metrics) = first.hyperlink.page("/metrics").await?;
    ensure!(
        metrics.contains("hyperlink_leader{role=\"ho\"} 1"),
        "it leads until the end: {metrics}"
    );
    ensure!(first.ends(GRACE + SOON).await? == 0, "ends as one that was asked to");
    Ok((first, twin))
}

/// The standby took the lease when it was released, and not before.
async fn handed_over(test_env: &TestEnv, first: &Candidate, twin: &Candidate) -> Result<Timestamp> {
    let (released, _) = first.said("lease released")?;
    let taken = twin.says("leading").await?;
    let took = taken.duration_since(released);
    // The answer to the release is logged later than it is seen by others.
    ensure!(
        took > SignedDuration::from_millis(-500),
        "taken {took:?} after the release"
    );
    ensure!(took < SignedDuration::from_secs(2), "taken {took:?} after the release");
    wrote_nothing_since(test_env, first, released).await?;
    Ok(released)
}

#[test]
fn clean_stop_lets_the_running_pass_end_and_hands_over_at_once() {
    scenario(async {
        let test_env = TestEnv::local(Preset::Fast).await?;
        let delay = Duration::from_secs(2);
        let (first, twin) = stopped_in_a_write(&test_env, delay).await?;
        let released = handed_over(&test_env, &first, &twin).await?;
        let (asked, _) = first.said("stopping")?;
        let (written, step) = first.said("step")?;
        ensure!(
            step["took_ms"].as_u64() >= Some(2_000),
            "the write was answered: {step}"
        );
        ensure!(
            asked < written && written <= released,
            "in order: {asked} {written} {released}"
        );
        ensure!(first.said(BROKEN_OFF).is_err());
        writes(&test_env, &twin).await
    });
}

#[test]
fn pass_that_hangs_holds_the_stop_for_its_grace_only() {
    scenario(async {
        let test_env = TestEnv::local(Preset::Fast).await?;
        let (first, twin) = stopped_in_a_write(&test_env, Duration::from_secs(60)).await?;
        let released = handed_over(&test_env, &first, &twin).await?;
        let (asked, _) = first.said("stopping")?;
        let (broken_off, _) = first.said(BROKEN_OFF)?;
        let held = released.duration_since(asked);
        let grace = SignedDuration::try_from(GRACE)?;
        ensure!(
            held >= grace && held < grace + SignedDuration::from_secs(3),
            "held for {held:?}"
        );
        ensure!(
            broken_off >= released - SignedDuration::from_secs(1),
            "{broken_off} {released}"
        );
        ensure!(first.said("step").is_err(), "the write was not answered");
        writes(&test_env, &twin).await
    });
}
