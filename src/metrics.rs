//! Every metric, declared once. Labels come from enums and constants, never from an id, a name or a message.
//!
//! Ages are computed when Prometheus asks, so a stuck process shows a growing age and not the last good one.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use prometheus::{
    GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry, TextEncoder,
};

use crate::api::role::Role;
use crate::azure::ports::{CallSeen, Counters};
use crate::azure::resource::Kind;

/// What runs passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Controller {
    /// Services become AzurePrivateLinkServices.
    Observer,
    /// The management side: NAT subnet and Private Link Service.
    LinkService,
    /// The guest side: Private Endpoint and private DNS.
    Endpoint,
}

impl Controller {
    /// Every controller.
    pub const ALL: [Controller; 3] = [
        Controller::Observer,
        Controller::LinkService,
        Controller::Endpoint,
    ];

    /// The metric label, and the word in logs.
    pub fn label(self) -> &'static str {
        match self {
            Controller::Observer => "observer",
            Controller::LinkService => "link_service",
            Controller::Endpoint => "endpoint",
        }
    }
}

/// How a pass ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PassResult {
    /// All is as wanted.
    Settled,
    /// Something has been asked for and is not there yet. No error.
    Waiting,
    /// Something must not be touched, or the object asks for what cannot be.
    Refused,
    /// A call failed.
    Failed,
    /// The pass panicked; counted in `hyperlink_panics_total` too.
    Panicked,
    /// The pass was dropped before its end: the process stops or no longer leads.
    Aborted,
}

impl PassResult {
    /// Every result.
    pub const ALL: [PassResult; 6] = [
        PassResult::Settled,
        PassResult::Waiting,
        PassResult::Refused,
        PassResult::Failed,
        PassResult::Panicked,
        PassResult::Aborted,
    ];

    /// The metric label.
    pub fn label(self) -> &'static str {
        match self {
            PassResult::Settled => "settled",
            PassResult::Waiting => "waiting",
            PassResult::Refused => "refused",
            PassResult::Failed => "failed",
            PassResult::Panicked => "panicked",
            PassResult::Aborted => "aborted",
        }
    }
}

/// What is written in Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KubeResource {
    /// `azureprivatelinkservices`: spec, finalizers, annotations.
    LinkService,
    /// `azureprivatelinkservices/status`
    LinkServiceStatus,
    /// `hostedcontrolplanes`
    HostedControlPlane,
    /// `hostedclusters/status`
    HostedClusterStatus,
    /// `services`
    Service,
    /// `events`
    Event,
    /// `leases`
    Lease,
}

impl KubeResource {
    /// The metric label: the resource as in a role's rules.
    pub fn label(self) -> &'static str {
        match self {
            KubeResource::LinkService => "azureprivatelinkservices",
            KubeResource::LinkServiceStatus => "azureprivatelinkservices/status",
            KubeResource::HostedControlPlane => "hostedcontrolplanes",
            KubeResource::HostedClusterStatus => "hostedclusters/status",
            KubeResource::Service => "services",
            KubeResource::Event => "events",
            KubeResource::Lease => "leases",
        }
    }
}

/// How it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KubeVerb {
    /// POST
    Create,
    /// PATCH of any kind, server-side apply included.
    Patch,
    /// DELETE
    Delete,
}

impl KubeVerb {
    /// The metric label: the verb as in a role's rules.
    pub fn label(self) -> &'static str {
        match self {
            KubeVerb::Create => "create",
            KubeVerb::Patch => "patch",
            KubeVerb::Delete => "delete",
        }
    }
}

/// How many objects have a condition in a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConditionCount {
    /// The condition's type.
    pub condition: &'static str,
    /// `True`, `False` or `Unknown`.
    pub status: &'static str,
    /// Number of objects.
    pub objects: usize,
}

type CountConditions = Box<dyn Fn() -> Vec<ConditionCount> + Send + Sync>;

