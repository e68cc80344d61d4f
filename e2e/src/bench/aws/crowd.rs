//! Many clusters of one account at once, with AWS's request budgets: one process of role HO, and one of role CPO for
//! each cluster, as HyperShift runs them.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use futures::future::try_join_all;
use futures::{StreamExt, TryStreamExt, stream};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::super::crowd::available_after;
use super::super::figures::Figure;
use super::super::{Report, mebibytes, path};
use super::{created, start_cpo, start_ho};
use crate::AwsEnv;
use crate::aws_cluster::AwsHostedCluster;
use crate::aws_sim::{AwsCall, HO, HO_ROLE};
use crate::azure_sim::Preset;
use crate::hyperlink::Hyperlink;

const CLUSTERS: usize = 100;
/// How long all of them may take, to come or to go.
const PATIENCE: Duration = Duration::from_secs(2_400);
/// How many processes start at the same time.
const AT_ONCE: usize = 8;
/// Thirty times as often as by default, in the default's ratio: the figure is calls in five minutes.
const RESYNC: Duration = Duration::from_secs(10);
const RECORD_RESYNC: Duration = Duration::from_secs(90);
const OFTEN: &[(&str, &str)] = &[("resync", "10s"), ("record-resync", "90s")];

/// Measures many clusters at once.
///
/// # Errors
///
/// Something cannot be measured.
pub(super) async fn run(preset: Preset, program: &Path) -> Result<Report> {
    // By default AWS lets an account have few endpoint services.
    let env = AwsEnv::local_with(preset, |seed| {
        for account in seed["accounts"].as_array_mut().into_iter().flatten() {
            account["quotas"] = json!({"endpoint_services": 2 * CLUSTERS});
        }
    })
    .await?;
    let all: Vec<_> = (0..CLUSTERS)
        .map(|n| AwsHostedCluster::new(&format!("many{n}")))
        .collect();
    let ho = start_ho(program, &env, "", &[]).await?;
    let started = all.iter().map(|cluster| start_cpo(program, &env, cluster, "", &[]));
    let cpos: Vec<_> = stream::iter(started).buffer_unordered(AT_ONCE).try_collect().await?;
    let mut figures = at_once(&env, &all).await?;
    figures.extend(memory(&ho, &cpos)?);
    ho.stop().await?;
    let ho = start_ho(program, &env, "-often", OFTEN).await?;
    figures.extend(at_rest(&env).await?);
    ho.stop().await?;
    let ho = start_ho(program, &env, "-again", &[]).await?;
    figures.extend(delete_all(&env, &all).await?);
    for process in cpos.into_iter().chain([ho]) {
        process.stop().await?;
    }
    Ok(Report::of(figures))
}

fn name(what: &str) -> String {
    format!("AWS, {CLUSTERS} clusters of one account, {what}")
}

async fn at_once(env: &AwsEnv, all: &[AwsHostedCluster]) -> Result<Vec<Figure>> {
    eprintln!("{CLUSTERS} at once on AWS");
    let since = env.oracle().last_call().await?;
    let namespaces: Vec<_> = all.iter().map(AwsHostedCluster::control_plane_namespace).collect();
    let kube = env.client()?;
    let available = available_after(
        &kube,
        "AWSEndpointService",
        "AWSEndpointAvailable",
        &namespaces,
        CLUSTERS,
    );
    let objects = try_join_all(all.iter().map(|cluster| cluster.create_objects(env)));
    let both = async { tokio::try_join!(objects, available) };
    let within = tokio::time::timeout(PATIENCE, both).await;
    let (_, times) = within.with_context(|| format!("not {CLUSTERS} clusters in {PATIENCE:?}"))??;
    let calls = env.oracle().journal(since).await?;
    let last = times.last().copied().context("no cluster")?;
    Ok(vec![
        Figure::new(name("last one available"), last, "s", 720.0),
        Figure::without_goal(name("median"), times[times.len() / 2], "s"),
        Figure::without_goal(name("calls each"), each(&calls), "calls"),
        Figure::without_goal(name("throttled calls each"), each_throttled(&calls), "calls"),
        Figure::new(
            name("throttled calls repeated within 30 s"),
            repeated_soon(&calls),
            "calls",
            0.0,
        ),
    ])
}

