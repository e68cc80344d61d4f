//! Calls to AWS.

use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts, Result};

use super::{Metrics, OF_CALLS, Registered};
use crate::aws::api::action::Action;
use crate::aws::api::ports::{Counters, ObservedCall};
use crate::aws::kinds::Kind;

pub(super) struct AwsMetrics {
    calls: IntCounterVec,
    duration: HistogramVec,
    held_back: IntCounterVec,
    call_budget_exhausted: IntCounterVec,
}

impl AwsMetrics {
    pub(super) fn new(registered: &mut Registered) -> Result<Self> {
        let call_budget_exhausted = registered.add(IntCounterVec::new(
            Opts::new(
                "hyperlink_aws_call_budget_exhausted_total",
                "Calls not sent because their resource had been called too often: a defect, or it is changed without end.",
            ),
            &["kind"],
        )?)?;
        // From 0 on, so that the first one shows as an increase.
        for kind in Kind::ALL {
            call_budget_exhausted.with_label_values(&[kind.label()]);
        }
        Ok(Self {
            calls: registered.add(IntCounterVec::new(
                Opts::new("hyperlink_aws_calls_total", "Calls to AWS."),
                &["action", "class", "status"],
            )?)?,
            duration: registered.add(HistogramVec::new(
                HistogramOpts::new(
                    "hyperlink_aws_call_duration_seconds",
                    "How long a call to AWS took, its body included.",
                )
                .buckets(OF_CALLS.to_vec()),
                &["action"],
            )?)?,
            held_back: registered.add(IntCounterVec::new(
                Opts::new(
                    "hyperlink_aws_calls_held_back_total",
                    "Calls not sent because AWS throttles their action, or because their request budget was used up.",
                ),
                &["action"],
            )?)?,
            call_budget_exhausted,
        })
    }
}

impl Counters for Metrics {
    fn call(&self, observed: ObservedCall) {
        self.progress.called();
        let class = observed.class.map_or("ok", |class| class.label());
        let action = observed.action.name();
        let labels = [action, class, &observed.status.to_string()];
        self.aws.calls.with_label_values(&labels).inc();
        let duration = self.aws.duration.with_label_values(&[action]);
        duration.observe(observed.took.as_secs_f64());
    }

    fn held_back(&self, action: Action) {
        self.aws.held_back.with_label_values(&[action.name()]).inc();
    }

    fn call_budget_exhausted(&self, kind: Kind) {
        self.aws.call_budget_exhausted.with_label_values(&[kind.label()]).inc();
    }
}
