//! What every controller needs, whatever it reconciles and in whichever cloud.

pub mod call;
pub mod concurrency_limit;
pub mod event;
pub mod guard;
mod inputs_cache;
mod json_depth;
mod json_times;
pub mod leader;
pub mod pace;
pub mod polls;
pub mod prune;
pub mod rate;
pub mod reconcile;
pub mod recorder;
pub mod requeue;
pub mod retry;
mod retry_after;
pub mod watch;
pub mod watch_health;
pub mod work_queue;

use std::sync::Arc;
use std::time::Duration;

use kube::api::PatchParams;

use crate::metrics::Metrics;
use rate::Rates;
use recorder::Recorder;
use retry::Retries;

/// What every reconcile of one process works with, whatever it reconciles.
pub struct Runtime {
    /// The Kubernetes API; writes pass the gate.
    pub kube: kube::Client,
    /// Who writes, as server-side apply records it.
    pub field_manager: &'static str,
    /// Writes Events.
    pub events: Recorder,
    /// How many reconciles in a row have failed.
    pub retries: Retries,
    /// How often each object is reconciled that no pacer holds back.
    pub rates: Rates,
    /// The metrics of this process.
    pub metrics: Arc<Metrics>,
    /// The interval at which objects are reconciled though nothing has changed.
    pub resync: Duration,
}

impl Runtime {
    /// The parameters of every patch.
    pub fn patch_params(&self) -> PatchParams {
        PatchParams {
            field_manager: Some(self.field_manager.to_owned()),
            ..PatchParams::default()
        }
    }
}
