//! Every metric, declared once. Labels come from enums and constants, never from an id, a name or a message.
//!
//! Ages are computed when Prometheus asks, so a stuck process shows a growing age and not the last good one.

mod declare;
mod labels;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use prometheus::{GaugeVec, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Registry, TextEncoder};

use crate::api::condition::{ConditionType, Status};
use crate::api::role::Role;
use crate::azure::auth::TokenState;
use crate::azure::ports::{CallSeen, Counters};
use crate::azure::resource::Kind;
use declare::Declare;
pub use labels::{Controller, KubeResource, KubeVerb, PassResult};

/// How many objects have a condition in a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConditionCount {
    /// The condition's type.
    pub condition: ConditionType,
    /// Its status; none when it is missing or has one that we never write. The label is then `Unknown`.
    pub status: Option<Status>,
    /// Number of objects.
    pub objects: usize,
}

type LookAtToken = Box<dyn Fn() -> TokenState + Send + Sync>;

type CountConditions = Box<dyn Fn() -> Vec<ConditionCount> + Send + Sync>;

/// The metrics of this process, in a registry of their own.
pub struct Metrics {
    registry: Registry,
    passes: Passes,
    arm: Arm,
    process: Process,
    conditions: IntGaugeVec,
    kube_writes: IntCounterVec,
    oldest_operation: Mutex<BTreeMap<Kind, Instant>>,
    look_at_token: Mutex<Option<LookAtToken>>,
    count_conditions: Mutex<Option<CountConditions>>,
}

struct Passes {
    total: IntCounterVec,
    duration: HistogramVec,
    running: IntGaugeVec,
    queue: IntGaugeVec,
    panics: IntCounterVec,
}

impl Passes {
    fn declare(declare: &Declare<'_>) -> prometheus::Result<Self> {
        Ok(Self {
            total: declare.counter(
                "passes_total",
                "Passes that ended, by result.",
                &["controller", "result"],
            )?,
            duration: declare.duration("pass_duration_seconds", "How long a pass took.", &["controller"])?,
            running: declare.count("passes_running", "Passes under way.", &["controller"])?,
            queue: declare.count(
                "work_queue_depth",
                "Passes that are due and wait for their turn.",
                &["controller"],
            )?,
            panics: declare.counter(
                "panics_total",
                "Panics, in passes or on the way to one.",
                &["controller"],
            )?,
        })
    }
}

struct Arm {
    calls: IntCounterVec,
    duration: HistogramVec,
    budget: IntGaugeVec,
    operations: IntGaugeVec,
    operation_age: GaugeVec,
    token_age: GaugeVec,
    token_left: GaugeVec,
}

impl Arm {
    fn declare(declare: &Declare<'_>) -> prometheus::Result<Self> {
        Ok(Self {
            calls: declare.counter(
                "arm_calls_total",
                "Calls to Azure Resource Manager. Status 0: no answer. Class ok: no error.",
                &["kind", "verb", "class", "status"],
            )?,
            duration: declare.duration(
                "arm_call_duration_seconds",
                "How long a call to Azure Resource Manager took, its body included.",
                &["kind", "verb"],
            )?,
            budget: declare.count(
                "arm_budget_remaining",
                "What Azure last said is left of a request budget.",
                &["budget"],
            )?,
            operations: declare.count(
                "arm_operations_in_flight",
                "Long-running operations started here and not yet seen to end.",
                &["kind"],
            )?,
            operation_age: declare.gauge(
                "arm_operation_oldest_age_seconds",
                "Age of the oldest long-running operation in flight; 0 when there is none.",
                &["kind"],
            )?,
            token_age: declare.gauge(
                "token_age_seconds",
                "Age of the Azure token in use; absent before the first one.",
                &[],
            )?,
            token_left: declare.gauge(
                "token_expires_in_seconds",
                "How long the Azure token in use is still good; 0 when it has expired, absent before the first one.",
                &[],
            )?,
        })
    }
}

struct Process {
    leader: IntGaugeVec,
    left_alone: IntGaugeVec,
    scopes_stale: IntGaugeVec,
    memory: GaugeVec,
}

