//! The whole life of a cluster under both roles, while a process dies after any write: the result is the same.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hyperlink::api::{AzurePrivateLinkService, Role};
use hyperlink::azure::arm::client::Client;
use hyperlink::azure::arm::id::{ResourceId, SubscriptionId};
use hyperlink::azure::arm::scope::AzureScope;
use hyperlink::azure::observations::ObservationCache;
use hyperlink::controllers::azure::access::{ArmContext, Context};
use hyperlink::controllers::private_endpoint::PrivateEndpointController;
use hyperlink::controllers::private_link_service::PrivateLinkServiceController;
use hyperlink::controllers::private_link_service::frontend::FrontendMatch;
use hyperlink::controllers::private_link_service::nat_prefix::NatSubnetRules;
use hyperlink::controllers::private_link_service::settings::{ScopedSettings, Settings};
use hyperlink::controllers::reconciler::CustomResourceReconciler;
use hyperlink::controllers::report::fingerprint;
use hyperlink::hypershift::azure::management_scopes::{ManagementScope, ManagementScopes};
use hyperlink::hypershift::cluster_index::ClusterIndex;
use hyperlink::metrics::Metrics;
use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep, sleep_until};
use url::Url;
use uuid::Uuid;

use crate::cluster::{ADDRESS, CR, Cluster, frontend};
use crate::desired::{GUEST, NET, SUB};
use crate::restarts::state;
use crate::seed::seed;
use crate::sim::Sim;

mod deleted;
mod killed;

/// The process of one role: its context, and when it is due.
struct Process {
    role: Role,
    cx: Context,
    /// The controller of role `ho`, once it has reconciled.
    management: OnceCell<PrivateLinkServiceController>,
    due: Instant,
    /// The fingerprint of the custom resource at the end of the last reconcile.
    last_fingerprint: String,
}

impl Process {
    /// The part of the custom resource whose change starts a reconcile.
    fn fingerprint(&self, cr: &AzurePrivateLinkService) -> String {
        let published = self.cx.published.of(cr.metadata.uid.as_deref().unwrap_or_default());
        fingerprint(cr, self.role, &published, Instant::now().into_std())
    }
}

/// A cluster with the processes of both roles.
pub(crate) struct Life {
    pub(crate) sim: Sim,
    pub(crate) cluster: Arc<Cluster>,
    processes: [Process; 2],
    /// The group in which role `ho` creates services, and the scopes in which it may manage others.
    pub(crate) service_groups: (&'static str, Vec<AzureScope>),
    /// How many reconciles were those of an object at rest, and how many were not.
    pub(crate) at_rest: AtomicUsize,
    pub(crate) not_at_rest: AtomicUsize,
    died: bool,
    /// Whether `until` returns when a process has died.
    ends_with_a_death: bool,
}

fn context(role: Role, sim: &Sim, cluster: &Arc<Cluster>) -> Context {
    let metrics = Arc::new(Metrics::new("1", "c").unwrap());
    let kube = cluster.client();
    let endpoint = Url::parse("https://arm.test/").unwrap();
    let resync = Duration::from_secs(300);
    let client = Client::new(sim.azure.clone(), endpoint, sim.valve.clone(), metrics.clone());
    let arm = ArmContext::new(client, ObservationCache::new(resync, Duration::from_secs(2_700)));
    Context::new(role, "test", kube, arm, metrics, resync)
}

fn process(role: Role, sim: &Sim, cluster: &Arc<Cluster>) -> Process {
    Process {
        role,
        cx: context(role, sim, cluster),
        management: OnceCell::new(),
        due: Instant::now(),
        last_fingerprint: String::new(),
    }
}

async fn management(cx: &Context, (group, also): &(&str, Vec<AzureScope>)) -> PrivateLinkServiceController {
    let scope = ManagementScope {
        subscription: SubscriptionId::parse(SUB).unwrap(),
        resource_group: (*group).into(),
    };
    let settings = Settings {
        management_cluster: "5e1f0a3c-7b2d-4c68-9e14-2a6d8f0b4c35".into(),
        cloud: "AzurePublicCloud",
        scope: scope.clone(),
        other_scopes: Vec::new(),
        nat: NatSubnetRules {
            prefix_length: 28,
            pool: None,
        },
        nat_subnet: None,
        frontend_match: FrontendMatch::Name,
        also_manage: also.clone(),
    };
    let cluster_index = ClusterIndex::read::<AzurePrivateLinkService>(&cx.runtime.kube)
        .await
        .unwrap();
    let scopes = ManagementScopes::default().with_default(scope);
    let settings = ScopedSettings::new(scopes, |_, _| settings.clone());
    PrivateLinkServiceController::new(settings.unwrap(), Arc::new(cluster_index))
}

fn guest() -> PrivateEndpointController {
    PrivateEndpointController {
        allowed: None,
        hosted_clusters: None,
    }
}

/// How a reconcile has ended.
struct Reconciled {
    wait: Duration,
    /// Whether it was one of an object at rest.
    is_at_rest: bool,
}

async fn reconcile<R: CustomResourceReconciler<Object = AzurePrivateLinkService>>(
    reconciler: &R,
    cx: &Context,
    cr: AzurePrivateLinkService,
) -> Option<Reconciled> {
    let (inputs, _) = reconciler.inputs(cx, &cr).await.ok()?;
    // As a reconcile that only time has caused, if that suffices.
    let at_rest = reconciler
        .reconcile_at_rest(cx, Uuid::new_v4(), cr.clone(), &inputs)
        .await;
    let is_at_rest = at_rest.is_some();
    let outcome = match at_rest {
        Some(outcome) => outcome,
        None => reconciler.reconcile(cx, Uuid::new_v4(), cr, &inputs).await.ok()?,
    };
    // After that only a change needs a reconcile.
    let never = Duration::from_secs(86_400);
    Some(Reconciled {
        wait: if outcome.released { never } else { outcome.requeue.after },
        is_at_rest,
    })
}

impl Life {
    pub(crate) fn new() -> Self {
        let mut seed = seed();
        let resources = seed["resources"].as_array_mut().unwrap();
        let balancer = resources.iter_mut().find(|one| one["sku"].is_object()).unwrap();
        let subnet = json!({"id": format!("{NET}/virtualNetworks/hub/subnets/lb")});
        let own = json!({"name": frontend(), "properties": {"subnet": subnet, "privateIPAddress": ADDRESS,
            "privateIPAllocationMethod": "Static"}});
        balancer["properties"]["frontendIPConfigurations"]
            .as_array_mut()
            .unwrap()
            .push(own);
        let sim = Sim::seeded(&seed);
        let cluster = Cluster::new(&sim.valve);
        let processes = [Role::Ho, Role::Cpo].map(|role| process(role, &sim, &cluster));
        Self {
            sim,
            cluster,
            processes,
            service_groups: ("mgmt", Vec::new()),
            at_rest: AtomicUsize::new(0),
            not_at_rest: AtomicUsize::new(0),
            died: false,
            ends_with_a_death: false,
        }
    }