/// The metrics of this process, in a registry of their own.
pub struct Metrics {
    registry: Registry,
    passes: IntCounterVec,
    pass_duration: HistogramVec,
    passes_running: IntGaugeVec,
    queue: IntGaugeVec,
    panics: IntCounterVec,
    arm_calls: IntCounterVec,
    arm_duration: HistogramVec,
    arm_budget: IntGaugeVec,
    operations: IntGaugeVec,
    operation_age: GaugeVec,
    conditions: IntGaugeVec,
    leader: IntGaugeVec,
    token_age: GaugeVec,
    token_expiry: GaugeVec,
    kube_writes: IntCounterVec,
    memory: GaugeVec,
    oldest_operation: Mutex<BTreeMap<Kind, Instant>>,
    token_obtained: Mutex<Option<SystemTime>>,
    count_conditions: Mutex<Option<CountConditions>>,
}

/// Declares metrics in one registry. The name's prefix is added here and nowhere else.
struct Declare<'a>(&'a Registry);

impl Declare<'_> {
    fn counter(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
    ) -> prometheus::Result<IntCounterVec> {
        let metric = IntCounterVec::new(Opts::new(name, help).namespace("hyperlink"), labels)?;
        self.0.register(Box::new(metric.clone()))?;
        Ok(metric)
    }

    fn count(&self, name: &str, help: &str, labels: &[&str]) -> prometheus::Result<IntGaugeVec> {
        let metric = IntGaugeVec::new(Opts::new(name, help).namespace("hyperlink"), labels)?;
        self.0.register(Box::new(metric.clone()))?;
        Ok(metric)
    }

    fn gauge(&self, opts: Opts, labels: &[&str]) -> prometheus::Result<GaugeVec> {
        let metric = GaugeVec::new(opts, labels)?;
        self.0.register(Box::new(metric.clone()))?;
        Ok(metric)
    }

    fn seconds(&self, name: &str, help: &str, labels: &[&str]) -> prometheus::Result<GaugeVec> {
        self.gauge(Opts::new(name, help).namespace("hyperlink"), labels)
    }

    fn duration(&self, name: &str, help: &str, labels: &[&str]) -> prometheus::Result<HistogramVec> {
        // From one call on loopback to the 60 s after which a call is given up.
        let buckets = vec![0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];
        let opts = HistogramOpts::new(name, help)
            .namespace("hyperlink")
            .buckets(buckets);
        let metric = HistogramVec::new(opts, labels)?;
        self.0.register(Box::new(metric.clone()))?;
        Ok(metric)
    }
}

impl Metrics {
    /// Declares all metrics. `commit` is the source's commit, or `unknown`.
    pub fn new(version: &str, commit: &str) -> prometheus::Result<Self> {
        let registry = Registry::new();
        let declare = Declare(&registry);
        declare
            .count("build_info", "Always 1; the build is in the labels.", &["version", "commit"])?
            .with_label_values(&[version, commit])
            .set(1);
        let process = |name, help| declare.gauge(Opts::new(name, help), &[]);
        process(
            "process_start_time_seconds",
            "When the process started, in seconds since 1970.",
        )?
        .with_label_values::<&str>(&[])
        .set(seconds_since_1970(SystemTime::now()));
        Ok(Self {
            passes: declare.counter(
                "passes_total",
                "Passes that ended, by result.",
                &["controller", "result"],
            )?,
            pass_duration: declare.duration(
                "pass_duration_seconds",
                "How long a pass took.",
                &["controller"],
            )?,
            passes_running: declare.count("passes_running", "Passes under way.", &["controller"])?,
            queue: declare.count(
                "work_queue_depth",
                "Objects whose pass is due and has not begun.",
                &["controller"],
            )?,
            panics: declare.counter("panics_total", "Passes that panicked.", &["controller"])?,
            arm_calls: declare.counter(
                "arm_calls_total",
                "Calls to Azure Resource Manager. Status 0: no answer. Class ok: no error.",
                &["kind", "verb", "class", "status"],
            )?,
            arm_duration: declare.duration(
                "arm_call_duration_seconds",
                "How long a call to Azure Resource Manager took, its body included.",
                &["kind", "verb"],
            )?,
            arm_budget: declare.count(
                "arm_budget_remaining",
                "What Azure last said is left of a request budget.",
                &["budget"],
            )?,
            operations: declare.count(
                "arm_operations_in_flight",
                "Long-running operations started here and not yet seen to end.",
                &["kind"],
            )?,
            operation_age: declare.seconds(
                "arm_operation_oldest_age_seconds",
                "Age of the oldest long-running operation in flight; 0 when there is none.",
                &["kind"],
            )?,
            conditions: declare.count(
                "conditions",
                "AzurePrivateLinkServices by condition and its status.",
                &["type", "status"],
            )?,
            leader: declare.count("leader", "1 while this process leads the role.", &["role"])?,
            token_age: declare.seconds(
                "token_age_seconds",
                "Age of the Azure token in use; absent before the first one.",
                &[],
            )?,
            token_expiry: declare.seconds(
                "token_expiry_timestamp_seconds",
                "When the Azure token in use expires, in seconds since 1970.",
                &[],
            )?,
            kube_writes: declare.counter(
                "kube_writes_total",
                "Writes sent to the Kubernetes API server.",
                &["resource", "verb"],
            )?,
            memory: process(
                "process_resident_memory_bytes",
                "Resident memory; absent where the system does not tell.",
            )?,
            oldest_operation: Mutex::default(),
            token_obtained: Mutex::default(),
            count_conditions: Mutex::default(),
            registry,
        })
    }

