//! What an operation's URL says.
//! (<https://learn.microsoft.com/azure/azure-resource-manager/management/async-operations>)

use std::time::Duration;

use serde_json::Value;

use super::client::Answer;
use super::error::{ArmError, Class};

/// Where an operation stands.
#[derive(Debug, Clone, PartialEq)]
pub enum OperationState {
    /// Not ended; how long Azure asks to wait.
    Running(Option<Duration>),
    /// Ended well.
    Succeeded,
    /// Ended badly.
    Failed(ArmError),
}

impl OperationState {
    /// From an answer of its URL.
    ///
    /// # Errors
    /// The answer is of no operation.
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