    /// The custom resource.
    pub(crate) fn cr(&self) -> Option<AzurePrivateLinkService> {
        self.cluster.get(CR).map(|found| serde_json::from_value(found).unwrap())
    }

    /// The process that reconciles next: one that observes a change, else the one that is due first.
    async fn next(&self, cr: &AzurePrivateLinkService) -> usize {
        let changed = |process: &Process| process.last_fingerprint != process.fingerprint(cr);
        if let Some(at) = self.processes.iter().position(changed) {
            return at;
        }
        let at = usize::from(self.processes[1].due < self.processes[0].due);
        sleep_until(self.processes[at].due).await;
        at
    }

    /// One reconcile. Returns the wait until the next one, unless this one failed.
    async fn reconcile_at(&self, at: usize, cr: AzurePrivateLinkService) -> Option<Duration> {
        let process = &self.processes[at];
        let written = || (self.cluster.writes(), self.sim.writes());
        let before = written();
        let reconciled = match process.role {
            Role::Ho => {
                let reconciler = process
                    .management
                    .get_or_init(|| management(&process.cx, &self.service_groups))
                    .await;
                reconcile(reconciler, &process.cx, cr).await?
            }
            Role::Cpo | Role::Capz => reconcile(&guest(), &process.cx, cr).await?,
        };
        if reconciled.is_at_rest {
            assert_eq!(written(), before, "a reconcile at rest has written");
        }
        let count = if reconciled.is_at_rest {
            &self.at_rest
        } else {
            &self.not_at_rest
        };
        count.fetch_add(1, Ordering::Relaxed);
        Some(reconciled.wait)
    }

    /// One reconcile of role `ho`, due or not. Returns the wait until the next one.
    pub(crate) async fn reconcile_management(&self) -> Duration {
        self.reconcile_at(0, self.cr().unwrap()).await.unwrap()
    }

    /// One reconcile of role `cpo`, due or not. Returns the wait until the next one.
    pub(crate) async fn reconcile_guest(&self) -> Duration {
        self.reconcile_at(1, self.cr().unwrap()).await.unwrap()
    }

    /// Reconciles until the custom resource meets the condition. A process that has died is replaced by another one.
    async fn until(&mut self, condition: impl Fn(Option<&Value>) -> bool) {
        for _ in 0..400 {
            if condition(self.cluster.get(CR).as_ref()) || !self.reconcile_next().await {
                return;
            }
        }
        panic!("never: {:#}", self.cluster.get(CR).unwrap_or_default());
    }

