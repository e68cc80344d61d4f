//! The state of a delete that the cloud accepted while the resource is still shown. The cloud may show a deleted
//! resource for a while; one that it shows longer was not deleted.

use tokio::time::Instant;

use super::client::OperationState;
use super::cloud::Cloud;
use super::failure::{Class, Failure};
use super::observation_cache::{Operation, SHOWS_LATE};

/// The state of the delete.
#[derive(Debug, PartialEq)]
pub(super) enum Deletion<E> {
    /// The delete is under way; with the wait that the cloud asks for.
    Running(Option<std::time::Duration>),
    /// The delete failed, or it ended and the resource is still there.
    Failed(E),
    /// The state could not be read.
    Unread(E),
}

/// The state of the delete by the poll of its operation. If the cloud does not know the operation any more, that proves
/// nothing.
pub(super) fn progress<C: Cloud>(
    operation: &Operation<C>,
    polled: Result<OperationState<C::Error>, C::Error>,
    now: Instant,
) -> Deletion<C::Error> {
    match polled {
        Ok(OperationState::Running(wait)) => Deletion::Running(wait),
        Ok(OperationState::Failed(error)) => Deletion::Failed(error),
        Err(error) if error.class() != Class::Gone => Deletion::Unread(error),
        _ if now.saturating_duration_since(operation.began) < SHOWS_LATE => Deletion::Running(None),
        _ => Deletion::Failed(C::Error::own(Class::Busy, "NotDeleted")),
    }
}
