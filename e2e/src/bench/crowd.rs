//! Many clusters on one process of each role: created at once, at rest, beside an operation that never ends, and
//! deleted at once.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use futures::TryStreamExt;
use futures::future::try_join_all;
use jiff::Timestamp;
use kube::api::{Api, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::{Value, json};

use super::audit::Audit;
use super::figures::Figure;
use super::{PATIENCE, Report, count, mebibytes, path, start, stop, test_env};
use crate::azure_sim::{Preset, guest_subscriptions};
use crate::hosted_cluster::{Condition, HostedCluster, conditions};
use crate::hyperlink::{Hyperlink, allow_guest_subscription};
use crate::shared_env::control;
use crate::test_env::{Call, TestEnv};

const CLUSTERS: usize = 20;
/// How many Private Link Services the one load balancer takes; 8 unless Azure's support raises it.
const PER_BALANCER: usize = 40;

/// Thirty times as often as by default, in the default's ratio: the figure is calls per resync.
const RESYNC: Duration = Duration::from_secs(10);
const RECORD_RESYNC: Duration = Duration::from_secs(90);
const OFTEN: &[(&str, &str)] = &[("resync", "10s"), ("record-resync", "90s")];

/// The processes under test and their test environment.
pub(super) struct Crowd {
    // Drop order: clients before servers.
    processes: [Hyperlink; 2],
    kube: kube::Client,
    test_env: TestEnv,
    report: Report,
}

/// A test environment between two pairs of processes.
pub(super) struct Stopped {
    kube: kube::Client,
    test_env: TestEnv,
    report: Report,
}

impl Stopped {
    pub(super) fn test_env(&self) -> &TestEnv {
        &self.test_env
    }

    /// Starts both roles anew.
    pub(super) async fn started(self, program: &Path, flags: &[(&str, &str)]) -> Result<Crowd> {
        let suffix = format!("-{}", uuid::Uuid::new_v4().simple());
        Ok(Crowd {
            processes: begin(program, &self.test_env, &suffix, flags).await?,
            kube: self.kube,
            test_env: self.test_env,
            report: self.report,
        })
    }
}

/// Measures many clusters at once.
///
/// # Errors
///
/// Something cannot be measured.
pub(super) async fn run(preset: Preset, program: &Path) -> Result<Report> {
    let mut crowd = Crowd::start(preset, program, &json!({"pls_per_load_balancer": PER_BALANCER})).await?;
    let all = clusters(&crowd.test_env, "many", CLUSTERS);
    crowd.at_once(&all).await?;
    crowd = crowd.restarted(program, OFTEN).await?;
    crowd.at_rest().await?;
    crowd = crowd.restarted(program, &[]).await?;
    crowd.refill_budgets().await?;
    crowd.delete_all(&all).await?;
    crowd.beside_a_stuck_one().await?;
    crowd.stop().await
}

/// Starts both roles, which serve clusters of all guest subscriptions.
async fn begin(program: &Path, test_env: &TestEnv, suffix: &str, flags: &[(&str, &str)]) -> Result<[Hyperlink; 2]> {
    let mut allowed = allow_guest_subscription(test_env);
    let scopes = guest_subscriptions()
        .into_iter()
        .map(|id| format!("/subscriptions/{id}"));
    allowed["hostedClusters"][0]["scopes"] = scopes.collect();
    let file = test_env.dir().join("crowd-scopes.json");
    std::fs::write(&file, allowed.to_string())?;
    let file = file.to_str().context("the path")?;
    start(program, test_env, suffix, &[flags, &[("allow-scopes", file)]].concat()).await
}

pub(super) fn clusters(test_env: &TestEnv, name: &str, number: usize) -> Vec<HostedCluster> {
    let cluster = |n| {
        let name = format!("{name}{n}");
        HostedCluster::new(test_env, &name).with_base_domain(&format!("{name}.example.com"))
    };
    (0..number).map(cluster).collect()
}

/// One NAT subnet for all clusters, with room for a service of each.
pub(super) async fn nat_subnet(test_env: &TestEnv) -> Result<String> {
    let id = format!("{}/subnets/given", test_env.azure().management_vnet);
    let subnet = json!({"properties": {
        "addressPrefix": "10.226.0.0/16", "privateLinkServiceNetworkPolicies": "Disabled"}});
    test_env.oracle().drift_put(&id, &subnet).await?;
    Ok(id)
}

pub(super) fn with_nat_subnet(all: Vec<HostedCluster>, id: &str) -> Vec<HostedCluster> {
    all.into_iter().map(|cluster| cluster.with_nat_subnet(id)).collect()
}

impl Crowd {
    /// Starts both roles without any cluster yet; `quotas` are those of each subscription.
    pub(super) async fn start(preset: Preset, program: &Path, quotas: &Value) -> Result<Self> {
        let test_env = test_env(preset, quotas).await?;
        Ok(Self {
            processes: begin(program, &test_env, "", &[]).await?,
            kube: test_env.client()?,
            test_env,
            report: Report::default(),
        })
    }

    pub(super) fn test_env(&self) -> &TestEnv {
        &self.test_env
    }

    /// Stops the processes while the API server still runs, to which they release their leases.
    pub(super) async fn stop(self) -> Result<Report> {
        stop(self.processes).await?;
        Ok(self.report)
    }

    fn figure(&mut self, figure: Figure) {
        self.report.figures.push(figure);
    }

    /// Replaces the processes by new ones, whose observation cache is empty.
    pub(super) async fn restarted(self, program: &Path, flags: &[(&str, &str)]) -> Result<Self> {
        self.stopped().await?.started(program, flags).await
    }

    /// Stops the processes, to start others later.
    pub(super) async fn stopped(self) -> Result<Stopped> {
        stop(self.processes).await?;
        Ok(Stopped {
            kube: self.kube,
            test_env: self.test_env,
            report: self.report,
        })
    }

    /// The memory of each role's process, in MiB.
    pub(super) fn memory(&self) -> Result<Vec<(&'static str, f64)>> {
        let memory = |one: &Hyperlink| Ok((one.role(), mebibytes(one.process().rss().context("no VmRSS")?)));
        self.processes.iter().map(memory).collect()
    }

    /// Advances the simulator's clock by 300 s, after which Azure's request budgets are full again. The many resyncs of
    /// this benchmark exhaust the budget for reads of private DNS.
    pub(super) async fn refill_budgets(&self) -> Result<()> {
        let later = json!({"advance_s": 300});
        control(&self.test_env, reqwest::Method::POST, "/clock", later).await
    }

    /// Creates all of these clusters and waits until `needed` of them are available. Returns after how many seconds
    /// each of those was available, in ascending order.
    pub(super) async fn bring_up(&self, all: &[HostedCluster], needed: usize) -> Result<Vec<f64>> {
        self.bring_up_within(all, needed, PATIENCE).await
    }

    /// Like [`Self::bring_up`], for clusters that may take as long as `patience`.
    pub(super) async fn bring_up_within(
        &self,
        all: &[HostedCluster],
        needed: usize,
        patience: Duration,
    ) -> Result<Vec<f64>> {
        let namespaces: Vec<_> = all.iter().map(HostedCluster::control_plane_namespace).collect();
        let (kind, condition) = ("AzurePrivateLinkService", "AzurePrivateLinkServiceAvailable");
        let available = available_after(&self.kube, kind, condition, &namespaces, needed);
        let created = try_join_all(all.iter().map(|cluster| cluster.create(&self.test_env)));
        let both = async { tokio::try_join!(created, available) };
        let within = tokio::time::timeout(patience, both).await;
        let (_, times) = within.with_context(|| format!("not {needed} clusters in {patience:?}"))??;
        Ok(times)
    }

    async fn at_once(&mut self, all: &[HostedCluster]) -> Result<()> {
        eprintln!("{CLUSTERS} at once");
        let since = self.test_env.oracle().last_call().await?;
        let times = self.bring_up(all, all.len()).await?;
        let calls = self.test_env.oracle().journal(since).await?;
        let name = |what: &str| {
            format!("{CLUSTERS} clusters at once ({PER_BALANCER} services per load balancer by quota), {what}")
        };
        let last = times.last().copied().context("no cluster")?;
        self.figure(Figure::new(name("last one available"), last, "s", 180.0));
        self.figure(Figure::without_goal(name("median"), times[times.len() / 2], "s"));
        self.figure(Figure::new(
            name("ARM calls each"),
            calls.len() as f64 / CLUSTERS as f64,
            "calls",
            32.0,
        ));
        let refused = count(&calls, |call| call.is_write() && call.status >= 400);
        self.figure(Figure::without_goal(name("refused writes"), refused, "calls"));
        for (role, rss) in self.memory()? {
            let name = format!("RSS of {role}, {CLUSTERS} clusters");
            self.figure(Figure::without_goal(name, rss, "MiB"));
        }
        Ok(())
    }

    async fn beside_a_stuck_one(&mut self) -> Result<()> {
        eprintln!("three, and two beside one that is stuck");
        let free = self.bring_up(&clusters(&self.test_env, "free", 3), 3).await?[2];
        let all = clusters(&self.test_env, "beside", 3);
        let path = format!("/privateLinkServices/pls-{}$", all[0].cluster_id());
        let rules = json!([{"match": {"method": "PUT", "path": path}, "do": {"operation": "hang"}}]);
        control(&self.test_env, reqwest::Method::PUT, "/faults", rules).await?;
        let beside = self.bring_up(&all, 2).await?[1];
        let name = "two clusters beside one whose Private Link Service never ends";
        self.figure(Figure::without_goal(format!("{name}, last one available"), beside, "s"));
        self.figure(Figure::new(
            format!("{name}, last one later than if it does end (whole seconds)"),
            (beside - free).max(0.0).round(),
            "s",
            0.0,
        ));
        Ok(())
    }

    async fn at_rest(&mut self) -> Result<()> {
        eprintln!("at rest");
        self.refill_budgets().await?;
        // Hyperlink reads each resource once by a GET, and once more when a list first shows it.
        tokio::time::sleep(RECORD_RESYNC * 5 / 4).await;
        let since = self.test_env.oracle().last_call().await?;
        let audit = Audit::begin(self.test_env.control_plane().audit_log())?;
        tokio::time::sleep(RECORD_RESYNC).await;
        let calls = self.test_env.oracle().journal(since).await?;
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
        if !kubernetes.is_empty() {
            let remark = format!("{CLUSTERS} clusters at rest: {}", kubernetes.join(", "));
            self.report.remarks.push(remark);
        }
        let each = calls.len() as f64 / rounds / CLUSTERS as f64;
        self.figure(Figure::without_goal(
            name("ARM calls per cluster and resync"),
            each,
            "calls",
        ));
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

    async fn delete_all(&mut self, all: &[HostedCluster]) -> Result<()> {
        eprintln!("{CLUSTERS} away");
        let (since, began) = (self.test_env.oracle().last_call().await?, Timestamp::now());
        try_join_all(all.iter().map(|cluster| cluster.delete(&self.test_env, PATIENCE))).await?;
        let elapsed = path::seconds(began, Timestamp::now());
        let calls = self.test_env.oracle().journal(since).await?;
        let ids = self.test_env.resource_ids().await?;
        let created = [
            "/privatelinkservices/",
            "/privateendpoints/",
            "/privatednszones/",
            "-pls-nat",
        ];
        let left = ids
            .iter()
            .filter(|id| created.iter().any(|part| id.contains(part)))
            .count();
        self.figure(Figure::without_goal(
            format!("{CLUSTERS} clusters away at once, time"),
            elapsed,
            "s",
        ));
        let each = calls.len() as f64 / CLUSTERS as f64;
        self.figure(Figure::without_goal(
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

/// After how many seconds from now custom resources of this kind have the condition, in ascending order: the first
/// `needed` of those in these namespaces.
pub(super) async fn available_after(
    kube: &kube::Client,
    kind: &str,
    condition: &str,
    namespaces: &[String],
    needed: usize,
) -> Result<Vec<f64>> {
    let began = Timestamp::now();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("hypershift.openshift.io", "v1beta1", kind));
    let api: Api<DynamicObject> = Api::all_with(kube.clone(), &kind);
    // A watch: lists of many objects, again and again, would slow down the API server that is measured too.
    let mut changed = std::pin::pin!(watcher(api, watcher::Config::default()).touched_objects());
    let mut available_after: BTreeMap<String, f64> = BTreeMap::new();
    while available_after.len() < needed {
        let found = changed.try_next().await?.context("the watch has ended")?;
        let namespace = found.metadata.namespace.clone().unwrap_or_default();
        let is_true = |one: &Condition| one.kind == condition && one.status == "True";
        if conditions(&found).iter().any(is_true) && namespaces.contains(&namespace) {
            let elapsed = path::seconds(began, Timestamp::now());
            available_after.entry(namespace).or_insert(elapsed);
        }
    }
    let mut times: Vec<f64> = available_after.into_values().collect();
    times.sort_by(f64::total_cmp);
    Ok(times)
}
