//! A restart beside many clusters that are as desired: what it reads, and how soon a new cluster is available meanwhile.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use super::crowd::{Crowd, clusters};
use super::figures::Figure;
use super::{Report, count};
use crate::azure_sim::Preset;
use crate::test_env::Call;

/// How many clusters are as desired, in one guest subscription and on one load balancer.
const CLUSTERS: usize = 100;
/// How long after a start its calls are counted.
const COUNTED: Duration = Duration::from_secs(300);
/// How long after a start a new cluster comes.
const BUSY: Duration = Duration::from_secs(45);

/// Measures restarts.
///
/// # Errors
///
/// Something cannot be measured.
pub(super) async fn run(preset: Preset, program: &Path) -> Result<Report> {
    let quotas = json!({"pls_per_load_balancer": CLUSTERS + 2});
    let mut crowd = Crowd::start(preset, program, &quotas).await?;
    eprintln!("{CLUSTERS} clusters come");
    let as_desired = clusters(crowd.test_env(), "as_desired", CLUSTERS);
    crowd.bring_up(&as_desired, CLUSTERS).await?;
    crowd.refill_budgets().await?;
    let idle = one(&crowd, "idle").await?;
    crowd = crowd.restarted(program, &[]).await?;
    crowd.refill_budgets().await?;
    let since = crowd.test_env().oracle().last_call().await?;
    tokio::time::sleep(COUNTED).await;
    let calls = crowd.test_env().oracle().journal(since).await?;
    crowd = crowd.restarted(program, &[]).await?;
    crowd.refill_budgets().await?;
    tokio::time::sleep(BUSY).await;
    let meanwhile = one(&crowd, "meanwhile").await?;
    crowd.stop().await?;
    let name = |what: &str| format!("restart beside {CLUSTERS} clusters, {what}");
    let throttled = count(&calls, |call| call.status == 429);
    Ok(Report::of(vec![
        Figure::new(name("calls in the first 5 minutes"), calls.len() as f64, "calls", 60.0),
        Figure::new(name("throttled"), throttled, "calls", 0.0),
        Figure::new(name("writes"), count(&calls, Call::is_write), "calls", 0.0),
        Figure::without_goal(name("a new cluster before it"), idle, "s"),
        Figure::new(name("a new cluster meanwhile"), meanwhile, "s", idle * 1.2),
    ]))
}

/// After how many seconds one more cluster is available.
async fn one(crowd: &Crowd, name: &str) -> Result<f64> {
    let times = crowd.bring_up(&clusters(crowd.test_env(), name, 1), 1).await?;
    times.first().copied().context("no cluster")
}
