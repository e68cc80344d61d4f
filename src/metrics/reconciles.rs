//! Passes: how many, how long, how they ended, and how many wait.

use std::time::Instant;

use prometheus::{HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Result};

use super::Metrics;
use super::declare::{Declare, Label};
use super::labels::{Controller, ReconcileResult};

pub(super) struct Reconciles {
    total: IntCounterVec,
    duration: HistogramVec,
    running: IntGaugeVec,
    queue: IntGaugeVec,
    panics: IntCounterVec,
}

impl Reconciles {
    pub(super) fn declare(declare: &mut Declare<'_>) -> Result<Self> {
        let controller = || Label::one_of("controller", Controller::ALL.map(Controller::label));
        let result = Label::one_of("result", ReconcileResult::ALL.map(ReconcileResult::label));
        let panics = declare.counter(
            "reconcile_panics_total",
            "Panics, in reconciles or on the way to one.",
            vec![controller()],
        )?;
        for controller in Controller::ALL {
            // From 0 on, so that the first one is seen as an increase.
            panics.with_label_values(&[controller.label()]).reset();
        }
        Ok(Self {
            total: declare.counter(
                "reconcile_total",
                "Reconciles that ended, by result.",
                vec![controller(), result],
            )?,
            duration: declare.duration(
                "reconcile_time_seconds",
                "How long a reconcile took.",
                vec![controller()],
            )?,
            running: declare.count("active_workers", "Reconciles under way.", vec![controller()])?,
            queue: declare.count(
                "workqueue_depth",
                "Reconciles that are due and wait for a free worker.",
                vec![controller()],
            )?,
            panics,
        })
    }
}

impl Metrics {
    /// A pass begins. What is returned counts it when it ends, also when it is dropped.
    pub fn reconcile(&self, controller: Controller) -> RunningReconcile<'_> {
        let label = [controller.label()];
        self.reconciles.running.with_label_values(&label).inc();
        RunningReconcile {
            metrics: self,
            controller,
            began: Instant::now(),
            result: ReconcileResult::Aborted,
        }
    }

    /// Something of this controller panicked, in a pass or on the way to one.
    pub fn panicked(&self, controller: Controller) {
        self.reconciles.panics.with_label_values(&[controller.label()]).inc();
    }

    /// A pass is due and waits for its turn, until what is returned is dropped.
    pub fn queued(&self, controller: Controller) -> Queued {
        let depth = self.reconciles.queue.with_label_values(&[controller.label()]);
        depth.inc();
        Queued(depth)
    }
}

/// A pass that waits for its turn.
#[must_use = "dropping it says that the wait is over"]
pub struct Queued(IntGauge);

impl Drop for Queued {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// A pass under way.
#[must_use = "dropping it ends the pass as aborted"]
pub struct RunningReconcile<'a> {
    metrics: &'a Metrics,
    controller: Controller,
    began: Instant,
    result: ReconcileResult,
}

impl RunningReconcile<'_> {
    /// The pass has ended.
    pub fn end(mut self, result: ReconcileResult) {
        self.result = result;
    }
}

impl Drop for RunningReconcile<'_> {
    fn drop(&mut self) {
        let reconciles = &self.metrics.reconciles;
        let controller = self.controller.label();
        if std::thread::panicking() {
            self.result = ReconcileResult::Panicked;
        }
        let ended = [controller, self.result.label()];
        reconciles.total.with_label_values(&ended).inc();
        reconciles.running.with_label_values(&[controller]).dec();
        let took = self.began.elapsed().as_secs_f64();
        reconciles.duration.with_label_values(&[controller]).observe(took);
    }
}
