//! One private hosted cluster's life on AWS: idle processes, onboarding, rest, and deletion.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;

use super::super::audit::Audit;
use super::super::figures::Figure;
use super::super::{PATIENCE, Report, mebibytes, path, stop};
use super::{created, start_cpo, start_ho};
use crate::AwsEnv;
use crate::aws_cluster::AwsHostedCluster;
use crate::aws_sim::{AwsCall, CPO, CPO_ROLE};
use crate::azure_sim::Preset;
use crate::hyperlink::Hyperlink;

/// Sixty times as often as by default, in the default's ratio: the figure is calls in five minutes.
const RESYNC: Duration = Duration::from_secs(5);
const RECORD_RESYNC: Duration = Duration::from_secs(45);
const OFTEN: &[(&str, &str)] = &[("resync", "5s"), ("record-resync", "45s")];

struct Life<'a> {
    env: AwsEnv,
    program: &'a Path,
    preset: Preset,
    cluster: AwsHostedCluster,
    report: Report,
}

/// Measures one hosted cluster's life.
///
/// # Errors
///
/// Something cannot be measured.
pub(super) async fn run(preset: Preset, program: &Path) -> Result<Report> {
    let env = AwsEnv::local(preset).await?;
    let cluster = AwsHostedCluster::new("bench");
    let report = Report::default();
    let mut life = Life {
        env,
        program,
        preset,
        cluster,
        report,
    };
    life.phases().await?;
    Ok(life.report)
}

/// How long the simulated AWS takes from the Service to an available endpoint, in seconds: the load balancer, then the
/// endpoint, whose creation is answered while it is pending.
fn of_aws(preset: Preset) -> f64 {
    match preset {
        Preset::Fast => 1.0,
        Preset::Recorded => 150.0 + 60.0,
    }
}

impl Life<'_> {
    async fn phases(&mut self) -> Result<()> {
        let processes = self.start("", &[]).await?;
        self.memory(&processes, "idle", 13.0)?;
        eprintln!("onboarding on AWS");
        self.onboard().await?;
        self.memory(&processes, "after onboarding", 16.0)?;
        stop(processes).await?;
        let processes = self.start("-often", OFTEN).await?;
        eprintln!("at rest on AWS");
        self.at_rest().await?;
        stop(processes).await?;
        let processes = self.start("-again", &[]).await?;
        eprintln!("going on AWS");
        self.delete().await?;
        stop(processes).await
    }

    async fn start(&self, suffix: &str, flags: &[(&str, &str)]) -> Result<[Hyperlink; 2]> {
        let ho = start_ho(self.program, &self.env, suffix, flags).await?;
        let cpo = start_cpo(self.program, &self.env, &self.cluster, suffix, flags).await?;
        Ok([ho, cpo])
    }

    fn figure(&mut self, what: &str, value: f64, unit: &'static str, goal: f64) {
        self.report
            .figures
            .push(Figure::new(format!("AWS, {what}"), value, unit, goal));
    }

    fn memory(&mut self, processes: &[Hyperlink; 2], when: &str, goal: f64) -> Result<()> {
        for hyperlink in processes {
            let rss = mebibytes(hyperlink.process().rss().context("no VmRSS")?);
            let name = format!("RSS of {}, {when}", hyperlink.role());
            self.figure(&name, rss, "MiB", goal);
        }
        Ok(())
    }

    async fn onboard(&mut self) -> Result<()> {
        let began = Timestamp::now();
        self.cluster.create_objects(&self.env).await?;
        self.cluster
            .has_condition(&self.env, "AWSEndpointAvailable", ("True", "AWSSuccess"), PATIENCE)
            .await?;
        let elapsed = path::seconds(began, Timestamp::now());
        // From the start of the processes on, so that their sessions count.
        let calls = self.env.oracle().journal(0).await?;
        self.cluster.becomes_reachable(&self.env, PATIENCE).await?;
        self.figure(
            "onboarding, beyond what AWS takes",
            elapsed - of_aws(self.preset),
            "s",
            30.0,
        );
        self.figure("onboarding, calls, STS included", calls.len() as f64, "calls", 28.0);
        self.figure("onboarding, writes", writes(&calls), "calls", 6.0);
        self.report
            .remarks
            .push(format!("AWS, onboarding: {}", actions(&calls)));
        Ok(())
    }

    async fn at_rest(&mut self) -> Result<()> {
        // All has been read once, and is known to be at rest.
        tokio::time::sleep(RECORD_RESYNC * 5 / 4).await;
        let since = self.env.oracle().last_call().await?;
        let audit = Audit::begin(self.env.control_plane().audit_log())?;
        tokio::time::sleep(RECORD_RESYNC).await;
        let calls = self.env.oracle().journal(since).await?;
        let kubernetes = audit.writes()?;
        let rounds = RECORD_RESYNC.as_secs_f64() / RESYNC.as_secs_f64();
        let of_cpo = calls.iter().filter(|call| call.is_of(&CPO, CPO_ROLE)).count() as f64;
        let of_ho = calls.len() as f64 - of_cpo;
        self.figure("at rest, calls of cpo in 5 minutes", of_cpo / rounds, "calls", 2.5);
        self.figure(
            "at rest, calls of ho in 5 minutes, one cluster",
            of_ho / rounds,
            "calls",
            2.0,
        );
        self.figure("at rest, writes", writes(&calls), "calls", 0.0);
        let written = kubernetes.len() as f64;
        self.figure("at rest, Kubernetes writes besides the lease", written, "calls", 0.0);
        self.report.remarks.push(format!("AWS, at rest: {}", actions(&calls)));
        Ok(())
    }

    async fn delete(&mut self) -> Result<()> {
        // A deletion finds everything read, as in a process that has run for long.
        tokio::time::sleep(Duration::from_secs(30)).await;
        let (since, began) = (self.env.oracle().last_call().await?, Timestamp::now());
        self.cluster.delete(&self.env, PATIENCE).await?;
        let elapsed = path::seconds(began, Timestamp::now());
        let calls = self.env.oracle().journal(since).await?;
        let left = created(&self.env).await? as f64;
        self.report
            .figures
            .push(Figure::without_goal("AWS, gone, time", elapsed, "s"));
        self.figure("gone, calls", calls.len() as f64, "calls", 22.0);
        self.figure("gone, resources left behind", left, "resources", 0.0);
        self.report.remarks.push(format!("AWS, gone: {}", actions(&calls)));
        Ok(())
    }
}

fn writes(calls: &[AwsCall]) -> f64 {
    calls.iter().filter(|call| call.is_write()).count() as f64
}

/// How often each action was called.
fn actions(calls: &[AwsCall]) -> String {
    let mut counted = std::collections::BTreeMap::<&str, usize>::new();
    for call in calls {
        *counted.entry(call.action()).or_default() += 1;
    }
    let counted: Vec<_> = counted
        .into_iter()
        .map(|(action, times)| format!("{action} {times}"))
        .collect();
    counted.join(", ")
}
