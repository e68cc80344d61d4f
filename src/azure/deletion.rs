//! The state of a delete that ARM accepted while the resource is still shown. ARM may show a deleted resource for a
//! while; one that it shows longer was not deleted.

use tokio::time::Instant;

use super::error::{ArmError, Class};
use super::observation_cache::{Operation, SHOWS_LATE};
use super::operation::OperationState;

/// The state of the delete.
#[derive(Debug, PartialEq)]
pub(super) enum Deletion {
    /// The delete is under way; with the wait that Azure asks for.
    Running(Option<std::time::Duration>),
    /// The delete failed, or it ended and the resource is still there.
    Failed(ArmError),
    /// The state could not be read.
    Unread(ArmError),
}

/// The state of the delete by the poll of its operation. If Azure does not know the operation any more, that proves
/// nothing.
pub(super) fn progress(operation: &Operation, polled: Result<OperationState, ArmError>, now: Instant) -> Deletion {
    match polled {
        Ok(OperationState::Running(wait)) => Deletion::Running(wait),
        Ok(OperationState::Failed(error)) => Deletion::Failed(error),
        Err(error) if error.class != Class::Gone => Deletion::Unread(error),
        _ if now.saturating_duration_since(operation.began) < SHOWS_LATE => Deletion::Running(None),
        _ => Deletion::Failed(ArmError::own(Class::Busy, "NotDeleted")),
    }
}
