//! One process of ours before the simulated Azure: passes over single resources, as the controllers make them.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyperlink::azure::client::{Client, Reconcile};
use hyperlink::azure::execute::{invalidate_cached, run};
use hyperlink::azure::id::ResourceId;
use hyperlink::azure::inventory::Inventory;
use hyperlink::azure::observation_cache::ObservationCache;
use hyperlink::azure::plan::{self, Outcome, Step, Verb, ensure_present};
use hyperlink::azure::ports::{Counters, Gate, ObservedCall};
use hyperlink::azure::private_link_service::alias;
use hyperlink::azure::read::Reader;
use hyperlink::azure::resource::{Kind, Observed, Resource};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};
use url::Url;

use crate::desired::{link_service, seed};
use crate::transport::SimTransport;

/// `ensure_present` or `ensure_absent`.
pub(crate) type Rule = fn(&dyn Resource, &Observed) -> Step;

/// Takes away what is known in full.
pub(crate) fn ensure_absent(desired: &dyn Resource, observed: &Observed) -> Step {
    plan::ensure_absent(desired, observed)
}

/// Lets that many writes pass.
pub(crate) struct Valve(AtomicI64);

impl Valve {
    pub(crate) fn set(&self, writes: i64) {
        self.0.store(writes, Ordering::SeqCst);
    }

    /// Whether all have passed that may.
    pub(crate) fn is_shut(&self) -> bool {
        self.0.load(Ordering::SeqCst) <= 0
    }
}

impl Gate for Valve {
    fn open(&self) -> bool {
        self.0.fetch_sub(1, Ordering::SeqCst) > 0
    }
}

/// Keeps what was counted last.
#[derive(Default)]
pub(crate) struct Counted {
    pub(crate) budgets: Mutex<HashMap<&'static str, u64>>,
    pub(crate) calls: Mutex<Vec<ObservedCall>>,
    /// The kinds of the calls that were not sent for want of a call budget.
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
    /// Whether the process dies after each write.
    pub(crate) dies: bool,
}

/// Passes that anything may take.
const PATIENCE: usize = 80;

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
            dies: false,
            azure,
            valve,
            counted,
        }
    }

    /// The process ends and another one begins.
    pub(crate) fn restart(&mut self) {
        self.client = client(&self.azure, &self.valve, &self.counted);
        (self.observations, self.inventory) = (observations(), Inventory::default());
    }

    pub(crate) fn looker(&self) -> Reader<'_> {
        Reader {
            client: &self.client,
            observations: &self.observations,
            inventory: &self.inventory,
            reconcile: Reconcile::begin(),
        }
    }

    pub(crate) async fn read(&self, desired: &dyn Resource) -> Observed {
        self.looker().read(desired.kind(), desired.id()).await
    }

    /// One pass over one resource: look, decide, read again what is only remembered, execute.
    pub(crate) async fn reconcile(&mut self, rule: Rule, desired: &dyn Resource) -> (Step, Outcome) {
        let began = Instant::now();
        let looker = self.looker();
        for _ in 0..3 {
            let step = rule(desired, &looker.read(desired.kind(), desired.id()).await);
            if !invalidate_cached(std::slice::from_ref(&step), &self.observations, began).is_empty() {
                continue;
            }
            let steps = std::slice::from_ref(&step);
            let outcomes = run(steps, &self.client, &self.observations, looker.reconcile)
                .await
                .remove(0);
            if self.dies && step.writes() {
                self.restart();
            }
            return (step, outcomes);
        }
        panic!("read again and again, never executed");
    }

    /// Passes, each when the next look is due, until the resource is as wanted or gone.
    pub(crate) async fn until(&mut self, rule: Rule, desired: &dyn Resource) -> Step {
        let mut last = None;
        for _ in 0..PATIENCE {
            let (step, outcomes) = self.reconcile(rule, desired).await;
            if step.verb == Verb::Keep {
                return step;
            }
            last = Some(step);
            if outcomes != Outcome::Ready {
                self.rest(desired).await;
            }
        }
        panic!("never at rest: {last:?}, after {}", self.calls());
    }

    pub(crate) async fn bring(&mut self, desired: &dyn Resource) -> Value {
        self.until(ensure_present, desired).await.found.unwrap()
    }

    pub(crate) async fn take_away(&mut self, desired: &dyn Resource) {
        assert!(self.until(ensure_absent, desired).await.gone());
    }

    /// Waits until the next look at the resource is due.
    pub(crate) async fn rest(&self, desired: &dyn Resource) {
        match self.observations.next_read([desired.id()]) {
            Some(due) => sleep_until(due).await,
            None => sleep(Duration::from_secs(1)).await,
        }
    }

    /// How long until the next look is due, in seconds.
    pub(crate) fn due_in(&self, desired: &dyn Resource) -> u64 {
        let due = self.observations.next_read([desired.id()]).unwrap();
        due.saturating_duration_since(Instant::now()).as_secs()
    }

    /// The link service, settled; gives its alias.
    pub(crate) async fn alias(&mut self) -> String {
        alias(&self.bring(&link_service()).await).unwrap().to_owned()
    }

    /// The verbs of the calls since the last `forget_calls`.
    pub(crate) fn calls(&self) -> String {
        let sent = self.azure.sent();
        sent.iter().map(|call| call.verb()).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn forget_calls(&self) {
        self.azure.sent().clear();
    }

    /// How many of the calls were writes.
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

    /// Puts a resource behind everybody's back.
    pub(crate) fn install(&self, id: &ResourceId, body: Value) {
        let now = self.azure.now();
        self.azure.world().put_resource(now, &id.to_string(), body).unwrap();
    }

    /// Changes a resource behind everybody's back.
    pub(crate) fn drift(&self, id: &ResourceId, path: &str, value: Value) {
        let mut body = self.shown(id).unwrap();
        *body.pointer_mut(path).unwrap() = value;
        self.install(id, body);
    }

    /// Removes a resource behind everybody's back.
    pub(crate) fn remove(&self, id: &ResourceId) {
        let now = self.azure.now();
        assert!(self.azure.world().delete_resource(now, &id.to_string()).unwrap());
    }

    /// Fault rules from now on: what they match, and what they do.
    pub(crate) fn faults(&self, rules: &[(Value, Value)]) {
        let rules: Vec<Value> = rules
            .iter()
            .map(|(matches, action)| json!({"match": matches, "do": action}))
            .collect();
        let rules = armsim::parse_faults(json!(rules).to_string().as_bytes()).unwrap();
        self.azure.world().set_faults(rules);
    }

    /// Longer than any operation takes.
    pub(crate) async fn let_operations_end(&self) {
        sleep(Duration::from_secs(3_600)).await;
    }

    /// The next call with this method fails so.
    pub(crate) fn fault(&self, method: &str, action: Value) {
        self.faults(&[(json!({"method": method}), action)]);
    }

    /// Operations that are counted as under way, over all kinds.
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
