//! Both roles over the whole life of a cluster, by their own passes, while a process dies after every single effect: a write to Azure
//! or to Kubernetes. The end is the same, nothing is left, and nothing is written again for nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hyperlink::api::{AzurePrivateLinkService, Role};
use hyperlink::azure::client::{Client, Reconcile};
use hyperlink::azure::id::{ResourceId, SubscriptionId};
use hyperlink::azure::inventory::Inventory;
use hyperlink::azure::observation_cache::ObservationCache;
use hyperlink::azure::scope::Scope;
use hyperlink::controllers::awaiting::Awaiting;
use hyperlink::controllers::cluster_index::ClusterIndex;
use hyperlink::controllers::context::{Context, PublishedStore};
use hyperlink::controllers::custom_resources::CustomResources;
use hyperlink::controllers::excluded::ExcludedNamespaces;
use hyperlink::controllers::failures::Failures;
use hyperlink::controllers::polls::Polls;
use hyperlink::controllers::private_endpoint::PrivateEndpointController;
use hyperlink::controllers::private_link_service::PrivateLinkServiceController;
use hyperlink::controllers::private_link_service::frontend::FrontendMatch;
use hyperlink::controllers::private_link_service::nat_prefix::NatSubnetRules;
use hyperlink::controllers::private_link_service::plan::Settings;
use hyperlink::controllers::recorder::Recorder;
use hyperlink::controllers::report::fingerprint;
use hyperlink::controllers::run::Reconciler;
use hyperlink::metrics::Metrics;
use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep, sleep_until};
use url::Url;

use crate::cluster::{ADDRESS, CR, Cluster, frontend};
use crate::desired::{GUEST, NET, SUB, seed};
use crate::restarts::state;
use crate::sim::Sim;

/// One role's process: its context, and when it is due.
struct Process {
    role: Role,
    cx: Context,
    /// What the management side works with, once it does.
    management: OnceCell<PrivateLinkServiceController>,
    due: Instant,
    /// What the object was like when the last pass ended.
    observed: String,
}

impl Process {
    /// What of the object is worth a pass.
    fn fingerprint(&self, cr: &AzurePrivateLinkService) -> String {
        let published = self.cx.published.of(cr.metadata.uid.as_deref().unwrap_or_default());
        fingerprint(cr, self.role, &published, Instant::now().into_std())
    }
}

