//! How a delete that ARM took stands while the resource is still shown. ARM may show it for a while; then it was not deleted.

use tokio::time::Instant;

use super::error::{ArmError, Class};
use super::observation_cache::{Operation, SHOWS_LATE};
use super::operation::OperationState;

/// Where the delete stands.
#[derive(Debug, PartialEq)]
pub(super) enum Deletion {
    /// Under way; with how long Azure asks to wait.
    Running(Option<std::time::Duration>),
    /// It failed, or ended and the resource is still there.
    Failed(ArmError),
    /// Nobody knows now.
    Unread(ArmError),
}

/// Where it stands by what its operation says. That Azure does not know the operation any more proves nothing.
pub(super) fn progress(operation: &Operation, said: Result<OperationState, ArmError>, now: Instant) -> Deletion {
    match said {
        Ok(OperationState::Running(wait)) => Deletion::Running(wait),
        Ok(OperationState::Failed(error)) => Deletion::Failed(error),
        Err(error) if error.class != Class::Gone => Deletion::Unread(error),
        _ if now.saturating_duration_since(operation.began) < SHOWS_LATE => Deletion::Running(None),
        _ => Deletion::Failed(ArmError::own(Class::Busy, "NotDeleted")),
    }
}
