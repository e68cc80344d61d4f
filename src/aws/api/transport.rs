//! How requests reach AWS: a trait, and its implementation for HTTPS. Requests go to the configured origins and nowhere
//! else, and no redirect is followed: a session token in a header would go with it.

use std::error::Error;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use hyperlink_engine::failure::Class;
use reqwest::redirect::Policy;

use crate::api::error::AwsError;
use crate::endpoints::Endpoints;

/// The longest answer that is read, in bytes. The largest page that is asked for has a few hundred items.
pub const ANSWER_LIMIT: usize = 8 * 1024 * 1024;

/// The limit for a connection with its TLS handshake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The limit for a whole request, from connecting to the end of the answer. `CreateVpcEndpoint` was observed to take
/// half a minute.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(60);

/// How long an idle connection is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Sends one request and returns the whole answer. Requests carry absolute URIs, and signatures where they need one.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Sends `request` once. Follows no redirect.
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>, TransportError>;
}

/// Why no answer came.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The address is on none of the configured origins; nothing was sent.
    #[error("refused to send a request to {0}")]
    ForeignHost(String),
    /// This process only reads; nothing was sent.
    #[error("this process changes nothing")]
    ReadOnly,
    /// The answer is larger than Hyperlink reads.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    /// No answer within the time limit.
    #[error("no answer in time")]
    Timeout,
    /// The connection failed.
    #[error("connection failed: {0}")]
    Connection(String),
}

impl From<&TransportError> for AwsError {
    fn from(error: &TransportError) -> Self {
        let (class, code) = match error {
            TransportError::ForeignHost(_) => (Class::Invalid, "ForeignHost"),
            TransportError::ReadOnly => (Class::Invalid, "ReadOnly"),
            TransportError::TooLarge(_) => (Class::Down, "AnswerTooLarge"),
            TransportError::Timeout => (Class::Down, "Timeout"),
            TransportError::Connection(_) => (Class::Down, "ConnectionFailed"),
        };
        Self::own(class, code).with_text(&error.to_string())
    }
}

impl From<reqwest::Error> for TransportError {
    fn from(error: reqwest::Error) -> Self {
        if error.is_timeout() {
            Self::Timeout
        } else {
            Self::Connection(cause(&error).to_owned())
        }
    }
}

/// Why a connection failed: a stable text without addresses.
fn cause(error: &reqwest::Error) -> &'static str {
    let mut next: Option<&(dyn Error + 'static)> = error.source();
    while let Some(current) = next {
        let io = current.downcast_ref::<std::io::Error>();
        if current.is::<rustls::Error>() {
            return "the TLS handshake failed, or the server's certificate is not acceptable";
        }
        // A constant text of hyper-util, which does not export the type.
        if current.to_string() == "dns error" {
            return "the host name cannot be resolved";
        }
        // An io::Error leaves out what it wraps when asked for its source.
        next = match io.and_then(std::io::Error::get_ref) {
            Some(wrapped) => Some(wrapped),
            None => current.source(),
        };
    }
    if error.is_connect() {
        "could not connect"
    } else {
        "the connection broke"
    }
}

/// AWS over HTTPS; instance metadata over HTTP.
pub struct HttpsTransport {
    client: reqwest::Client,
    endpoints: Endpoints,
}

impl HttpsTransport {
    /// `builder` brings the user agent, the certificates to trust besides the system's, and the proxy, which must be
    /// one for https requests only: instance metadata is on this machine.
    ///
    /// # Errors
    /// The client cannot be built. Mostly the system has no CA certificates and none are configured.
    pub fn new(builder: reqwest::ClientBuilder, endpoints: Endpoints) -> Result<Self, TransportError> {
        let client = builder
            .tls_backend_rustls()
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TOTAL_TIMEOUT)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .build()?;
        Ok(Self { client, endpoints })
    }
}

#[async_trait]
impl Transport for HttpsTransport {
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>, TransportError> {
        // Compared in the form that is sent, so that no second parser sees another host.
        let request = reqwest::Request::try_from(request)
            .map_err(|_| TransportError::ForeignHost("an address that is no URL".into()))?;
        if !self.endpoints.contains(request.url()) {
            let origin = request.url().origin().ascii_serialization();
            return Err(TransportError::ForeignHost(origin));
        }
        read(self.client.execute(request).await?).await
    }
}

async fn read(mut answer: reqwest::Response) -> Result<http::Response<Bytes>, TransportError> {
    let too_large = Err(TransportError::TooLarge(ANSWER_LIMIT));
    let announced = answer.content_length().unwrap_or_default();
    let announced = usize::try_from(announced).unwrap_or(usize::MAX);
    if announced > ANSWER_LIMIT {
        return too_large;
    }
    let mut body = BytesMut::with_capacity(announced);
    while let Some(part) = answer.chunk().await? {
        if body.len() + part.len() > ANSWER_LIMIT {
            return too_large;
        }
        body.extend_from_slice(&part);
    }
    let mut response = http::Response::new(body.freeze());
    *response.status_mut() = answer.status();
    *response.headers_mut() = std::mem::take(answer.headers_mut());
    Ok(response)
}

#[cfg(test)]
mod tests;