/// A cluster with both roles' processes.
pub(crate) struct Life {
    pub(crate) sim: Sim,
    pub(crate) cluster: Arc<Cluster>,
    processes: [Process; 2],
    /// Where the management side makes services, and where else it may manage them.
    pub(crate) place: (&'static str, Vec<Scope>),
    died: bool,
    /// Whether `until` ends with a death.
    ends_with_a_death: bool,
}

fn context(role: Role, sim: &Sim, cluster: &Arc<Cluster>) -> Context {
    let metrics = Arc::new(Metrics::new("1", "c").unwrap());
    let kube = cluster.client();
    let endpoint = Url::parse("https://arm.test/").unwrap();
    let resync = Duration::from_secs(300);
    Context {
        role,
        arm: Client::new(sim.azure.clone(), endpoint, sim.valve.clone(), metrics.clone()),
        events: Recorder::new(kube.clone(), role, "test", metrics.clone()),
        kube,
        observations: Arc::new(ObservationCache::new(resync, Duration::from_secs(2_700))),
        inventory: Inventory::default(),
        metrics,
        resync,
        excluded: ExcludedNamespaces::default(),
        published: PublishedStore::default(),
        polls: Polls::default(),
        awaiting: Awaiting::default(),
        resources: Arc::new(CustomResources::new(role)),
        failures: Failures::default(),
    }
}

fn process(role: Role, sim: &Sim, cluster: &Arc<Cluster>) -> Process {
    Process {
        role,
        cx: context(role, sim, cluster),
        management: OnceCell::new(),
        due: Instant::now(),
        observed: String::new(),
    }
}

async fn management(cx: &Context, (group, also): &(&str, Vec<Scope>)) -> PrivateLinkServiceController {
    let settings = Settings {
        management_cluster: "5e1f0a3c-7b2d-4c68-9e14-2a6d8f0b4c35".into(),
        cloud: "AzurePublicCloud",
        subscription: SubscriptionId::parse(SUB).unwrap(),
        resource_group: (*group).into(),
        nat: NatSubnetRules {
            prefix_length: 28,
            pool: None,
        },
        nat_subnet: None,
        frontend_match: FrontendMatch::Name,
        also_manage: also.clone(),
    };
    let cluster_index = ClusterIndex::read(&cx.kube).await.unwrap();
    PrivateLinkServiceController::new(settings, Arc::new(cluster_index))
}

fn guest() -> PrivateEndpointController {
    PrivateEndpointController {
        allowed: None,
        hosted_clusters: None,
    }
}

async fn reconcile<R: Reconciler>(reconciler: &R, cx: &Context, cr: AzurePrivateLinkService) -> Option<Duration> {
    let (inputs, _) = reconciler.inputs(cx, &cr).await.ok()?;
    let ended = reconciler.reconcile(cx, Reconcile::begin(), cr, inputs).await.ok()?;
    // Then only a change can bring more to do.
    let never = Duration::from_secs(86_400);
    Some(if ended.released { never } else { ended.wait })
}

impl Life {
    pub(crate) fn new() -> Self {
        let mut seed = seed();
        let resources = seed["resources"].as_array_mut().unwrap();
        let balancer = resources.iter_mut().find(|one| one["sku"].is_object()).unwrap();
        let subnet = json!({"id": format!("{NET}/virtualNetworks/hub/subnets/lb")});
        let ours = json!({"name": frontend(), "properties": {"subnet": subnet, "privateIPAddress": ADDRESS,
            "privateIPAllocationMethod": "Static"}});
        balancer["properties"]["frontendIPConfigurations"]
            .as_array_mut()
            .unwrap()
            .push(ours);
        let sim = Sim::seeded(&seed);
        let cluster = Cluster::new(&sim.valve);
        let processes = [Role::Ho, Role::Cpo].map(|role| process(role, &sim, &cluster));
        Self {
            sim,
            cluster,
            processes,
            place: ("mgmt", Vec::new()),
            died: false,
            ends_with_a_death: false,
        }
    }

    /// The custom resource.
    pub(crate) fn cr(&self) -> Option<AzurePrivateLinkService> {
        self.cluster.get(CR).map(|found| serde_json::from_value(found).unwrap())
    }

    /// The process whose pass comes next: one that sees a change, else the one that is due first.
    async fn next(&self, cr: &AzurePrivateLinkService) -> usize {
        let changed = |process: &Process| process.observed != process.fingerprint(cr);
        if let Some(at) = self.processes.iter().position(changed) {
            return at;
        }
        let at = usize::from(self.processes[1].due < self.processes[0].due);
        sleep_until(self.processes[at].due).await;
        at
    }

    /// One pass; when the next one is due, unless this one could not go on.
    async fn passes(&self, at: usize, cr: AzurePrivateLinkService) -> Option<Duration> {
        let process = &self.processes[at];
        match process.role {
            Role::Ho => {
                let reconciler = process
                    .management
                    .get_or_init(|| management(&process.cx, &self.place))
                    .await;
                reconcile(reconciler, &process.cx, cr).await
            }
            Role::Cpo => reconcile(&guest(), &process.cx, cr).await,
        }
    }

    /// One pass of the management side, due or not; when it wants the next one.
    pub(crate) async fn management_passes(&self) -> Duration {
        self.passes(0, self.cr().unwrap()).await.unwrap()
    }

    /// The same of the guest's side.
    pub(crate) async fn guest_passes(&self) -> Duration {
        self.passes(1, self.cr().unwrap()).await.unwrap()
    }

    /// Passes until the object is as asked for. A process that has died is followed by another one.
    async fn until(&mut self, outcomes: impl Fn(Option<&Value>) -> bool) {
        for _ in 0..400 {
            if outcomes(self.cluster.get(CR).as_ref()) || !self.passes_next().await {
                return;
            }
        }
        panic!("never: {:#}", self.cluster.get(CR).unwrap_or_default());
    }

    /// The pass that comes next; whether there is more to do.
    async fn passes_next(&mut self) -> bool {
        let cr = self.cr().unwrap();
        let at = self.next(&cr).await;
        let wait = self.passes(at, cr).await;
        let observed = self.cr().map(|cr| self.processes[at].fingerprint(&cr));
        if self.sim.valve.is_shut() {
            self.died = true;
            self.sim.valve.set(i64::MAX);
            self.processes[at] = self::process(self.processes[at].role, &self.sim, &self.cluster);
            return !self.ends_with_a_death;
        }
        let process = &mut self.processes[at];
        process.due = Instant::now() + wait.unwrap_or(Duration::from_secs(1));
        process.observed = observed.unwrap_or_default();
        true
    }

