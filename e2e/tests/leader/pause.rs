//! A process that is stopped for longer than its lease, and continued.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use e2e::process::{Process, Program};
use e2e::run_dir::RunDir;
use e2e::{ControlPlane, eventually, scenario};
use futures::future::try_join_all;

use crate::test_env::{DURATION, RENEW_DEADLINE, RETRY, SOON, Standby, blank, settings};

#[test]
fn paused_process_is_let_through_no_more() {
    scenario(async {
        let plane = ControlPlane::shared().await?;
        let dir = RunDir::new("paused")?;
        try_join_all((0..3).map(|n| paused(plane, dir.path(), format!("paused-{n}")))).await?;
        Ok(())
    });
}

async fn paused(plane: &ControlPlane, dir: &Path, name: String) -> Result<()> {
    blank(plane, &name).await?;
    let candidate = candidate(plane, &name).spawn(&name, dir)?;
    eventually("it is let through", SOON, || async {
        candidate.check()?;
        ensure!(!let_through(&candidate)?.is_empty(), "not yet");
        Ok(())
    })
    .await?;
    let mut standby = Standby::start(plane.admin().config(), settings(&name, "standby"))?;
    standby.yields_to("child").await?;

    candidate.signal("STOP")?;
    let stopped = now();
    let (_leadership, gate) = standby.leads().await?;
    let continued = now();
    candidate.signal("CONT")?;

    let status = candidate.wait(SOON).await?;
    ensure!(status.code() == Some(1), "ends as one that has lost: {status}");
    ensure!(gate.open(), "the new leader is not disturbed");
    let asked = let_through(&candidate)?;
    ensure!(asked.iter().any(|&at| at < stopped), "it was let through before");
    let late = asked.iter().filter(|&&at| at >= continued).count();
    ensure!(late == 0, "{name}: let through {late} times after the pause");
    Ok(())
}

fn candidate(plane: &ControlPlane, name: &str) -> Program {
    [DURATION, RENEW_DEADLINE, RETRY].iter().fold(
        Program::new(env!("CARGO_BIN_EXE_lease-candidate"))
            .arg(plane.kubeconfig_path())
            .arg("default")
            .arg(name)
            .arg("child"),
        |program, time| program.arg(time.as_millis().to_string()),
    )
}

/// When the child asked the gate and was let through: microseconds of the wall clock.
fn let_through(candidate: &Process) -> Result<Vec<u128>> {
    let lines = std::fs::read_to_string(candidate.out())?;
    // The last line may be half written.
    let whole = lines.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole
        .lines()
        .map(|line| Ok(line.strip_prefix("open ").context("a line of its own form")?.parse()?))
        .collect()
}

fn now() -> u128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_micros()
}
