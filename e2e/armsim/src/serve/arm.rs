//! The HTTPS address: bodies, bearer tokens, and which of ARM and Entra a request is for. Hands ARM requests to the engine.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, Version, header, request::Parts};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use jiff::Timestamp;
use serde_json::json;
use simulator::wire::{Dropped, WireBody, perform};
use tokio::time::timeout;

use super::{
    Shared, http_json,
    token::{Refusal, Subject},
};

/// ARM's limit for a request body.
const MAX_BODY: usize = 4 * 1024 * 1024;
/// The longest path and query that ARM's front door takes, in bytes; its own polling URLs have 3,000 to 5,000.
const MAX_URI: usize = 16 * 1024;
/// What a client may take to send a body.
const BODY: Duration = Duration::from_secs(60);

/// Answers a request, or breaks the connection.
///
/// # Errors
/// The client did not send what it promised, or a fault rule forbids an answer.
pub(super) async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<WireBody>, Dropped> {
    let (mut parts, body) = request.into_parts();
    let body = match timeout(BODY, Limited::new(body, MAX_BODY).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => return Ok(too_large()),
        Ok(Err(_)) | Err(_) => return Err(Dropped),
    };
    let refuse = |status, code, message| Ok(arm_error(status, code, message).map(WireBody::whole));
    if parts
        .uri
        .path_and_query()
        .is_some_and(|path| path.as_str().len() > MAX_URI)
    {
        let message = "The request URI is too long.";
        return refuse(StatusCode::URI_TOO_LONG, "RequestUriTooLong", message);
    }
    let Some(uri) = absolute(&parts, &shared.arm) else {
        return refuse(StatusCode::BAD_REQUEST, "BadRequest", "The Host header is not valid.");
    };
    parts.uri = uri;
    let answer = shared.answer(&Request::from_parts(parts, body));
    perform(answer).await
}

/// The URI with the scheme and host that the client used, so that links in the answer lead back the same way. A host in the request line
/// counts more than the `Host` header, which HTTP/1.0 may leave out.
fn absolute(parts: &Parts, arm: &str) -> Option<Uri> {
    let own = arm.strip_prefix("https://").unwrap_or(arm);
    let given = parts.headers.get(header::HOST);
    let host = match (parts.uri.authority(), given) {
        (Some(authority), _) => authority.as_str(),
        (None, Some(host)) => host.to_str().ok().filter(|host| !host.is_empty())?,
        (None, None) if parts.version == Version::HTTP_10 => own,
        (None, None) => return None,
    };
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    Uri::builder()
        .scheme("https")
        .authority(host)
        .path_and_query(path)
        .build()
        .ok()
}

fn too_large() -> Response<WireBody> {
    let message = "The request content size exceeds the maximum size of '4194304' bytes.";
    let refused = arm_error(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message);
    let mut response = refused.map(WireBody::whole);
    // The rest of the body is still on its way.
    response
        .headers_mut()
        .insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// An error of ARM's front door.
fn arm_error(status: StatusCode, code: &str, message: &str) -> Response<Bytes> {
    let mut response = http_json(status, &json!({"error": {"code": code, "message": message}}));
    response
        .headers_mut()
        .insert("x-ms-failure-cause", HeaderValue::from_static("gateway"));
    response
}

/// A 401 of ARM's front door.
pub(super) struct Unauthorized {
    pub(super) code: &'static str,
    message: String,
}

impl Unauthorized {
    fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// The answer, with the challenge that leads clients to the authority: `tenant` is the subscription's.
    pub(super) fn response(&self, authority: &str, tenant: Option<&str>) -> Response<Bytes> {
        let tenant = tenant.unwrap_or("common");
        let Self { code, message } = self;
        let mut response = arm_error(StatusCode::UNAUTHORIZED, code, message);
        let challenge = format!(
            "Bearer authorization_uri=\"{authority}/{tenant}\", error=\"invalid_token\", error_description=\"{message}\""
        );
        if let Ok(challenge) = HeaderValue::from_str(&challenge) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

/// The caller, as the bearer token names it.
pub(super) fn authenticate(shared: &Shared, headers: &HeaderMap, real: Timestamp) -> Result<Subject, Unauthorized> {
    let refuse = |code, message: &str| Err(Unauthorized::new(code, message));
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        return refuse(
            "AuthenticationFailed",
            "Authentication failed. The 'Authorization' header is missing.",
        );
    };
    let Some(token) = value.to_str().ok().and_then(bearer) else {
        let message = "Authentication failed. The 'Authorization' header is provided in an invalid format.";
        return refuse("AuthenticationFailedInvalidHeader", message);
    };
    shared.issuer.judge(token, &shared.audiences, real).map_err(|refusal| match refusal {
        Refusal::Invalid => Unauthorized::new("InvalidAuthenticationToken", "The access token is invalid."),
        Refusal::NotYetValid => Unauthorized::new("InvalidAuthenticationToken", "The access token is not valid yet."),
        Refusal::Expired { at } => {
            let at = Timestamp::from_second(at).unwrap_or(Timestamp::UNIX_EPOCH);
            let message = format!("The access token expiry UTC time '{at}' is earlier than current UTC time '{real}'.");
            Unauthorized::new("ExpiredAuthenticationToken", message)
        }
        Refusal::Audience { got } => {
            let allowed = shared.audiences.join("','");
            let message = format!(
                "The access token has been obtained for wrong audience or resource '{got}'. It should exactly match with one of the allowed audiences '{allowed}'."
            );
            Unauthorized::new("InvalidAuthenticationTokenAudience", message)
        }
    })
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
