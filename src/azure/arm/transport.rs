//! How requests reach ARM: a trait, and its implementation for HTTPS. Tokens go to the configured host and nowhere
//! else.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::header::AUTHORIZATION;
use http::{Method, StatusCode};
use url::Url;

use crate::arm::auth::{AuthError, AzureCloud, Token, TokenSource};
use crate::arm::error::{ArmError, NoAnswer};
use crate::arm::https;

/// The longest answer that is read, in bytes: ARM's own limit.
/// Source: <https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits>
pub const ANSWER_LIMIT: usize = 8 * 1024 * 1024;

/// Sends one request and returns the whole answer.
///
/// Requests carry absolute URIs and no `authorization` header; the transport adds the credentials.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Waits until a request can be sent at once, so that a check after this is made right before the sending.
    async fn ready(&self) -> Result<(), TransportError>;

    /// Sends `request`. Follows no redirect. Retries only a read whose token is refused, once, if there is a newer
    /// token.
    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>, TransportError>;
}

/// Why no answer came.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The address is not on the configured ARM host; nothing was sent.
    #[error("refused to send a token to {0}")]
    ForeignHost(String),
    /// This process only reads; nothing was sent.
    #[error("this process changes nothing")]
    ReadOnly,
    /// The answer is larger than ARM's own limit.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    /// No answer within the time limit.
    #[error("no answer in time")]
    Timeout,
    /// The connection failed.
    #[error("connection failed: {0}")]
    Connection(String),
    /// No token could be obtained; nothing was sent.
    #[error(transparent)]
    Token(#[from] AuthError),
}

impl From<TransportError> for ArmError {
    fn from(error: TransportError) -> Self {
        let why = match error {
            TransportError::ForeignHost(_) => NoAnswer::ForeignHost,
            TransportError::ReadOnly => NoAnswer::ReadOnly,
            TransportError::TooLarge(_) => NoAnswer::TooLarge,
            TransportError::Timeout => NoAnswer::Timeout,
            TransportError::Connection(_) => NoAnswer::Connection,
            TransportError::Token(AuthError::Unreachable { .. }) => NoAnswer::TokenEndpointDown,
            TransportError::Token(_) => NoAnswer::TokenRefused,
        };
        Self::unanswered(why, &error.to_string())
    }
}

impl From<reqwest::Error> for TransportError {
    fn from(error: reqwest::Error) -> Self {
        if error.is_timeout() {
            Self::Timeout
        } else {
            Self::Connection(https::why(&error))
        }
    }
}

/// ARM over HTTPS with a bearer token.
pub struct HttpsTransport {
    client: reqwest::Client,
    endpoint: Url,
    tokens: Arc<dyn TokenSource>,
}

impl HttpsTransport {
    /// `client` comes from [`https::HttpSettings`]; `tokens` are for this cloud.
    pub fn new(client: reqwest::Client, cloud: &AzureCloud, tokens: Arc<dyn TokenSource>) -> Self {
        Self {
            client,
            endpoint: cloud.endpoint().clone(),
            tokens,
        }
    }

    /// Compares the address with the configured host. The server chooses polling URLs, nextLinks and redirects, so
    /// every address is compared.
    fn check(&self, url: &Url) -> Result<(), TransportError> {
        let same = url.scheme() == self.endpoint.scheme()
            && url.host() == self.endpoint.host()
            && url.port_or_known_default() == self.endpoint.port_or_known_default();
        if !same {
            let origin = url.origin().ascii_serialization();
            return Err(TransportError::ForeignHost(origin));
        }
        // A user name in the address would become credentials of its own.
        if !url.username().is_empty() || url.password().is_some() {
            return Err(TransportError::ForeignHost("an address with a user name".into()));
        }
        Ok(())
    }

    /// Sends the request with this token. The token is invalidated if Azure refuses it.
    async fn execute(&self, mut request: reqwest::Request, token: &Token) -> Result<reqwest::Response, TransportError> {
        request.headers_mut().insert(AUTHORIZATION, token.authorization());
        let answer = self.client.execute(request).await?;
        if answer.status() == StatusCode::UNAUTHORIZED {
            self.tokens.invalidate(token);
        }
        Ok(answer)
    }
}

#[async_trait]
impl Transport for HttpsTransport {
    async fn ready(&self) -> Result<(), TransportError> {
        self.tokens.token().await?;
        Ok(())
    }

    async fn send(&self, request: http::Request<Bytes>) -> Result<http::Response<Bytes>, TransportError> {
        // Compared in the form that is sent, so that no second parser sees another host.
        let request = reqwest::Request::try_from(request)
            .map_err(|_| TransportError::ForeignHost("an address that is no URL".into()))?;
        self.check(request.url())?;
        let again = request.try_clone().filter(|request| request.method() == Method::GET);
        let token = self.tokens.token().await?;
        let mut answer = self.execute(request, &token).await?;
        if let Some(again) = again.filter(|_| answer.status() == StatusCode::UNAUTHORIZED)
            && let Ok(newer) = self.tokens.token().await
            && newer != token
        {
            answer = self.execute(again, &newer).await?;
        }
        read(answer).await
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
