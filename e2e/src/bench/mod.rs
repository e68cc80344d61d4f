//! The benchmark: one private hosted cluster's life on the executable that ships, and what it took; many clusters at once; then the
//! simulator under load.
//!
//! Measures and shows; a missed goal is no failure.

pub mod audit;
pub mod crowd;
pub mod figures;
pub mod load;
pub mod path;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use jiff::Timestamp;

use crate::azure_sim::Preset;
use crate::ground::{Call, Ground};
use crate::hosted_cluster::{HostedCluster, ROUTER};
use crate::hyperlink::{Hyperlink, Role};
use crate::wait::eventually;
use audit::Audit;
use figures::Figure;

/// Longer than the rarest operation of the recordings.
const PATIENCE: Duration = Duration::from_secs(900);
/// Enough for processes and Kubernetes.
const SOON: Duration = Duration::from_secs(60);

/// Looks at everything, in the phase in which nothing happens.
const RESYNCS: usize = 30;
const OFTEN: &[(&str, &str)] = &[("resync", "5s"), ("record-resync", "5s")];

/// What came of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// The numbers.
    pub figures: Vec<Figure>,
    /// What a number does not say: critical paths, writes that should not have been.
    pub remarks: Vec<String>,
}

struct Bench {
    ground: Ground,
    program: PathBuf,
    cluster: HostedCluster,
    report: Report,
}

