//! Fault rules of the simulated AWS. `path` in a rule is `/ec2/CreateVpcEndpoint`: service and action, as
//! the journal has it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use simulator::fault;
pub use simulator::fault::{DropWhen, FaultError, FaultMatch, PathPattern};

/// One rule.
pub type FaultRule = fault::FaultRule<FaultAction>;
/// The rules in force.
pub(crate) type Faults = fault::Faults<FaultAction>;

/// What a rule does. Fields combine.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultAction {
    /// Answer with this status; nothing is applied unless `drop` is `after`.
    pub status: Option<u16>,
    /// AWS's error code of that answer.
    pub code: Option<String>,
    /// Its message.
    pub message: Option<String>,
    /// Headers set on the answer.
    pub headers: serde_json::Map<String, Value>,
    /// The answer's body, as text.
    pub body: Option<String>,
    /// Milliseconds before the answer.
    pub delay_ms: Option<u64>,
    /// Drop the connection instead of answering.
    pub drop: Option<DropWhen>,
    /// Send only this many bytes of the body.
    pub cut_body_at: Option<usize>,
    /// `Content-Length` sent in place of the real one.
    pub content_length: Option<u64>,
    /// State that the created endpoint, endpoint service or load balancer ends in, e.g. `failed`.
    pub ends: Option<String>,
}

impl FaultAction {
    /// Whether the call itself is carried out.
    pub(crate) fn applies(&self) -> bool {
        fault::applies(self.status, self.drop)
    }

    fn wrong(&self) -> Option<&'static str> {
        fault::wrong_answer(self.status, self.code.is_some() || self.message.is_some())
    }
}

/// Reads a list of rules.
///
/// # Errors
/// An unknown key, which is named, or a value out of range.
pub fn parse_faults(json: &[u8]) -> Result<Vec<FaultRule>, FaultError> {
    fault::parse(json, FaultAction::wrong)
}