    /// A pass begins. What is returned counts it when it ends, also when it is dropped.
    pub fn pass(&self, controller: Controller) -> Pass<'_> {
        let label = [controller.label()];
        self.passes_running.with_label_values(&label).inc();
        Pass {
            metrics: self,
            controller,
            began: Instant::now(),
            result: PassResult::Aborted,
        }
    }

    /// Number of objects whose pass is due and has not begun.
    pub fn queue(&self, controller: Controller, depth: usize) {
        self.queue
            .with_label_values(&[controller.label()])
            .set(clamp(depth as u64));
    }

    /// Whether this process leads the role.
    pub fn leader(&self, role: Role, leads: bool) {
        self.leader
            .with_label_values(&[role.label()])
            .set(i64::from(leads));
    }

    /// A write has been sent to the Kubernetes API server.
    pub fn kube_write(&self, resource: KubeResource, verb: KubeVerb) {
        self.kube_writes
            .with_label_values(&[resource.label(), verb.label()])
            .inc();
    }

    /// How conditions are counted, asked at each scrape. Must be quick and must not block.
    pub fn count_conditions_with(
        &self,
        count: impl Fn() -> Vec<ConditionCount> + Send + Sync + 'static,
    ) {
        *locked(&self.count_conditions) = Some(Box::new(count));
    }

    /// All metrics in Prometheus' text format.
    pub fn render(&self) -> prometheus::Result<String> {
        for (kind, oldest) in locked(&self.oldest_operation).iter() {
            self.operation_age
                .with_label_values(&[kind.label()])
                .set(oldest.elapsed().as_secs_f64());
        }
        if let Some(obtained) = *locked(&self.token_obtained) {
            let age = SystemTime::now().duration_since(obtained);
            self.token_age
                .with_label_values::<&str>(&[])
                .set(age.unwrap_or_default().as_secs_f64());
        }
        if let Some(count) = locked(&self.count_conditions).as_ref() {
            self.conditions.reset();
            for seen in count() {
                self.conditions
                    .with_label_values(&[seen.condition, seen.status])
                    .set(clamp(seen.objects as u64));
            }
        }
        if let Some(bytes) = resident_memory() {
            self.memory.with_label_values::<&str>(&[]).set(bytes);
        }
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }
}

impl Counters for Metrics {
    fn call(&self, seen: CallSeen) {
        let class = seen.class.map_or("ok", |class| class.label());
        let kind = seen.kind.label();
        self.arm_calls
            .with_label_values(&[kind, seen.verb, class, &seen.status.to_string()])
            .inc();
        self.arm_duration
            .with_label_values(&[kind, seen.verb])
            .observe(seen.took.as_secs_f64());
    }

    fn budget(&self, budget: &'static str, remaining: u64) {
        self.arm_budget
            .with_label_values(&[budget])
            .set(clamp(remaining));
    }