impl Process {
    fn declare(declare: &Declare<'_>, version: &str, commit: &str) -> prometheus::Result<Self> {
        declare
            .count(
                "build_info",
                "Always 1; the build is in the labels.",
                &["version", "commit"],
            )?
            .with_label_values(&[version, commit])
            .set(1);
        declare
            .process("start_time_seconds", "When the process started, in seconds since 1970.")?
            .with_label_values::<&str>(&[])
            .set(seconds_since_1970(SystemTime::now()));
        Ok(Self {
            leader: declare.count("leader", "1 while this process leads the role.", &["role"])?,
            left_alone: declare.count(
                "namespaces_left_alone",
                "Namespaces that this process would serve if no process of their own led them.",
                &["role"],
            )?,
            scopes_stale: declare.count(
                "allowed_scopes_stale",
                "1 while the file of allowed scopes is no use and its last good version holds; absent without such a file.",
                &[],
            )?,
            memory: declare.process(
                "resident_memory_bytes",
                "Resident memory; absent where the system does not tell.",
            )?,
        })
    }
}

impl Metrics {
    /// Declares all metrics. `commit` is the source's commit, or `unknown`.
    pub fn new(version: &str, commit: &str) -> prometheus::Result<Self> {
        let registry = Registry::new();
        let declare = Declare(&registry);
        Ok(Self {
            passes: Passes::declare(&declare)?,
            arm: Arm::declare(&declare)?,
            process: Process::declare(&declare, version, commit)?,
            conditions: declare.count(
                "conditions",
                "AzurePrivateLinkServices by condition and its status.",
                &["type", "status"],
            )?,
            kube_writes: declare.counter(
                "kube_writes_total",
                "Writes sent to the Kubernetes API server.",
                &["resource", "verb"],
            )?,
            oldest_operation: Mutex::default(),
            look_at_token: Mutex::default(),
            count_conditions: Mutex::default(),
            registry,
        })
    }

    /// A pass begins. What is returned counts it when it ends, also when it is dropped.
    pub fn pass(&self, controller: Controller) -> Pass<'_> {
        let label = [controller.label()];
        self.passes.running.with_label_values(&label).inc();
        Pass {
            metrics: self,
            controller,
            began: Instant::now(),
            result: PassResult::Aborted,
        }
    }

    /// Something of this controller panicked, in a pass or on the way to one.
    pub fn panicked(&self, controller: Controller) {
        self.passes.panics.with_label_values(&[controller.label()]).inc();
    }

    /// A pass is due and waits for its turn, until what is returned is dropped.
    pub fn queued(&self, controller: Controller) -> Queued {
        let depth = self.passes.queue.with_label_values(&[controller.label()]);
        depth.inc();
        Queued(depth)
    }

    /// Whether this process leads the role.
    pub fn leader(&self, role: Role, leads: bool) {
        self.process
            .leader
            .with_label_values(&[role.as_str()])
            .set(i64::from(leads));
    }

    /// How many namespaces are left to processes of their own.
    pub fn namespaces_left_alone(&self, role: Role, namespaces: usize) {
        let gauge = self.process.left_alone.with_label_values(&[role.as_str()]);
        gauge.set(clamp(namespaces as u64));
    }

    /// Whether the file of allowed scopes is no use, so that its last good version holds.
    pub fn allowed_scopes_stale(&self, stale: bool) {
        let gauge = self.process.scopes_stale.with_label_values::<&str>(&[]);
        gauge.set(i64::from(stale));
    }

    /// A write has been sent to the Kubernetes API server.
    pub fn kube_write(&self, resource: KubeResource, verb: KubeVerb) {
        self.kube_writes
            .with_label_values(&[resource.label(), verb.label()])
            .inc();
    }

    /// How conditions are counted, asked at each scrape. Must be quick and must not block.
    pub fn count_conditions_with(&self, count: impl Fn() -> Vec<ConditionCount> + Send + Sync + 'static) {
        *locked(&self.count_conditions) = Some(Box::new(count));
    }

    /// How the token in use is looked at, asked at each scrape. Must be quick and must not block.
    pub fn look_at_token_with(&self, look: impl Fn() -> TokenState + Send + Sync + 'static) {
        *locked(&self.look_at_token) = Some(Box::new(look));
    }

    /// All metrics in Prometheus' text format.
    pub fn render(&self) -> prometheus::Result<String> {
        for (kind, oldest) in locked(&self.oldest_operation).iter() {
            self.arm
                .operation_age
                .with_label_values(&[kind.label()])
                .set(oldest.elapsed().as_secs_f64());
        }
        if let Some(look) = locked(&self.look_at_token).as_ref() {
            let token = look();
            seconds_or_absent(&self.arm.token_age, token.age);
            seconds_or_absent(&self.arm.token_left, token.left);
        }
        if let Some(count) = locked(&self.count_conditions).as_ref() {
            self.conditions.reset();
            for seen in count() {
                let status = seen.status.map_or("Unknown", Status::as_str);
                self.conditions
                    .with_label_values(&[seen.condition.as_str(), status])
                    .set(clamp(seen.objects as u64));
            }
        }
        if let Some(bytes) = resident_memory() {
            self.process.memory.with_label_values::<&str>(&[]).set(bytes);
        }
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }
}

