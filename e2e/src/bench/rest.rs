//! How many requests clusters at rest need, by the resync interval: the table of docs/sizing.md against Azure's request
//! budgets. Takes an hour.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use serde_json::json;

use super::crowd::{Crowd, clusters};
use super::figures::{self, Figure};
use super::{Report, count};
use crate::azure_sim::Preset;
use crate::test_env::Call;

/// How many clusters are measured, in one guest subscription and on one load balancer.
const CLUSTERS: [usize; 2] = [20, 100];
/// The measured values of `--resync`.
const RESYNC: [&str; 2] = ["1m", "5m"];
/// The window in which Azure counts reads of private DNS.
const WINDOW: Duration = Duration::from_secs(300);
/// How long a new process needs at most until it has read everything once.
const WARM_UP: Duration = Duration::from_secs(900);
/// How long is measured.
const MEASURED: Duration = Duration::from_secs(600);
/// The value of `--record-resync` where links and records are counted: each is read once while that is measured.
const RECORD_RESYNC: &str = "10m";

/// Measures clusters at rest, for each number of clusters in a test environment of its own.
///
/// # Errors
///
/// Something cannot be measured.
pub(super) async fn run(preset: Preset, program: &Path) -> Result<Report> {
    let measured = CLUSTERS.map(|number| rest(preset, program, number));
    Ok(Report::of(try_join_all(measured).await?.concat()))
}

async fn rest(preset: Preset, program: &Path, number: usize) -> Result<Vec<Figure>> {
    let mut crowd = Crowd::start(preset, program, &json!({"pls_per_load_balancer": number})).await?;
    eprintln!("{number} clusters come");
    let times = crowd
        .bring_up(&clusters(crowd.test_env(), "rest", number), number)
        .await?;
    let last = times.last().copied().unwrap_or_default();
    let name = format!("{number} clusters at once, last one available");
    let mut all = shown(vec![Figure::without_goal(name, last, "s")]);
    for resync in RESYNC {
        crowd = crowd.restarted(program, &[("resync", resync)]).await?;
        let calls = at_rest(&crowd).await?;
        all.extend(shown(by_resync(
            &crowd,
            &calls,
            &format!("{number} clusters, --resync {resync}"),
        )));
    }
    // All records of many clusters in so short a time would exceed the budget.
    if number == CLUSTERS[0] {
        crowd = crowd.restarted(program, &[("record-resync", RECORD_RESYNC)]).await?;
        let records = count(&at_rest(&crowd).await?, |call| is_dns(call) && !is_zone(call));
        let name = format!("{number} clusters, links and records in each --record-resync");
        all.extend(shown(vec![Figure::without_goal(name, records, "reads")]));
    }
    crowd.stop().await?;
    Ok(all)
}

/// Prints figures at once: they took long, and a later measurement may fail.
fn shown(figures: Vec<Figure>) -> Vec<Figure> {
    eprintln!("{}", figures::table(&figures));
    figures
}

/// The calls of clusters that nothing changes.
async fn at_rest(crowd: &Crowd) -> Result<Vec<Call>> {
    tokio::time::sleep(WARM_UP).await;
    let oracle = crowd.test_env().oracle();
    let since = oracle.last_call().await?;
    tokio::time::sleep(MEASURED).await;
    let calls = oracle.journal(since).await?;
    let writes = count(&calls, Call::is_write);
    ensure!(writes == 0.0, "{writes} writes at rest");
    Ok(calls)
}

fn is_dns(call: &Call) -> bool {
    call.resource_kind.to_lowercase().contains("privatednszones")
}

fn is_zone(call: &Call) -> bool {
    is_dns(call) && !call.resource_kind.to_lowercase().contains("privatednszones/")
}

fn by_resync(crowd: &Crowd, calls: &[Call], what: &str) -> Vec<Figure> {
    let azure = crowd.test_env().azure();
    let windows = MEASURED.as_secs_f64() / WINDOW.as_secs_f64();
    let in_a_window = |budget: &str, counted: f64| {
        let name = format!("{what}, {budget} in 5 minutes");
        Figure::without_goal(name, (counted / windows).round(), "reads")
    };
    let management = count(calls, |call| call.path.contains(&azure.management_subscription));
    let guest = count(calls, |call| {
        call.path.contains(&azure.guest_subscription) && !is_dns(call)
    });
    vec![
        in_a_window("management subscription", management),
        in_a_window("guest subscription", guest),
        in_a_window("private DNS zones", count(calls, is_zone)),
        in_a_window("throttled", count(calls, |call| call.status == 429)),
    ]
}
