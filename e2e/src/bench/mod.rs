//! The benchmark: one private hosted cluster's life on the executable that ships; failover to a standby; many custom
//! resources; many clusters at once; a tenant's attack; the simulators under load; then the same of a cluster on AWS, and hundreds of Cluster API.
//!
//! It measures and prints; a missed goal is no failure.

pub mod audit;
mod aws;
mod capz;
mod crowd;
pub mod figures;
mod hundreds;
mod life;
pub mod load;
mod objects;
pub mod path;
mod rest;
mod restart;
mod standby;
mod tenant;

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Error, Result, bail};
use serde_json::{Value, json};

use crate::azure_sim::Preset;
use crate::hyperlink::{Hyperlink, Role};
use crate::test_env::{Call, TestEnv};
use figures::Figure;

/// How long a phase may take: longer than the rarest operation of the recordings.
const PATIENCE: Duration = Duration::from_secs(900);
/// How long processes and Kubernetes may take.
const SOON: Duration = Duration::from_secs(60);

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// One cluster's life.
    Life,
    /// Failover after the leader has stopped.
    Standby,
    /// Many custom resources.
    Objects,
    /// Many clusters at once.
    Crowd,
    /// Many clusters at rest, by the resync interval. It takes an hour, so it runs only when asked
    /// for.
    Rest,
    /// A restart beside many clusters. It takes more than an hour, so it runs only when asked for.
    Restart,
    /// Hundreds of clusters at once. It takes more than an hour, so it runs only when asked for.
    Hundreds,
    /// A tenant's attack.
    Tenant,
    /// The simulated Azure under load.
    Armsim,
    /// The simulated AWS under load.
    Awssim,
    /// One cluster's life on AWS, and many custom resources.
    Aws,
    /// A hundred clusters at once on AWS, each with a process of its own. It takes more than half an hour, so it runs
    /// only when asked for.
    AwsCrowd,
    /// Hundreds of clusters of Cluster API. It takes a quarter of an hour, so it runs only when asked for.
    Capz,
}

impl Part {
    /// The parts that are measured when none is asked for, in their order.
    pub const ALL: [Self; 8] = [
        Self::Life,
        Self::Standby,
        Self::Objects,
        Self::Crowd,
        Self::Tenant,
        Self::Armsim,
        Self::Awssim,
        Self::Aws,
    ];
}

impl FromStr for Part {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "life" => Self::Life,
            "standby" => Self::Standby,
            "objects" => Self::Objects,
            "crowd" => Self::Crowd,
            "rest" => Self::Rest,
            "restart" => Self::Restart,
            "hundreds" => Self::Hundreds,
            "tenant" => Self::Tenant,
            "armsim" => Self::Armsim,
            "awssim" => Self::Awssim,
            "aws" => Self::Aws,
            "aws-crowd" => Self::AwsCrowd,
            "capz" => Self::Capz,
            _ => bail!(
                "{text}: life, standby, objects, crowd, rest, restart, hundreds, tenant, armsim, awssim, aws, aws-crowd \
                 or capz"
            ),
        })
    }
}

/// The result of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// The measured numbers.
    pub figures: Vec<Figure>,
    /// What numbers do not show: critical paths, and writes that should not have happened.
    pub remarks: Vec<String>,
}

impl Report {
    fn of(figures: Vec<Figure>) -> Self {
        Self {
            figures,
            remarks: Vec::new(),
        }
    }

    fn add(&mut self, more: Self) {
        self.figures.extend(more.figures);
        self.remarks.extend(more.remarks);
    }
}

/// Measures these parts on `program`. Without one, it measures the executable that ships, with this machine's C
/// library.
///
/// # Errors
///
/// Something cannot be measured: a build fails, a process does not come up, a phase does not end.
pub async fn run(preset: Preset, parts: &[Part], program: Option<PathBuf>) -> Result<Report> {
    let mut report = Report::default();
    let program = match program {
        Some(program) => program,
        None => {
            eprintln!("building the executable that ships");
            crate::binaries::shipped()?
        }
    };
    let size = mebibytes(std::fs::metadata(&program)?.len());
    report
        .figures
        .push(Figure::new("size of the executable", size, "MiB", 13.5));
    for part in parts {
        let measured = measure(*part, preset, &program).await;
        if measured.is_err() {
            crate::run_dir::keep_all();
        }
        report.add(measured?);
    }
    Ok(report)
}

async fn measure(part: Part, preset: Preset, program: &Path) -> Result<Report> {
    Ok(match part {
        Part::Life => life::run(preset, program).await?,
        Part::Standby => Report::of(standby::run(preset, program).await?),
        Part::Objects => Report::of(objects::run(preset, program).await?),
        Part::Crowd => crowd::run(preset, program).await?,
        Part::Rest => rest::run(preset, program).await?,
        Part::Restart => restart::run(preset, program).await?,
        Part::Hundreds => hundreds::run(preset, program).await?,
        Part::Tenant => tenant::run(preset, program).await?,
        Part::Armsim => Report::of(load::run_azure().await?),
        Part::Awssim => Report::of(load::run_aws().await?),
        Part::Aws => aws::run(preset, program).await?,
        Part::AwsCrowd => aws::run_crowd(preset, program).await?,
        Part::Capz => capz::run(preset, program).await?,
    })
}

/// A test environment with these quotas. Every operation takes as long as most of its kind, because the rare long ones
/// would make the figures a matter of chance.
async fn test_env(preset: Preset, quotas: &Value) -> Result<TestEnv> {
    TestEnv::local_with(preset, quotas, &json!({"rare_durations": false})).await
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn count(calls: &[Call], which: impl Fn(&Call) -> bool) -> f64 {
    calls.iter().filter(|call| which(call)).count() as f64
}

async fn start(program: &Path, test_env: &TestEnv, suffix: &str, flags: &[(&str, &str)]) -> Result<[Hyperlink; 2]> {
    let start = async |role: Role| -> Result<Hyperlink> {
        let name = format!("{}{suffix}", role.as_str());
        let process = Hyperlink::start_program(program, test_env, role, &name, flags).await?;
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
