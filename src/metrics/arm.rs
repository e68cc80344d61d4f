//! Calls to Azure Resource Manager and its request budgets.

use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Result};

use super::{Metrics, OF_CALLS, Registered};
use crate::azure::arm::ports::{Counters, ObservedCall};
use crate::azure::kinds::Kind;

pub(super) struct ArmMetrics {
    calls: IntCounterVec,
    duration: HistogramVec,
    budget: IntGaugeVec,
    call_budget_exhausted: IntCounterVec,
}

impl ArmMetrics {
    pub(super) fn new(registered: &mut Registered) -> Result<Self> {
        let call_budget_exhausted = registered.add(IntCounterVec::new(
            Opts::new(
                "hyperlink_arm_call_budget_exhausted_total",
                "Calls not sent because their resource had been called too often. Each is a defect of Hyperlink.",
            ),
            &["kind"],
        )?)?;
        // From 0 on, so that the first one shows as an increase.
        for kind in Kind::ALL {
            call_budget_exhausted.with_label_values(&[kind.label()]);
        }
        Ok(Self {
            calls: registered.add(IntCounterVec::new(
                Opts::new("hyperlink_arm_calls_total", "Calls to Azure Resource Manager."),
                &["kind", "verb", "class", "status"],
            )?)?,
            duration: registered.add(HistogramVec::new(
                HistogramOpts::new(
                    "hyperlink_arm_call_duration_seconds",
                    "How long a call to Azure Resource Manager took, its body included.",
                )
                .buckets(OF_CALLS.to_vec()),
                &["kind", "verb"],
            )?)?,
            budget: registered.add(IntGaugeVec::new(
                Opts::new(
                    "hyperlink_arm_budget_remaining",
                    "Requests left of a budget, by Azure's last answer.",
                ),
                &["budget"],
            )?)?,
            call_budget_exhausted,
        })
    }
}

impl Counters for Metrics {
    fn call(&self, observed: ObservedCall) {
        self.progress.called();
        let class = observed.class.map_or("ok", |class| class.label());
        let kind = observed.kind.label();
        let verb = observed.verb.label();
        let labels = [kind, verb, class, &observed.status.to_string()];
        self.arm.calls.with_label_values(&labels).inc();
        let duration = self.arm.duration.with_label_values(&[kind, verb]);
        duration.observe(observed.took.as_secs_f64());
    }

    fn budget(&self, budget: &'static str, remaining: u64) {
        let remaining = i64::try_from(remaining).unwrap_or(i64::MAX);
        self.arm.budget.with_label_values(&[budget]).set(remaining);
    }

    fn call_budget_exhausted(&self, kind: Kind) {
        self.arm.call_budget_exhausted.with_label_values(&[kind.label()]).inc();
    }
}
