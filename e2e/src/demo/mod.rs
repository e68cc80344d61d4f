//! The demo: one private hosted cluster, or several clusters of Cluster API, come up, stay, heal from drift and are
//! deleted, on the real executable, a real API server and a simulated cloud. Each change is printed.

pub mod aws;
pub mod azure;
pub mod capz;
pub mod observed;
pub mod stage;
pub mod table;
pub mod view;

use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use crate::azure_sim::Preset;
use crate::control_plane::Listens;
use crate::hyperlink::Hyperlink;
use observed::Observed;
use stage::{Drift, Stage};
use table::{Row, Table};
use view::View;

/// How often everything is read.
const POLL: Duration = Duration::from_millis(100);

/// How long the phase lasts in which nothing should change.
const QUIET_TIME: Duration = Duration::from_secs(5);

/// The demo's cluster or clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variant {
    /// On Azure, with all services by the router.
    #[default]
    Router,
    /// On Azure, with OAuth by a load balancer of its own, and so with a private path of its own.
    OAuth,
    /// On AWS, with all services by the router.
    Aws,
    /// A management cluster of Cluster API on Azure, and its workload clusters.
    Capz,
}

impl FromStr for Variant {
    type Err = anyhow::Error;

    fn from_str(word: &str) -> Result<Self> {
        match word {
            "router" => Ok(Self::Router),
            "oauth" => Ok(Self::OAuth),
            "aws" => Ok(Self::Aws),
            "capz" => Ok(Self::Capz),
            _ => bail!("VARIANT is router, oauth, aws or capz"),
        }
    }
}

/// A running demo.
pub struct Demo<S> {
    stage: S,
    patience: Duration,
    view: View,
    observed: Observed,
    table: Table,
}

impl<S: Stage> Demo<S> {
    /// Builds what is missing and starts everything.
    ///
    /// # Errors
    ///
    /// A build fails, or something does not come up.
    pub async fn start(preset: Preset, variant: Variant) -> Result<Self> {
        let mut view = View::new();
        view.progress("builds what is missing");
        crate::binaries::executable("hyperlink")?;
        crate::control_plane::programs(Listens::OnLoopback)?;
        view.restart_clock();
        view.heading("The ground");
        view.progress(S::PROGRAMS);
        let mut stage = S::start(preset, variant).await?;
        let [server, cloud] = stage.addresses();
        view.line(&format!("API server  {server}"));
        view.line(&format!("simulated {}  {cloud}", S::CLOUD));
        view.progress(S::COMMANDS);
        stage.start_roles().await?;
        let patience = match preset {
            Preset::Fast => S::PATIENCE,
            Preset::Recorded => Duration::from_secs(600),
        };
        for process in stage.roles() {
            process.ready(patience).await?;
            process.leading(patience).await?;
            let name = process.role();
            view.line(&format!(
                "hyperlink {name}  leads, process {}, http://{}",
                process.process().pid(),
                process.metrics_address()
            ));
        }
        Ok(Self {
            stage,
            patience,
            view,
            observed: Observed::default(),
            table: Table::of(S::HEADINGS),
        })
    }

    /// Plays the cluster's whole life and prints the table.
    ///
    /// # Errors
    ///
    /// A phase does not end in time, or something is left behind.
    pub async fn play(&mut self) -> Result<()> {
        let before = self.stage.resource_ids().await?;
        self.come_up().await?;
        self.at_rest().await?;
        for drift in self.stage.drifts()? {
            self.heal(drift).await?;
        }
        self.delete(&before).await?;
        let rss = |process: &Hyperlink| {
            let bytes = process.process().peak_rss().unwrap_or_default();
            (process.role(), bytes)
        };
        let peak_rss: Vec<_> = self.stage.roles().into_iter().map(rss).collect();
        self.view.progress("");
        self.view.heading("In short");
        self.view.note(&self.table.render(&peak_rss));
        Ok(())
    }

    /// Creates each cluster that is not there and waits until all are up.
    ///
    /// # Errors
    ///
    /// A cluster does not come up.
    pub async fn come_up(&mut self) -> Result<()> {
        let start = self.begin(S::CREATION).await?;
        self.stage.create().await?;
        self.until_up().await?;
        self.end("up", start).await
    }

