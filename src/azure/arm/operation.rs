//! The state of a long-running operation, as its URL shows it.
//! (<https://learn.microsoft.com/azure/azure-resource-manager/management/async-operations>)

use hyperlink_engine::client::OperationState;
use hyperlink_engine::failure::Class;
use serde_json::Value;

use crate::arm::client::Answer;
use crate::arm::error::ArmError;

/// Reads the state from an answer of the operation's URL.
///
/// # Errors
/// The answer is not about an operation.
pub fn state(answer: &Answer) -> Result<OperationState<ArmError>, ArmError> {
    Ok(match answer.body.get("status").and_then(Value::as_str) {
        Some("Succeeded") => OperationState::Succeeded,
        Some(word @ ("Failed" | "Canceled")) => {
            let mut error = ArmError::from_json(answer.status, &answer.body, None);
            if answer.body.get("error").is_none() {
                error = ArmError {
                    code: format!("Operation{word}"),
                    class: Class::Busy,
                    ..error
                };
            }
            OperationState::Failed(error)
        }
        None if answer.status == 204 => OperationState::Succeeded,
        None if answer.status != 202 => return Err(ArmError::own(Class::Down, "NotAnOperation")),
        _ => OperationState::Running(answer.retry_after),
    })
}