    /// Passes for so long, or until the object is gone.
    pub(crate) async fn lives_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while self.stands() && Instant::now() < end {
            self.passes_next().await;
        }
    }

    /// The same with nobody who serves the guest's side.
    pub(crate) async fn management_alone_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while self.stands() && Instant::now() < end {
            sleep(self.management_passes().await).await;
        }
    }

    /// Whether the custom resource is there.
    pub(crate) fn stands(&self) -> bool {
        self.cluster.get(CR).is_some()
    }

    /// Both processes end, and others begin.
    pub(crate) fn restarts(&mut self) {
        self.processes = [Role::Ho, Role::Cpo].map(|role| process(role, &self.sim, &self.cluster));
    }

    /// The conditions of the custom resource.
    pub(crate) fn told(&self) -> Value {
        self.cluster.get(CR).unwrap_or_default()["status"]["conditions"].take()
    }

    /// The last calls, a line each.
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
    pub(crate) fn forges(&self, status: Value) {
        self.cluster.forge(CR, status);
    }

    /// As `kubectl delete` does, now.
    pub(crate) fn is_deleted(&self) {
        self.cluster.delete_at(CR, &Timestamp::now().to_string());
    }

    /// As `kubectl delete` did.
    pub(crate) fn was_deleted_long_ago(&self) {
        self.cluster.delete(CR);
    }

    /// Calls that either process did not send because a resource had no call budget left.
    pub(crate) fn exhausted(&self) -> Vec<String> {
        let metrics = self
            .processes
            .iter()
            .map(|process| process.cx.metrics.render().unwrap());
        let lines = metrics.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>());
        let of_budgets = lines.filter(|line| line.starts_with("hyperlink_arm_call_budget_exhausted_total"));
        of_budgets.filter(|line| !line.ends_with(" 0")).collect()
    }

    pub(crate) async fn comes(&mut self) {
        self.until(|cr| {
            let conditions = cr.and_then(|cr| cr["status"]["conditions"].as_array());
            let mut all = conditions.into_iter().flatten();
            all.any(|one| one["type"] == "AzurePrivateLinkServiceAvailable" && one["status"] == "True")
        })
        .await;
    }

    /// A cluster over which a process died after so many effects; none if it came about first.
    pub(crate) async fn cut_short(effects: i64) -> Option<Self> {
        let mut life = Life::new();
        life.ends_with_a_death = true;
        life.sim.valve.set(effects);
        life.comes().await;
        life.ends_with_a_death = false;
        life.died.then_some(life)
    }

    pub(crate) async fn goes(&mut self) {
        self.was_deleted_long_ago();
        self.until(|cr| cr.is_none()).await;
    }

    /// How often each resource was written so.
    pub(crate) fn writes(&self, method: &str) -> BTreeMap<String, usize> {
        let mut writes = BTreeMap::new();
        for call in self.sim.azure.sent().iter().filter(|call| call.verb() == method) {
            *writes.entry(call.request.uri().path().to_owned()).or_default() += 1;
        }
        writes
    }
}

#[tokio::test(start_paused = true)]
async fn cluster_comes_and_goes_and_nothing_is_left() {
    let mut life = Life::new();
    let empty = state(&life.sim);
    life.comes().await;
    assert_eq!(life.writes("PUT").len(), 11, "{:?}", life.writes("PUT"));
    assert!(
        life.writes("PUT").values().all(|times| *times == 1),
        "{:?}",
        life.writes("PUT")
    );
    let calls = life.sim.azure.sent().len();
    assert!(calls <= 28, "{calls}: {}", life.sim.calls());
    life.sim.forget_calls();
    life.goes().await;
    let calls = life.sim.azure.sent().len();
    assert!(calls <= 25, "{calls}: {}", life.last_calls(40));
    assert_eq!(state(&life.sim), empty);
}

