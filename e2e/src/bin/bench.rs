//! `make bench`: measures one private cluster's life against the goals, prints a table and writes
//! `target/figures.json`. PRESET=recorded (the default) or fast.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use e2e::azure_sim::Preset;
use e2e::ground::Ground;
use e2e::hosted_cluster::HostedCluster;
use e2e::hyperlink::{Hyperlink, Role};
use e2e::{audit, roles};
use serde::Serialize;

const PATIENCE: Duration = Duration::from_secs(900);
const RESYNC: &str = "5s";
const RESYNCS: u32 = 30;

/// One measured value. A goal is what the value may be at most.
#[derive(Serialize)]
struct Figure {
    name: &'static str,
    value: f64,
    unit: &'static str,
    goal: Option<f64>,
}

#[derive(Default)]
struct Figures(Vec<Figure>);

impl Figures {
    fn add(&mut self, name: &'static str, value: f64, unit: &'static str, goal: impl Into<Option<f64>>) {
        let goal = goal.into();
        let verdict = match goal {
            Some(goal) if value > goal => format!("MORE than {goal}"),
            Some(goal) => format!("at most {goal}"),
            None => String::new(),
        };
        println!("{name:55}  {value:>8.1} {unit:6}  {verdict}");
        self.0.push(Figure {
            name,
            value,
            unit,
            goal,
        });
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    e2e::scenario::install_tls_provider();
    let preset = std::env::var("PRESET").unwrap_or_else(|_| "recorded".into()).parse()?;
    let mut figures = Figures::default();
    let outcome = measure(preset, &mut figures).await;
    if outcome.is_err() {
        e2e::run_dir::keep_all();
    }
    outcome?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| e2e::repository().join("target"), Into::into);
    std::fs::create_dir_all(&target)?;
    std::fs::write(target.join("figures.json"), serde_json::to_string_pretty(&figures.0)?)?;
    Ok(())
}

async fn measure(preset: Preset, figures: &mut Figures) -> Result<()> {
    let size = std::fs::metadata(e2e::binaries::executable("hyperlink")?)?.len();
    figures.add("executable", mebibytes(size), "MiB", 15.0);
    let ground = Ground::local(preset).await?;
    let cluster = HostedCluster::new(&ground, "measured").with_base_domain("apps.example.com");

    let (ho, cpo) = start(&ground, &[]).await?;
    let (since, began) = (ground.oracle().last_call().await?, Instant::now());
    cluster.create(&ground).await?;
    cluster.becomes_available(&ground, PATIENCE).await?;
    figures.add("one cluster to Available", began.elapsed().as_secs_f64(), "s", 120.0);
    cluster.becomes_reachable(&ground, PATIENCE).await?;
    figures.add(
        "ARM calls to onboard one cluster",
        calls(&ground, since).await?.0,
        "",
        32.0,
    );
    for (name, process) in [("peak memory of ho", &ho), ("peak memory of cpo", &cpo)] {
        let peak = process.process().peak_rss().context("no VmHWM")?;
        figures.add(name, mebibytes(peak), "MiB", 15.0);
    }
    ho.stop().await?;
    cpo.stop().await?;

    let (ho, cpo) = start(&ground, &[("resync", RESYNC), ("record-resync", RESYNC)]).await?;
    rest(&ground, figures).await?;
    ho.stop().await?;
    cpo.stop().await?;

    let (ho, cpo) = start(&ground, &[]).await?;
    let (since, began) = (ground.oracle().last_call().await?, Instant::now());
    cluster.delete(&ground, PATIENCE).await?;
    figures.add("one cluster gone", began.elapsed().as_secs_f64(), "s", 120.0);
    figures.add(
        "ARM calls to delete one cluster",
        calls(&ground, since).await?.0,
        "",
        30.0,
    );
    ho.stop().await?;
    cpo.stop().await
}

async fn start(ground: &Ground, flags: &[(&str, &str)]) -> Result<(Hyperlink, Hyperlink)> {
    let ho = Hyperlink::start(ground, Role::Ho, "ho", flags).await?;
    let cpo = Hyperlink::start(ground, Role::Cpo, "cpo", flags).await?;
    ho.leading(PATIENCE).await?;
    cpo.leading(PATIENCE).await?;
    Ok((ho, cpo))
}

/// Nothing can be waited for where nothing should happen: this takes its time.
async fn rest(ground: &Ground, figures: &mut Figures) -> Result<()> {
    let log = ground.control_plane().audit_log();
    let (call, line) = (ground.oracle().last_call().await?, audit::end(&log)?);
    tokio::time::sleep(Duration::from_secs(5) * RESYNCS).await;
    let (calls, writes) = calls(ground, call).await?;
    figures.add("ARM calls per resync at rest", calls / f64::from(RESYNCS), "", None);
    figures.add("ARM writes over 30 resyncs", writes, "", 0.0);
    figures.add(
        "Kubernetes writes over 30 resyncs, without the lease",
        kubernetes_writes(&log, line)?,
        "",
        0.0,
    );
    Ok(())
}

/// All calls since then, and the writes among them.
async fn calls(ground: &Ground, since: u64) -> Result<(f64, f64)> {
    let calls = ground.oracle().journal(since).await?;
    let writes = calls.iter().filter(|call| call.is_write()).count();
    Ok((calls.len() as f64, writes as f64))
}

fn kubernetes_writes(log: &Path, since: u64) -> Result<f64> {
    let mut writes = 0;
    for role in [Role::Ho, Role::Cpo] {
        let user = format!("system:serviceaccount:{}:{}", roles::NAMESPACE, role.as_str());
        let requests = audit::read(log, since, &user)?;
        let of_lease = |request: &audit::Request| {
            request
                .object_ref
                .as_ref()
                .is_some_and(|object| object.resource == "leases")
        };
        writes += requests
            .iter()
            .filter(|request| request.is_write() && !of_lease(request))
            .count();
    }
    Ok(writes as f64)
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
