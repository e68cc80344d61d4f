//! The parts that all controllers share, for resources of AWS.

pub mod access;
pub mod lists;

use super::{decision, facts};
use crate::aws::cloud::Aws;
use crate::engine::plan;

/// What one reconcile is to do in AWS.
pub type Decision = decision::Decision<Aws>;
/// What is known of AWS.
pub type Facts = facts::Facts<Aws>;
/// The needs of a decision that could not be made yet.
pub type Needs = facts::Needs<Aws>;
/// One resource, what to do with it, and why.
pub type Step = plan::Step<Aws>;
/// What came of a step.
pub type Outcome = plan::Outcome<Aws>;
