//! The simulator under load: reads, writes and many connections against the resources of 500 clusters. The machine has
//! to run the load generator too.

mod client;
mod objects;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use bytes::Bytes;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;

use self::client::{Connection, Target};
use self::objects::{Cluster, seed};
use super::figures::Figure;
use super::mebibytes;
use crate::process::{Process, Program};
use crate::run_dir::RunDir;

const CLUSTERS: usize = 500;
/// How many connections are busy all the time.
const BUSY: usize = 24;
/// How many connections are open at the same time.
const OPEN: usize = 1000;
const SPAN: Duration = Duration::from_secs(10);
const START: Duration = Duration::from_secs(20);

/// A simulator of its own, seeded with the clusters' resources.
struct Load {
    simulator: Process,
    target: Arc<Target>,
    figures: Vec<Figure>,
    _dir: RunDir,
}

/// Measures the simulator under load.
///
/// # Errors
///
/// The simulator does not come up, or a call is refused.
pub async fn run() -> Result<Vec<Figure>> {
    let mut load = Load::start().await?;
    load.memory("with 500 clusters", false)?;
    load.calls("reads", 5000.0, &[Kind::Read]).await?;
    load.calls("writes", 1000.0, &[Kind::Write]).await?;
    load.calls(
        "reads and writes",
        6000.0,
        &[Kind::Read, Kind::Read, Kind::Read, Kind::Read, Kind::Read, Kind::Write],
    )
    .await?;
    load.memory("after the load", true)?;
    load.crowd().await?;
    load.idle().await?;
    Ok(load.figures)
}

#[derive(Clone, Copy)]
enum Kind {
    Read,
    Write,
}

impl Load {
    async fn start() -> Result<Self> {
        let dir = RunDir::new("load")?;
        let program = crate::binaries::executable("armsim")?;
        let program = Program::new(program)
            .without_our_environment()
            .arg("serve")
            .flag("dir", dir.path());
        let simulator = program.spawn("armsim", dir.path())?;
        let ready = simulator
            .until("the simulator is up", START, async || {
                let text = std::fs::read_to_string(simulator.out())?;
                let (line, _) = text.split_once('\n').ok_or_else(|| anyhow!("it has printed nothing"))?;
                Ok(serde_json::from_str::<Value>(line)?)
            })
            .await?;
        let address = |name: &str| ready[name].as_str().context("an address");
        let seeded = reqwest::Client::new()
            .put(format!("{}/seed", address("control")?))
            .json(&seed(CLUSTERS))
            .send()
            .await?;
        let (status, text) = (seeded.status(), seeded.text().await?);
        ensure!(status.is_success(), "seed: {status}: {text}");
        let mut target = Target::new(address("arm")?, address("ca")?.as_ref())?;
        target.authorization = format!("Bearer {}", token(&target).await?);
        Ok(Self {
            simulator,
            target: Arc::new(target),
            figures: Vec::new(),
            _dir: dir,
        })
    }

    fn memory(&mut self, when: &str, goal: bool) -> Result<()> {
        let now = mebibytes(self.simulator.rss().context("no VmRSS")?);
        let name = format!("armsim, RSS {when}");
        self.figures.push(if goal {
            Figure::new(name, now, "MiB", 150.0)
        } else {
            Figure::without_goal(name, now, "MiB")
        });
        Ok(())
    }

