//! Runs the reconciles of one controller: paces and counts them, and survives panics.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use kube::core::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Runtime;
use super::call::{ReconcileError, within};
use super::concurrency_limit::{ConcurrencyLimit, Requester};
use super::guard;
use super::pace::{self, Fingerprint, Pacer};
use super::requeue::Requeue;
use super::work_queue::{Action, WorkQueue};
use crate::metrics::{Controller as Label, ReconcileResult, RunningReconcile};

/// After so many rounds of `resync` it is checked whether another process still serves an object, spread over one more.
const ELSEWHERE_ROUNDS: u32 = 3;

/// An object that can be reconciled.
pub trait ReconciledObject:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
}

impl<K> ReconciledObject for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// Whether an object is reconciled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It is.
    Admitted,
    /// It is not, because the operator excludes it.
    Excluded,
    /// It is not, because its namespace has too many.
    TooMany,
}

/// What the controllers of one kind of object share.
pub trait ReconcileContext<K>: Send + Sync + 'static {
    /// What does not depend on what is reconciled.
    fn runtime(&self) -> &Runtime;

    /// Whether the object is reconciled.
    fn admission(&self, object: &K) -> Admission;

    /// Whether this process serves objects with this key, as [`Reconciler::shard_key`] gives it. Notes the answer.
    fn shares(&self, object: &K, key: &str) -> bool;

    /// Reports an object that is not reconciled because its namespace has too many.
    fn report_too_many(&self, object: &K) -> impl Future<Output = ()> + Send;

    /// The parts of the object whose change needs a reconcile, as one text.
    fn fingerprint(&self, object: &K) -> String;

    /// How long until another writer of the object's status is to be answered; `None` if none is.
    fn next_answer(&self, object: &K) -> Option<Duration>;

    /// Notes that something has changed since the last reconcile of the object with this UID.
    fn changed(&self, uid: &str);

    /// Forgets the object with this UID.
    fn forget(&self, uid: &str);
}

/// How one controller reconciles an object.
pub trait Reconciler: Send + Sync + 'static {
    /// What it reconciles.
    type Object: ReconciledObject;
    /// What it works with.
    type Context: ReconcileContext<Self::Object>;
    /// What Kubernetes shows around the object.
    type Inputs: Send;

    /// Names of objects that are expected. New objects with these names wait for none of other names.
    const EXPECTED_NAMES: &'static [&'static str];

    /// Reads the inputs. The text stands for everything in them whose change needs a reconcile.
    fn inputs(
        &self,
        cx: &Self::Context,
        object: &Self::Object,
    ) -> impl Future<Output = Result<(Self::Inputs, String), ReconcileError>> + Send;

    /// What the calls for the object go to, as far as the object shows it.
    fn target(&self, object: &Self::Object) -> Option<String>;

    /// What decides which of several processes serves the object.
    fn shard_key(&self, object: &Self::Object, inputs: &Self::Inputs) -> String;

    /// Reconciles the object once; `correlation` names this reconcile in logs and calls.
    fn reconcile(
        &self,
        cx: &Self::Context,
        correlation: Uuid,
        object: Self::Object,
        inputs: Self::Inputs,
    ) -> impl Future<Output = Result<ReconcileOutcome<Self::Object>, ReconcileError>> + Send;

    /// The object with this UID is gone.
    fn forget(&self, _uid: &str) {}
}

/// How a reconcile has ended.
pub struct ReconcileOutcome<K> {
    /// The object as last written.
    pub object: K,
    /// When the next reconcile is due.
    pub requeue: Requeue,
    /// For the counters.
    pub result: ReconcileResult,
    /// Whether nothing more is to be done for the object.
    pub released: bool,
}

impl<K> ReconcileOutcome<K> {
    /// The object has this result, and is not released.
    pub fn new(object: K, requeue: Requeue, result: ReconcileResult) -> Self {
        Self {
            object,
            requeue,
            result,
            released: false,
        }
    }

    /// The finalizer is gone.
    pub fn released(object: K) -> Self {
        Self {
            object,
            requeue: Requeue::new(Duration::ZERO, Requeue::RESYNC),
            result: ReconcileResult::Ready,
            released: true,
        }
    }
}

