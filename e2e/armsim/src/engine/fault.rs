//! Fault rules: which calls go wrong, and how. The effects are the engine's and the socket's.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use simulator::fault;
pub use simulator::fault::{DropWhen, FaultError, FaultMatch, PathPattern};

use super::error::ErrorDetail;

/// One rule of the simulated Azure.
pub type FaultRule = fault::FaultRule<FaultAction>;
/// Its rules in force.
pub(crate) type Faults = fault::Faults<FaultAction>;

/// How an operation goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OperationFaultKind {
    /// Ends `Failed`.
    Fail,
    /// Ends `Canceled`, superseded by another.
    Cancel,
    /// Never ends.
    Hang,
    /// Continues, but its status URL is gone.
    Lost,
}

/// What a rule does. Fields combine.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultAction {
    /// Answer with this status; nothing is applied unless `drop` is `after`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// ARM error code of that answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Its message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Headers set on the answer.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub headers: serde_json::Map<String, Value>,
    /// The answer's body: a string is sent as it is, anything else as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// Milliseconds before the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// Drop the connection instead of answering.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop: Option<DropWhen>,
    /// Send only this many bytes of the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_body_at: Option<usize>,
    /// How the call's operation goes wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<OperationFaultKind>,
    /// The error of an operation that fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation_error: Option<ErrorDetail>,
    /// Polling URL sent in place of the real one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll_url: Option<String>,
    /// `nextLink` of a list points to the same page.
    pub page_loop: bool,
    /// `Content-Length` sent in place of the real one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_length: Option<u64>,
}

/// The part of a rule that concerns the call's operation.
#[derive(Clone, Debug)]
pub(crate) struct OperationFault {
    pub(crate) kind: OperationFaultKind,
    error: Option<ErrorDetail>,
}

impl OperationFault {
    /// The error of an operation that fails.
    pub(crate) fn error(&self) -> ErrorDetail {
        let error = self.error.clone();
        error.unwrap_or_else(|| ErrorDetail::new("InternalServerError", "An error occurred."))
    }
}

impl FaultAction {
    /// What it does to the call's operation.
    pub(crate) fn operation_fault(&self) -> Option<OperationFault> {
        self.operation.map(|kind| OperationFault {
            kind,
            error: self.operation_error.clone(),
        })
    }

    /// Whether the call itself is carried out.
    pub(crate) fn applies(&self) -> bool {
        fault::applies(self.status, self.drop)
    }

    fn wrong(&self) -> Option<&'static str> {
        let has_text = self.code.is_some() || self.message.is_some();
        let misplaced = self.operation_error.is_some() && self.operation != Some(OperationFaultKind::Fail);
        fault::wrong_answer(self.status, has_text)
            .or(misplaced.then_some("`operation_error` needs `operation` to be `fail`"))
    }
}

/// Reads a list of rules. The error names an unknown key.
pub fn parse_faults(json: &[u8]) -> Result<Vec<FaultRule>, FaultError> {
    fault::parse(json, FaultAction::wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(json: &str) -> Faults {
        let mut faults = Faults::default();
        faults.set(parse_faults(json.as_bytes()).unwrap());
        faults
    }

    #[test]
    fn second_and_third_match_are_hit() {
        let mut faults =
            rules(r#"[{"match":{"method":"put","path":"/PRIVATEENDPOINTS/","from":2,"times":2},"do":{"status":500}}]"#);
        let mut hit = |method: &str| faults.hit(method, "/x/privateEndpoints/e", "p").is_some();
        assert_eq!(
            [hit("PUT"), hit("GET"), hit("PUT"), hit("PUT"), hit("PUT")],
            [false, false, true, true, false]
        );
    }

    #[test]
    fn bad_rules_are_named() {
        for (json, word) in [
            (r#"[{"match":{"paths":"x"},"do":{}}]"#, "`paths`"),
            (r#"[{"match":{"path":"("},"do":{}}]"#, "regex"),
            (r#"[{"match":{"from":0},"do":{}}]"#, "`from`"),
            (r#"[{"match":{},"do":{"code":"X"}}]"#, "`status`"),
            (r#"[{"match":{},"do":{"drop":"during"}}]"#, "during"),
        ] {
            let error = parse_faults(json.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