    fn operations(&self, kind: Kind, in_flight: usize, oldest: Duration) {
        self.operations
            .with_label_values(&[kind.label()])
            .set(clamp(in_flight as u64));
        let mut started = locked(&self.oldest_operation);
        match Instant::now().checked_sub(oldest) {
            Some(start) if in_flight > 0 => {
                started.insert(kind, start);
            }
            _ => {
                started.remove(&kind);
                self.operation_age
                    .with_label_values(&[kind.label()])
                    .set(0.0);
            }
        }
    }

    fn token(&self, obtained: SystemTime, expires: SystemTime) {
        *locked(&self.token_obtained) = Some(obtained);
        self.token_expiry
            .with_label_values::<&str>(&[])
            .set(seconds_since_1970(expires));
    }
}

/// A pass under way.
#[must_use = "dropping it ends the pass as aborted"]
pub struct Pass<'a> {
    metrics: &'a Metrics,
    controller: Controller,
    began: Instant,
    result: PassResult,
}

impl Pass<'_> {
    /// The pass has ended.
    pub fn end(mut self, result: PassResult) {
        self.result = result;
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let controller = self.controller.label();
        if std::thread::panicking() {
            self.result = PassResult::Panicked;
        }
        if self.result == PassResult::Panicked {
            self.metrics.panics.with_label_values(&[controller]).inc();
        }
        self.metrics
            .passes_running
            .with_label_values(&[controller])
            .dec();
        self.metrics
            .passes
            .with_label_values(&[controller, self.result.label()])
            .inc();
        self.metrics
            .pass_duration
            .with_label_values(&[controller])
            .observe(self.began.elapsed().as_secs_f64());
    }
}

