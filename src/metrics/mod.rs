//! Every metric, declared once, by subject. Labels come from enums and constants, never from an id or a message; names
//! of custom resources are in a limited number of gauges only.

mod arm;
mod changes;
mod declare;
mod labels;
mod objects;
mod process;
mod progress;
mod reconciles;
mod reference;

use std::sync::{Mutex, MutexGuard, PoisonError};

use prometheus::{Registry, TextEncoder};

use arm::Arm;
use changes::Changes;
use declare::Declare;
pub use declare::{Description, Label, Values};
pub use labels::{Controller, KubeResource, KubeVerb, ReconcileResult, Watched};
use objects::Objects;
pub use objects::{ObservedCondition, ObservedObject};
use process::Process;
pub use progress::Due;
use progress::Progress;
use reconciles::Reconciles;
pub use reconciles::{Queued, RunningReconcile};

/// The metrics of this process, in a registry of their own.
pub struct Metrics {
    registry: Registry,
    described: Vec<Description>,
    reconciles: Reconciles,
    arm: Arm,
    process: Process,
    objects: Objects,
    changes: Changes,
    progress: Progress,
}

impl Metrics {
    /// Declares all metrics. `commit` is the source's commit, or `unknown`.
    pub fn new(version: &str, commit: &str) -> prometheus::Result<Self> {
        let registry = Registry::new();
        let mut declare = Declare::new(&registry);
        Ok(Self {
            reconciles: Reconciles::declare(&mut declare)?,
            arm: Arm::declare(&mut declare)?,
            process: Process::declare(&mut declare, version, commit)?,
            objects: Objects::declare(&mut declare),
            changes: Changes::declare(&mut declare)?,
            progress: Progress::default(),
            described: declare.described(),
            registry,
        })
    }

    /// All metrics in Prometheus' text format.
    pub fn render(&self) -> prometheus::Result<String> {
        self.arm.refresh();
        self.process.refresh();
        let mut families = self.registry.gather();
        families.extend(self.objects.collect());
        families.push(self.changes.collect());
        families.retain(|family| !family.get_metric().is_empty());
        families.sort_by(|a, b| a.name().cmp(b.name()));
        TextEncoder::new().encode_to_string(&families)
    }

    /// The description of each metric, by name.
    pub fn described(&self) -> &[Description] {
        &self.described
    }

    /// The reference of all metrics, as Markdown.
    pub fn reference(&self) -> String {
        reference::markdown(&self.described)
    }
}

fn clamp(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Locks a value. A panic elsewhere leaves these values whole, because each is replaced at once.
fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
