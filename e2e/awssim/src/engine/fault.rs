//! Fault rules of the simulated AWS. `path` in a rule is `/ec2/CreateVpcEndpoint`: service and action, as
//! the journal has it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
pub use simulator::fault::{DropWhen, FaultMatch, PathPattern};

/// One rule.
pub type FaultRule = simulator::fault::FaultRule<FaultAction>;
/// The rules in force.
pub(crate) type Faults = simulator::fault::Faults<FaultAction>;

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
        match self.drop {
            Some(DropWhen::After) => true,
            Some(DropWhen::Before) => false,
            None => self.status.is_none(),
        }
    }
}

/// Why rules are refused.
#[derive(Debug, thiserror::Error)]
#[error("faults: {0}")]
pub struct FaultError(String);

/// Reads a list of rules.
///
/// # Errors
/// An unknown key, which is named, or a value out of range.
pub fn parse_faults(json: &[u8]) -> Result<Vec<FaultRule>, FaultError> {
    let rules: Vec<FaultRule> = serde_json::from_slice(json).map_err(|error| FaultError(error.to_string()))?;
    for (at, rule) in rules.iter().enumerate() {
        let fail = |why: &str| Err(FaultError(format!("rule {at}: {why}")));
        if rule.matches.from == 0 {
            return fail("`from` counts from 1");
        }
        let answer = rule.action.code.is_some() || rule.action.message.is_some();
        if answer && rule.action.status.is_none() {
            return fail("`code` and `message` need a `status`");
        }
        if rule.action.status.is_some_and(|status| !(100..=599).contains(&status)) {
            return fail("`status` is no HTTP status");
        }
    }
    Ok(rules)
}
