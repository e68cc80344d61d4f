//! The process: its build, its memory, whether it leads, and what it writes.

use std::time::{SystemTime, UNIX_EPOCH};

use prometheus::{GaugeVec, IntCounterVec, IntGaugeVec, Result};

use super::Metrics;
use super::declare::{Declare, Label};
use super::labels::{KubeResource, KubeVerb, Watched};
use crate::api::role::Role;

pub(super) struct Process {
    leader: IntGaugeVec,
    scopes_stale: IntGaugeVec,
    memory: GaugeVec,
    kube_writes: IntCounterVec,
    watches_failing: IntGaugeVec,
}

impl Process {
    pub(super) fn declare(declare: &mut Declare<'_>, version: &str, commit: &str) -> Result<Self> {
        let role = Label::one_of("role", Role::ALL.map(Role::as_str));
        let build = vec![
            Label::free_text("version", "of this program"),
            Label::free_text("commit", "of this program's source"),
        ];
        declare
            .count("build_info", "Always 1; the build is in the labels.", build)?
            .with_label_values(&[version, commit])
            .set(1);
        declare
            .process("start_time_seconds", "When the process started, in seconds since 1970.")?
            .with_label_values::<&str>(&[])
            .set(seconds_since_1970(SystemTime::now()));
        Ok(Self {
            leader: declare.count("leader", "1 while this process leads the role.", vec![role])?,
            scopes_stale: declare.count(
                "allowed_scopes_stale",
                "1 while the file of allowed scopes is no use and its last good version holds; absent without such a file.",
                Vec::new(),
            )?,
            memory: declare.process(
                "resident_memory_bytes",
                "Resident memory; absent where the system does not tell.",
            )?,
            kube_writes: declare.counter(
                "kube_writes_total",
                "Writes sent to the Kubernetes API server, those of leases aside.",
                vec![
                    Label::one_of("resource", KubeResource::ALL.map(KubeResource::label)),
                    Label::one_of("verb", KubeVerb::ALL.map(KubeVerb::label)),
                ],
            )?,
            watches_failing: declare.count(
                "watches_failing",
                "Watches of the leader that fail, so that what is known of these objects grows old.",
                vec![Label::one_of("resource", Watched::ALL.map(Watched::label))],
            )?,
        })
    }

    /// Reads the resident memory.
    pub(super) fn refresh(&self) {
        if let Some(bytes) = resident_memory() {
            self.memory.with_label_values::<&str>(&[]).set(bytes);
        }
    }
}

impl Metrics {
    /// Records whether this process leads the role.
    pub fn leader(&self, role: Role, leads: bool) {
        let gauge = self.process.leader.with_label_values(&[role.as_str()]);
        gauge.set(i64::from(leads));
    }

    /// Records whether the file of allowed scopes cannot be used, so that its last good version applies.
    pub fn allowed_scopes_stale(&self, stale: bool) {
        let gauge = self.process.scopes_stale.with_label_values::<&str>(&[]);
        gauge.set(i64::from(stale));
    }

    /// Changes the number of watches that fail by `more`, which may be negative.
    pub fn watches_failing(&self, resource: Watched, more: i64) {
        let gauge = self.process.watches_failing.with_label_values(&[resource.label()]);
        gauge.add(more);
    }

    /// Counts a write that was sent to the Kubernetes API server.
    pub fn kube_write(&self, resource: KubeResource, verb: KubeVerb) {
        let written = [resource.label(), verb.label()];
        self.process.kube_writes.with_label_values(&written).inc();
    }
}

fn seconds_since_1970(time: SystemTime) -> f64 {
    let since = time.duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}

/// `VmRSS` of proc(5), in bytes.
fn resident_memory() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0)
}
