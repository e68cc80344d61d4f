//! The rounds of a reconcile: decide, record the intent, execute; and again if a resource became ready at once.

use kube::{Resource, ResourceExt};
use tokio::time::Instant;

use super::{Driver, Times, decided, event_targets, gone, record, to_instant};
use crate::controllers::cloud::ListFacts;
use crate::controllers::context::Context;
use crate::controllers::custom_resource::CustomResource;
use crate::controllers::decision::{Decision, Lifecycle};
use crate::controllers::event;
use crate::controllers::facts::Facts;
use crate::controllers::reconciler::{CloudOf, CustomResourceReconciler, ServedResource};
use crate::controllers::urgency::urgency;
use crate::engine::client::Reconcile;
use crate::engine::cloud::{Cloud, ResourceKind};
use crate::engine::execute;
use crate::engine::failure::Failure;
use crate::engine::plan::{Outcome, Step};
use crate::hypershift::intent;
use crate::runtime::call::ReconcileError;
use crate::runtime::event::Event;

/// The most rounds of one reconcile; each makes at least one resource ready.
const ROUNDS: usize = 16;

/// A decision and what came of it.
pub(super) struct Executed<R: ServedResource, X> {
    /// The last decision.
    pub decision: Decision<R::Cloud>,
    /// What the controller found in addition.
    pub found: X,
    /// The outcome of each step.
    pub outcomes: Vec<Outcome<R::Cloud>>,
    /// The object as it was last written.
    pub cr: R,
}

impl<C: CustomResourceReconciler> Driver<'_, C> {
    /// Decides and executes, and repeats both as long as a step makes its resource ready at once. Before the first
    /// write the intent is recorded.
    pub(super) async fn carry_out(
        &self,
        lifecycle: Lifecycle,
        mut cr: C::Object,
    ) -> Result<Executed<C::Object, C::Found>, ReconcileError> {
        let cx = self.cx;
        let began = Instant::now();
        let deleting_since = self.controller.deleting_since(&cr, self.inputs);
        let times = Times {
            began,
            deleting_since: deleting_since.and_then(|since| to_instant(since, began)),
        };
        let mut facts = Facts::default();
        let mut reconcile = Reconcile {
            urgency: urgency(&cr, cx.role, lifecycle, cx.resources.namespaces()),
            ..self.reconcile
        };
        let mut round = 1;
        loop {
            let (mut decision, found) = decided(cx, reconcile, &mut facts, times, &mut |facts| {
                self.decide(lifecycle, &cr, facts)
            })
            .await;
            gone::hold_back(cx, &cr, &mut decision.steps, Instant::now());
            cr = self.record_intent(lifecycle, cr, &decision).await?;
            let outcomes = self.execute(&cr, &decision.steps).await;
            // Somebody else wrote after the read. If that happens again, the next reconcile handles it.
            let is_outdated = round == 1 && invalidate_outdated(cx, &decision.steps, &outcomes);
            let is_last = round == ROUNDS || !(is_outdated || any_ready(&decision.steps, &outcomes));
            if is_last {
                self.report_standing(&cr, &decision).await;
                return Ok(Executed {
                    decision,
                    found,
                    outcomes,
                    cr,
                });
            }
            for step in decision.steps.iter().filter(|step| step.writes()) {
                facts.reads.remove(&step.key);
            }
            reconcile = reconcile.awaited();
            facts.lists.forget_changed();
            round += 1;
        }
    }

    /// Reports what stands, and notes what is over, as Events; nothing if that is known.
    pub(super) async fn report_standing(&self, cr: &C::Object, decision: &Decision<CloudOf<C>>) {
        for (topic, event) in &decision.standing {
            let events = &self.cx.runtime.events;
            events.stands(&cr.object_ref(&()), topic, event.clone()).await;
        }
    }

    /// Executes the steps, and reports what has become of them.
    pub(super) async fn execute(&self, cr: &C::Object, steps: &[Step<CloudOf<C>>]) -> Vec<Outcome<CloudOf<C>>> {
        let cloud = &self.cx.cloud;
        let outcomes = execute::run(steps, &cloud.client, &cloud.observations, self.reconcile).await;
        self.emit_outcomes(cr, steps, &outcomes).await;
        outcomes
    }

    /// Records the intent, if that is due, and writes the role's own fields; returns the object as it was written.
    async fn record_intent(
        &self,
        lifecycle: Lifecycle,
        cr: C::Object,
        decision: &Decision<CloudOf<C>>,
    ) -> Result<C::Object, ReconcileError> {
        let cx = self.cx;
        let due = decision.forgets || intent::due(&cr, cx.role, cr.is_held_by(cx.role), &decision.steps);
        let intent = decision.intent.as_deref().filter(|_| due);
        if intent.is_none() && decision.own_fields.is_empty() {
            return Ok(cr);
        }
        let is_known = cr.annotations().contains_key(cx.role.intent_annotation());
        let cr = record(cx, cr, intent, &decision.own_fields).await?;
        if intent.is_none() {
            return Ok(cr);
        }
        if lifecycle == Lifecycle::Build {
            self.controller.recorded(cx, cr.clone()).await?;
        }
        let adopted = event::adopted(&decision.steps).filter(|_| !is_known);
        self.emit(&cr, adopted.as_slice()).await;
        Ok(cr)
    }

    /// Counts the resources that have become as desired, and emits an Event for each, and for one that was called too
    /// often.
    async fn emit_outcomes(&self, cr: &C::Object, steps: &[Step<CloudOf<C>>], outcomes: &[Outcome<CloudOf<C>>]) {
        let mut changes = Vec::new();
        for (step, outcome) in steps.iter().zip(outcomes) {
            if let Outcome::Reached(change) = outcome {
                let (kind, id) = (step.kind.label(), step.key.to_string());
                self.cx.runtime.metrics.changed(kind, &id, change);
                changes.push(event::changed(step, change));
            }
        }
        self.emit(cr, &changes).await;
        let events = &self.cx.runtime.events;
        let exhausted = event::call_budget_exhausted(steps, outcomes);
        events.stands(&cr.object_ref(&()), "call budget", exhausted).await;
    }

    async fn emit(&self, cr: &C::Object, events: &[Event]) {
        let targets = event_targets(cr, self.controller.also(self.inputs));
        self.cx.runtime.events.emit(&targets, events).await;
    }
}

/// Whether a write made its resource ready at once. A parent shows the end of what only it shows later.
fn any_ready<C: Cloud>(steps: &[Step<C>], outcomes: &[Outcome<C>]) -> bool {
    let written = steps.iter().zip(outcomes).filter(|(step, _)| step.writes());
    let mut shown = written.filter(|(step, _)| !step.kind.rules().shown_by_parent);
    shown.any(|(_, outcome)| *outcome == Outcome::Ready)
}

/// Invalidates what others changed between the read and the write; returns whether there was such a change.
fn invalidate_outdated<R: ServedResource>(
    cx: &Context<R>,
    steps: &[Step<R::Cloud>],
    outcomes: &[Outcome<R::Cloud>],
) -> bool {
    let mut any = false;
    for (step, outcome) in steps.iter().zip(outcomes) {
        let refused = matches!(outcome, Outcome::Failed(error) if error.is_outdated());
        if refused && cx.cloud.observations.refused_once(&step.key) {
            cx.cloud.observations.invalidate(&step.key, Instant::now());
            any = true;
        }
    }
    any
}
