//! One reconcile of a custom resource from end to end, and its dry run.

use kube::ResourceExt;
use tokio::time::Instant;
use uuid::Uuid;

use super::rounds::Executed;
use super::{Times, as_reported, await_locks, decided, release, requeue, surely_gone};
use crate::controllers::conclusion::{Conclusion, Findings, conclude};
use crate::controllers::context::Context;
use crate::controllers::decision::{Decision, Lifecycle};
use crate::controllers::facts::Facts;
use crate::controllers::preview::{Preview, as_sent};
use crate::controllers::reconciler::{CloudOf, CustomResourceReconciler, Decided};
use crate::controllers::report::Report;
use crate::controllers::write_status::write_status;
use crate::controllers::{abandon, outcome};
use crate::engine::client::Reconcile;
use crate::engine::plan::Outcome;
use crate::metrics::ReconcileResult;
use crate::runtime::call::ReconcileError;
use crate::runtime::reconcile::{ReconcileOutcome, Reconciler};
use crate::runtime::requeue::Requeue;

type Reconciled<C> = Result<ReconcileOutcome<<C as Reconciler>::Object>, ReconcileError>;

/// What one reconcile works with.
pub struct Driver<'a, C: CustomResourceReconciler> {
    pub(super) controller: &'a C,
    pub(super) cx: &'a Context<C::Object>,
    pub(super) reconcile: Reconcile,
    pub(super) inputs: &'a C::Inputs,
}

impl<'a, C: CustomResourceReconciler> Driver<'a, C> {
    /// A driver of one reconcile, which `correlation` names in logs and calls. `inputs` are what Kubernetes shows
    /// around the custom resource.
    pub fn new(controller: &'a C, cx: &'a Context<C::Object>, correlation: Uuid, inputs: &'a C::Inputs) -> Self {
        let reconcile = Reconcile {
            correlation,
            ..Reconcile::begin()
        };
        Self {
            controller,
            cx,
            reconcile,
            inputs,
        }
    }

    /// Calls on behalf of the control plane in the custom resource's namespace.
    pub(super) fn call_for(&mut self, cr: &C::Object) {
        let namespace = cr.namespace().unwrap_or_default();
        self.reconcile = self.reconcile.on_behalf_of(&namespace);
    }

    /// Reconciles the custom resource once.
    pub async fn reconcile(mut self, cr: C::Object) -> Reconciled<C> {
        self.call_for(&cr);
        let lifecycle = self.controller.lifecycle(&cr, self.inputs);
        if lifecycle == Lifecycle::Nothing {
            return Ok(ReconcileOutcome::released(cr));
        }
        self.controller.prepare(self.cx, lifecycle, &cr, self.inputs).await?;
        if lifecycle == Lifecycle::Build {
            self.build(cr).await
        } else {
            self.teardown(cr).await
        }
    }

    /// Decides, and remembers what the decision shows.
    pub(super) fn decide(&self, lifecycle: Lifecycle, cr: &C::Object, facts: &Facts<CloudOf<C>>) -> Decided<C> {
        let decided = self.controller.decide(lifecycle, cr, self.inputs, facts)?;
        self.controller.note(cr, &decided.0);
        Ok(decided)
    }

    async fn build(&self, cr: C::Object) -> Reconciled<C> {
        let mut executed = self.carry_out(Lifecycle::Build, cr).await?;
        let (requeue, report) = self.built(&mut executed);
        let Executed {
            decision, outcomes, cr, ..
        } = executed;
        if decision.paused {
            return Ok(ReconcileOutcome::new(cr, requeue, ReconcileResult::Waiting));
        }
        let also = self.controller.also(self.inputs);
        let cr = write_status(self.cx, cr, also, &report).await?;
        Ok(outcome::reported(cr, requeue, &report, &decision, &outcomes))
    }

    /// What follows the steps of a build: when the next reconcile is due, and what is to be reported. Both may depend
    /// on what was remembered, which may correct the decision.
    pub(super) fn built(&self, executed: &mut Executed<C::Object, C::Found>) -> (Requeue, Report) {
        let Self {
            controller, cx, inputs, ..
        } = *self;
        let Executed {
            decision,
            found,
            outcomes,
            cr,
        } = executed;
        let earlier = controller.remember(cx, cr, inputs, decision, outcomes);
        controller.expedite(cx, Lifecycle::Build, cr, decision);
        let requeue = requeue(cx, decision, Instant::now()).or_earlier(earlier);
        let reported = as_reported(&cx.cloud.observations, &decision.steps, outcomes);
        (
            requeue,
            controller.report(Lifecycle::Build, cr, decision, found, &reported),
        )
    }

