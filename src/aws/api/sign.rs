//! Signs requests with Signature Version 4, by the signer of AWS's own SDK
//! (<https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html>).

use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign as signature};
use aws_sigv4::sign::v4::SigningParams;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request};
use secrecy::ExposeSecret;

use crate::credentials::Session;

/// What a signature is valid for, besides the request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SigningScope<'a> {
    /// The service's name.
    pub(crate) service: &'a str,
    /// The region.
    pub(crate) region: &'a str,
    /// The time of the request, by AWS's clock.
    pub(crate) time: SystemTime,
}

/// A request that cannot be signed. Holds nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the request cannot be signed")]
pub(crate) struct Unsignable;

/// Adds the signature and the session's token to the request's headers.
pub(crate) fn sign(request: &mut Request<Bytes>, session: &Session, scope: SigningScope<'_>) -> Result<(), Unsignable> {
    let identity = Credentials::new(
        session.access_key_id(),
        session.secret().expose_secret(),
        session.token().map(|token| token.expose_secret().to_owned()),
        None,
        "hyperlink",
    )
    .into();
    let parameters = SigningParams::builder()
        .identity(&identity)
        .region(scope.region)
        .name(scope.service)
        .time(scope.time)
        .settings(SigningSettings::default())
        .build()
        .map_err(|_| Unsignable)?
        .into();
    let headers = request.headers().iter();
    let headers = headers.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    let body = SignableBody::Bytes(request.body());
    let signable = SignableRequest::new(request.method().as_str(), request.uri().to_string(), headers, body)
        .map_err(|_| Unsignable)?;
    let (instructions, _) = signature(signable, &parameters).map_err(|_| Unsignable)?.into_parts();
    for (name, value) in instructions.headers() {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| Unsignable)?;
        let mut value = HeaderValue::from_str(value).map_err(|_| Unsignable)?;
        // A token or a signature, but for the date.
        value.set_sensitive(true);
        request.headers_mut().insert(name, value);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
