//! What clusters at rest ask of Azure, by how often they are read: the table of docs/sizing.md against Azure's budgets.
//! Takes an hour.

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

/// How many clusters, in one guest subscription and on one load balancer, and how often they are read.
const CLUSTERS: [usize; 2] = [20, 100];
const RESYNC: [&str; 2] = ["1m", "5m"];
/// What Azure counts reads of private DNS by.
const WINDOW: Duration = Duration::from_secs(300);
/// Links and records are read once in this time.
const RECORD_RESYNC: (&str, Duration) = ("10m", Duration::from_secs(600));
/// Windows until what a new process reads first has been read, at most.
const SETTLING: usize = 12;

/// Measures it, for each number of clusters in a test environment of its own.
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
    let came = crowd.come(&clusters(crowd.test_env(), "rest", number), number).await?;
    let last = came.last().copied().unwrap_or_default();
    let name = format!("{number} clusters at once, last one available");
    let mut all = shown(vec![Figure::told(name, last, "s")]);
    for resync in RESYNC {
        eprintln!("{number} clusters at rest, --resync {resync}");
        let flags = [("resync", resync), ("record-resync", RECORD_RESYNC.0)];
        crowd = crowd.restarted(program, &flags).await?;
        settled(&crowd).await?;
        all.extend(shown(at_rest(&crowd, number, resync).await?));
    }
    crowd.stop().await?;
    Ok(all)
}

/// Prints figures at once: what comes after may fail, and they took long.
fn shown(figures: Vec<Figure>) -> Vec<Figure> {
    eprintln!("{}", figures::table(&figures));
    figures
}

/// Waits until Azure refuses nothing for a whole window: a new process reads everything by itself first.
async fn settled(crowd: &Crowd) -> Result<()> {
    for _ in 0..SETTLING {
        let since = crowd.test_env().oracle().last_call().await?;
        tokio::time::sleep(WINDOW).await;
        let calls = crowd.test_env().oracle().journal(since).await?;
        if calls.iter().all(|call| call.status != 429) {
            return Ok(());
        }
    }
    anyhow::bail!("Azure refuses calls for ever")
}

async fn at_rest(crowd: &Crowd, clusters: usize, resync: &str) -> Result<Vec<Figure>> {
    let test_env = crowd.test_env();
    let since = test_env.oracle().last_call().await?;
    tokio::time::sleep(RECORD_RESYNC.1).await;
    let calls = test_env.oracle().journal(since).await?;
    let writes = count(&calls, Call::is_write);
    ensure!(writes == 0.0, "{writes} writes at rest");
    let azure = test_env.azure();
    let is_dns = |call: &Call| call.resource_kind.to_lowercase().contains("privatednszones");
    let is_zone = |call: &Call| is_dns(call) && !call.resource_kind.to_lowercase().contains("privatednszones/");
    let of = |call: &Call, subscription: &str| call.path.contains(subscription);
    let told = |what: &str, number: f64| {
        let name = format!("{clusters} clusters at rest, --resync {resync}, {what}");
        Figure::told(name, number.round(), "reads")
    };
    let windows = RECORD_RESYNC.1.as_secs_f64() / WINDOW.as_secs_f64();
    let management = count(&calls, |call| of(call, &azure.management_subscription)) / windows;
    let guest = count(&calls, |call| of(call, &azure.guest_subscription) && !is_dns(call)) / windows;
    let contents = count(&calls, |call| is_dns(call) && !is_zone(call));
    Ok(vec![
        told("management subscription in 5 minutes", management),
        told("guest subscription in 5 minutes", guest),
        told("zones in 5 minutes", count(&calls, is_zone) / windows),
        told("links and records in each --record-resync", contents),
        told("refused", count(&calls, |call| call.status == 429)),
    ])
}
