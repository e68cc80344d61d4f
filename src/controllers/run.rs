//! Runs reconciles of custom resources: paces and counts them, survives panics.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use kube::runtime::controller::Action;
use kube::{Api, Resource, ResourceExt};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::concurrency_limit::ConcurrencyLimit;
use super::context::Context;
use super::custom_resources::MOST;
use super::decision::Decision;
use super::driver::{ReconcileError, within};
use super::event::{Event, What};
use super::pace::{Fingerprint, Pacer};
use super::preview::DryRun;
use super::report::{Report, fingerprint};
use crate::api::{AzurePrivateLinkService, Status};
use crate::azure::client::Reconcile;
use crate::azure::plan::Outcome;
use crate::metrics::{Controller as Label, ReconcileResult, RunningReconcile};

/// How a reconcile has ended.
pub struct ReconcileOutcome {
    /// The object as last written.
    pub cr: AzurePrivateLinkService,
    /// After how long the next reconcile is due.
    pub wait: Duration,
    /// For the counters.
    pub result: ReconcileResult,
    /// Whether nothing more is to be done for the object.
    pub released: bool,
}

impl ReconcileOutcome {
    /// Everything is as desired.
    fn ready(cr: AzurePrivateLinkService, wait: Duration) -> Self {
        Self {
            cr,
            wait,
            result: ReconcileResult::Ready,
            released: false,
        }
    }

    /// Something is in progress or waited for.
    pub fn waiting(cr: AzurePrivateLinkService, wait: Duration) -> Self {
        Self {
            cr,
            wait,
            result: ReconcileResult::Waiting,
            released: false,
        }
    }

    /// The outcome of a reconcile that builds, by its report. A condition that is still True while Azure fails to
    /// answer does not make it a success.
    pub fn reported(
        cr: AzurePrivateLinkService,
        wait: Duration,
        report: &Report,
        decision: &Decision,
        outcomes: &[Outcome],
    ) -> Self {
        let all_hold = report.conditions.iter().all(|one| one.status == Status::True);
        if all_hold && !decision.fails() {
            Self::ready(cr, wait)
        } else {
            Self::unsettled(cr, wait, decision, outcomes)
        }
    }

    /// Not as desired yet, for the reason that the decision and its outcomes show.
    pub fn unsettled(cr: AzurePrivateLinkService, wait: Duration, decision: &Decision, outcomes: &[Outcome]) -> Self {
        let failed = decision.fails() || outcomes.iter().any(|outcome| matches!(outcome, Outcome::Failed(_)));
        let refused =
            decision.problem.as_ref().is_some_and(|p| p.again.is_none()) || decision.steps.iter().any(|s| s.left());
        let result = match (failed, refused) {
            (true, _) => ReconcileResult::Failed,
            (_, true) => ReconcileResult::Refused,
            _ => ReconcileResult::Waiting,
        };
        Self {
            cr,
            wait,
            result,
            released: false,
        }
    }

    /// The finalizer is gone.
    pub fn released(cr: AzurePrivateLinkService) -> Self {
        Self {
            cr,
            wait: Duration::ZERO,
            result: ReconcileResult::Ready,
            released: true,
        }
    }
}

/// How one controller reconciles a custom resource.
pub trait Reconciler: Send + Sync + 'static {
    /// What Kubernetes shows around the object.
    type Inputs: Send;

    /// Reads the inputs. The text stands for everything in them whose change needs a reconcile.
    fn inputs(
        &self,
        cx: &Context,
        cr: &AzurePrivateLinkService,
    ) -> impl Future<Output = Result<(Self::Inputs, String), ReconcileError>> + Send;

    /// Reconciles the object once.
    fn reconcile(
        &self,
        cx: &Context,
        reconcile_id: Reconcile,
        cr: AzurePrivateLinkService,
        inputs: Self::Inputs,
    ) -> impl Future<Output = Result<ReconcileOutcome, ReconcileError>> + Send;

    /// The object with this UID is gone.
    fn forget(&self, _uid: &str) {}
}

/// A reconciler that can show what a reconcile would do.
pub trait SupportsDryRun: Reconciler {
    /// Runs a reconcile up to its first write.
    fn dry_run(
        &self,
        cx: &Context,
        reconcile_id: Reconcile,
        cr: &AzurePrivateLinkService,
        inputs: &Self::Inputs,
    ) -> impl Future<Output = DryRun> + Send;
}

