//! The state of a long-running operation, as its URL shows it.
//! (<https://learn.microsoft.com/azure/azure-resource-manager/management/async-operations>)

use std::time::Duration;

use serde_json::Value;

use super::client::Answer;
use super::error::{ArmError, Class};

/// The state of an operation.
#[derive(Debug, Clone, PartialEq)]
pub enum OperationState {
    /// Not ended; with the wait that Azure asks for.
    Running(Option<Duration>),
    /// Ended with success.
    Succeeded,
    /// Ended with this error.
    Failed(ArmError),
}

impl OperationState {
    /// Reads the state from an answer of the operation's URL.
    ///
    /// # Errors
    /// The answer is not about an operation.
    pub fn of(answer: &Answer) -> Result<Self, ArmError> {
        Ok(match answer.body.get("status").and_then(Value::as_str) {
            Some("Succeeded") => Self::Succeeded,
            Some(word @ ("Failed" | "Canceled")) => {
                let mut error = ArmError::from_json(answer.status, &answer.body, None);
                if answer.body.get("error").is_none() {
                    error = ArmError {
                        code: format!("Operation{word}"),
                        class: Class::Busy,
                        ..error
                    };
                }
                Self::Failed(error)
            }
            None if answer.status == 204 => Self::Succeeded,
            None if answer.status != 202 => return Err(ArmError::own(Class::Down, "NotAnOperation")),
            _ => Self::Running(answer.retry_after),
        })
    }
}
