//! The parts that all controllers share, for resources of ARM.

pub mod access;
pub mod lists;

use super::{decision, facts, preview};
use crate::azure::cloud::Arm;

/// What one reconcile is to do in Azure.
pub type Decision = decision::Decision<Arm>;
/// What is known of Azure.
pub type Facts = facts::Facts<Arm>;
/// Something that a decision needs to know.
pub type Need = facts::Need<Arm>;
/// The needs of a decision that could not be made yet.
pub type Needs = facts::Needs<Arm>;
/// What a reconcile of an AzurePrivateLinkService would do.
pub type Preview = preview::Preview<Arm>;