    async fn teardown(&self, cr: C::Object) -> Reconciled<C> {
        let Self {
            controller, cx, inputs, ..
        } = *self;
        let also = controller.also(inputs);
        let Executed {
            mut decision,
            found,
            outcomes,
            cr,
        } = self.carry_out(Lifecycle::Teardown, cr).await?;
        controller.remember(cx, &cr, inputs, &mut decision, &outcomes);
        match self.conclusion(&cr, &decision, &outcomes).await {
            Conclusion::Release(events) => {
                let cr = release(cx, cr, also, &decision.steps, &events).await?;
                return Ok(ReconcileOutcome::released(cr));
            }
            Conclusion::Wait(requeue) => {
                return Ok(ReconcileOutcome::new(cr, requeue, ReconcileResult::Waiting));
            }
            Conclusion::Report => {}
        }
        controller.expedite(cx, Lifecycle::Teardown, &cr, &decision);
        await_locks(cx, &decision, &outcomes, Instant::now());
        let requeue = requeue(cx, &decision, Instant::now());
        if decision.paused {
            return Ok(ReconcileOutcome::new(cr, requeue, ReconcileResult::Waiting));
        }
        let report = controller.report(Lifecycle::Teardown, &cr, &decision, &found, &outcomes);
        let cr = write_status(cx, cr, also, &report).await?;
        Ok(outcome::not_ready(cr, requeue, &decision, &outcomes))
    }

    /// What follows the steps of a teardown. Reads what is not certain.
    async fn conclusion(
        &self,
        cr: &C::Object,
        decision: &Decision<CloudOf<C>>,
        outcomes: &[Outcome<CloudOf<C>>],
    ) -> Conclusion {
        let Self { controller, cx, .. } = *self;
        let now = Instant::now();
        let abandoned = abandon::permission(cr, cx.role, decision, outcomes, &|step| {
            cx.cloud.observations.failing_for(&step.key, now)
        });
        let certain = surely_gone(cx, self.reconcile, decision).await;
        let all_gone = decision.nothing_left() && certain && abandoned.is_none();
        let may_appear = if all_gone {
            controller.may_appear(cx, cr, decision)
        } else {
            None
        };
        let findings = Findings {
            certain,
            abandoned,
            may_appear,
            last_events: controller.last_events(self.inputs, decision),
        };
        conclude(decision, findings)
    }

    /// What a reconcile would do. Reads only.
    pub async fn dry_run(&self, cr: &C::Object) -> Preview<CloudOf<C>> {
        let Self {
            controller, cx, inputs, ..
        } = *self;
        let lifecycle = controller.lifecycle(cr, inputs);
        let mut preview = Preview::new(cx.role, lifecycle, controller.known(inputs));
        if lifecycle == Lifecycle::Nothing {
            return preview;
        }
        let mut facts = Facts::default();
        let times = Times {
            began: Instant::now(),
            deleting_since: None,
        };
        let (decision, found) = decided(cx, self.reconcile, &mut facts, times, &mut |facts| {
            controller.decide(lifecycle, cr, inputs, facts)
        })
        .await;
        controller.expedite(cx, lifecycle, cr, &decision);
        preview.facts.extend(controller.warnings(cx, cr, &found));
        preview.add_facts(&facts);
        preview.add_decision(cr, &decision, controller.holds(lifecycle, cr, inputs));
        let outcomes: Vec<_> = decision.steps.iter().map(as_sent).collect();
        let conclusion = match lifecycle {
            Lifecycle::Teardown => self.conclusion(cr, &decision, &outcomes).await,
            _ => Conclusion::Report,
        };
        match conclusion {
            Conclusion::Release(_) => preview.add_release::<C::Object>(),
            Conclusion::Wait(requeue) => preview.add_requeue(requeue),
            Conclusion::Report => {
                preview.add_report(cr, &controller.report(lifecycle, cr, &decision, &found, &outcomes));
                preview.add_requeue(requeue(cx, &decision, Instant::now()));
            }
        }
        preview
    }
}
