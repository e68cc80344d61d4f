//! Processes that reconcile before the simulated AWS.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyperlink::aws::api::action::Action;
use hyperlink::aws::api::client::{Client, Connection};
use hyperlink::aws::api::ports::{Counters, ObservedCall};
use hyperlink::aws::calls::Calls;
use hyperlink::aws::cloud::{Aws, Observed};
use hyperlink::aws::credentials::SessionCache;
use hyperlink::aws::endpoints::{EndpointOverrides, Endpoints};
use hyperlink::aws::kinds::Kind;
use hyperlink::aws::kinds::vpc_endpoint::VpcEndpoint;
use hyperlink::aws::slot::Slot;
use hyperlink::engine::client::{CloudClient, Condition, Reconcile, WriteTarget};
use hyperlink::engine::execute::{invalidate_cached, run};
use hyperlink::engine::gate::Gate;
use hyperlink::engine::inventory::Inventory;
use hyperlink::engine::observation_cache::ObservationCache;
use hyperlink::engine::plan::{Outcome, Step, ensure_absent, ensure_present};
use hyperlink::engine::read::Reader;
use hyperlink::engine::resource::{Owned, Resource};
use hyperlink::metrics::Metrics;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::desired::SECRET;
use crate::sim::SimTransport;

/// How often one resource is reconciled in a test before it counts as stuck.
const ROUNDS: usize = 200;

/// The time between two polls of what is not there.
const POLL: Duration = Duration::from_secs(20);

/// Counts nothing.
pub(crate) struct Uncounted;

impl Counters for Uncounted {
    fn call(&self, _: ObservedCall) {}

    fn held_back(&self, _: Action) {}

    fn call_budget_exhausted(&self, _: Kind) {}
}

/// A gate that can be shut.
#[derive(Default)]
pub(crate) struct Valve(AtomicBool);

