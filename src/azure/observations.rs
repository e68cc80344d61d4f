//! What the engine keeps between reconciles, for resources of ARM.

use crate::azure::cloud::Arm;
use crate::engine::{inventory, observation_cache};

/// What this process last observed of each resource.
pub type ObservationCache = observation_cache::ObservationCache<Arm>;
/// A long-running operation that this process has started.
pub type Operation = observation_cache::Operation<Arm>;
/// The shared lists of one process.
pub type Inventory = inventory::Inventory<Arm>;
