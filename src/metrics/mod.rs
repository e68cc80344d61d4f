//! Every metric, declared once, by subject. Labels come from enums and constants, never from an id or a message; names
//! of custom resources are in a limited number of gauges only. What is registered is in the reference, too; the values
//! of a label that is new there are named in `reference`.

mod arm;
mod at_scrape;
mod aws;
mod capz;
mod changes;
mod labels;
mod objects;
mod process;
mod progress;
mod reconciles;
mod reference;
mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricType;
use prometheus::{Registry, Result, TextEncoder};

use arm::ArmMetrics;
use aws::AwsMetrics;
use capz::ManagementWrites;
pub use capz::{ObservedCluster, ObservedEntries, ObservedFleet};
use changes::Changes;
pub use changes::ENDPOINT_ENTRY;
pub use labels::{Controller, IdentityResult, KubeResource, KubeVerb, ManagementWrite, ReconcileResult, Watched};
pub use objects::{ObservedCondition, ObservedObject, QuotasOfAws};
use process::Process;
pub use progress::Due;
use progress::WorkProgress;
use reconciles::Reconciles;
pub use reconciles::{Queued, RunningReconcile};
use state::Sources;

/// Buckets of calls in seconds: from one call on loopback to the minute after which a call is cancelled.
const OF_CALLS: [f64; 12] = [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// The metrics of this process, in a registry of their own.
pub struct Metrics {
    registered: Registered,
    reconciles: Reconciles,
    arm: ArmMetrics,
    aws: AwsMetrics,
    management_writes: ManagementWrites,
    process: Process,
    changes: Changes,
    sources: Arc<Sources>,
    progress: WorkProgress,
}

impl Metrics {
    /// Declares all metrics. `commit` is the source's commit, or `unknown`.
    pub fn new(version: &str, commit: &str) -> Result<Self> {
        let sources = Arc::<Sources>::default();
        let mut registered = Registered::default();
        registered.register(objects::gauges(Arc::clone(&sources))?)?;
        registered.register(state::gauges(Arc::clone(&sources))?)?;
        registered.register(capz::gauges(Arc::clone(&sources))?)?;
        Ok(Self {
            reconciles: Reconciles::new(&mut registered)?,
            arm: ArmMetrics::new(&mut registered)?,
            aws: AwsMetrics::new(&mut registered)?,
            management_writes: ManagementWrites::new(&mut registered)?,
            process: Process::new(&mut registered, version, commit)?,
            changes: Changes::new(&mut registered)?,
            sources,
            progress: WorkProgress::default(),
            registered,
        })
    }

    /// All metrics in Prometheus' text format.
    pub fn render(&self) -> Result<String> {
        TextEncoder::new().encode_to_string(&self.registered.registry.gather())
    }

    /// The reference of all metrics, as Markdown.
    pub fn reference(&self) -> String {
        reference::markdown(&self.registered.described)
    }
}

/// A registry, and what it holds: a registry shows only metrics with samples.
#[derive(Default)]
struct Registered {
    registry: Registry,
    described: Vec<(Desc, MetricType)>,
}

impl Registered {
    fn add<M: Collector + Clone + 'static>(&mut self, metric: M) -> Result<M> {
        self.register(metric.clone())?;
        Ok(metric)
    }

    fn register(&mut self, collector: impl Collector + 'static) -> Result<()> {
        let types = collector.collect().into_iter().map(|family| family.get_field_type());
        let descriptions = collector.desc().into_iter().cloned();
        self.described.extend(descriptions.zip(types));
        self.registry.register(Box::new(collector))
    }
}

/// Locks a value. A panic elsewhere leaves these values whole, because each is replaced at once.
fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
