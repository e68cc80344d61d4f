//! What clusters at rest ask of Azure, by how often they are looked at: the table of docs/sizing.md against Azure's
//! budgets. DNS records are looked at as often as by default. Takes three quarters of an hour.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use serde_json::json;

use super::crowd::{Crowd, clusters};
use super::figures::{self, Figure};
use super::{Report, count, stop};
use crate::azure_sim::Preset;
use crate::ground::Call;

/// How many clusters, in one guest subscription and on one load balancer, and how often they are looked at.
const CLUSTERS: [usize; 2] = [20, 100];
const RESYNC: [(&str, Duration); 2] = [("1m", Duration::from_secs(60)), ("5m", Duration::from_secs(300))];
/// What Azure counts reads of private DNS by.
const WINDOW: Duration = Duration::from_secs(300);

/// Measures it, for each number of clusters on a ground of its own.
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
    let came = crowd.come(&clusters(crowd.ground(), "rest", number), number).await?;
    let last = came.last().copied().unwrap_or_default();
    let mut figures = vec![Figure::told(
        format!("{number} clusters at once, last one available"),
        last,
        "s",
    )];
    for (flag, resync) in RESYNC {
        eprintln!("{number} clusters at rest, --resync {flag}");
        crowd = crowd.restarted(program, &[("resync", flag)]).await?;
        let measured = at_rest(&crowd, number, flag, resync).await?;
        // What comes after may fail, and this took long.
        eprintln!("{}", figures::table(&measured));
        figures.extend(measured);
    }
    stop(crowd.into_processes()).await?;
    Ok(figures)
}

async fn at_rest(crowd: &Crowd, clusters: usize, flag: &str, resync: Duration) -> Result<Vec<Figure>> {
    // Everything is read once by itself, and once more when a list first shows it.
    tokio::time::sleep(WINDOW.max(resync) * 5 / 4).await;
    let ground = crowd.ground();
    let since = ground.oracle().last_call().await?;
    let long = WINDOW.max(2 * resync);
    tokio::time::sleep(long).await;
    let calls = ground.oracle().journal(since).await?;
    let writes = count(&calls, Call::is_write);
    ensure!(writes == 0.0, "{writes} writes at rest");
    let windows = long.as_secs_f64() / WINDOW.as_secs_f64();
    let azure = ground.azure();
    let is_dns = |call: &Call| call.resource_kind.to_lowercase().contains("privatednszones");
    let of = |call: &Call, subscription: &str| call.path.contains(subscription);
    let told = |what: &str, number: f64| {
        let name = format!("{clusters} clusters at rest, --resync {flag}, {what} in 5 minutes");
        Figure::told(name, (number / windows).round(), "reads")
    };
    Ok(vec![
        told(
            "management subscription",
            count(&calls, |call| of(call, &azure.management_subscription)),
        ),
        told(
            "guest subscription",
            count(&calls, |call| of(call, &azure.guest_subscription) && !is_dns(call)),
        ),
        told("private DNS", count(&calls, is_dns)),
        told("refused", count(&calls, |call| call.status == 429)),
    ])
}
