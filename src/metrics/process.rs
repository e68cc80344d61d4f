//! The process: its build, whether it leads, what it watches and what it writes.

use std::time::{SystemTime, UNIX_EPOCH};

use prometheus::{Gauge, IntCounterVec, IntGaugeVec, Opts, Result};

use super::labels::{KubeResource, KubeVerb, Watched};
use super::{Metrics, Registered};
use crate::api::LedRole;

pub(super) struct Process {
    leader: IntGaugeVec,
    shards: IntGaugeVec,
    scopes_stale: IntGaugeVec,
    kube_writes: IntCounterVec,
    watches_failing: IntGaugeVec,
}

impl Process {
    pub(super) fn new(registered: &mut Registered, version: &str, commit: &str) -> Result<Self> {
        let build = registered.add(IntGaugeVec::new(
            Opts::new("hyperlink_build_info", "Always 1; the build is in the labels."),
            &["version", "commit"],
        )?)?;
        build.with_label_values(&[version, commit]).set(1);
        let started = registered.add(Gauge::new(
            "process_start_time_seconds",
            "When the process started, in seconds since 1970.",
        )?)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        started.set(now.unwrap_or_default().as_secs_f64());
        Ok(Self {
            leader: registered.add(IntGaugeVec::new(
                Opts::new("hyperlink_leader", "1 while this process leads the role."),
                &["role"],
            )?)?,
            shards: registered.add(IntGaugeVec::new(
                Opts::new(
                    "hyperlink_shards",
                    "How many processes lead the role when all is well: the N of --shard.",
                ),
                &["role"],
            )?)?,
            scopes_stale: registered.add(IntGaugeVec::new(
                Opts::new(
                    "hyperlink_allowed_scopes_stale",
                    "1 while the file of allowed scopes cannot be used and its last good version applies; absent \
                     without such a file.",
                ),
                &[],
            )?)?,
            kube_writes: registered.add(IntCounterVec::new(
                Opts::new(
                    "hyperlink_kube_writes_total",
                    "Writes to the Kubernetes API, those of leases aside.",
                ),
                &["resource", "verb"],
            )?)?,
            watches_failing: registered.add(IntGaugeVec::new(
                Opts::new(
                    "hyperlink_watches_failing",
                    "Watches of the leader that fail, so that what it knows of these objects gets old.",
                ),
                &["resource"],
            )?)?,
        })
    }
}

impl Metrics {
    /// Records whether this process leads the role.
    pub fn leader(&self, role: LedRole, leads: bool) {
        let gauge = self.process.leader.with_label_values(&[role.as_str()]);
        gauge.set(i64::from(leads));
    }

    /// Records how many shards the role has.
    pub fn shards(&self, role: LedRole, shards: u16) {
        let gauge = self.process.shards.with_label_values(&[role.as_str()]);
        gauge.set(i64::from(shards));
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
