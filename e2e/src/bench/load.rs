//! The simulators under load: reads, writes and many connections against the resources of 500 clusters. The machine has
//! to run the load generator too.

mod aws;
mod aws_objects;
mod azure;
mod client;
mod objects;

use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;

pub use self::aws::run as run_aws;
pub use self::azure::run as run_azure;
use super::figures::Figure;
use super::mebibytes;
use crate::process::{Process, Program};
use crate::run_dir::RunDir;

const CLUSTERS: usize = 500;
/// How many connections are busy all the time.
const BUSY: usize = 24;
const SPAN: Duration = Duration::from_secs(10);
const START: Duration = Duration::from_secs(20);

/// A simulator of its own, seeded with the clusters' resources.
struct Load {
    /// The name of its executable.
    name: &'static str,
    simulator: Process,
    /// What it printed when it was up.
    ready: Value,
    figures: Vec<Figure>,
    _dir: RunDir,
}

impl Load {
    async fn start(name: &'static str, seed: &Value) -> Result<Self> {
        let dir = RunDir::new("load")?;
        let program = crate::binaries::executable(name)?;
        let program = Program::new(program)
            .without_our_environment()
            .arg("serve")
            .flag("dir", dir.path());
        let simulator = program.spawn(name, dir.path())?;
        let ready = simulator
            .until("the simulator is up", START, async || {
                let text = std::fs::read_to_string(simulator.out())?;
                let (line, _) = text.split_once('\n').ok_or_else(|| anyhow!("it has printed nothing"))?;
                Ok(serde_json::from_str::<Value>(line)?)
            })
            .await?;
        let load = Self {
            name,
            simulator,
            ready,
            figures: Vec::new(),
            _dir: dir,
        };
        let seeded = reqwest::Client::new()
            .put(format!("{}/seed", load.printed("control")?))
            .json(seed)
            .send()
            .await?;
        let (status, text) = (seeded.status(), seeded.text().await?);
        ensure!(status.is_success(), "seed: {status}: {text}");
        Ok(load)
    }

    /// An address or a path that the simulator printed.
    fn printed(&self, name: &str) -> Result<&str> {
        self.ready[name].as_str().with_context(|| format!("no {name}"))
    }

    fn memory(&mut self, when: &str, goal: bool) -> Result<()> {
        let now = mebibytes(self.simulator.rss().context("no VmRSS")?);
        let name = format!("{}, RSS {when}", self.name);
        self.figures.push(if goal {
            Figure::new(name, now, "MiB", 150.0)
        } else {
            Figure::without_goal(name, now, "MiB")
        });
        Ok(())
    }

    /// Every connection makes one call after the other, as `busy` does until a time for the connection of a number.
    async fn calls<F>(&mut self, what: &str, goal: f64, busy: impl Fn(usize, Instant) -> F) -> Result<()>
    where
        F: Future<Output = Result<Vec<Duration>>> + Send + 'static,
    {
        eprintln!("{}, {what}", self.name);
        let used = || self.simulator.processor_time().context("no processor time");
        let (began, before) = (Instant::now(), used()?);
        let tasks: Vec<_> = (0..BUSY).map(|at| tokio::spawn(busy(at, began + SPAN))).collect();
        let mut times: Vec<Duration> = Vec::new();
        for task in tasks {
            times.extend(task.await??);
        }
        let (seconds, used) = (began.elapsed().as_secs_f64(), used()?.saturating_sub(before));
        times.sort_unstable();
        let percentile = |part: usize| times[(times.len() - 1) * part / 100].as_secs_f64() * 1000.0;
        let name = |part: &str| format!("{}, {what}{part}", self.name);
        let each = used.as_secs_f64() * 1e6 / times.len() as f64;
        let figures = [
            Figure::at_least(name(""), times.len() as f64 / seconds, "1/s", goal),
            // Other load on the machine hardly changes this figure.
            Figure::without_goal(name(", processor time each"), each, "us"),
            Figure::without_goal(name(", p50"), percentile(50), "ms"),
            Figure::new(name(", p99"), percentile(99), "ms", 20.0),
        ];
        self.figures.extend(figures);
        Ok(())
    }

    async fn idle(&mut self) -> Result<()> {
        let rss = || self.simulator.rss().context("no VmRSS");
        let before = rss()?;
        tokio::time::sleep(SPAN).await;
        let grown = mebibytes(rss()?.saturating_sub(before));
        let name = format!("{}, growth in 10 idle seconds", self.name);
        self.figures.push(Figure::new(name, grown, "MiB", 0.0));
        self.memory("at the end", true)
    }
}
