//! Many clusters on one process of each role: all at once, at rest, beside an operation that never ends, and away again.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use jiff::Timestamp;
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;

use super::audit::Audit;
use super::figures::Figure;
use super::{Report, count, mebibytes, path, start, stop};
use crate::azure_sim::Preset;
use crate::ground::{Call, Ground};
use crate::hosted_cluster::{HostedCluster, conditions};
use crate::hyperlink::Hyperlink;
use crate::site::control;

const CLUSTERS: usize = 20;
/// The services that the one load balancer of the ground takes; 8 without a request to support.
const PER_BALANCER: usize = 40;
const PATIENCE: Duration = Duration::from_secs(1_200);

/// Twenty times as often as by default, and in the same ratio: what counts is calls per resync.
const RESYNC: Duration = Duration::from_secs(15);
const RECORD_RESYNC: Duration = Duration::from_secs(135);
const OFTEN: &[(&str, &str)] = &[("resync", "15s"), ("record-resync", "135s")];

struct Crowd {
    // Clients before servers.
    processes: [Hyperlink; 2],
    kube: kube::Client,
    ground: Ground,
    report: Report,
}

/// Measures it.
///
/// # Errors
///
/// Something cannot be measured.
pub async fn run(preset: Preset, program: &Path) -> Result<Report> {
    let quotas = json!({"pls_per_load_balancer": PER_BALANCER});
    let ground = Ground::local_with_quotas(preset, quotas).await?;
    let processes = start(program, &ground, "", &[]).await?;
    let kube = ground.client()?;
    let (report, all) = (Report::default(), clusters(&ground, "many", CLUSTERS));
    let mut crowd = Crowd {
        processes,
        kube,
        ground,
        report,
    };
    crowd.at_once(&all).await?;
    crowd = crowd.restarted(program, OFTEN).await?;
    crowd.at_rest().await?;
    crowd = crowd.restarted(program, &[]).await?;
    crowd.away(&all).await?;
    crowd.beside_a_stuck_one().await?;
    stop(crowd.processes).await?;
    Ok(crowd.report)
}

fn clusters(ground: &Ground, name: &str, number: usize) -> Vec<HostedCluster> {
    let cluster = |n| {
        let name = format!("{name}{n}");
        HostedCluster::new(ground, &name).with_base_domain(&format!("{name}.example.com"))
    };
    (0..number).map(cluster).collect()
}

impl Crowd {
    fn figure(&mut self, figure: Figure) {
        self.report.figures.push(figure);
    }

    /// With other processes, which know nothing of what these did.
    async fn restarted(self, program: &Path, flags: &[(&str, &str)]) -> Result<Self> {
        stop(self.processes).await?;
        let suffix = format!("-{}", self.report.figures.len());
        let processes = start(program, &self.ground, &suffix, flags).await?;
        Ok(Self { processes, ..self })
    }