    /// Reconciles where one is due next. Returns whether to go on.
    async fn reconcile_next(&mut self) -> bool {
        let cr = self.cr().unwrap();
        let at = self.next(&cr).await;
        let wait = self.reconcile_at(at, cr).await;
        let fingerprint = self.cr().map(|cr| self.processes[at].fingerprint(&cr));
        if self.sim.valve.is_shut() {
            self.died = true;
            self.sim.valve.set(i64::MAX);
            self.processes[at] = self::process(self.processes[at].role, &self.sim, &self.cluster);
            return !self.ends_with_a_death;
        }
        let process = &mut self.processes[at];
        process.due = Instant::now() + wait.unwrap_or(Duration::from_secs(1));
        process.last_fingerprint = fingerprint.unwrap_or_default();
        true
    }

    /// Reconciles for this long, or until the custom resource is gone.
    pub(crate) async fn run_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while self.exists() && Instant::now() < end {
            self.reconcile_next().await;
        }
    }

    /// Reconciles role `ho` only for this long, or until the custom resource is gone.
    pub(crate) async fn run_management_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while self.exists() && Instant::now() < end {
            sleep(self.reconcile_management().await).await;
        }
    }

    /// Whether the custom resource exists.
    pub(crate) fn exists(&self) -> bool {
        self.cluster.get(CR).is_some()
    }

    /// Ends both processes and starts others.
    pub(crate) fn restart_both(&mut self) {
        self.processes = [Role::Ho, Role::Cpo].map(|role| process(role, &self.sim, &self.cluster));
    }

    /// The conditions of the custom resource.
    pub(crate) fn conditions(&self) -> Value {
        self.cluster.get(CR).unwrap_or_default()["status"]["conditions"].take()
    }

    /// The last calls, one line each.
    pub(crate) fn last_calls(&self, count: usize) -> String {
        let sent = self.sim.azure.sent();
        let first = sent.first().map(|call| call.at);
        let line = |call: &crate::transport::Sent| {
            let at = call.at.duration_since(first.unwrap_or(call.at)).as_secs();
            let path = call.request.uri().path();
            format!(
                "{at} s {} {}",
                call.verb(),
                path.rsplit_once("Microsoft.Network/").map_or(path, |(_, name)| name)
            )
        };
        let lines: Vec<String> = sent.iter().skip(sent.len().saturating_sub(count)).map(line).collect();
        lines.join("\n")
    }

    /// Writes into the status, as a tenant can.
    pub(crate) fn forge_status(&self, status: Value) {
        self.cluster.forge(CR, status);
    }

    /// Deletes the custom resource as `kubectl delete` does, now.
    pub(crate) fn delete_now(&self) {
        self.cluster.delete_at(CR, &Timestamp::now().to_string());
    }

    /// Deletes the custom resource as `kubectl delete` did, long ago.
    pub(crate) fn delete_long_ago(&self) {
        self.cluster.delete(CR);
    }

    /// The metrics of calls that were not sent because a resource had no call budget left.
    pub(crate) fn exhausted(&self) -> Vec<String> {
        let metrics = self
            .processes
            .iter()
            .map(|process| process.cx.runtime.metrics.render().unwrap());
        let lines = metrics.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>());
        let of_budgets = lines.filter(|line| line.starts_with("hyperlink_arm_call_budget_exhausted_total"));
        of_budgets.filter(|line| !line.ends_with(" 0")).collect()
    }

    pub(crate) async fn until_available(&mut self) {
        self.until(|cr| {
            let conditions = cr.and_then(|cr| cr["status"]["conditions"].as_array());
            let mut all = conditions.into_iter().flatten();
            all.any(|one| one["type"] == "AzurePrivateLinkServiceAvailable" && one["status"] == "True")
        })
        .await;
    }

    /// A cluster over which a process died after so many effects; none if it became available before that.
    pub(crate) async fn cut_short(effects: i64) -> Option<Self> {
        let mut life = Life::new();
        life.ends_with_a_death = true;
        life.sim.valve.set(effects);
        life.until_available().await;
        life.ends_with_a_death = false;
        life.died.then_some(life)
    }

    pub(crate) async fn delete_cluster(&mut self) {
        self.delete_long_ago();
        self.until(|cr| cr.is_none()).await;
    }

    /// How often each resource was written with this method.
    pub(crate) fn writes(&self, method: &str) -> BTreeMap<String, usize> {
        let mut writes = BTreeMap::new();
        for call in self.sim.azure.sent().iter().filter(|call| call.verb() == method) {
            *writes.entry(call.request.uri().path().to_owned()).or_default() += 1;
        }
        writes
    }
}
