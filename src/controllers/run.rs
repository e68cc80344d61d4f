//! Runs passes over custom resources: paces and counts them, survives panics.

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

/// How a pass has ended.
pub struct ReconcileOutcome {
    /// The object as last written.
    pub cr: AzurePrivateLinkService,
    /// When the next pass is due.
    pub wait: Duration,
    /// For the counters.
    pub result: ReconcileResult,
    /// Whether nothing more is to be done for the object.
    pub released: bool,
}

impl ReconcileOutcome {
    /// All is as wanted.
    fn ready(cr: AzurePrivateLinkService, wait: Duration) -> Self {
        Self {
            cr,
            wait,
            result: ReconcileResult::Ready,
            released: false,
        }
    }

    /// Something is under way or waited for.
    pub fn waiting(cr: AzurePrivateLinkService, wait: Duration) -> Self {
        Self {
            cr,
            wait,
            result: ReconcileResult::Waiting,
            released: false,
        }
    }

    /// As the report of a pass tells that brings about what is wanted. A condition that is True still while Azure fails to answer
    /// does not make it a success.
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

    /// Not as wanted yet, for what the decision and its outcome say.
    pub fn unsettled(cr: AzurePrivateLinkService, wait: Duration, decision: &Decision, outcomes: &[Outcome]) -> Self {
        let failed = decision.fails() || outcomes.iter().any(|outcomes| matches!(outcomes, Outcome::Failed(_)));
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

/// One role's way of bringing a custom resource about.
pub trait Reconciler: Send + Sync + 'static {
    /// What Kubernetes says around the object.
    type Inputs: Send;

    /// Reads the surroundings; the text stands for all of them whose change is worth a pass.
    fn inputs(
        &self,
        cx: &Context,
        cr: &AzurePrivateLinkService,
    ) -> impl Future<Output = Result<(Self::Inputs, String), ReconcileError>> + Send;

    /// One pass.
    fn reconcile(
        &self,
        cx: &Context,
        reconcile: Reconcile,
        cr: AzurePrivateLinkService,
        inputs: Self::Inputs,
    ) -> impl Future<Output = Result<ReconcileOutcome, ReconcileError>> + Send;

    /// The object with this UID is gone.
    fn forget(&self, _uid: &str) {}
}

/// A reconciler that can tell what a pass would do.
pub trait SupportsDryRun: Reconciler {
    /// Goes as far as a pass goes before its first write.
    fn dry_run(
        &self,
        cx: &Context,
        reconcile: Reconcile,
        cr: &AzurePrivateLinkService,
        inputs: &Self::Inputs,
    ) -> impl Future<Output = DryRun> + Send;
}

/// How far a pass has come.
struct Begun<'a> {
    uid: String,
    /// What the pacer is to compare.
    observed: Fingerprint,
    counted: Option<RunningReconcile<'a>>,
}

/// A reconciler with what it works with.
pub struct Runner<R> {
    /// The role's way.
    pub reconciler: R,
    /// What it works with.
    pub cx: Arc<Context>,
    /// For the counters.
    pub label: Label,
    /// Keeps passes from coming too early.
    pub pacer: Pacer,
}

impl<R: Reconciler> Runner<R> {
    /// With a fresh pace.
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

    /// A reconcile has ended. What it has kept of an object that has gone meanwhile goes too.
    fn ended(&self, uid: &str, observed: Fingerprint, wait: Duration) {
        if !self.pacer.ended(uid, observed, wait, Instant::now()) {
            self.forget(uid);
        }
    }

    async fn reconcile(self: Arc<Self>, cached: Arc<AzurePrivateLinkService>) -> Result<Action, ReconcileError> {
        let reconcile = Reconcile::begin();
        let (namespace, name) = (cached.namespace().unwrap_or_default(), cached.name_any());
        let span = tracing::info_span!("pass", controller = self.label.label(), namespace, name, correlation_id = %reconcile.correlation);
        let guarded = AssertUnwindSafe(self.guarded(&cached, &namespace, &name, reconcile))
            .catch_unwind()
            .instrument(span.clone());
        let action = guarded.await.unwrap_or_else(|_| {
            self.cx.metrics.panicked(self.label);
            let uid = cached.uid().unwrap_or_default();
            let wait = span.in_scope(|| self.cx.failures.panicked(&uid));
            self.ended(&uid, self.fingerprint(&cached), wait);
            Action::requeue(wait)
        });
        Ok(action)
    }