impl Counters for Metrics {
    fn call(&self, seen: CallSeen) {
        let class = seen.class.map_or("ok", |class| class.label());
        let kind = seen.kind.label();
        self.arm
            .calls
            .with_label_values(&[kind, seen.verb, class, &seen.status.to_string()])
            .inc();
        self.arm
            .duration
            .with_label_values(&[kind, seen.verb])
            .observe(seen.took.as_secs_f64());
    }

    fn budget(&self, budget: &'static str, remaining: u64) {
        self.arm.budget.with_label_values(&[budget]).set(clamp(remaining));
    }

    fn operations(&self, kind: Kind, in_flight: usize, oldest: Duration) {
        self.arm
            .operations
            .with_label_values(&[kind.label()])
            .set(clamp(in_flight as u64));
        let mut started = locked(&self.oldest_operation);
        match Instant::now().checked_sub(oldest) {
            Some(start) if in_flight > 0 => {
                started.insert(kind, start);
            }
            _ => {
                started.remove(&kind);
                self.arm.operation_age.with_label_values(&[kind.label()]).set(0.0);
            }
        }
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
        let passes = &self.metrics.passes;
        let controller = self.controller.label();
        if std::thread::panicking() {
            self.result = PassResult::Panicked;
        }
        let ended = [controller, self.result.label()];
        passes.total.with_label_values(&ended).inc();
        passes.running.with_label_values(&[controller]).dec();
        let took = self.began.elapsed().as_secs_f64();
        passes.duration.with_label_values(&[controller]).observe(took);
    }
}

fn seconds_or_absent(gauge: &GaugeVec, value: Option<Duration>) {
    gauge.reset();
    if let Some(value) = value {
        gauge.with_label_values::<&str>(&[]).set(value.as_secs_f64());
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
        metrics.panicked(Controller::Endpoint);
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
        let statuses = Mutex::new(vec![None, Some(Status::True)]);
        metrics.count_conditions_with(move || {
            let next = statuses.lock().unwrap().pop();
            Vec::from_iter(next.map(|status| ConditionCount {
                condition: ConditionType::AzurePLSCreated,
                status,
                objects: 3,
            }))
        });
        assert_sample(
            &metrics,
            r#"hyperlink_conditions{status="True",type="AzurePLSCreated"} 3"#,
        );
        let text = metrics.render().unwrap();
        assert!(
            text.contains(r#"status="Unknown""#) && !text.contains(r#"status="True""#),
            "{text}"
        );
    }

    #[test]
    fn token_age_and_rest_are_there_only_with_a_token() {
        let metrics = metrics();
        let tokens = Mutex::new(vec![
            TokenState {
                age: Some(Duration::from_secs(100)),
                left: Some(Duration::from_secs(3500)),
                failure: None,
            },
            TokenState::default(),
        ]);
        metrics.look_at_token_with(move || tokens.lock().unwrap().pop().unwrap());
        assert!(!metrics.render().unwrap().contains("hyperlink_token_age_seconds "));
        let text = metrics.render().unwrap();
        assert!(text.contains("\nhyperlink_token_age_seconds 100\n"), "{text}");
        assert!(text.contains("\nhyperlink_token_expires_in_seconds 3500\n"), "{text}");
    }

    #[test]
    fn gauges_of_the_process_and_the_leader() {
        let metrics = metrics();
        metrics.leader(Role::Ho, true);
        metrics.leader(Role::Cpo, false);
        metrics.budget("subscription-reads", 249);
        metrics.kube_write(KubeResource::LinkServiceStatus, KubeVerb::Patch);
        assert_sample(&metrics, r#"hyperlink_leader{role="ho"} 1"#);
        assert_sample(&metrics, r#"hyperlink_leader{role="cpo"} 0"#);
        assert_sample(
            &metrics,
            r#"hyperlink_arm_budget_remaining{budget="subscription-reads"} 249"#,
        );
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
}
