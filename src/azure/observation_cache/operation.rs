//! A long-running operation of this process.

use tokio::time::Instant;
use url::Url;

/// A long-running operation that this process has started.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// The URL at which Azure shows its state, if Azure gave one.
    pub url: Option<Url>,
    /// When it was started.
    pub began: Instant,
    /// Whether it deletes the resource.
    pub deletes: bool,
}
