//! Reconciles: how many, how long, how they ended, and how many wait.

use prometheus::{HistogramOpts, HistogramTimer, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Result};

use super::labels::{Controller, ReconcileResult};
use super::{Metrics, OF_CALLS, Registered};

pub(super) struct Reconciles {
    total: IntCounterVec,
    time: HistogramVec,
    running: IntGaugeVec,
    queue: IntGaugeVec,
    requeues: IntCounterVec,
    panics: IntCounterVec,
}

impl Reconciles {
    pub(super) fn new(registered: &mut Registered) -> Result<Self> {
        let panics = registered.add(IntCounterVec::new(
            Opts::new(
                "hyperlink_reconcile_panics_total",
                "Panics, in reconciles or on the way to one.",
            ),
            &["controller"],
        )?)?;
        // From 0 on, so that the first one shows as an increase.
        for controller in Controller::LABELS {
            panics.with_label_values(&[controller]);
        }
        Ok(Self {
            total: registered.add(IntCounterVec::new(
                Opts::new("hyperlink_reconcile_total", "Reconciles that ended, by result."),
                &["controller", "result"],
            )?)?,
            time: registered.add(HistogramVec::new(
                HistogramOpts::new("hyperlink_reconcile_time_seconds", "How long a reconcile took.")
                    .buckets(OF_CALLS.to_vec()),
                &["controller"],
            )?)?,
            running: registered.add(IntGaugeVec::new(
                Opts::new("hyperlink_active_workers", "Reconciles that are running."),
                &["controller"],
            )?)?,
            queue: registered.add(IntGaugeVec::new(
                Opts::new(
                    "hyperlink_workqueue_depth",
                    "Reconciles that are due and wait for a free worker.",
                ),
                &["controller"],
            )?)?,
            requeues: registered.add(IntCounterVec::new(
                Opts::new(
                    "hyperlink_requeues_total",
                    "Reconciles after which the next one was due at a known time, by the reason for that time.",
                ),
                &["controller", "reason"],
            )?)?,
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
            reconciles: &self.reconciles,
            controller,
            result: ReconcileResult::Aborted,
            _time: self.reconciles.time.with_label_values(&label).start_timer(),
        }
    }

    /// Counts a reconcile after which the next one is due at a known time, for this reason.
    pub fn requeued(&self, controller: Controller, reason: &'static str) {
        let labels = [controller.label(), reason];
        self.reconciles.requeues.with_label_values(&labels).inc();
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
    reconciles: &'a Reconciles,
    controller: Controller,
    result: ReconcileResult,
    /// Records the time when it is dropped.
    _time: HistogramTimer,
}

impl RunningReconcile<'_> {
    /// Ends the reconcile with `result`.
    pub fn end(mut self, result: ReconcileResult) {
        self.result = result;
    }
}

impl Drop for RunningReconcile<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.result = ReconcileResult::Panicked;
        }
        let controller = self.controller.label();
        let result = self.result.label();
        self.reconciles.total.with_label_values(&[controller, result]).inc();
        self.reconciles.running.with_label_values(&[controller]).dec();
    }
}
