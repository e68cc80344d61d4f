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

/// The two figures of a phase, under [`Stage::HEADINGS`].
#[derive(Clone, Copy, Debug)]
pub struct Calls {
    /// All calls that reached the cloud, refused ones included.
    pub all: usize,
    /// Those that asked for a change; for a role that changes nothing in the cloud, its writes to Kubernetes.
    pub writes: usize,
}

/// An environment with a simulated cloud, roles of Hyperlink and a cluster or several.
#[expect(async_fn_in_trait, reason = "the demo runs on one task")]
pub trait Stage: Sized {
    /// What is changed by hand.
    type Change;
    /// Up to where calls have been counted.
    type Position;
    /// The name of the cloud.
    const CLOUD: &'static str;
    /// What is counted: calls, and writes.
    const HEADINGS: [&'static str; 2];
    /// The programs of the environment.
    const PROGRAMS: &'static str;
    /// How long a phase takes at most where the cloud is fast.
    const PATIENCE: Duration;
    /// The commands of Hyperlink.
    const COMMANDS: &'static str = "hyperlink run --role ho, hyperlink run --role cpo";
    /// The heading of the phase in which what there is to create is created.
    const CREATION: &'static str = "up: a private hosted cluster is created";
    /// The heading of the phase in which the cluster is deleted.
    const DELETION: &'static str;
    /// What is true when it is deleted and [`Stage::resource_ids`] shows nothing of it.
    const DELETED: &'static str;

    /// Starts the environment.
    async fn start(preset: Preset, variant: Variant) -> Result<Self>;

    /// Starts the roles.
    async fn start_roles(&mut self) -> Result<()>;

    /// Address of the API server, and of the simulated cloud.
    fn addresses(&self) -> [String; 2];

    /// The processes of the roles.
    fn roles(&self) -> Vec<&Hyperlink>;

    /// What exists now.
    async fn observe(&self) -> Result<Observed>;

    /// Up to where calls are counted now.
    async fn position(&self) -> Result<Self::Position>;

    /// The calls since then.
    async fn calls(&self, since: &Self::Position) -> Result<Calls>;

    /// Does what HyperShift, or Cluster API, does to create each cluster that is not there.
    async fn create(&self) -> Result<()>;

    /// What is changed by hand, in this order.
    fn drifts(&self) -> Result<Vec<Drift<Self::Change>>>;

    /// Changes something by hand. Returns what exists right after.
    async fn change(&self, change: Self::Change) -> Result<Observed>;

    /// Does what HyperShift, or Cluster API, does to delete the cluster, within this time.
    async fn delete(&self, timeout: Duration) -> Result<()>;

    /// Ids of what is there of the cluster beside its network.
    async fn resource_ids(&self) -> Result<Vec<String>>;

    /// How to inspect what stays.
    fn show_how_to_inspect(&self, view: &View);

    /// Stops the roles as the kubelet would.
    async fn stop(self) -> Result<()>;
}
