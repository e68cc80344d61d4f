//! Restarts beside many clusters that are as desired: what a start reads, how soon a new cluster is available
//! meanwhile, what the clusters need afterwards, and what another subscription's cluster notices when theirs hangs.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use serde_json::json;

use super::audit::Audit;
use super::crowd::{Crowd, clusters, nat_subnet, with_nat_subnet};
use super::figures::Figure;
use super::{PATIENCE, Report, count};
use crate::azure_sim::Preset;
use crate::hosted_cluster::HostedCluster;
use crate::shared_env::control;
use crate::test_env::{Call, TestEnv};
use crate::wait::eventually;

/// How many clusters are as desired, in one guest subscription and on one load balancer.
const CLUSTERS: usize = 500;
/// More zones than Azure's default, which 500 clusters with a base domain use up.
const ZONES: usize = 2 * CLUSTERS + 10;
/// How many clusters of another subscription have to be repaired after a start. Which of all clusters a start reads first
/// is chance.
const BESIDE: usize = 8;
/// How long after a start its calls are counted, and for how long those of clusters at rest.
const COUNTED: Duration = Duration::from_secs(300);
/// How long after a start a new cluster comes.
const BUSY: Duration = Duration::from_secs(45);
/// How long a subscription that hangs leaves calls unanswered.
const HANGS: Duration = Duration::from_secs(60);
/// The time between two advances of the clock while the clusters come, so that they do not wait for budgets.
const ADVANCE: Duration = Duration::from_secs(2);

/// Measures restarts.
///
/// # Errors
///
/// Something cannot be measured.
pub(super) async fn run(preset: Preset, program: &Path) -> Result<Report> {
    let quotas = json!({"pls_per_load_balancer": CLUSTERS + 10, "zones": ZONES});
    let mut crowd = Crowd::start(preset, program, &quotas).await?;
    let nat_subnet = nat_subnet(crowd.test_env()).await?;
    let other = &crowd.test_env().azure().other_guest_subscription;
    let beside = with_nat_subnet(clusters(crowd.test_env(), "beside", BESIDE), &nat_subnet);
    let beside: Vec<_> = beside.into_iter().map(|one| one.in_subscription(other)).collect();
    let mut all = with_nat_subnet(clusters(crowd.test_env(), "as-desired", CLUSTERS), &nat_subnet);
    all.extend(beside.iter().cloned());
    eprintln!("{CLUSTERS} clusters come");
    bring_up(&crowd, &all).await?;
    let idle = one(&crowd, "idle", &nat_subnet).await?;
    let mut figures = Vec::new();

    eprintln!("a restart, and rest");
    crowd = crowd.restarted(program, &[]).await?;
    crowd.refill_budgets().await?;
    figures.extend(start_and_rest(&crowd).await?);

    eprintln!("a new cluster after a restart");
    crowd = crowd.restarted(program, &[]).await?;
    crowd.refill_budgets().await?;
    tokio::time::sleep(BUSY).await;
    let meanwhile = one(&crowd, "meanwhile", &nat_subnet).await?;
    figures.push(Figure::without_goal(name("a new cluster before it"), idle, "s"));
    figures.push(Figure::new(name("a new cluster meanwhile"), meanwhile, "s", idle * 1.2));

    eprintln!("beside a subscription that hangs");
    let (restarted, without) = repaired(crowd, program, &beside).await?;
    hang(restarted.test_env()).await?;
    let (restarted, with) = repaired(restarted, program, &beside).await?;
    for (what, without, with) in [
        ("median", without.median, with.median),
        ("last", without.last, with.last),
    ] {
        let repair = name(&format!("repair of {BESIDE} clusters of another subscription, {what}"));
        figures.push(Figure::new(
            format!("{repair} while theirs hangs"),
            with,
            "s",
            without * 1.2,
        ));
        figures.push(Figure::without_goal(repair, without, "s"));
    }
    restarted.stop().await?;
    Ok(Report::of(figures))
}

fn name(what: &str) -> String {
    format!("restart beside {CLUSTERS} clusters, {what}")
}

/// Creates all of these clusters while the simulator's clock runs ahead.
async fn bring_up(crowd: &Crowd, all: &[HostedCluster]) -> Result<()> {
    let ahead = async {
        loop {
            tokio::time::sleep(ADVANCE).await;
            crowd.refill_budgets().await?;
        }
    };
    tokio::select! {
        up = crowd.bring_up(all, all.len()) => up.map(drop),
        failed = ahead => failed,
    }
}