    /// Every connection makes one call after the other, of these kinds in turn.
    async fn calls(&mut self, what: &str, goal: f64, kinds: &'static [Kind]) -> Result<()> {
        eprintln!("armsim, {what}");
        let used = || self.simulator.processor_time().context("no processor time");
        let (began, before) = (Instant::now(), used()?);
        let tasks: Vec<_> = (0..BUSY)
            .map(|at| tokio::spawn(busy(Arc::clone(&self.target), at, kinds, began + SPAN)))
            .collect();
        let mut times: Vec<Duration> = Vec::new();
        for task in tasks {
            times.extend(task.await??);
        }
        let (seconds, used) = (began.elapsed().as_secs_f64(), used()?.saturating_sub(before));
        times.sort_unstable();
        let percentile = |part: usize| times[(times.len() - 1) * part / 100].as_secs_f64() * 1000.0;
        let name = |what: &str, part: &str| format!("armsim, {what}{part}");
        self.figures.push(Figure::at_least(
            name(what, ""),
            times.len() as f64 / seconds,
            "1/s",
            goal,
        ));
        // Other load on the machine hardly changes this figure.
        let each = used.as_secs_f64() * 1e6 / times.len() as f64;
        let processor = name(what, ", processor time each");
        self.figures.push(Figure::without_goal(processor, each, "us"));
        self.figures
            .push(Figure::without_goal(name(what, ", p50"), percentile(50), "ms"));
        self.figures
            .push(Figure::new(name(what, ", p99"), percentile(99), "ms", 20.0));
        Ok(())
    }

    /// Opens many connections, makes one call on each at the same time, and holds them open.
    async fn crowd(&mut self) -> Result<()> {
        let limit = getrlimit(Resource::Nofile);
        let current = limit.maximum;
        setrlimit(Resource::Nofile, Rlimit { current, ..limit })?;
        eprintln!("armsim, {OPEN} connections");
        let mut open = Vec::new();
        for _ in 0..OPEN {
            open.push(Connection::open(Arc::clone(&self.target)).await?);
        }
        let calls = open.iter_mut().enumerate().map(|(at, connection)| async move {
            connection
                .good("GET", &Cluster(at % CLUSTERS).read(at), Bytes::new())
                .await
        });
        let answered = futures::future::join_all(calls).await;
        let good = answered.iter().filter(|answer| answer.is_ok()).count();
        self.figures.push(Figure::at_least(
            "armsim, connections at once, all answered",
            good as f64,
            "",
            OPEN as f64,
        ));
        self.memory("with 1000 connections", true)
    }

    async fn idle(&mut self) -> Result<()> {
        let rss = || self.simulator.rss().context("no VmRSS");
        let before = rss()?;
        tokio::time::sleep(SPAN).await;
        let grown = mebibytes(rss()?.saturating_sub(before));
        self.figures
            .push(Figure::new("armsim, growth in 10 idle seconds", grown, "MiB", 0.0));
        self.memory("at the end", true)
    }
}

async fn token(target: &Target) -> Result<String> {
    let (tenant, client, secret) = (objects::TENANT, objects::CLIENT, objects::SECRET);
    let mut connection = Connection::open(Arc::new(target.clone())).await?;
    let form = format!(
        "grant_type=client_credentials&client_id={client}&client_secret={secret}&scope=https%3A%2F%2Fmanagement.azure.com%2F.default"
    );
    let path = format!("/{tenant}/oauth2/v2.0/token");
    let answer: Value = serde_json::from_slice(&connection.good("POST", &path, form.into()).await?)?;
    Ok(answer["access_token"].as_str().context("a token")?.to_owned())
}

async fn busy(target: Arc<Target>, at: usize, kinds: &[Kind], until: Instant) -> Result<Vec<Duration>> {
    let mut connection = Connection::open(target).await?;
    let mut times = Vec::new();
    let mut writes = 0;
    for round in 0.. {
        // Connections with adjacent numbers never use the same cluster.
        let cluster = Cluster((round * BUSY + at) % CLUSTERS);
        let (method, path, body) = match kinds[round % kinds.len()] {
            Kind::Read => ("GET", cluster.read(round), Bytes::new()),
            Kind::Write => {
                writes += 1;
                let (path, body) = cluster.write(writes);
                ("PUT", path, Bytes::from(body.to_string()))
            }
        };
        let began = Instant::now();
        connection.good(method, &path, body).await?;
        times.push(began.elapsed());
        if Instant::now() >= until {
            break;
        }
    }
    Ok(times)
}