/// How far a reconcile has come.
struct Begun<'a> {
    uid: String,
    /// What the pacer is to compare.
    fingerprint: Fingerprint,
    counted: Option<RunningReconcile<'a>>,
}

/// A reconciler with what it works with.
pub struct Runner<R> {
    /// The controller's own part.
    pub reconciler: R,
    /// What its reconciles work with.
    pub cx: Arc<Context>,
    /// For the counters.
    pub label: Label,
    /// Keeps reconciles from coming too early.
    pub pacer: Pacer,
}

impl<R: Reconciler> Runner<R> {
    /// A runner that has reconciled nothing yet.
    pub fn new(reconciler: R, cx: Arc<Context>, label: Label) -> Self {
        Self {
            reconciler,
            cx,
            label,
            pacer: Pacer::default(),
        }
    }

    /// The object with this UID is gone, or nothing more is to be done for it.
    pub fn forget(&self, uid: &str) {
        self.pacer.forget(uid);
        self.cx.polls.over(uid);
        self.cx.awaiting.forget(uid);
        self.cx.failures.over(uid);
        self.cx.events.forget(uid);
        self.cx.published.forget(uid);
        self.reconciler.forget(uid);
    }

    /// Records that a reconcile has ended. Whatever it kept of an object that was removed meanwhile is dropped.
    fn finish(&self, uid: &str, fingerprint: Fingerprint, wait: Duration) {
        if !self.pacer.finish(uid, fingerprint, wait, Instant::now()) {
            self.forget(uid);
        }
    }

    async fn reconcile(self: Arc<Self>, cached: Arc<AzurePrivateLinkService>) -> Result<Action, ReconcileError> {
        let reconcile_id = Reconcile::begin();
        let (namespace, name) = (cached.namespace().unwrap_or_default(), cached.name_any());
        let span = tracing::info_span!("reconcile", controller = self.label.label(), namespace, name, correlation_id = %reconcile_id.correlation);
        let guarded = AssertUnwindSafe(self.guarded(&cached, &namespace, &name, reconcile_id))
            .catch_unwind()
            .instrument(span.clone());
        let action = guarded.await.unwrap_or_else(|_| {
            self.cx.metrics.panicked(self.label);
            let uid = cached.uid().unwrap_or_default();
            let wait = span.in_scope(|| self.cx.failures.panicked(&uid));
            self.finish(&uid, self.fingerprint(&cached), wait);
            Action::requeue(wait)
        });
        Ok(action)
    }

    /// Reconciles once, unless it is too early; an error becomes a delay.
    async fn guarded(
        &self,
        cached: &AzurePrivateLinkService,
        namespace: &str,
        name: &str,
        reconcile_id: Reconcile,
    ) -> Action {
        let mut begun = Begun {
            uid: cached.uid().unwrap_or_default(),
            fingerprint: self.fingerprint(cached),
            counted: None,
        };
        if let Err(wait) = self
            .pacer
            .begin((namespace, name), &begun.uid, begun.fingerprint, Instant::now())
        {
            return self.or_answer(cached, wait);
        }
        match self.paced(namespace, name, reconcile_id, &mut begun).await {
            Ok(action) => action,
            Err(error) => {
                let Begun {
                    uid,
                    fingerprint,
                    counted,
                } = begun;
                let (result, wait) = self.cx.failures.failed(&uid, &error);
                // A reconcile that failed before it began counts too.
                counted
                    .unwrap_or_else(|| self.cx.metrics.reconcile(self.label))
                    .end(result);
                self.finish(&uid, fingerprint, wait);
                Action::requeue(wait)
            }
        }
    }

    /// Leaves out a custom resource that is not among those of its namespace that are served: nothing is done for it,
    /// and one Event reports all of them.
    async fn leave_out(&self, cr: &AzurePrivateLinkService) {
        self.forget(&cr.uid().unwrap_or_default());
        let namespace = cr.namespace().unwrap_or_default();
        let Some(unserved) = self.cx.resources.not_served(&namespace) else {
            return;
        };
        let note =
            format!("{unserved} AzurePrivateLinkServices of this namespace are not served: only the {MOST} oldest are");
        tracing::warn!(namespace, reason = note, "too many custom resources in a namespace");
        let event = Event::new(What::NotServed, note);
        self.cx.events.emit(&[cr.object_ref(&())], &[event]).await;
    }

