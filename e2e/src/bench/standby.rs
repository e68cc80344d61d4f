//! How soon a standby leads after the leader has stopped or was killed.

use std::path::Path;

use anyhow::Result;
use jiff::Timestamp;
use serde_json::json;

use super::figures::Figure;
use super::{SOON, path, test_env};
use crate::azure_sim::Preset;
use crate::hyperlink::{Hyperlink, Role};
use crate::test_env::TestEnv;

/// How many leaders stop as asked. It is chance when, in its interval, a standby reads the lease.
const CLEAN: usize = 5;

/// Measures the failover to a standby.
///
/// # Errors
///
/// Something cannot be measured.
pub(super) async fn run(preset: Preset, program: &Path) -> Result<Vec<Figure>> {
    eprintln!("a standby takes over");
    let test_env = test_env(preset, &json!({})).await?;
    let mut leader = standby(program, &test_env, 0).await?;
    leader.leading(SOON).await?;
    let mut longest: f64 = 0.0;
    for number in 1..=CLEAN {
        let next = standby(program, &test_env, number).await?;
        let began = Timestamp::now();
        let (led, stopped) = tokio::join!(next.leading(SOON), leader.stop());
        stopped?;
        led?;
        longest = longest.max(path::seconds(began, Timestamp::now()));
        leader = next;
    }
    let next = standby(program, &test_env, CLEAN + 1).await?;
    let began = Timestamp::now();
    leader.process().kill();
    next.leading(SOON).await?;
    let crashed = path::seconds(began, Timestamp::now());
    next.stop().await?;
    let name = format!("failover, the leader stops: longest of {CLEAN}");
    Ok(vec![
        Figure::new(name, longest, "s", 2.0),
        Figure::new("failover, the leader is killed", crashed, "s", 17.0),
    ])
}

/// Those of the program, which other tests' processes do not have.
const DEFAULT_LEASE: [(&str, &str); 2] = [("lease-duration", "15s"), ("lease-renew-deadline", "10s")];

async fn standby(program: &Path, test_env: &TestEnv, number: usize) -> Result<Hyperlink> {
    let process =
        Hyperlink::start_program(program, test_env, Role::Ho, &format!("ho-{number}"), &DEFAULT_LEASE).await?;
    process.ready(SOON).await?;
    Ok(process)
}
