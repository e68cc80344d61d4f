//! Reconciles: how many, how long, how they ended, and how many wait.

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
            // From 0 on, so that the first one shows as an increase.
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
    /// Records that a reconcile begins. The returned guard counts it when it ends, also when it is dropped.
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

    /// Counts a panic of this controller, in a reconcile or on the way to one.
    pub fn panicked(&self, controller: Controller) {
        self.reconciles.panics.with_label_values(&[controller.label()]).inc();
    }

    /// Records that a reconcile is due and waits for a free worker, until the returned guard is dropped.
    pub fn queued(&self, controller: Controller) -> Queued {
        let depth = self.reconciles.queue.with_label_values(&[controller.label()]);
        depth.inc();
        Queued(depth)
    }
}

/// A reconcile that waits for a free worker.
#[must_use = "dropping it says that the wait is over"]
pub struct Queued(IntGauge);

impl Drop for Queued {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// A reconcile under way.
#[must_use = "dropping it ends the reconcile as aborted"]
pub struct RunningReconcile<'a> {
    metrics: &'a Metrics,
    controller: Controller,
    began: Instant,
    result: ReconcileResult,
}

impl RunningReconcile<'_> {
    /// Ends the reconcile with `result`.
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
        let labels = [controller, self.result.label()];
        reconciles.total.with_label_values(&labels).inc();
        reconciles.running.with_label_values(&[controller]).dec();
        let took = self.began.elapsed().as_secs_f64();
        reconciles.duration.with_label_values(&[controller]).observe(took);
    }
}
