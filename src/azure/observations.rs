//! What the engine keeps between reconciles, for resources of ARM.

use hyperlink_engine::{inventory, observation_cache};

use crate::cloud::Arm;

/// What this process last observed of each resource.
pub type ObservationCache = observation_cache::ObservationCache<Arm>;
/// A long-running operation that this process has started.
pub type Operation = observation_cache::Operation<Arm>;
/// The shared lists of one process.
pub type Inventory = inventory::Inventory<Arm>;