/// How far a reconcile has come.
struct Begun<'a> {
    uid: String,
    /// What the pacer is to compare.
    fingerprint: Fingerprint,
    counted: Option<RunningReconcile<'a>>,
}

/// A reconciler with what it works with.
pub struct Runner<R: Reconciler> {
    /// The controller's own part.
    pub reconciler: R,
    /// What its reconciles work with.
    pub cx: Arc<R::Context>,
    /// Keeps reconciles from coming too early.
    pub pacer: Pacer,
    label: Label,
}

impl<R: Reconciler> Runner<R> {
    /// A runner that has reconciled nothing yet.
    pub fn new(reconciler: R, cx: Arc<R::Context>, label: Label) -> Self {
        Self {
            reconciler,
            cx,
            pacer: Pacer::new(R::EXPECTED_NAMES),
            label,
        }
    }

    /// The object with this UID is gone, or nothing more is to be done for it.
    pub fn forget(&self, uid: &str) {
        let runtime = self.cx.runtime();
        self.pacer.forget(uid);
        runtime.retries.over(uid);
        runtime.events.forget(uid);
        self.cx.forget(uid);
        self.reconciler.forget(uid);
    }

    fn fingerprint(&self, object: &R::Object) -> Fingerprint {
        Fingerprint::of(&self.cx.fingerprint(object))
    }

    /// Records that a reconcile has ended. Whatever it kept of an object that was removed meanwhile is dropped.
    fn finish(&self, uid: &str, fingerprint: Fingerprint, requeue: Requeue) {
        if !self.pacer.finish(uid, fingerprint, requeue.after, Instant::now()) {
            self.forget(uid);
        }
    }

    /// Requeues as given, or when another writer is to be answered.
    fn action(&self, object: &R::Object, requeue: Requeue) -> Action {
        let answer = self.cx.next_answer(object);
        let answer = answer.map(|after| Requeue::new(after, Requeue::OTHER_WRITER));
        let requeue = requeue.or_earlier(answer);
        guard::requeue(self.cx.runtime(), self.label, requeue)
    }

    /// Requeues without a reconcile, at the time until which it has to wait or when another writer is to be answered.
    fn too_early(&self, object: &R::Object, wait: Duration) -> Action {
        let answer = self.cx.next_answer(object);
        Action::Requeue(answer.map_or(wait, |after| after.min(wait)))
    }

    async fn reconcile(&self, cached: &R::Object) -> Action {
        let namespace = cached.namespace().unwrap_or_default();
        let name = cached.name_any();
        let correlation = Uuid::new_v4();
        let span = tracing::info_span!("reconcile", controller = self.label.label(), namespace, name, correlation_id = %correlation);
        let uid = cached.uid().unwrap_or_default();
        let guarded = self.guarded(cached, correlation);
        let ended = guard::catch_panic(self.cx.runtime(), self.label, &uid, span, guarded).await;
        ended.unwrap_or_else(|retry| {
            self.finish(&uid, self.fingerprint(cached), retry.requeue);
            guard::requeue(self.cx.runtime(), self.label, retry.requeue)
        })
    }

    /// Reconciles once, unless it is too early; an error becomes a delay.
    async fn guarded(&self, cached: &R::Object, correlation: Uuid) -> Action {
        let mut begun = Begun {
            uid: cached.uid().unwrap_or_default(),
            fingerprint: self.fingerprint(cached),
            counted: None,
        };
        let namespace = cached.namespace().unwrap_or_default();
        let name = cached.name_any();
        let paced = self
            .pacer
            .begin((&namespace, &name), &begun.uid, begun.fingerprint, Instant::now());
        if let Err(wait) = paced {
            return self.too_early(cached, wait);
        }
        match self.paced(&namespace, &name, correlation, &mut begun).await {
            Ok(action) => action,
            Err(error) => {
                let runtime = self.cx.runtime();
                let retry = runtime.retries.failed(&begun.uid, &error);
                // A reconcile that failed before it began counts too.
                let counted = begun.counted.take();
                let counted = counted.unwrap_or_else(|| runtime.metrics.reconcile(self.label));
                counted.end(retry.result);
                self.finish(&begun.uid, begun.fingerprint, retry.requeue);
                guard::requeue(runtime, self.label, retry.requeue)
            }
        }
    }

