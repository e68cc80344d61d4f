//! AWS's errors: a code, by which clients tell them apart, a sentence and an HTTP status.

/// Why a call is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub(crate) struct AwsError {
    pub(crate) status: u16,
    pub(crate) code: String,
    pub(crate) message: String,
}

impl AwsError {
    pub(crate) fn new(status: u16, code: &str, message: impl Into<String>) -> Self {
        Self {
            status,
            code: code.to_owned(),
            message: message.into(),
        }
    }

    /// HTTP 400, which most refusals have.
    pub(crate) fn bad(code: &str, message: impl Into<String>) -> Self {
        Self::new(400, code, message)
    }

    pub(crate) fn missing(parameter: &str) -> Self {
        let message = format!("The request must contain the parameter {parameter}");
        Self::bad("MissingParameter", message)
    }

    pub(crate) fn invalid_value(value: &str, parameter: &str) -> Self {
        let message = format!("Value ({value}) for parameter {parameter} is invalid.");
        Self::bad("InvalidParameterValue", message)
    }

    /// `InvalidVpcID.NotFound` and its kind.
    pub(crate) fn not_found(code: &str, kind: &str, id: &str) -> Self {
        Self::bad(code, format!("The {kind} ID '{id}' does not exist"))
    }
}