    /// Makes all of them and waits until so many are available; when each of those was, in seconds from now.
    async fn come(&self, all: &[HostedCluster], wanted: usize) -> Result<Vec<f64>> {
        let began = Timestamp::now();
        try_join_all(all.iter().map(|cluster| cluster.create(&self.ground))).await?;
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(
            "hypershift.openshift.io",
            "v1beta1",
            "AzurePrivateLinkService",
        ));
        let api: Api<DynamicObject> = Api::all_with(self.kube.clone(), &kind);
        let namespaces: Vec<String> = all.iter().map(HostedCluster::control_plane_namespace).collect();
        let mut times: BTreeMap<String, f64> = BTreeMap::new();
        let patience = std::time::Instant::now() + PATIENCE;
        while times.len() < wanted {
            ensure!(
                std::time::Instant::now() < patience,
                "{} of {wanted} are available",
                times.len()
            );
            tokio::time::sleep(Duration::from_millis(500)).await;
            for found in api.list(&ListParams::default()).await? {
                let namespace = found.metadata.namespace.clone().unwrap_or_default();
                let available = conditions(&found)
                    .iter()
                    .any(|one| one.kind == "AzurePrivateLinkServiceAvailable" && one.status == "True");
                if available && namespaces.contains(&namespace) {
                    times.entry(namespace).or_insert(path::seconds(began, Timestamp::now()));
                }
            }
        }
        let mut times: Vec<f64> = times.into_values().collect();
        times.sort_by(f64::total_cmp);
        Ok(times)
    }

    async fn at_once(&mut self, all: &[HostedCluster]) -> Result<()> {
        eprintln!("{CLUSTERS} at once");
        let since = self.ground.oracle().last_call().await?;
        let times = self.come(all, all.len()).await?;
        let calls = self.ground.oracle().journal(since).await?;
        let name = |what: &str| {
            format!("{CLUSTERS} clusters at once ({PER_BALANCER} services per load balancer by quota), {what}")
        };
        let last = times.last().copied().unwrap_or_default();
        self.figure(Figure::new(name("last one available"), last, "s", 180.0));
        let slowest = slowest_endpoint(&calls);
        self.figure(Figure::told(name("median"), times[times.len() / 2], "s"));
        self.figure(Figure::told(name("slowest endpoint in Azure"), slowest, "s"));
        self.figure(Figure::new(
            name("ARM calls each"),
            calls.len() as f64 / CLUSTERS as f64,
            "calls",
            32.0,
        ));
        let refused = count(&calls, |call| call.is_write() && call.status >= 400);
        self.figure(Figure::told(name("refused writes"), refused, "calls"));
        for at in 0..self.processes.len() {
            let role = self.processes[at].role().as_str();
            let rss = mebibytes(self.processes[at].process().rss().context("no VmRSS")?);
            self.figure(Figure::told(format!("RSS of {role}, {CLUSTERS} clusters"), rss, "MiB"));
        }
        Ok(())
    }

    async fn beside_a_stuck_one(&mut self) -> Result<()> {
        eprintln!("beside one that is stuck");
        let all = clusters(&self.ground, "beside", 3);
        let stuck = &all[0];
        let hang = |path: String| json!({"match": {"method": "PUT", "path": path}, "do": {"operation": "hang"}});
        let rules = json!([hang(format!("/privateLinkServices/pls-{}$", stuck.cluster_id()))]);
        control(&self.ground, reqwest::Method::PUT, "/faults", rules).await?;
        let since = self.ground.oracle().last_call().await?;
        let times = self.come(&all, all.len() - 1).await?;
        let calls = self.ground.oracle().journal(since).await?;
        let name = "two clusters beside one whose Private Link Service never ends";
        self.figure(Figure::new(format!("{name}, last one available"), times[1], "s", 100.0));
        self.figure(Figure::told(
            format!("{name}, slowest endpoint in Azure"),
            slowest_endpoint(&calls),
            "s",
        ));
        Ok(())
    }

    async fn at_rest(&mut self) -> Result<()> {
        eprintln!("at rest");
        // Everything is read once by itself, and once more when a list first shows it.
        tokio::time::sleep(RECORD_RESYNC * 5 / 4).await;
        let since = self.ground.oracle().last_call().await?;
        let audit = Audit::begin(self.ground.control_plane().audit_log())?;
        tokio::time::sleep(RECORD_RESYNC).await;
        let calls = self.ground.oracle().journal(since).await?;
        let writes = count(&calls, Call::is_write);
        let rounds = RECORD_RESYNC.as_secs_f64() / RESYNC.as_secs_f64();
        let name = |what: &str| format!("{CLUSTERS} clusters at rest, {what}");
        self.figure(Figure::new(name("ARM writes"), writes, "calls", 0.0));
        let kubernetes = audit.writes()?;
        let written = kubernetes.len() as f64;
        self.figure(Figure::new(
            name("Kubernetes writes besides the lease"),
            written,
            "calls",
            0.0,
        ));
        let each = calls.len() as f64 / rounds / CLUSTERS as f64;
        self.figure(Figure::told(name("ARM calls per cluster and resync"), each, "calls"));
        let lists = [
            "/privateLinkServices",
            "/privateEndpoints",
            "/privateDnsZones",
            "/subnets",
            "/loadBalancers",
        ];
        let shared = count(&calls, |call| lists.iter().any(|list| call.path.ends_with(list)));
        let own = (calls.len() as f64 - shared) / rounds / CLUSTERS as f64;
        self.figure(Figure::new(name("those that are not shared"), own, "calls", 0.5));
        Ok(())
    }

    async fn away(&mut self, all: &[HostedCluster]) -> Result<()> {
        eprintln!("{CLUSTERS} away");
        let (since, began) = (self.ground.oracle().last_call().await?, Timestamp::now());
        try_join_all(all.iter().map(|cluster| cluster.delete(&self.ground, PATIENCE))).await?;
        let took = path::seconds(began, Timestamp::now());
        let calls = self.ground.oracle().journal(since).await?;
        let ids = self.ground.resource_ids().await?;
        let ours = [
            "/privatelinkservices/",
            "/privateendpoints/",
            "/privatednszones/",
            "-pls-nat",
        ];
        let left = ids
            .iter()
            .filter(|id| ours.iter().any(|part| id.contains(part)))
            .count();
        self.figure(Figure::told(
            format!("{CLUSTERS} clusters away at once, time"),
            took,
            "s",
        ));
        let each = calls.len() as f64 / CLUSTERS as f64;
        self.figure(Figure::told(
            format!("{CLUSTERS} clusters away at once, ARM calls each"),
            each,
            "calls",
        ));
        self.figure(Figure::new(
            format!("{CLUSTERS} clusters away at once, resources left behind"),
            left as f64,
            "resources",
            0.0,
        ));
        Ok(())
    }
}

/// Some endpoints take minutes, whoever asks for them.
fn slowest_endpoint(calls: &[Call]) -> f64 {
    let changes = path::changes(calls);
    let endpoints = changes.iter().filter(|change| change.what.starts_with("endpoint "));
    endpoints.map(path::Change::seconds).fold(0.0, f64::max)
}
