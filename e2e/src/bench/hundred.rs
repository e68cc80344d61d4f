//! A hundred clusters at once in one guest subscription and on one load balancer: each with a NAT subnet of its own, which
//! Azure makes one after another, and with one NAT subnet for all.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;

use super::crowd::{Crowd, clusters, nat_subnet, with_nat_subnet};
use super::figures::Figure;
use super::{Report, count};
use crate::azure_sim::Preset;

const CLUSTERS: usize = 100;

/// Measures a hundred clusters at once, in two test environments.
///
/// # Errors
///
/// Something cannot be measured.
pub(super) async fn run(preset: Preset, program: &Path) -> Result<Report> {
    let mut figures = at_once(preset, program, false, 360.0).await?;
    figures.extend(at_once(preset, program, true, 120.0).await?);
    Ok(Report::of(figures))
}

async fn at_once(preset: Preset, program: &Path, one_subnet: bool, goal: f64) -> Result<Vec<Figure>> {
    let crowd = Crowd::start(preset, program, &json!({"pls_per_load_balancer": CLUSTERS})).await?;
    let mut all = clusters(crowd.test_env(), "hundred", CLUSTERS);
    let mut subnets = "own NAT subnets";
    if one_subnet {
        subnets = "one NAT subnet";
        all = with_nat_subnet(all, &nat_subnet(crowd.test_env()).await?);
    }
    eprintln!("{CLUSTERS} at once, {subnets}");
    let since = crowd.test_env().oracle().last_call().await?;
    let times = crowd.bring_up(&all, CLUSTERS).await?;
    let calls = crowd.test_env().oracle().journal(since).await?;
    crowd.stop().await?;
    let name = |what: &str| format!("{CLUSTERS} clusters at once, {subnets}, {what}");
    let last = times.last().copied().context("no cluster")?;
    Ok(vec![
        Figure::new(name("last one available"), last, "s", goal),
        Figure::without_goal(name("median"), times[times.len() / 2], "s"),
        Figure::without_goal(name("ARM calls each"), calls.len() as f64 / CLUSTERS as f64, "calls"),
        Figure::without_goal(name("throttled"), count(&calls, |call| call.status == 429), "calls"),
    ])
}