fn memory(ho: &Hyperlink, cpos: &[Hyperlink]) -> Result<[Figure; 2]> {
    let rss = |one: &Hyperlink| one.process().rss().map(mebibytes).context("no VmRSS");
    let mut most: f64 = 0.0;
    for cpo in cpos {
        most = most.max(rss(cpo)?);
    }
    Ok([
        Figure::without_goal(name("RSS of ho"), rss(ho)?, "MiB"),
        Figure::without_goal(name("most RSS of a cpo"), most, "MiB"),
    ])
}

async fn at_rest(env: &AwsEnv) -> Result<[Figure; 2]> {
    eprintln!("{CLUSTERS} at rest on AWS");
    // Role HO reads each resource once, and once more when a list first shows it.
    tokio::time::sleep(RECORD_RESYNC * 5 / 4).await;
    let since = env.oracle().last_call().await?;
    tokio::time::sleep(RECORD_RESYNC).await;
    let mut calls = env.oracle().journal(since).await?;
    let writes = calls.iter().filter(|call| call.is_write()).count();
    calls.retain(|call| call.is_of(&HO, HO_ROLE));
    let rounds = RECORD_RESYNC.as_secs_f64() / RESYNC.as_secs_f64();
    Ok([
        Figure::new(
            name("at rest, calls of ho each in 5 minutes"),
            each(&calls) / rounds,
            "calls",
            0.5,
        ),
        Figure::new(name("at rest, writes"), writes as f64, "calls", 0.0),
    ])
}

async fn delete_all(env: &AwsEnv, all: &[AwsHostedCluster]) -> Result<[Figure; 3]> {
    eprintln!("{CLUSTERS} away on AWS");
    let (since, began) = (env.oracle().last_call().await?, Timestamp::now());
    try_join_all(all.iter().map(|cluster| cluster.delete(env, PATIENCE))).await?;
    let elapsed = path::seconds(began, Timestamp::now());
    let calls = env.oracle().journal(since).await?;
    let left = created(env).await? as f64;
    Ok([
        Figure::without_goal(name("away at once, time"), elapsed, "s"),
        Figure::without_goal(name("away at once, calls each"), each(&calls), "calls"),
        Figure::new(name("away at once, resources left behind"), left, "resources", 0.0),
    ])
}

fn each(calls: &[AwsCall]) -> f64 {
    calls.len() as f64 / CLUSTERS as f64
}

fn is_throttled(call: &AwsCall) -> bool {
    const CODES: [&str; 3] = ["RequestLimitExceeded", "Throttling", "ThrottlingException"];
    call.code.as_deref().is_some_and(|code| CODES.contains(&code))
}

/// How many calls AWS throttled and the same caller sent again, to the letter, within 30 s. All processes of role CPO
/// are one caller here, so that another action of another cluster counts for nothing, nor does the list of hosted
/// zones, which names no cluster.
fn repeated_soon(calls: &[AwsCall]) -> f64 {
    let is_repeated = |at: usize| {
        let refused = &calls[at];
        let same = |later: &&AwsCall| (&later.path, &later.query) == (&refused.path, &refused.query);
        let again = calls[at + 1..].iter().find(same);
        again.is_some_and(|again| again.time.duration_since(refused.time) < SignedDuration::from_secs(30))
    };
    let of_one = |call: &AwsCall| is_throttled(call) && call.action() != "ListHostedZones";
    let throttled = (0..calls.len()).filter(|at| of_one(&calls[*at]));
    throttled.filter(|at| is_repeated(*at)).count() as f64
}

fn each_throttled(calls: &[AwsCall]) -> f64 {
    let throttled = calls.iter().filter(|call| is_throttled(call));
    throttled.count() as f64 / CLUSTERS as f64
}
