//! What the demo needs of a cloud to play on it.

use std::time::Duration;

use anyhow::Result;

use super::Variant;
use super::observed::Observed;
use super::view::View;
use crate::azure_sim::Preset;
use crate::hyperlink::Hyperlink;

/// Hyperlink has to find drift while people watch, not after the default's minutes. The reads of records that a cloud
/// grants in five minutes have to suffice as long as the demo stays.
pub(super) const RESYNC: [(&str, &str); 2] = [("resync", "5s"), ("record-resync", "5s")];

/// Something that is changed by hand.
#[derive(Clone, Debug)]
pub struct Drift<C> {
    /// The heading of the phase in which it heals.
    pub heading: &'static str,
    /// The name of that phase in the table.
    pub phase: &'static str,
    /// What is changed.
    pub change: C,
}

/// How many calls have reached a cloud.
#[derive(Clone, Copy, Debug)]
pub struct Calls {
    /// All, refused ones included.
    pub all: usize,
    /// Those that asked for a change.
    pub writes: usize,
}

/// An environment with a simulated cloud, both roles of Hyperlink and one hosted cluster.
#[expect(async_fn_in_trait, reason = "the demo runs on one task")]
pub trait Stage: Sized {
    /// What is changed by hand.
    type Change;
    /// The name of the cloud.
    const CLOUD: &'static str;
    /// The name of the API that takes its calls.
    const API: &'static str;
    /// The programs of the environment.
    const PROGRAMS: &'static str;
    /// How long a phase takes at most where the cloud is fast.
    const PATIENCE: Duration;
    /// The heading of the phase in which the cluster is deleted.
    const DELETION: &'static str;

    /// Starts the environment.
    async fn start(preset: Preset, variant: Variant) -> Result<Self>;

    /// Starts both roles.
    async fn start_roles(&mut self) -> Result<()>;

    /// Address of the API server, and of the simulated cloud.
    fn addresses(&self) -> [String; 2];

    /// The processes of both roles.
    fn roles(&self) -> Vec<&Hyperlink>;

    /// What exists now.
    async fn observe(&self) -> Result<Observed>;

    /// The number of the last call so far.
    async fn last_call(&self) -> Result<u64>;

    /// The calls after the one numbered `since`.
    async fn calls(&self, since: u64) -> Result<Calls>;

    /// Does what HyperShift does to create the cluster.
    async fn create(&self) -> Result<()>;

    /// What is changed by hand, in this order.
    fn drifts(&self) -> Result<Vec<Drift<Self::Change>>>;

    /// Changes something by hand.
    async fn change(&self, change: Self::Change) -> Result<()>;

    /// Does what HyperShift does to delete the cluster, within this time.
    async fn delete(&self, timeout: Duration) -> Result<()>;

    /// Ids of what is in the cloud beside the guest's network.
    async fn resource_ids(&self) -> Result<Vec<String>>;

    /// How to inspect what stays.
    fn show_how_to_inspect(&self, view: &View);

    /// Stops both roles as the kubelet would.
    async fn stop(self) -> Result<()>;
}
