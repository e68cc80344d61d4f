//! A long-running operation of this process.

use tokio::time::Instant;

use crate::cloud::Cloud;

/// A long-running operation that this process has started.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation<C: Cloud> {
    /// What the cloud names the operation, if it did.
    pub id: Option<C::OperationId>,
    /// When it was started.
    pub began: Instant,
    /// Whether it deletes the resource.
    pub deletes: bool,
}
