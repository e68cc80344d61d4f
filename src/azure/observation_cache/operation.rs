//! A long-running operation of this process.

use tokio::time::Instant;
use url::Url;

/// A long-running operation that this process has started.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// Where Azure tells about it, if it said so.
    pub url: Option<Url>,
    /// When it was started.
    pub began: Instant,
    /// Whether it removes the resource.
    pub deletes: bool,
}