    /// One pass, unless it comes too early; an error becomes a delay.
    async fn guarded(
        &self,
        cached: &AzurePrivateLinkService,
        namespace: &str,
        name: &str,
        reconcile: Reconcile,
    ) -> Action {
        let mut begun = Begun {
            uid: cached.uid().unwrap_or_default(),
            observed: self.fingerprint(cached),
            counted: None,
        };
        if let Err(wait) = self
            .pacer
            .begin((namespace, name), &begun.uid, begun.observed, Instant::now())
        {
            return self.or_answer(cached, wait);
        }
        match self.paced(namespace, name, reconcile, &mut begun).await {
            Ok(action) => action,
            Err(error) => {
                let Begun { uid, observed, counted } = begun;
                let (result, wait) = self.cx.failures.failed(&uid, &error);
                // One that could not even be begun has failed too.
                counted
                    .unwrap_or_else(|| self.cx.metrics.reconcile(self.label))
                    .end(result);
                self.ended(&uid, observed, wait);
                Action::requeue(wait)
            }
        }
    }

    /// The custom resource is none of those of its namespace that are served: nothing is done for it, and one Event tells of
    /// all of them.
    async fn leave_out(&self, cr: &AzurePrivateLinkService) {
        self.forget(&cr.uid().unwrap_or_default());
        let namespace = cr.namespace().unwrap_or_default();
        let Some(rest) = self.cx.resources.not_served(&namespace) else {
            return;
        };
        let note =
            format!("{rest} AzurePrivateLinkServices of this namespace are not served: only the {MOST} oldest are");
        tracing::warn!(namespace, reason = note, "too many custom resources in a namespace");
        let event = Event::new(What::NotServed, note);
        self.cx.events.say(&[cr.object_ref(&())], &[event]).await;
    }

    fn fingerprint(&self, cr: &AzurePrivateLinkService) -> Fingerprint {
        let published = self.cx.published.of(&cr.uid().unwrap_or_default());
        let now = Instant::now().into_std();
        Fingerprint::of(&fingerprint(cr, self.cx.role, &published, now))
    }

    /// Waits so long, or until another writer is to be answered.
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
        reconcile: Reconcile,
        begun: &mut Begun<'a>,
    ) -> Result<Action, ReconcileError> {
        // The cache may lag behind our own last write.
        let api: Api<AzurePrivateLinkService> = Api::namespaced(self.cx.kube.clone(), namespace);
        let Some(cr) = within(api.get_opt(name)).await? else {
            self.forget(&begun.uid);
            return Ok(Action::await_change());
        };
        if cr.uid().unwrap_or_default() != begun.uid {
            // It was made anew under its name: the watch tells of that one.
            self.forget(&begun.uid);
            return Ok(Action::await_change());
        }
        let uid = &begun.uid;
        let (inputs, surroundings) = self.reconciler.inputs(&self.cx, &cr).await?;
        begun.observed = self.fingerprint(&cr).with(&surroundings);
        if let Some(rest) = self.pacer.early(uid, begun.observed, Instant::now()) {
            return Ok(self.or_answer(&cr, rest));
        }
        if self.pacer.has_changed(uid, begun.observed) {
            self.cx.polls.change(uid);
        }
        begun.counted = Some(self.cx.metrics.reconcile(self.label));
        let ended = self.reconciler.reconcile(&self.cx, reconcile, cr, inputs).await?;
        if let Some(counted) = begun.counted.take() {
            counted.end(ended.result);
        }
        self.cx.failures.over(uid);
        if ended.released {
            self.forget(uid);
            return Ok(Action::await_change());
        }
        let observed = self.fingerprint(&ended.cr).with(&surroundings);
        self.ended(uid, observed, ended.wait);
        Ok(self.or_answer(&ended.cr, ended.wait))
    }
}

/// Runs a prepared controller until `stop`; running passes end first.
pub async fn run<R: Reconciler>(
    controller: kube::runtime::Controller<AzurePrivateLinkService>,
    runner: Arc<Runner<R>>,
    concurrency: u16,
    stop: CancellationToken,
) {
    let places = Arc::new(ConcurrencyLimit::new(runner.label, concurrency));
    let over = Arc::clone(&places);
    let reconciles = controller
        .graceful_shutdown_on(async move { over.end_with(stop).await })
        .run(
            move |cr, runner: Arc<Runner<R>>| {
                let places = Arc::clone(&places);
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
                    let ended = places.take(&runner.cx.metrics, &namespace, work).await;
                    ended.unwrap_or_else(|| Ok(Action::await_change()))
                }
            },
            |_, error, _| {
                tracing::error!(%error, "pass failed");
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
