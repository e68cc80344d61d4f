//! Wall clocks that run fast or slow.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use e2e::{ControlPlane, scenario};
use futures::future::try_join_all;
use kube_leader_election::LeaseLockResult;

use crate::skew::SkewedClock;
use crate::test_env::{DURATION, RETRY, Standby, bare, blank, lead, settings};
use crate::witness::Witness;

/// Seconds that the clock of the leader, and that of the standby, run ahead.
const SKEWS: [(i64, i64); 4] = [(20, 0), (-20, 0), (0, 20), (0, -20)];

#[test]
fn candidate_with_a_skewed_clock_robs_nobody_and_is_not_robbed() {
    scenario(async {
        let plane = ControlPlane::shared().await?;
        try_join_all(SKEWS.map(|(leader, standby)| skewed(plane, leader, standby))).await?;
        Ok(())
    });
}

async fn skewed(plane: &ControlPlane, leader_ahead: i64, standby_ahead: i64) -> Result<()> {
    let name = format!("skew-{leader_ahead}-{standby_ahead}").replace("--", "-minus");
    blank(plane, &name).await?;
    let leader_clock = SkewedClock::start(plane.client()?, leader_ahead).await?;
    let standby_clock = SkewedClock::start(plane.client()?, standby_ahead).await?;
    let (mut leadership, gate) = lead(leader_clock.config(), settings(&name, "leader")).await?;
    let mut standby = Standby::start(standby_clock.config(), settings(&name, "standby"))?;
    let witness = Witness::of(vec![gate.clone(), standby.gate.clone()]);
    standby.yields_to("leader").await?;

    let undisturbed = tokio::time::timeout(2 * DURATION, leadership.lost()).await.is_err();
    ensure!(undisturbed && gate.open(), "{name}: the leader was robbed");
    standby.yields_to("leader").await?;

    // The leader dies without releasing.
    drop(leadership);
    let died = Instant::now();
    let (_leadership, _) = standby.leads().await.with_context(|| name.clone())?;
    ensure!(
        died.elapsed() > DURATION - RETRY - RETRY,
        "{name}: taken over too early"
    );
    witness.verdict()
}

#[test]
fn the_same_skew_robs_the_leader_without_the_guard() {
    scenario(async {
        let plane = ControlPlane::shared().await?;
        for (name, leader_ahead, standby_ahead) in [("bare-slow-leader", -20, 0), ("bare-fast-standby", 0, 20)] {
            let leader_clock = SkewedClock::start(plane.client()?, leader_ahead).await?;
            let standby_clock = SkewedClock::start(plane.client()?, standby_ahead).await?;
            let leader = bare(kube::Client::try_from(leader_clock.config())?, name, "leader");
            let standby = bare(kube::Client::try_from(standby_clock.config())?, name, "standby");
            ensure!(matches!(
                leader.try_acquire_or_renew().await?,
                LeaseLockResult::Acquired(_)
            ));
            let robbed = matches!(standby.try_acquire_or_renew().await?, LeaseLockResult::Acquired(_));
            ensure!(
                robbed,
                "the skew is no skew: a client without the guard is not misled by it"
            );
        }
        Ok(())
    });
}
