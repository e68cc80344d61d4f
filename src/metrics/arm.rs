//! Calls to Azure Resource Manager, its budgets, its long-running operations, and the token for it.
//!
//! Ages are computed when Prometheus asks, so a stuck process shows a growing age and not the last good one.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use prometheus::{GaugeVec, HistogramVec, IntCounterVec, IntGaugeVec, Result};

use super::declare::{Declare, Label};
use super::{Metrics, clamp, locked};
use crate::azure::auth::TokenState;
use crate::azure::error::Class;
use crate::azure::observation_cache::UnderWay;
use crate::azure::ports::{CallVerb, Counters, ObservedCall};
use crate::azure::resource::Kind;
use crate::azure::throttle::BUDGETS;

type ReadToken = Box<dyn Fn() -> TokenState + Send + Sync>;
type ReadOperations = Box<dyn Fn() -> BTreeMap<Kind, UnderWay> + Send + Sync>;

pub(super) struct Arm {
    calls: IntCounterVec,
    duration: HistogramVec,
    budget: IntGaugeVec,
    call_budget_exhausted: IntCounterVec,
    operations: IntGaugeVec,
    operation_age: GaugeVec,
    token_age: GaugeVec,
    token_left: GaugeVec,
    read_operations: Mutex<Vec<ReadOperations>>,
    read_token: Mutex<Option<ReadToken>>,
}

impl Arm {
    pub(super) fn declare(declare: &mut Declare<'_>) -> Result<Self> {
        let kind = || Label::one_of("kind", Kind::ALL.map(Kind::label));
        let verb = || Label::one_of("verb", CallVerb::ALL.map(CallVerb::label));
        let class = Label::one_of("class", ["ok"].into_iter().chain(Class::ALL.map(Class::label)));
        let status = Label::free_text("status", "the HTTP status; 0: no answer");
        let call_budget_exhausted = declare.counter(
            "arm_call_budget_exhausted_total",
            "Calls not sent because their resource had been called too often. Each is a defect of this program.",
            vec![kind()],
        )?;
        // From 0 on, so that an increase shows the first one.
        for kind in Kind::ALL {
            call_budget_exhausted.with_label_values(&[kind.label()]).reset();
        }
        Ok(Self {
            calls: declare.counter(
                "arm_calls_total",
                "Calls to Azure Resource Manager. Status 0: no answer. Class ok: no error.",
                vec![kind(), verb(), class, status],
            )?,
            duration: declare.duration(
                "arm_call_duration_seconds",
                "How long a call to Azure Resource Manager took, its body included.",
                vec![kind(), verb()],
            )?,
            budget: declare.count(
                "arm_budget_remaining",
                "What Azure last said is left of a request budget.",
                vec![Label::one_of("budget", BUDGETS)],
            )?,
            call_budget_exhausted,
            operations: declare.count(
                "arm_operations_in_flight",
                "Long-running operations started here and not yet seen to end.",
                vec![kind()],
            )?,
            operation_age: declare.gauge(
                "arm_operation_oldest_age_seconds",
                "Age of the oldest long-running operation in flight; 0 when there is none.",
                vec![kind()],
            )?,
            token_age: declare.gauge(
                "token_age_seconds",
                "Age of the Azure token in use; absent before the first one.",
                Vec::new(),
            )?,
            token_left: declare.gauge(
                "token_expires_in_seconds",
                "How long the Azure token in use is still good; 0 when it has expired, absent before the first one.",
                Vec::new(),
            )?,
            read_operations: Mutex::default(),
            read_token: Mutex::default(),
        })
    }

    /// Computes all ages as of now.
    pub(super) fn refresh(&self) {
        let under_way: Vec<_> = locked(&self.read_operations).iter().map(|read| read()).collect();
        for kind in Kind::ALL.into_iter().filter(|_| !under_way.is_empty()) {
            let of_kind = under_way.iter().filter_map(|operations| operations.get(&kind).copied());
            let all = of_kind.fold(UnderWay::default(), UnderWay::and);
            let labels = [kind.label()];
            self.operations.with_label_values(&labels).set(clamp(all.count as u64));
            self.operation_age
                .with_label_values(&labels)
                .set(all.oldest.as_secs_f64());
        }
        if let Some(read) = locked(&self.read_token).as_ref() {
            let token = read();
            seconds_or_absent(&self.token_age, token.age);
            seconds_or_absent(&self.token_left, token.left);
        }
    }
}

impl Metrics {
    /// Sets the function that reads the token in use at each scrape. It must be quick and must not block.
    pub fn read_token_with(&self, read: impl Fn() -> TokenState + Send + Sync + 'static) {
        *locked(&self.arm.read_token) = Some(Box::new(read));
    }

    /// Adds a function that reads operations under way at each scrape; all of them are added up. It must be quick and
    /// must not block.
    pub fn read_operations_with(&self, read: impl Fn() -> BTreeMap<Kind, UnderWay> + Send + Sync + 'static) {
        locked(&self.arm.read_operations).push(Box::new(read));
    }
}

impl Counters for Metrics {
    fn call(&self, observed: ObservedCall) {
        self.progress.called();
        let class = observed.class.map_or("ok", |class| class.label());
        let (kind, verb) = (observed.kind.label(), observed.verb.label());
        self.arm
            .calls
            .with_label_values(&[kind, verb, class, &observed.status.to_string()])
            .inc();
        self.arm
            .duration
            .with_label_values(&[kind, verb])
            .observe(observed.took.as_secs_f64());
    }

    fn budget(&self, budget: &'static str, remaining: u64) {
        self.arm.budget.with_label_values(&[budget]).set(clamp(remaining));
    }

    fn call_budget_exhausted(&self, kind: Kind) {
        self.arm.call_budget_exhausted.with_label_values(&[kind.label()]).inc();
    }
}

fn seconds_or_absent(gauge: &GaugeVec, value: Option<Duration>) {
    gauge.reset();
    if let Some(value) = value {
        gauge.with_label_values::<&str>(&[]).set(value.as_secs_f64());
    }
}
