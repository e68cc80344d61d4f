//! Runs the reconciles of one controller: paces and counts them, and survives panics.

use std::sync::Arc;
use std::time::Duration;

use kube::{Api, ResourceExt};
use tokio::sync::watch::Receiver;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::call::{ReconcileError, within};
use super::concurrency_limit::{ConcurrencyLimit, Requester};
use super::guard;
use super::inputs_cache::InputsCache;
use super::pace::{self, Cause, Fingerprint, Pacer};
use super::requeue::Requeue;
use super::watch_health::Health;
use super::work_queue::{Action, WorkQueue};
use crate::metrics::{Controller as Label, ReconcileResult, RunningReconcile};

mod at_rest;
mod reconciler;

pub use reconciler::{Admission, ReconcileContext, ReconciledObject, Reconciler};

/// After so many rounds of `resync` it is checked whether another process still serves an object, spread over one more.
const ELSEWHERE_ROUNDS: u32 = 3;

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
    correlation: Uuid,
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
    /// What was read for the objects at rest.
    inputs: InputsCache<R::Inputs>,
    /// The health of the watches that end a rest; none: each reconcile reads.
    watches: Option<Receiver<Health>>,
    label: Label,
}

impl<R: Reconciler> Runner<R> {
    /// A runner that has reconciled nothing yet.
    pub fn new(reconciler: R, cx: Arc<R::Context>, label: Label) -> Self {
        Self {
            reconciler,
            cx,
            pacer: Pacer::new(R::EXPECTED_NAMES),
            inputs: InputsCache::default(),
            watches: None,
            label,
        }
    }

    /// This runner, which does not read an object at rest while all watches are good.
    #[must_use]
    pub fn watching(self, watches: Receiver<Health>) -> Self {
        Self {
            watches: Some(watches),
            ..self
        }
    }

    /// The object with this UID is gone, or nothing more is to be done for it.
    pub fn forget(&self, uid: &str) {
        let runtime = self.cx.runtime();
        self.pacer.forget(uid);
        self.inputs.forget(uid);
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
            self.inputs.forget(&uid);
            self.finish(&uid, self.fingerprint(cached), retry.requeue);
            guard::requeue(self.cx.runtime(), self.label, retry.requeue)
        })
    }

    /// Reconciles once, unless it is too early; an error becomes a delay.
    async fn guarded(&self, cached: &R::Object, correlation: Uuid) -> Action {
        let mut begun = Begun {
            uid: cached.uid().unwrap_or_default(),
            correlation,
            fingerprint: self.fingerprint(cached),
            counted: None,
        };
        let namespace = cached.namespace().unwrap_or_default();
        let name = cached.name_any();
        let paced = self
            .pacer
            .begin((&namespace, &name), &begun.uid, begun.fingerprint, Instant::now());
        let cause = match paced {
            Ok(cause) => cause,
            Err(wait) => return self.too_early(cached, wait),
        };
        if let Some(action) = self.at_rest(cached, cause, &mut begun).await {
            return action;
        }
        match self.paced(&namespace, &name, &mut begun).await {
            Ok(action) => {
                // It was counted when it began as one of an object at rest, and has ended before it began again.
                if let Some(counted) = begun.counted.take() {
                    counted.end(ReconcileResult::Waiting);
                }
                action
            }
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

    async fn paced<'a>(&'a self, namespace: &str, name: &str, begun: &mut Begun<'a>) -> Result<Action, ReconcileError> {
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
        let read_at = self.watches_are_good().then(Instant::now);
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
        begun
            .counted
            .get_or_insert_with(|| runtime.metrics.reconcile(self.label));
        let reconciled = self
            .reconciler
            .reconcile(&self.cx, begun.correlation, object, &inputs)
            .await;
        let outcome = reconciled?;
        if let Some(counted) = begun.counted.take() {
            counted.end(outcome.result);
        }
        runtime.retries.over(uid);
        if outcome.released {
            self.forget(uid);
            return Ok(Action::AwaitChange);
        }
        let fingerprint = self.fingerprint(&outcome.object).with(&inputs_fingerprint);
        if let Some(read_at) = read_at.filter(|_| inputs_fingerprint.len() <= at_rest::LONGEST_INPUTS) {
            self.rest(uid, &outcome, inputs, fingerprint, read_at);
        }
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