/// Every third effect, beginning with one of the first three: three tests that run beside each other.
#[rstest]
#[tokio::test(start_paused = true)]
async fn process_dies_after_each_effect_of_a_life(#[values(1, 2, 3)] first: i64) {
    let mut undisturbed = Life::new();
    let empty = state(&undisturbed.sim);
    undisturbed.comes().await;
    let full = state(&undisturbed.sim);
    for effects in (first..).step_by(3) {
        let mut life = Life::new();
        life.sim.valve.set(effects);
        life.comes().await;
        assert_eq!(state(&life.sim), full, "dead after {effects} effects");
        for (path, times) in life.writes("PUT") {
            // Nothing tells that a create in private DNS was accepted but its operation, which died with the process.
            let may = if path.contains("/privateDnsZones/") && life.died {
                2
            } else {
                1
            };
            assert!(
                times <= may,
                "dead after {effects} effects: {path} was put {times} times"
            );
        }
        life.goes().await;
        assert_eq!(state(&life.sim), empty, "dead after {effects} effects");
        if !life.died {
            assert!(effects > 30, "only {effects} effects in a life");
            return;
        }
    }
}

/// What was begun is on record before it is begun: whoever comes next finds it, at once or as late as a lease takes to pass on.
#[rstest]
#[tokio::test(start_paused = true)]
async fn cluster_is_deleted_right_after_a_process_died_over_it(
    #[values(1, 2)] first: i64,
    #[values(0, 15)] pause: u64,
) {
    let empty = state(&Life::new().sim);
    for effects in (first..).step_by(2) {
        let Some(mut life) = Life::cut_short(effects).await else {
            assert!(effects > 15, "only {effects} effects until it is available");
            return;
        };
        sleep(Duration::from_secs(pause)).await;
        life.goes().await;
        // What was accepted without anything to read comes to be even now.
        life.sim.let_operations_end().await;
        assert_eq!(state(&life.sim), empty, "dead after {effects} effects");
    }
}

/// The guest's side goes with its control plane, and the custom resource is deleted later by the garbage collector.
#[tokio::test(start_paused = true)]
async fn what_was_seen_to_be_gone_before_the_control_plane_went_is_looked_at_again() {
    let life = Life::new();
    life.management_passes().await;
    life.sim.forget_calls();
    // Finalizers and intent are there, and the gate shuts before the first write to Azure.
    life.sim.valve.set(2);
    life.passes(1, life.cr().unwrap()).await;
    assert!(life.sim.valve.is_shut(), "{}", life.sim.calls());
    assert_eq!(life.writes("PUT"), BTreeMap::new());
    life.sim.valve.set(i64::MAX);
    let zone = format!("{GUEST}/privateDnsZones/example.hypershift.local");
    let zone = ResourceId::parse(&zone).unwrap();
    assert!(
        life.processes[1]
            .cx
            .observations
            .absent_for(&zone, Instant::now())
            .is_some()
    );
    // By then nothing that was put before could come about any more; but another writer puts it.
    sleep(Duration::from_secs(60)).await;
    let ours = json!({"location": "global", "tags": {"hypershift.openshift.io_cluster-id": "x-id"}});
    life.sim.install(&zone, ours);
    life.cluster
        .delete_at("hostedcontrolplanes/example", &Timestamp::now().to_string());
    while held(&life.cr().unwrap()) {
        sleep(life.guest_passes().await.min(Duration::from_secs(300))).await;
    }
    assert_eq!(life.sim.shown(&zone), None);
}

/// Its finalizer of ours was released while the first reconcile was in Azure: nothing is made any more.
#[tokio::test(start_paused = true)]
async fn control_plane_that_goes_before_the_first_put_gets_no_endpoint() {
    let life = Life::new();
    while life
        .cr()
        .unwrap()
        .status
        .is_none_or(|status| status.private_link_service_alias.is_none())
    {
        sleep(life.management_passes().await).await;
    }
    life.sim.forget_calls();
    life.cluster.goes_before_the_next_patch("hostedcontrolplanes/example");
    assert_eq!(life.passes(1, life.cr().unwrap()).await, None);
    assert!(held(&life.cr().unwrap()));
    assert_eq!(life.writes("PUT"), BTreeMap::new());
}

fn held(cr: &AzurePrivateLinkService) -> bool {
    let finalizers = cr.metadata.finalizers.iter().flatten();
    finalizers.into_iter().any(|one| one == Role::Cpo.finalizer())
}
