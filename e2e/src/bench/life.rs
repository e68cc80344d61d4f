//! One private hosted cluster's life: idle processes, onboarding, rest, and deletion.

use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use jiff::Timestamp;
use serde_json::json;

use super::audit::Audit;
use super::figures::Figure;
use super::{PATIENCE, Report, SOON, count, mebibytes, path, start, stop, test_env};
use crate::azure_sim::Preset;
use crate::hosted_cluster::{HostedCluster, ROUTER};
use crate::hyperlink::Hyperlink;
use crate::test_env::{Call, TestEnv};
use crate::wait::eventually;

/// How many resyncs are measured in the phase in which nothing changes.
const RESYNCS: usize = 30;
const OFTEN: &[(&str, &str)] = &[("resync", "2s"), ("record-resync", "2s")];

struct Life<'a> {
    test_env: TestEnv,
    program: &'a Path,
    cluster: HostedCluster,
    report: Report,
}

/// Measures one hosted cluster's life.
///
/// # Errors
///
/// Something cannot be measured.
pub(super) async fn run(preset: Preset, program: &Path) -> Result<Report> {
    let test_env = test_env(preset, &json!({})).await?;
    let cluster = HostedCluster::new(&test_env, "bench").with_base_domain("apps.example.com");
    let mut life = Life {
        test_env,
        program,
        cluster,
        report: Report::default(),
    };
    life.phases().await?;
    Ok(life.report)
}

impl Life<'_> {
    async fn phases(&mut self) -> Result<()> {
        let processes = self.start("", &[]).await?;
        self.memory(&processes, "idle", 12.0)?;
        eprintln!("onboarding");
        self.onboard().await?;
        self.memory(&processes, "after onboarding", 15.0)?;
        stop(processes).await?;
        let processes = self.start("-often", OFTEN).await?;
        eprintln!("at rest");
        self.at_rest().await?;
        stop(processes).await?;
        let since = self.test_env.oracle().last_call().await?;
        let processes = self.start("-again", &[]).await?;
        self.wait_for_reads(since, 1, &self.everything().await?).await?;
        eprintln!("going");
        self.delete().await?;
        stop(processes).await
    }

    async fn start(&self, suffix: &str, flags: &[(&str, &str)]) -> Result<[Hyperlink; 2]> {
        start(self.program, &self.test_env, suffix, flags).await
    }

    fn memory(&mut self, processes: &[Hyperlink; 2], when: &str, goal: f64) -> Result<()> {
        for hyperlink in processes {
            let (role, process) = (hyperlink.role(), hyperlink.process());
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
        let (client, since) = (self.test_env.client()?, self.test_env.oracle().last_call().await?);
        let cluster = self.cluster.clone();
        cluster.create(&self.test_env).await?;
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
        cluster.becomes_available(&self.test_env, PATIENCE).await?;
        let available = Timestamp::now();
        let calls = self.test_env.oracle().journal(since).await?;
        cluster.becomes_reachable(&self.test_env, SOON).await?;

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
        figures.push(Figure::without_goal(
            "onboarding, ARM writes",
            count(&calls, Call::is_write),
            "calls",
        ));
        self.explain("onboarding", &calls, appeared, available);
        Ok(())
    }

    async fn at_rest(&mut self) -> Result<()> {
        let services = [self.cluster.link_service(&self.test_env), self.cluster.endpoint()];
        self.wait_for_reads(self.test_env.oracle().last_call().await?, 2, &services)
            .await?;
        let since = self.test_env.oracle().last_call().await?;
        let audit = Audit::begin(self.test_env.control_plane().audit_log())?;
        self.wait_for_reads(since, RESYNCS, &services).await?;
        let calls = self.test_env.oracle().journal(since).await?;
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
        figures.push(Figure::without_goal("ARM reads per resync at rest", reads, "calls"));
        if !kubernetes.is_empty() {
            self.report.remarks.push(format!("at rest: {}", kubernetes.join(", ")));
        }
        Ok(())
    }

    /// Waits until each of these resources was read `times` times after the call numbered `since`.
    async fn wait_for_reads(&self, since: u64, times: usize, resources: &[String]) -> Result<()> {
        eventually("all has been looked at", PATIENCE, || async {
            let calls = self.test_env.oracle().journal(since).await?;
            for id in resources {
                let reads = calls.iter().filter(|call| call.path.eq_ignore_ascii_case(id)).count();
                ensure!(reads >= times, "{reads} looks at {id}");
            }
            Ok(())
        })
        .await
    }

    /// Ids of the resources that Hyperlink created for the cluster.
    async fn everything(&self) -> Result<Vec<String>> {
        let mut all = vec![
            self.cluster.link_service(&self.test_env),
            self.cluster.own_nat_subnet(&self.test_env),
            self.cluster.endpoint(),
        ];
        for zone in self.cluster.zones() {
            let inside = self.test_env.oracle().resources(&zone).await?;
            let ids = inside.iter().filter_map(|one| one["id"].as_str());
            all.extend(ids.filter(|id| !id.contains("/SOA/")).map(str::to_owned));
        }
        Ok(all)
    }

    async fn delete(&mut self) -> Result<()> {
        let since = self.test_env.oracle().last_call().await?;
        let began = Timestamp::now();
        self.cluster.delete(&self.test_env, PATIENCE).await?;
        let gone = Timestamp::now();
        let calls = self.test_env.oracle().journal(since).await?;
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
        let created = [
            vec![
                self.cluster.link_service(&self.test_env),
                self.cluster.own_nat_subnet(&self.test_env),
                self.cluster.endpoint(),
            ],
            self.cluster.zones(),
        ];
        let mut left = 0;
        for id in created.concat() {
            left += self.test_env.oracle().resources(&id).await?.len();
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
