//! Role `capz` with 300 workload clusters of one private management cluster, in three subscriptions with an identity
//! each: they come at once, stay at rest, lose entries; then one more comes, and one beside a denied identity.

mod fleet;
mod observer;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::audit::Audit;
use super::figures::Figure;
use super::{PATIENCE, Report, count, mebibytes};
use crate::azure_sim::Preset;
use crate::capz_env::SECRET_CLIENT;
use crate::test_env::Call;
use crate::wait::eventually;
use fleet::{Fleet, READERS};

/// How many workload clusters come at once.
const CLUSTERS: usize = 300;
/// How many entries are dropped, one after the other.
const DROPS: usize = 20;
/// The window in which calls at rest are counted.
const WINDOW: Duration = Duration::from_secs(300);
/// How long what has been read last may still be due for a read: one `--resync`.
const WARM_UP: Duration = Duration::from_secs(330);

/// Measures them.
///
/// # Errors
///
/// Something cannot be measured.
pub(super) async fn run(preset: Preset, program: &Path) -> Result<Report> {
    let fleet = Fleet::start(preset, program).await?;
    let mut figures = come(&fleet, preset).await?;
    let (at_rest, remarks) = rest(&fleet).await?;
    figures.extend(at_rest);
    figures.push(dropped(&fleet).await?);
    figures.extend(one_more(&fleet).await?);
    fleet.stop().await?;
    Ok(Report { figures, remarks })
}

async fn come(fleet: &Fleet, preset: Preset) -> Result<Vec<Figure>> {
    eprintln!("{CLUSTERS} workload clusters come");
    let began = Instant::now();
    let clusters = fleet.clusters(CLUSTERS);
    fleet.create(&clusters).await?;
    let created = began.elapsed().as_secs_f64();
    let ready = fleet.endpoints_become_ready(CLUSTERS).await?;
    eventually("all clusters have their condition", PATIENCE, || async {
        let (done, all) = (fleet.observed().true_count(), CLUSTERS);
        ensure!(done == all, "{done} of {all}");
        Ok(())
    })
    .await?;
    let late = |(cluster, ready): (&String, &Instant)| {
        let published = fleet.observed().published(cluster)?;
        Some(published.saturating_duration_since(*ready))
    };
    let last = ready.iter().filter_map(late).max().context("no address")?;
    let lost = fleet.observed().lost();
    let goal = if preset == Preset::Fast { 10.0 } else { 60.0 };
    let writes = fleet
        .metric("hyperlink_capz_management_cluster_writes_total{result=\"written\"}")
        .await?;
    let name = |what: &str| format!("{CLUSTERS} workload clusters at once, {what}");
    Ok(vec![
        Figure::without_goal(name("created within"), created, "s"),
        Figure::new(name("entries lost"), lost as f64, "entries", 0.0),
        Figure::new(name("writes of the management cluster"), writes, "writes", 30.0),
        Figure::new(
            name("longest from endpoint to annotation"),
            last.as_secs_f64(),
            "s",
            goal,
        ),
        Figure::without_goal(name("last one available"), began.elapsed().as_secs_f64(), "s"),
    ])
}

/// The calls of Hyperlink's identities.
fn own(calls: &[Call]) -> f64 {
    count(calls, |call| {
        call.principal.as_deref().is_some_and(|one| READERS.contains(&one))
    })
}

async fn rest(fleet: &Fleet) -> Result<(Vec<Figure>, Vec<String>)> {
    eprintln!("{CLUSTERS} workload clusters at rest");
    tokio::time::sleep(WARM_UP).await;
    let oracle = fleet.env().oracle();
    let (since, audit) = (
        oracle.last_call().await?,
        Audit::begin(fleet.env().control_plane().audit_log())?,
    );
    tokio::time::sleep(WINDOW).await;
    let calls = oracle.journal(since).await?;
    let writes = audit.writes()?;
    let rss = fleet.hyperlink().process().rss().context("no VmRSS")?;
    let name = |what: &str| format!("{CLUSTERS} workload clusters at rest, {what}");
    let figures = vec![
        Figure::new(name("ARM calls in 5 minutes"), own(&calls), "calls", 12.0),
        Figure::new(
            name("Kubernetes writes in 5 minutes"),
            writes.len() as f64,
            "writes",
            0.0,
        ),
        Figure::new(name("RSS"), mebibytes(rss), "MiB", 20.0),
    ];
    let remarks = writes.iter().map(|write| format!("a write at rest: {write}"));
    Ok((figures, remarks.collect()))
}

/// How long it takes until an entry is back that somebody else drops.
async fn dropped(fleet: &Fleet) -> Result<Figure> {
    eprintln!("entries are dropped");
    let mut longest = Duration::ZERO;
    for number in 0..DROPS {
        let entry = fleet.entry_of(number);
        // What CAPZ deletes with an entry is another matter.
        fleet.capz().pause();
        let before = fleet.observed().additions(&entry);
        fleet.management().remove_entry(fleet.env(), &entry).await?;
        let began = Instant::now();
        eventually("the entry is back", PATIENCE, || async {
            ensure!(fleet.observed().additions(&entry) > before);
            Ok(())
        })
        .await?;
        longest = longest.max(began.elapsed());
    }
    fleet.capz().resume();
    let name = "entry that others drop, longest until it is back";
    Ok(Figure::new(name, longest.as_secs_f64(), "s", 1.0))
}

/// One more cluster comes; then another one, while a subscription's identity is denied.
async fn one_more(fleet: &Fleet) -> Result<Vec<Figure>> {
    eprintln!("one more workload cluster comes");
    let (alone, reads) = onboard(fleet, CLUSTERS).await?;
    let denied = json!([{"match": {"principal": SECRET_CLIENT}, "do": {"status": 403, "code": "AuthorizationFailed"}}]);
    fleet.env().faults(&denied).await?;
    let (beside, _) = onboard(fleet, CLUSTERS + 3).await?;
    let name = |what: &str| format!("one more workload cluster, {what}");
    let later = (beside.as_secs_f64() - alone.as_secs_f64()).max(0.0);
    Ok(vec![
        Figure::new(name("ARM reads from links to annotation"), reads, "reads", 6.0),
        Figure::without_goal(name("from links to annotation"), alone.as_secs_f64(), "s"),
        Figure::new(name("later beside a denied identity by"), later, "s", 1.0),
    ])
}

/// How long it takes from the links of a cluster to its annotation, and how many reads.
async fn onboard(fleet: &Fleet, number: usize) -> Result<(Duration, f64)> {
    let cluster = fleet.cluster(number);
    fleet.create(std::slice::from_ref(&cluster)).await?;
    eventually("CAPZ has made the links", PATIENCE, || {
        cluster.has_true(fleet.env(), "PrivateLinksReady")
    })
    .await?;
    let (began, since) = (Instant::now(), fleet.env().oracle().last_call().await?);
    let published = eventually("the address is published", PATIENCE, || async {
        fleet.observed().published(cluster.name()).context("no address")
    })
    .await?;
    let calls = fleet.env().oracle().journal(since).await?;
    Ok((published.saturating_duration_since(began), own(&calls)))
}