/// After how many seconds one more cluster is available.
async fn one(crowd: &Crowd, name: &str, nat_subnet: &str) -> Result<f64> {
    let cluster = with_nat_subnet(clusters(crowd.test_env(), name, 1), nat_subnet);
    crowd.refill_budgets().await?;
    let times = crowd.bring_up(&cluster, 1).await?;
    times.first().copied().context("no cluster")
}

/// What a process calls in its first minutes, and in as many after them.
async fn start_and_rest(crowd: &Crowd) -> Result<Vec<Figure>> {
    let oracle = crowd.test_env().oracle();
    let since = oracle.last_call().await?;
    tokio::time::sleep(COUNTED).await;
    let first = oracle.journal(since).await?;
    let since = oracle.last_call().await?;
    let audit = Audit::begin(crowd.test_env().control_plane().audit_log())?;
    tokio::time::sleep(COUNTED).await;
    let rest = oracle.journal(since).await?;
    let each = rest.len() as f64 / CLUSTERS as f64;
    let kubernetes = audit.reads()?;
    let throttled = |calls: &[Call]| count(calls, |call| call.status == 429);
    let mut figures = vec![
        Figure::new(name("calls in the first 5 minutes"), first.len() as f64, "calls", 60.0),
        Figure::new(name("throttled"), throttled(&first) + throttled(&rest), "calls", 0.0),
        Figure::new(
            name("writes"),
            count(&first, Call::is_write) + count(&rest, Call::is_write),
            "calls",
            0.0,
        ),
        Figure::new(name("calls per cluster in the next 5 minutes"), each, "calls", 0.3),
        Figure::without_goal(
            name("reads of Kubernetes per cluster in the next 5 minutes"),
            kubernetes.len() as f64 / CLUSTERS as f64,
            "reads",
        ),
    ];
    let mut resources: Vec<_> = kubernetes.iter().collect();
    resources.sort();
    for same in resources.chunk_by(|one, other| one == other) {
        let what = format!("{} per cluster in the next 5 minutes", same[0]);
        figures.push(Figure::without_goal(
            name(&what),
            same.len() as f64 / CLUSTERS as f64,
            "reads",
        ));
    }
    for (role, memory) in crowd.memory()? {
        figures.push(Figure::new(
            format!("RSS of {role}, {CLUSTERS} clusters"),
            memory,
            "MiB",
            60.0,
        ));
    }
    Ok(figures)
}

/// After how many seconds new processes have repaired clusters.
struct Repairs {
    median: f64,
    last: f64,
}

/// Starts new processes, and waits until they have repaired clusters whose endpoints were deleted before.
async fn repaired(crowd: Crowd, program: &Path, all: &[HostedCluster]) -> Result<(Crowd, Repairs)> {
    let stopped = crowd.stopped().await?;
    for cluster in all {
        stopped.test_env().oracle().drift_delete(&cluster.endpoint()).await?;
    }
    let crowd = stopped.started(program, &[]).await?;
    let began = Instant::now();
    let oracle = crowd.test_env().oracle();
    let repairs = all.iter().map(|cluster| async move {
        let endpoint = cluster.endpoint();
        eventually("the endpoint is written again", PATIENCE, || async {
            let found = oracle.resources(&endpoint).await?;
            ensure!(!found.is_empty(), "it is not there");
            Ok(())
        })
        .await?;
        anyhow::Ok(began.elapsed().as_secs_f64())
    });
    let mut times = try_join_all(repairs).await?;
    times.sort_by(f64::total_cmp);
    for cluster in all {
        cluster.becomes_available(crowd.test_env(), PATIENCE).await?;
    }
    let last = times.last().copied().context("no cluster")?;
    let median = times[times.len() / 2];
    eprintln!("repaired after {times:.1?} s");
    Ok((crowd, Repairs { median, last }))
}

/// From now on the clusters' subscription leaves each call unanswered for a while.
async fn hang(test_env: &TestEnv) -> Result<()> {
    let path = format!("^/subscriptions/{}/", test_env.azure().guest_subscription);
    let delay = json!({"delay_ms": HANGS.as_millis() as u64});
    let rules = json!([{"match": {"path": path, "times": 1_000_000_000}, "do": delay}]);
    control(test_env, reqwest::Method::PUT, "/faults", rules).await
}
