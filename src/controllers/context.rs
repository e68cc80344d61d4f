//! What all controllers of one role share.

use std::sync::Arc;
use std::time::Duration;

use super::recorder::Recorder;
use crate::api::Role;
use crate::azure::client::Client as ArmClient;
use crate::azure::inventory::Inventory;
use crate::azure::memory::Memory;
use crate::metrics::Metrics;

/// What a pass works with.
pub struct Context {
    /// The role that this process plays.
    pub role: Role,
    /// The Kubernetes API; writes pass the gate.
    pub kube: kube::Client,
    /// ARM; writes pass the gate.
    pub arm: ArmClient,
    /// Where Events are said.
    pub events: Recorder,
    /// What was seen in Azure.
    pub memory: Memory,
    /// Lists that clusters share.
    pub inventory: Inventory,
    /// Where everything is counted.
    pub metrics: Arc<Metrics>,
    /// How often settled resources are looked at.
    pub resync: Duration,
}
