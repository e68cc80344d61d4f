//! One process of Hyperlink before the simulated Azure: reconciles of single resources, as the controllers make them.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyperlink::azure::arm::client::Client;
use hyperlink::azure::arm::id::ResourceId;
use hyperlink::azure::arm::ports::{Counters, ObservedCall};
use hyperlink::azure::cloud::{Arm, Observed};
use hyperlink::azure::frontends::Frontends;
use hyperlink::azure::kinds::Kind;
use hyperlink::azure::kinds::private_link_service::alias;
use hyperlink::azure::observations::{Inventory, ObservationCache};
use hyperlink::azure::plan::{Outcome, Step};
use hyperlink::engine::client::Reconcile;
use hyperlink::engine::execute::{invalidate_cached, run};
use hyperlink::engine::gate::Gate;
use hyperlink::engine::plan;
use hyperlink::engine::plan::{Verb, ensure_present};
use hyperlink::engine::read::Reader;
use hyperlink::engine::resource::Resource;
use hyperlink::engine::urgency::Urgency;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};
use url::Url;

use crate::desired::link_service;
use crate::seed::seed;
use crate::transport::SimTransport;

/// One of `ensure_present` and `ensure_absent`.
pub(crate) type Rule = fn(&dyn Resource<Arm>, &Observed) -> Step;

/// `plan::ensure_absent`, for a desired resource.
pub(crate) fn ensure_absent(desired: &dyn Resource<Arm>, observed: &Observed) -> Step {
    plan::ensure_absent(desired, observed)
}

/// A gate that lets a given number of writes pass.
pub(crate) struct Valve(AtomicI64);

impl Valve {
    pub(crate) fn set(&self, writes: i64) {
        self.0.store(writes, Ordering::SeqCst);
    }

    /// Whether all allowed writes have passed.
    pub(crate) fn is_shut(&self) -> bool {
        self.0.load(Ordering::SeqCst) <= 0
    }
}

impl Gate for Valve {
    fn open(&self) -> bool {
        self.0.fetch_sub(1, Ordering::SeqCst) > 0
    }
}

/// Keeps the last counts and all calls.
#[derive(Default)]
pub(crate) struct Counted {
    pub(crate) budgets: Mutex<HashMap<&'static str, u64>>,
    pub(crate) calls: Mutex<Vec<ObservedCall>>,
    /// The kinds of the calls that were not sent because no call budget was left.
    pub(crate) exhausted: Mutex<Vec<Kind>>,
}

impl Counters for Counted {
    fn call(&self, observed: ObservedCall) {
        self.calls.lock().unwrap().push(observed);
    }

    fn budget(&self, budget: &'static str, remaining: u64) {
        self.budgets.lock().unwrap().insert(budget, remaining);
    }

    fn call_budget_exhausted(&self, kind: Kind) {
        self.exhausted.lock().unwrap().push(kind);
    }
}

pub(crate) struct Sim {
    pub(crate) azure: Arc<SimTransport>,
    pub(crate) valve: Arc<Valve>,
    pub(crate) counted: Arc<Counted>,
    pub(crate) client: Client,
    pub(crate) observations: ObservationCache,
    pub(crate) inventory: Inventory,
    pub(crate) frontends: Frontends,
    /// Whether the process dies after each write.
    pub(crate) dies: bool,
    /// Whether somebody waits for its reconciles.
    pub(crate) urgency: Urgency,
}

/// The reconciles that any test may need.
const MAX_RECONCILES: usize = 80;

impl Sim {
    pub(crate) fn new() -> Self {
        Self::seeded(&seed())
    }

    pub(crate) fn seeded(seed: &Value) -> Self {
        let azure = Arc::new(SimTransport::new(seed));
        let valve = Arc::new(Valve(AtomicI64::new(i64::MAX)));
        let counted = Arc::new(Counted::default());
        Self {
            client: client(&azure, &valve, &counted),
            observations: observations(),
            inventory: Inventory::default(),
            frontends: Frontends::default(),
            dies: false,
            urgency: Urgency::Awaited,
            azure,
            valve,
            counted,
        }
    }

    /// Ends the process and starts another one.
    pub(crate) fn restart(&mut self) {
        self.client = client(&self.azure, &self.valve, &self.counted);
        (self.observations, self.inventory) = (observations(), Inventory::default());
        self.frontends = Frontends::default();
    }

