//! What a tenant's attack costs: many large custom resources, and how long the repair of another cluster takes
//! meanwhile.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use super::figures::Figure;
use super::{PATIENCE, Report, mebibytes, start, stop, test_env};
use crate::azure_sim::Preset;
use crate::hosted_cluster::HostedCluster;
use crate::hyperlink::Hyperlink;
use crate::tenant::{LARGEST_ANNOTATION, Tenant, time_of_repair};
use crate::test_env::TestEnv;

const OBJECTS: usize = 200;
/// How many repairs are measured before the attack, and again during it; the median counts.
const REPAIRS: usize = 5;
/// Sixty times as often as by default: the figure is what the attack adds.
const OFTEN: &[(&str, &str)] = &[("resync", "5s")];

/// Measures a tenant's attack.
///
/// # Errors
///
/// Something cannot be measured.
pub(super) async fn run(preset: Preset, program: &Path) -> Result<Report> {
    let test_env = test_env(preset, &json!({})).await?;
    let processes = start(program, &test_env, "", OFTEN).await?;
    let other_cluster = lives(&test_env, "neighbour").await?;
    let crowded = lives(&test_env, "crowded").await?;
    let tenant = Tenant::of(&test_env, &crowded).await?;
    let mut report = Report::default();
    eprintln!("repairs without an attack");
    let before = repair(&test_env, &other_cluster).await?;
    let memory = memory(&processes)?;
    eprintln!("{OBJECTS} custom resources");
    tenant.junk(&test_env, 0..OBJECTS, LARGEST_ANNOTATION).await?;
    let during = repair(&test_env, &other_cluster).await?;
    let name = |what: &str| format!("{OBJECTS} custom resources of 250 KiB in one namespace, {what}");
    for (process, before) in processes.iter().zip(memory) {
        let peak = process.process().peak_rss().context("no VmHWM")?;
        let grown = mebibytes(peak.saturating_sub(before));
        let role = process.role();
        report.figures.push(Figure::new(
            name(&format!("peak RSS of {role} grows by")),
            grown,
            "MiB",
            10.0,
        ));
    }
    report.figures.push(Figure::without_goal(
        "a neighbour's repair without an attack, median",
        before.as_secs_f64(),
        "s",
    ));
    let later = during.saturating_sub(before).as_secs_f64();
    report.figures.push(Figure::new(
        name("a neighbour's repair later by, median"),
        later,
        "s",
        1.0,
    ));
    stop(processes).await?;
    Ok(report)
}

async fn lives(test_env: &TestEnv, name: &str) -> Result<HostedCluster> {
    let cluster = HostedCluster::new(test_env, name).with_base_domain(&format!("{name}.example.com"));
    cluster.create(test_env).await?;
    cluster.becomes_available(test_env, PATIENCE).await?;
    Ok(cluster)
}

/// The peak resident memory of each process, in bytes.
fn memory(processes: &[Hyperlink; 2]) -> Result<[u64; 2]> {
    let of = |process: &Hyperlink| process.process().peak_rss().context("no VmHWM");
    Ok([of(&processes[0])?, of(&processes[1])?])
}

async fn repair(test_env: &TestEnv, cluster: &HostedCluster) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..REPAIRS {
        times.push(time_of_repair(test_env, cluster, PATIENCE).await?);
        cluster.becomes_available(test_env, PATIENCE).await?;
    }
    times.sort_unstable();
    Ok(times[REPAIRS / 2])
}