    async fn paced<'a>(
        &'a self,
        namespace: &str,
        name: &str,
        correlation: Uuid,
        begun: &mut Begun<'a>,
    ) -> Result<Action, ReconcileError> {
        let runtime = self.cx.runtime();
        // The cache may lag behind our own last write.
        let api: Api<R::Object> = Api::namespaced(runtime.kube.clone(), namespace);
        let found = within(api.get_opt(name)).await?;
        // Another one under the same name comes with the watch.
        let Some(object) = found.filter(|found| found.uid().unwrap_or_default() == begun.uid) else {
            self.forget(&begun.uid);
            return Ok(Action::AwaitChange);
        };
        let uid = &begun.uid;
        let (inputs, inputs_fingerprint) = self.reconciler.inputs(&self.cx, &object).await?;
        if !self.cx.shares(&object, &self.reconciler.shard_key(&object, &inputs)) {
            self.forget(uid);
            // What decides may change without an event that this process hears of.
            let spread = pace::spread(uid, runtime.resync);
            return Ok(Action::Requeue(runtime.resync * ELSEWHERE_ROUNDS + spread));
        }
        begun.fingerprint = self.fingerprint(&object).with(&inputs_fingerprint);
        if let Some(wait) = self.pacer.early(uid, begun.fingerprint, Instant::now()) {
            return Ok(self.too_early(&object, wait));
        }
        if self.pacer.has_changed(uid, begun.fingerprint) {
            self.cx.changed(uid);
        }
        begun.counted = Some(runtime.metrics.reconcile(self.label));
        let outcome = self.reconciler.reconcile(&self.cx, correlation, object, inputs).await?;
        if let Some(counted) = begun.counted.take() {
            counted.end(outcome.result);
        }
        runtime.retries.over(uid);
        if outcome.released {
            self.forget(uid);
            return Ok(Action::AwaitChange);
        }
        let fingerprint = self.fingerprint(&outcome.object).with(&inputs_fingerprint);
        self.finish(uid, fingerprint, outcome.requeue);
        Ok(self.action(&outcome.object, outcome.requeue))
    }

    /// Reconciles the object if it is admitted.
    async fn admitted(&self, limit: &ConcurrencyLimit, cached: Arc<R::Object>) -> Action {
        match self.cx.admission(&cached) {
            Admission::Admitted => {
                let namespace = cached.namespace().unwrap_or_default();
                let target = self.reconciler.target(&cached);
                let requester = Requester {
                    namespace: &namespace,
                    target: target.as_deref(),
                };
                let work = || self.reconcile(&cached);
                let action = limit.take(&self.cx.runtime().metrics, requester, work).await;
                action.unwrap_or(Action::AwaitChange)
            }
            Admission::Excluded => Action::AwaitChange,
            Admission::TooMany => {
                self.forget(&cached.uid().unwrap_or_default());
                self.cx.report_too_many(&cached).await;
                Action::AwaitChange
            }
        }
    }
}

/// Reconciles what is in the queue until `stop`; running reconciles end first.
pub async fn run<R: Reconciler>(
    queue: WorkQueue<R::Object>,
    runner: Arc<Runner<R>>,
    concurrency: u16,
    stop: CancellationToken,
) {
    let limit = ConcurrencyLimit::new(runner.label, concurrency);
    run_each(queue, limit, stop, move |object, limit| {
        let runner = Arc::clone(&runner);
        async move { runner.admitted(&limit, object).await }
    })
    .await;
}

/// Calls `reconcile` for what is in the queue until `stop`; running calls end first. It takes its permit from the limit.
pub async fn run_each<K: ReconciledObject, F: Future<Output = Action> + Send + 'static>(
    queue: WorkQueue<K>,
    limit: ConcurrencyLimit,
    stop: CancellationToken,
    reconcile: impl Fn(Arc<K>, Arc<ConcurrencyLimit>) -> F,
) {
    let limit = Arc::new(limit);
    let reconciles = queue.run(stop.clone(), |object| reconcile(object, Arc::clone(&limit)));
    tokio::join!(limit.end_with(stop), reconciles);
}

#[cfg(test)]
mod tests;