    pub(crate) fn reader(&self) -> Reader<'_, Arm, Client> {
        Reader {
            client: &self.client,
            observations: &self.observations,
            inventory: &self.inventory,
            reconcile: Reconcile {
                urgency: self.urgency,
                ..Reconcile::begin()
            },
        }
    }

    pub(crate) async fn read(&self, desired: &dyn Resource<Arm>) -> Observed {
        self.reader().read(desired.kind(), desired.key()).await
    }

    /// One reconcile of one resource: read, decide, read again what is only cached, execute.
    pub(crate) async fn reconcile(&mut self, rule: Rule, desired: &dyn Resource<Arm>) -> (Step, Outcome) {
        let began = Instant::now();
        let mut reader = self.reader();
        for _ in 0..3 {
            let step = rule(desired, &reader.read(desired.kind(), desired.key()).await);
            if !invalidate_cached(std::slice::from_ref(&step), &self.observations, began).is_empty() {
                reader.reconcile = reader.reconcile.awaited();
                continue;
            }
            let steps = std::slice::from_ref(&step);
            let outcome = run(steps, &self.client, &self.observations, reader.reconcile)
                .await
                .remove(0);
            if self.dies && step.writes() {
                self.restart();
            }
            return (step, outcome);
        }
        panic!("read again and again, never executed");
    }

    /// Reconciles whenever the next read is due, until the resource is as desired or gone.
    pub(crate) async fn until(&mut self, rule: Rule, desired: &dyn Resource<Arm>) -> Step {
        let mut last = None;
        for _ in 0..MAX_RECONCILES {
            let (step, outcome) = self.reconcile(rule, desired).await;
            if step.verb == Verb::Keep {
                return step;
            }
            last = Some(step);
            if outcome != Outcome::Ready {
                self.wait_until_due(desired).await;
            }
        }
        panic!("never at rest: {last:?}, after {}", self.calls());
    }

    pub(crate) async fn until_present(&mut self, desired: &dyn Resource<Arm>) -> Value {
        self.until(ensure_present, desired).await.found.unwrap()
    }

    pub(crate) async fn until_absent(&mut self, desired: &dyn Resource<Arm>) {
        assert!(self.until(ensure_absent, desired).await.gone());
    }

    /// Waits until the next read of the resource is due.
    pub(crate) async fn wait_until_due(&self, desired: &dyn Resource<Arm>) {
        match self.observations.next_read([desired.key()]) {
            Some(due) => sleep_until(due).await,
            None => sleep(Duration::from_secs(1)).await,
        }
    }

    /// The seconds until the next read of the resource is due.
    pub(crate) fn due_in(&self, desired: &dyn Resource<Arm>) -> u64 {
        let due = self.observations.next_read([desired.key()]).unwrap();
        due.saturating_duration_since(Instant::now()).as_secs()
    }

    /// Creates the Private Link Service and returns its alias.
    pub(crate) async fn alias(&mut self) -> String {
        alias(&self.until_present(&link_service()).await).unwrap().to_owned()
    }

    /// The verbs of the calls since the last `forget_calls`.
    pub(crate) fn calls(&self) -> String {
        let sent = self.azure.sent();
        sent.iter().map(|call| call.verb()).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn forget_calls(&self) {
        self.azure.sent().clear();
    }

    /// The number of writes since the last `forget_calls`.
    pub(crate) fn writes(&self) -> usize {
        let sent = self.azure.sent();
        let writes = sent.iter().filter(|call| matches!(call.verb(), "PUT" | "DELETE"));
        writes.count()
    }

    /// The correlation ids that the calls carry.
    pub(crate) fn correlation_ids(&self) -> BTreeSet<String> {
        let sent = self.azure.sent();
        let ids = sent.iter().map(|call| call.header("x-ms-correlation-request-id"));
        ids.map(|id| id.unwrap().to_owned()).collect()
    }

    /// The resource as Azure has it now.
    pub(crate) fn shown(&self, id: &ResourceId) -> Option<Value> {
        let now = self.azure.now();
        let found = self.azure.world().resources(now, &id.to_string());
        found.into_iter().find(|body| {
            let shown = body["id"].as_str().unwrap_or_default();
            shown.eq_ignore_ascii_case(&id.to_string())
        })
    }

    /// Writes a resource into Azure past the program.
    pub(crate) fn install(&self, id: &ResourceId, body: Value) {
        let now = self.azure.now();
        self.azure.world().put_resource(now, &id.to_string(), body).unwrap();
    }

    /// Changes a field of a resource past the program.
    pub(crate) fn drift(&self, id: &ResourceId, path: &str, value: Value) {
        let mut body = self.shown(id).unwrap();
        *body.pointer_mut(path).unwrap() = value;
        self.install(id, body);
    }

    /// Deletes a resource past the program.
    pub(crate) fn remove(&self, id: &ResourceId) {
        let now = self.azure.now();
        assert!(self.azure.world().delete_resource(now, &id.to_string()).unwrap());
    }

    /// Sets the fault rules from now on: what they match, and what they do.
    pub(crate) fn faults(&self, rules: &[(Value, Value)]) {
        let rules: Vec<Value> = rules
            .iter()
            .map(|(matches, action)| json!({"match": matches, "do": action}))
            .collect();
        let rules = armsim::parse_faults(json!(rules).to_string().as_bytes()).unwrap();
        self.azure.world().set_faults(rules);
    }

    /// Waits for longer than any operation takes.
    pub(crate) async fn let_operations_end(&self) {
        sleep(Duration::from_secs(3_600)).await;
    }

    /// Makes the next call with this method fail in this way.
    pub(crate) fn fault(&self, method: &str, action: Value) {
        self.faults(&[(json!({"method": method}), action)]);
    }

    /// The operations that are counted as under way, over all kinds.
    pub(crate) fn in_flight(&self) -> usize {
        let under_way = self.observations.under_way(Instant::now());
        under_way.values().map(|of_kind| of_kind.count).sum()
    }
}

fn client(azure: &Arc<SimTransport>, valve: &Arc<Valve>, counted: &Arc<Counted>) -> Client {
    let endpoint = Url::parse("https://arm.test/").unwrap();
    Client::new(azure.clone(), endpoint, valve.clone(), counted.clone())
}

fn observations() -> ObservationCache {
    ObservationCache::new(Duration::from_secs(300), Duration::from_secs(2_700))
}