    async fn at_rest(&mut self) -> Result<()> {
        let start = self
            .begin(&format!(
                "rest: {} s in which nothing should be written",
                QUIET_TIME.as_secs()
            ))
            .await?;
        let end = Instant::now() + QUIET_TIME;
        while Instant::now() < end {
            self.read().await?;
            tokio::time::sleep(POLL).await;
        }
        let writes = self.stage.calls(&start.position).await?.writes;
        ensure!(writes == 0, "{writes} {} at rest", S::HEADINGS[1]);
        self.view.line("nothing was written");
        self.end("rest", start).await
    }

    /// Changes something, checks that this breaks the path, so that healing is not only assumed, and waits until the
    /// cluster is up.
    async fn heal(&mut self, drift: Drift<S::Change>) -> Result<()> {
        let start = self.begin(drift.heading).await?;
        let now = self.stage.change(drift.change).await?;
        self.note(now);
        ensure!(!self.observed.is_up(), "the drift did no harm");
        self.until_up().await?;
        self.end(drift.phase, start).await
    }

    async fn delete(&mut self, before: &[String]) -> Result<()> {
        let start = self.begin(S::DELETION).await?;
        self.until_deleted().await?;
        self.read().await?;
        let mut left = self.stage.resource_ids().await?;
        left.retain(|id| !before.contains(id));
        ensure!(left.is_empty(), "left behind in {}: {left:?}", S::CLOUD);
        self.view.line(S::DELETED);
        self.end("go", start).await
    }

    async fn until_deleted(&mut self) -> Result<()> {
        let mut deleted = std::pin::pin!(self.stage.delete(self.patience));
        loop {
            tokio::select! {
                outcome = &mut deleted => return outcome,
                () = tokio::time::sleep(POLL) => {
                    let now = self.stage.observe().await?;
                    show(&self.view, &now, &self.observed);
                    self.view.progress(&format!("{} things are left", now.count()));
                    self.observed = now;
                }
            }
        }
    }

    async fn until_up(&mut self) -> Result<()> {
        let deadline = Instant::now() + self.patience;
        loop {
            self.read().await?;
            if self.observed.is_up() {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("not up within {:?}: {}", self.patience, self.observed.lacks());
            }
            for process in self.stage.roles() {
                process.process().check()?;
            }
            self.view.progress(&self.observed.lacks());
            tokio::time::sleep(POLL).await;
        }
    }

    async fn read(&mut self) -> Result<()> {
        let now = self.stage.observe().await?;
        self.note(now);
        Ok(())
    }

    fn note(&mut self, now: Observed) {
        show(&self.view, &now, &self.observed);
        self.observed = now;
    }

    async fn begin(&mut self, heading: &str) -> Result<Start<S::Position>> {
        self.view.heading(heading);
        Ok(Start {
            at: Instant::now(),
            position: self.stage.position().await?,
        })
    }

    async fn end(&mut self, phase: &str, start: Start<S::Position>) -> Result<()> {
        let time = start.at.elapsed();
        let calls = self.stage.calls(&start.position).await?;
        self.view.line(&format!("done in {:.1} s", time.as_secs_f64()));
        self.table.push(Row {
            phase: phase.to_owned(),
            time,
            calls: calls.all,
            writes: calls.writes,
        });
        Ok(())
    }

    /// Brings the deleted cluster up once more and prints how to inspect it.
    ///
    /// # Errors
    ///
    /// The cluster does not come up.
    pub async fn stay(&mut self) -> Result<()> {
        self.come_up().await?;
        self.view.progress("");
        self.view.heading("All of it stays until Ctrl-C. For another terminal:");
        self.stage.show_how_to_inspect(&self.view);
        Ok(())
    }

    /// Stops the roles as the kubelet would.
    ///
    /// # Errors
    ///
    /// A role does not stop cleanly.
    pub async fn stop(self) -> Result<()> {
        self.stage.stop().await
    }
}

/// When a phase began, and up to where calls were counted before it.
struct Start<P> {
    at: Instant,
    position: P,
}

fn show(view: &View, now: &Observed, before: &Observed) {
    for change in now.changes_since(before) {
        view.line(&change);
    }
}
