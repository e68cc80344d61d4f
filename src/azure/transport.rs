//! How requests reach ARM: one trait, and its HTTPS form.

use async_trait::async_trait;
use bytes::Bytes;

/// Sends one request and returns the whole answer.
///
/// Requests carry absolute URIs and no `authorization` header; the transport adds what it needs to be let in.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Sends `request` once: no retry, no redirect.
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>, TransportError>;
}

/// Why no answer came.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TransportError {
    /// The address is not on the configured ARM host; nothing was sent.
    #[error("refused to send a token to {0}")]
    ForeignHost(String),
    /// The answer is larger than ARM's own limit.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    /// No answer within the time limit.
    #[error("no answer in time")]
    Timeout,
    /// The connection failed.
    #[error("connection failed: {0}")]
    Connection(String),
    /// No token could be had.
    #[error("no token: {0}")]
    Token(String),
}
