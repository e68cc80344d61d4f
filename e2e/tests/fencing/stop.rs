//! A leader that is asked to stop: it completes the running reconcile first and releases the lease last.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::azure_sim::Preset;
use e2e::hosted_cluster::HostedCluster;
use e2e::hyperlink::Role;
use e2e::{TestEnv, scenario};
use jiff::{SignedDuration, Timestamp};

use crate::candidate::{Candidate, Identity, SOON};
use crate::evidence::{delay_answers_to_writes, writes, wrote_nothing_since};

/// How long running reconciles may take after the request to stop.
const GRACE: Duration = Duration::from_secs(20);

const BROKEN_OFF: &str = "what was running did not end in time and is broken off";

/// Stops a leader in the middle of a write whose answer takes `delay`, and waits for its end. Returns it and its
/// standby.
async fn stopped_in_a_write(test_env: &TestEnv, delay: Duration) -> Result<(Candidate, Candidate)> {
    let first = Candidate::start(test_env, Role::Ho, Identity::First).await?;
    first.leads().await?;
    let twin = Candidate::start(test_env, Role::Ho, Identity::Twin).await?;
    twin.stands_by().await?;
    let _cpo = Candidate::start(test_env, Role::Cpo, Identity::First).await?;
    delay_answers_to_writes(test_env, &first, delay.as_millis() as u64).await?;
    HostedCluster::new(test_env, "stopped").create(test_env).await?;
    writes(test_env, &first, 0).await?;
    first.process().signal("TERM")?;
    first.logs("stopping").await?;
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

/// Fails unless the standby took the lease when it was released, and not before. Returns the time of the release.
async fn handed_over(test_env: &TestEnv, first: &Candidate, twin: &Candidate) -> Result<Timestamp> {
    let (released, _) = first.logged("lease released")?;
    let led_at = twin.logs("leading").await?;
    let gap = led_at.duration_since(released);
    // The leader logs the answer to the release later than others observe the release.
    ensure!(
        gap > SignedDuration::from_millis(-500),
        "taken {gap:?} after the release"
    );
    ensure!(gap < SignedDuration::from_secs(2), "taken {gap:?} after the release");
    wrote_nothing_since(test_env, first, released).await?;
    Ok(released)
}

#[test]
fn clean_stop_ends_the_running_reconcile_and_hands_over() {
    scenario(async {
        let test_env = TestEnv::local(Preset::Fast).await?;
        let delay = Duration::from_secs(2);
        let (first, twin) = stopped_in_a_write(&test_env, delay).await?;
        let released = handed_over(&test_env, &first, &twin).await?;
        let (asked, _) = first.logged("stopping")?;
        let (written, step) = first.logged("step")?;
        ensure!(
            step["took_ms"].as_u64() >= Some(2_000),
            "the write was answered: {step}"
        );
        ensure!(
            asked < written && written <= released,
            "in order: {asked} {written} {released}"
        );
        ensure!(first.logged(BROKEN_OFF).is_err());
        writes(&test_env, &twin, 0).await
    });
}

#[test]
fn reconcile_that_hangs_delays_the_stop_for_its_grace_only() {
    scenario(async {
        let test_env = TestEnv::local(Preset::Fast).await?;
        let (first, twin) = stopped_in_a_write(&test_env, Duration::from_secs(60)).await?;
        let released = handed_over(&test_env, &first, &twin).await?;
        let (asked, _) = first.logged("stopping")?;
        let (broken_off, _) = first.logged(BROKEN_OFF)?;
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
        ensure!(first.logged("step").is_err(), "the write was not answered");
        writes(&test_env, &twin, 0).await
    });
}