fn clamp(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn seconds_since_1970(time: SystemTime) -> f64 {
    let since = time.duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}

/// A panic elsewhere leaves these values whole: each is replaced in one go.
fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `VmRSS` of proc(5), in bytes.
fn resident_memory() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::azure::error::Class;

    fn metrics() -> Metrics {
        Metrics::new("1.2.3", "abc").unwrap()
    }

    #[track_caller]
    fn assert_sample(metrics: &Metrics, sample: &str) {
        let text = metrics.render().unwrap();
        assert!(text.lines().any(|line| line == sample), "{sample} not in\n{text}");
    }

    fn value(metrics: &Metrics, name: &str) -> Option<f64> {
        let text = metrics.render().unwrap();
        let line = text.lines().find(|line| line.starts_with(name))?;
        line.rsplit_once(' ')?.1.parse().ok()
    }

    #[test]
    fn a_call_is_counted_by_kind_verb_class_and_status() {
        let metrics = metrics();
        let took = Duration::from_millis(30);
        metrics.call(CallSeen {
            kind: Kind::Subnet,
            verb: "PUT",
            status: 429,
            class: Some(Class::Throttled),
            took,
        });
        metrics.call(CallSeen {
            kind: Kind::Zone,
            verb: "GET",
            status: 200,
            class: None,
            took,
        });
        assert_sample(
            &metrics,
            r#"hyperlink_arm_calls_total{class="throttled",kind="subnet",status="429",verb="PUT"} 1"#,
        );
        assert_sample(
            &metrics,
            r#"hyperlink_arm_calls_total{class="ok",kind="private_dns_zone",status="200",verb="GET"} 1"#,
        );
        assert_sample(
            &metrics,
            r#"hyperlink_arm_call_duration_seconds_bucket{kind="subnet",verb="PUT",le="0.05"} 1"#,
        );
    }

    #[test]
    fn the_oldest_operation_ages_between_reports_and_goes_with_the_last() {
        let metrics = metrics();
        metrics.operations(Kind::Endpoint, 2, Duration::from_secs(40));
        let name = r#"hyperlink_arm_operation_oldest_age_seconds{kind="private_endpoint"}"#;
        let first = value(&metrics, name).unwrap();
        let second = value(&metrics, name).unwrap();
        assert!(first >= 40.0 && second > first, "{first} {second}");
        assert_sample(
            &metrics,
            r#"hyperlink_arm_operations_in_flight{kind="private_endpoint"} 2"#,
        );
        metrics.operations(Kind::Endpoint, 0, Duration::ZERO);
        assert_eq!(value(&metrics, name), Some(0.0));
    }

    #[test]
    fn each_end_of_a_pass_is_counted_once() {
        let metrics = metrics();
        metrics.pass(Controller::Endpoint).end(PassResult::Settled);
        drop(metrics.pass(Controller::Endpoint));
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            let _pass = metrics.pass(Controller::Endpoint);
            panic!("in a pass");
        }));
        assert!(unwound.is_err());
        for result in ["settled", "aborted", "panicked"] {
            assert_sample(
                &metrics,
                &format!(r#"hyperlink_passes_total{{controller="endpoint",result="{result}"}} 1"#),
            );
        }
        assert_sample(&metrics, r#"hyperlink_panics_total{controller="endpoint"} 1"#);
        assert_sample(&metrics, r#"hyperlink_passes_running{controller="endpoint"} 0"#);
        assert_sample(
            &metrics,
            r#"hyperlink_pass_duration_seconds_count{controller="endpoint"} 3"#,
        );
    }

    #[test]
    fn a_running_pass_is_seen() {
        let metrics = metrics();
        let pass = metrics.pass(Controller::Observer);
        assert_sample(&metrics, r#"hyperlink_passes_running{controller="observer"} 1"#);
        pass.end(PassResult::Waiting);
    }

    #[test]
    fn conditions_are_counted_at_each_scrape_and_old_ones_vanish() {
        let metrics = metrics();
        let statuses = Mutex::new(vec!["False", "True"]);
        metrics.count_conditions_with(move || {
            let status = statuses.lock().unwrap().pop();
            Vec::from_iter(status.map(|status| ConditionCount {
                condition: "AzurePLSCreated",
                status,
                objects: 3,
            }))
        });
        assert_sample(&metrics, r#"hyperlink_conditions{status="True",type="AzurePLSCreated"} 3"#);
        let text = metrics.render().unwrap();
        assert!(text.contains(r#"status="False""#) && !text.contains(r#"status="True""#), "{text}");
    }

    #[test]
    fn token_age_is_absent_before_the_first_token_and_grows_after() {
        let metrics = metrics();
        assert_eq!(value(&metrics, "hyperlink_token_age_seconds"), None);
        let obtained = SystemTime::now() - Duration::from_secs(100);
        metrics.token(obtained, UNIX_EPOCH + Duration::from_secs(2_000_000_000));
        assert!(value(&metrics, "hyperlink_token_age_seconds").unwrap() >= 100.0);
        assert_sample(&metrics, "hyperlink_token_expiry_timestamp_seconds 2000000000");
    }

    #[test]
    fn gauges_of_the_process_and_the_leader() {
        let metrics = metrics();
        metrics.leader(Role::Ho, true);
        metrics.leader(Role::Cpo, false);
        metrics.queue(Controller::LinkService, 7);
        metrics.budget("subscription-reads", 249);
        metrics.kube_write(KubeResource::LinkServiceStatus, KubeVerb::Patch);
        assert_sample(&metrics, r#"hyperlink_leader{role="ho"} 1"#);
        assert_sample(&metrics, r#"hyperlink_leader{role="cpo"} 0"#);
        assert_sample(&metrics, r#"hyperlink_work_queue_depth{controller="link_service"} 7"#);
        assert_sample(&metrics, r#"hyperlink_arm_budget_remaining{budget="subscription-reads"} 249"#);
        assert_sample(
            &metrics,
            r#"hyperlink_kube_writes_total{resource="azureprivatelinkservices/status",verb="patch"} 1"#,
        );
        assert_sample(&metrics, r#"hyperlink_build_info{commit="abc",version="1.2.3"} 1"#);
        assert!(value(&metrics, "process_start_time_seconds").unwrap() > 1.7e9);
        if cfg!(target_os = "linux") {
            assert!(value(&metrics, "process_resident_memory_bytes").unwrap() > 1e6);
        }
    }

    #[test]
    fn no_two_label_values_are_the_same() {
        let mut results = PassResult::ALL.map(PassResult::label);
        results.sort_unstable();
        assert!(results.windows(2).all(|pair| pair[0] != pair[1]));
        let mut controllers = Controller::ALL.map(Controller::label);
        controllers.sort_unstable();
        assert!(controllers.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