    fn fingerprint(&self, cr: &AzurePrivateLinkService) -> Fingerprint {
        let published = self.cx.published.of(&cr.uid().unwrap_or_default());
        let now = Instant::now().into_std();
        Fingerprint::of(&fingerprint(cr, self.cx.role, &published, now))
    }

    /// Requeues after `wait`, or when another writer is to be answered.
    fn or_answer(&self, cr: &AzurePrivateLinkService, wait: Duration) -> Action {
        let published = self.cx.published.of(&cr.uid().unwrap_or_default());
        let stored = cr.status.as_ref().map(|status| status.conditions.as_slice());
        let answer = published.next_answer(stored.unwrap_or_default(), Instant::now().into_std());
        Action::requeue(answer.map_or(wait, |answer| answer.min(wait)))
    }

    async fn paced<'a>(
        &'a self,
        namespace: &str,
        name: &str,
        reconcile_id: Reconcile,
        begun: &mut Begun<'a>,
    ) -> Result<Action, ReconcileError> {
        // The cache may lag behind our own last write.
        let api: Api<AzurePrivateLinkService> = Api::namespaced(self.cx.kube.clone(), namespace);
        let Some(cr) = within(api.get_opt(name)).await? else {
            self.forget(&begun.uid);
            return Ok(Action::await_change());
        };
        if cr.uid().unwrap_or_default() != begun.uid {
            // It was recreated under its name: the watch shows the new one.
            self.forget(&begun.uid);
            return Ok(Action::await_change());
        }
        let uid = &begun.uid;
        let (inputs, inputs_fingerprint) = self.reconciler.inputs(&self.cx, &cr).await?;
        begun.fingerprint = self.fingerprint(&cr).with(&inputs_fingerprint);
        if let Some(wait) = self.pacer.early(uid, begun.fingerprint, Instant::now()) {
            return Ok(self.or_answer(&cr, wait));
        }
        if self.pacer.has_changed(uid, begun.fingerprint) {
            self.cx.polls.change(uid);
        }
        begun.counted = Some(self.cx.metrics.reconcile(self.label));
        let outcome = self.reconciler.reconcile(&self.cx, reconcile_id, cr, inputs).await?;
        if let Some(counted) = begun.counted.take() {
            counted.end(outcome.result);
        }
        self.cx.failures.over(uid);
        if outcome.released {
            self.forget(uid);
            return Ok(Action::await_change());
        }
        let fingerprint = self.fingerprint(&outcome.cr).with(&inputs_fingerprint);
        self.finish(uid, fingerprint, outcome.wait);
        Ok(self.or_answer(&outcome.cr, outcome.wait))
    }
}

/// Runs a prepared controller until `stop`; running reconciles end first.
pub async fn run<R: Reconciler>(
    controller: kube::runtime::Controller<AzurePrivateLinkService>,
    runner: Arc<Runner<R>>,
    concurrency: u16,
    stop: CancellationToken,
) {
    let limit = Arc::new(ConcurrencyLimit::new(runner.label, concurrency));
    let ending = Arc::clone(&limit);
    let reconciles = controller
        .graceful_shutdown_on(async move { ending.end_with(stop).await })
        .run(
            move |cr, runner: Arc<Runner<R>>| {
                let limit = Arc::clone(&limit);
                async move {
                    let namespace = cr.namespace().unwrap_or_default();
                    if runner.cx.excluded.contains(&namespace) {
                        return Ok(Action::await_change());
                    }
                    if !runner.cx.resources.serves(&cr) {
                        runner.leave_out(&cr).await;
                        return Ok(Action::await_change());
                    }
                    let work = || Arc::clone(&runner).reconcile(cr);
                    let action = limit.take(&runner.cx.metrics, &namespace, work).await;
                    action.unwrap_or_else(|| Ok(Action::await_change()))
                }
            },
            |_, error, _| {
                tracing::error!(%error, "reconcile failed");
                Action::requeue(Duration::from_secs(10))
            },
            runner,
        );
    reconciles
        .for_each(async |result| {
            if let Err(error) = result {
                tracing::debug!(%error, "queue");
            }
        })
        .await;
}

#[cfg(test)]
mod tests;