/// Measures everything.
///
/// # Errors
///
/// Something cannot be measured: a build fails, a process does not come up, a phase does not end.
pub async fn run(preset: Preset) -> Result<Report> {
    eprintln!("building the executable that ships");
    let program = crate::binaries::shipped()?;
    let size = std::fs::metadata(&program)?.len();
    let ground = Ground::local(preset).await?;
    let cluster = HostedCluster::new(&ground, "bench").with_base_domain("apps.example.com");
    let mut bench = Bench {
        ground,
        program,
        cluster,
        report: Report::default(),
    };
    let outcome = bench.phases().await;
    if outcome.is_err() {
        crate::run_dir::keep_all();
    }
    outcome?;
    let mut report = bench.report;
    report
        .figures
        .push(Figure::new("size of the binary", mebibytes(size), "MiB", 15.0));
    drop((bench.ground, bench.cluster));
    let crowd = crowd::run(preset, &bench.program).await;
    if crowd.is_err() {
        crate::run_dir::keep_all();
    }
    let crowd = crowd?;
    report.figures.extend(crowd.figures);
    report.remarks.extend(crowd.remarks);
    Ok(report)
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

impl Bench {
    async fn phases(&mut self) -> Result<()> {
        let processes = self.start("", &[]).await?;
        self.memory(&processes, "idle", 12.0)?;
        eprintln!("onboarding");
        self.onboard().await?;
        self.memory(&processes, "after onboarding", 15.0)?;
        stop(processes).await?;
        let processes = self.start("-often", OFTEN).await?;
        eprintln!("at rest");
        self.rest().await?;
        stop(processes).await?;
        let since = self.ground.oracle().last_call().await?;
        let processes = self.start("-again", &[]).await?;
        self.has_looked(since, 1).await?;
        eprintln!("going");
        self.go().await?;
        stop(processes).await
    }

    async fn start(&self, suffix: &str, flags: &[(&str, &str)]) -> Result<[Hyperlink; 2]> {
        start(&self.program, &self.ground, suffix, flags).await
    }

    fn memory(&mut self, processes: &[Hyperlink; 2], when: &str, goal: f64) -> Result<()> {
        for hyperlink in processes {
            let (role, process) = (hyperlink.role().as_str(), hyperlink.process());
            let now = process.rss().context("no VmRSS")?;
            let peak = process.peak_rss().context("no VmHWM")?;
            for (what, bytes) in [("RSS", now), ("peak RSS", peak)] {
                let name = format!("{what} of {role}, {when}");
                self.report
                    .figures
                    .push(Figure::new(name, mebibytes(bytes), "MiB", goal));
            }
        }
        Ok(())
    }

    async fn onboard(&mut self) -> Result<()> {
        let (client, since) = (self.ground.client()?, self.ground.oracle().last_call().await?);
        let cluster = self.cluster.clone();
        cluster.create(&self.ground).await?;
        eventually("the Service has an address", SOON, || async {
            let status = cluster
                .get_service(&client, ROUTER)
                .await?
                .and_then(|found| found.status);
            let balancer = status.and_then(|status| status.load_balancer);
            ensure!(balancer.is_some_and(|found| found.ingress.is_some()), "it has none");
            Ok(())
        })
        .await?;
        let address = Timestamp::now();
        eventually("there is a custom resource", SOON, || async {
            let found = cluster.get_link_service(&client).await?;
            found.map(drop).ok_or_else(|| anyhow!("there is none"))
        })
        .await?;
        let appeared = Timestamp::now();
        cluster.becomes_available(&self.ground, PATIENCE).await?;
        let available = Timestamp::now();
        let calls = self.ground.oracle().journal(since).await?;
        cluster.becomes_reachable(&self.ground, SOON).await?;

        let figures = &mut self.report.figures;
        let time = |from| path::seconds(from, available);
        figures.push(Figure::new(
            "onboarding, from the custom resource",
            time(appeared),
            "s",
            95.0,
        ));
        figures.push(Figure::new(
            "onboarding, from the Service's address",
            time(address),
            "s",
            95.0,
        ));
        figures.push(Figure::new("onboarding, ARM calls", calls.len() as f64, "calls", 28.0));
        figures.push(Figure::told(
            "onboarding, ARM writes",
            count(&calls, Call::is_write),
            "calls",
        ));
        self.explain("onboarding", &calls, appeared, available);
        Ok(())
    }

    async fn rest(&mut self) -> Result<()> {
        self.has_looked(self.ground.oracle().last_call().await?, 2).await?;
        let since = self.ground.oracle().last_call().await?;
        let audit = Audit::begin(self.ground.control_plane().audit_log())?;
        self.has_looked(since, RESYNCS).await?;
        let calls = self.ground.oracle().journal(since).await?;
        let kubernetes = audit.writes()?;
        let writes = count(&calls, Call::is_write);
        let reads = (calls.len() as f64 - writes) / RESYNCS as f64;
        let figures = &mut self.report.figures;
        figures.push(Figure::new("30 resyncs at rest, ARM writes", writes, "calls", 0.0));
        figures.push(Figure::new(
            "30 resyncs at rest, Kubernetes writes besides the lease",
            kubernetes.len() as f64,
            "calls",
            0.0,
        ));
        figures.push(Figure::told("ARM reads per resync at rest", reads, "calls"));
        if !kubernetes.is_empty() {
            self.report.remarks.push(format!("at rest: {}", kubernetes.join(", ")));
        }
        Ok(())
    }

    /// Waits until both roles have looked so often at what is theirs, since a call.
    async fn has_looked(&self, since: u64, times: usize) -> Result<()> {
        let theirs = [self.cluster.link_service(&self.ground), self.cluster.endpoint()];
        eventually("both roles have looked", PATIENCE, || async {
            let calls = self.ground.oracle().journal(since).await?;
            for id in &theirs {
                let looks = calls.iter().filter(|call| call.path.eq_ignore_ascii_case(id)).count();
                ensure!(looks >= times, "{looks} looks at {id}");
            }
            Ok(())
        })
        .await
    }

    async fn go(&mut self) -> Result<()> {
        let since = self.ground.oracle().last_call().await?;
        let began = Timestamp::now();
        self.cluster.delete(&self.ground, PATIENCE).await?;
        let gone = Timestamp::now();
        let calls = self.ground.oracle().journal(since).await?;
        let left = self.left_behind().await?;
        let figures = &mut self.report.figures;
        figures.push(Figure::new("gone, time", path::seconds(began, gone), "s", 100.0));
        figures.push(Figure::new("gone, ARM calls", calls.len() as f64, "calls", 26.0));
        figures.push(Figure::new(
            "gone, resources left behind",
            left as f64,
            "resources",
            0.0,
        ));
        self.explain("gone", &calls, began, gone);
        Ok(())
    }

    async fn left_behind(&self) -> Result<usize> {
        let ours = [
            vec![
                self.cluster.link_service(&self.ground),
                self.cluster.own_nat_subnet(&self.ground),
                self.cluster.endpoint(),
            ],
            self.cluster.zones(),
        ];
        let mut left = 0;
        for id in ours.concat() {
            left += self.ground.oracle().resources(&id).await?.len();
        }
        Ok(left)
    }

    fn explain(&mut self, phase: &str, calls: &[Call], from: Timestamp, to: Timestamp) {
        let changes = path::changes(calls);
        let critical = path::line(&path::critical(&changes, from, to));
        let all: Vec<String> = changes
            .iter()
            .filter(|change| change.seconds() >= 0.1)
            .map(|change| {
                let began = path::seconds(from, change.began);
                format!("{} {:.1} s (at {began:.1} s)", change.what, change.seconds())
            })
            .collect();
        self.report.remarks.push(format!("{phase}, critical path: {critical}"));
        self.report
            .remarks
            .push(format!("{phase}, changes: {}", all.join(", ")));
    }
}

fn count(calls: &[Call], which: impl Fn(&Call) -> bool) -> f64 {
    calls.iter().filter(|call| which(call)).count() as f64
}

async fn start(program: &Path, ground: &Ground, suffix: &str, flags: &[(&str, &str)]) -> Result<[Hyperlink; 2]> {
    let start = async |role: Role| -> Result<Hyperlink> {
        let name = format!("{}{suffix}", role.as_str());
        let process = Hyperlink::start_program(program, ground, role, &name, flags).await?;
        process.ready(SOON).await?;
        process.leading(SOON).await?;
        Ok(process)
    };
    Ok([start(Role::Ho).await?, start(Role::Cpo).await?])
}

async fn stop(processes: [Hyperlink; 2]) -> Result<()> {
    for process in processes {
        process.stop().await?;
    }
    Ok(())
}
