//! The shared parts of a reconcile, for resources of ARM.

use crate::azure::cloud::Arm;

/// What one reconcile is to do in Azure.
pub type Decision = super::decision::Decision<Arm>;
