//! What all controllers of one role share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::contention::Claims;
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
    /// What was stated in conditions.
    pub stated: Stated,
    /// What was seen in Azure.
    pub memory: Memory,
    /// Lists that clusters share.
    pub inventory: Inventory,
    /// Where everything is counted.
    pub metrics: Arc<Metrics>,
    /// How often settled resources are looked at.
    pub resync: Duration,
}

/// What this process has stated in conditions, by the UID of the object.
#[derive(Debug, Default)]
pub struct Stated(Mutex<HashMap<String, Claims>>);

impl Stated {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Claims>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// About one object.
    pub fn of(&self, uid: &str) -> Claims {
        self.all().get(uid).cloned().unwrap_or_default()
    }

    /// Keeps what is stated about one object.
    pub fn keep(&self, uid: &str, claims: Claims) {
        self.all().insert(uid.to_owned(), claims);
    }

    /// The object is gone.
    pub fn forget(&self, uid: &str) {
        self.all().remove(uid);
    }
}