impl Valve {
    pub(crate) fn shut(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Gate for Valve {
    fn open(&self) -> bool {
        !self.0.load(Ordering::SeqCst)
    }
}

/// One process with the keys of a user.
pub(crate) struct Process {
    aws: Arc<SimTransport>,
    calls: Calls,
    observations: ObservationCache<Aws>,
    inventory: Inventory<Aws>,
    pub(crate) gate: Arc<Valve>,
    pub(crate) metrics: Arc<Metrics>,
    _credentials: tempfile::TempDir,
}

/// A user of an account, as a process calls AWS.
pub(crate) struct Identity {
    pub(crate) connection: Connection,
    pub(crate) sessions: SessionCache,
    /// What it counts.
    metrics: Arc<Metrics>,
    /// The credentials file's.
    folder: tempfile::TempDir,
}

impl Identity {
    pub(crate) fn of(aws: &Arc<SimTransport>, access_key: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("credentials");
        let profile = format!("[default]\naws_access_key_id = {access_key}\naws_secret_access_key = {SECRET}\n");
        std::fs::write(&file, profile).unwrap();
        let endpoints = Endpoints::new(aws.region.clone(), &EndpointOverrides::default()).unwrap();
        let metrics = Arc::new(Metrics::new("1", "c").unwrap());
        let connection = Connection::new(aws.clone(), endpoints, metrics.clone());
        let sessions = SessionCache::of_profile(connection.clone(), file, "hyperlink");
        Self {
            connection,
            sessions,
            metrics,
            folder,
        }
    }
}

impl Process {
    pub(crate) fn new(aws: &Arc<SimTransport>, access_key: &str, account: &str) -> Self {
        let Identity {
            connection,
            sessions,
            metrics,
            folder,
        } = Identity::of(aws, access_key);
        let gate = Arc::new(Valve::default());
        let client = Client::new(connection, Arc::new(sessions), account, gate.clone());
        Self {
            aws: Arc::clone(aws),
            calls: Calls::new(&client),
            observations: ObservationCache::new(Duration::from_secs(300), Duration::from_secs(2_700)),
            inventory: Inventory::default(),
            gate,
            metrics,
            _credentials: folder,
        }
    }

    pub(crate) fn ho(aws: &Arc<SimTransport>) -> Self {
        Self::new(aws, "AKIAHO", crate::desired::MANAGEMENT)
    }

    pub(crate) fn cpo(aws: &Arc<SimTransport>) -> Self {
        Self::new(aws, "AKIACPO", crate::desired::GUEST)
    }

    pub(crate) async fn observe(&self, reconcile: Reconcile, kind: Kind, slot: &Slot) -> Observed {
        let reader = Reader {
            client: &self.calls,
            observations: &self.observations,
            inventory: &self.inventory,
            reconcile,
        };
        reader.read(kind, slot).await
    }

    /// One reconcile of one resource: what is to be written is read first.
    pub(crate) async fn reconcile(
        &self,
        owned: &dyn Owned<Aws>,
        rule: impl Fn(&Observed) -> Step<Aws>,
    ) -> (Step<Aws>, Outcome<Aws>) {
        // Each resource is another control plane's.
        let reconcile = Reconcile::begin().on_behalf_of(&owned.key().to_string());
        let mut step = rule(&self.observe(reconcile, owned.kind(), owned.key()).await);
        if !invalidate_cached(std::slice::from_ref(&step), &self.observations, reconcile.began).is_empty() {
            step = rule(&self.observe(reconcile, owned.kind(), owned.key()).await);
        }
        let steps = [step];
        let mut outcomes = run(&steps, &self.calls, &self.observations, reconcile).await;
        let [step] = steps;
        (step, outcomes.pop().unwrap())
    }

    pub(crate) async fn wait(&self, slot: &Slot) {
        let next = self.observations.next_read([slot]);
        let wait = next.map(|at| at.saturating_duration_since(Instant::now()));
        sleep(wait.unwrap_or_default().max(Duration::from_secs(1))).await;
    }

    /// Reads a resource of others until it is ready.
    pub(crate) async fn ready(&self, kind: Kind, slot: &Slot) -> Value {
        for _ in 0..ROUNDS {
            let observed = self.observe(Reconcile::begin(), kind, slot).await;
            if let Observed::Found(body) = &observed
                && <Aws as hyperlink::engine::cloud::Cloud>::progress(body)
                    == hyperlink::engine::resource::Progress::Ready
            {
                return body.clone();
            }
            // What is not there is polled by the controllers.
            self.forget(slot);
            sleep(POLL).await;
        }
        panic!("{slot} is not ready")
    }

    /// Reconciles until the resource is as desired; its body.
    pub(crate) async fn present(&self, desired: &dyn Resource<Aws>) -> Value {
        let mut last = String::new();
        for _ in 0..ROUNDS {
            let (step, outcome) = self
                .reconcile(desired, |observed| ensure_present(desired, observed))
                .await;
            if let Some(body) = step.ready() {
                return body.clone();
            }
            last = format!("{:?} {} {outcome:?}", step.verb, step.why);
            if outcome != Outcome::Ready {
                self.wait(desired.key()).await;
            }
        }
        panic!("{} is not there: {last}", desired.key())
    }

    /// Reconciles until the resource is gone.
    pub(crate) async fn absent(&self, owned: &dyn Owned<Aws>) {
        let mut last = String::new();
        for _ in 0..ROUNDS {
            let (step, outcome) = self.reconcile(owned, |observed| ensure_absent(owned, observed)).await;
            if step.gone() {
                return;
            }
            last = format!("{:?} {} {outcome:?}", step.verb, step.why);
            self.wait(owned.key()).await;
        }
        panic!("{} is still there: {last}; {:#?}", owned.key(), self.aws.journal())
    }

    /// Creates an endpoint, whatever there is, as somebody may at any time. Returns whether AWS takes it.
    pub(crate) async fn connects(&self, endpoint: &VpcEndpoint) -> bool {
        let target = WriteTarget {
            kind: endpoint.kind(),
            key: endpoint.key(),
            found: None,
        };
        let (reconcile, body) = (Reconcile::begin(), endpoint.body(None));
        self.calls.put(reconcile, target, &body, &Condition::New).await.is_ok()
    }

    pub(crate) fn note_recorded(&self, slot: &Slot, id: &str) {
        self.calls.note_recorded(slot, id);
    }

    /// Reconciles until the resource is gone for certain, as before a custom resource is released. Returns whether it
    /// was left to others. An id that is recorded is noted in each reconcile.
    pub(crate) async fn released(&self, owned: &dyn Owned<Aws>, recorded: Option<&str>) -> bool {
        for _ in 0..ROUNDS {
            if let Some(id) = recorded {
                self.calls.note_recorded(owned.key(), id);
            }
            let (step, _) = self.reconcile(owned, |observed| ensure_absent(owned, observed)).await;
            if step.left() {
                return true;
            }
            if step.gone() {
                if self.observations.surely_gone(owned.key()) {
                    return false;
                }
                let now = Instant::now();
                let wait = self.observations.certain_in(owned.key(), now);
                self.observations.expedite(owned.key(), wait, now);
            }
            self.wait(owned.key()).await;
        }
        panic!("{} is still there", owned.key())
    }

    /// Reads all again, as after its time.
    pub(crate) fn forget(&self, slot: &Slot) {
        self.observations.invalidate(slot, Instant::now());
    }
}
