//! The engine's steps, for resources of ARM.

use hyperlink_engine::plan;

use crate::cloud::Arm;

/// One resource, what to do with it, and why.
pub type Step = plan::Step<Arm>;
/// Why a step has its verb.
pub type Why = plan::Why<Arm>;
/// What came of a step.
pub type Outcome = plan::Outcome<Arm>;
