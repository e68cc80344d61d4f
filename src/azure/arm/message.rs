//! Requests to ARM as bytes and headers, their preconditions, and how long an answer's headers ask the caller to wait.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH, RETRY_AFTER};
use http::{HeaderMap, Method, Request};
use hyperlink_engine::client::Condition;
use serde_json::Value;
use url::Url;

use crate::arm::id::{ResourceId, same};

/// The longest `Retry-After` that is read; a longer one counts as this.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(3_600);

/// A request for JSON, with this body.
pub(super) fn request(method: Method, url: &Url, body: Option<&Value>) -> Request<Bytes> {
    let bytes = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
    let mut request = Request::new(bytes);
    *request.method_mut() = method;
    // Every URL was parsed by `url`, whose output is a valid URI unless it is too long.
    *request.uri_mut() = url.as_str().parse().unwrap_or_default();
    request
        .headers_mut()
        .insert(ACCEPT, http::HeaderValue::from_static("application/json"));
    if body.is_some() {
        request
            .headers_mut()
            .insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    }
    request
}

/// The request under this precondition.
pub(super) fn conditional(mut request: Request<Bytes>, condition: &Condition) -> Request<Bytes> {
    let header = match condition {
        Condition::Any => None,
        Condition::New => Some((IF_NONE_MATCH, "*")),
        Condition::Unchanged(etag) => Some((IF_MATCH, etag.as_str())),
    };
    if let Some((name, value)) = header
        && let Ok(value) = value.parse()
    {
        request.headers_mut().insert(name, value);
    }
    request
}

/// The wait in `Retry-After`: seconds, or a date in the future (RFC 9110, 10.2.3), at most an hour. Zero, the past and
/// garbage count as absent.
pub(super) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return (seconds > 0).then(|| Duration::from_secs(seconds).min(LONGEST_RETRY_AFTER));
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    let wait = SystemTime::from(date).duration_since(now).ok()?;
    (!wait.is_zero()).then_some(wait.min(LONGEST_RETRY_AFTER))
}

/// Whether a request can carry this address unchanged. A user name in it would become credentials, and `http` takes 64
/// KiB at most.
pub(super) fn is_sendable(url: &Url) -> bool {
    url.username().is_empty() && url.password().is_none() && url.as_str().parse::<http::Uri>().is_ok()
}

/// Whether an answer's body shows this resource.
pub(super) fn shows(body: &Value, id: &ResourceId) -> bool {
    let shown = body.get("id").and_then(Value::as_str);
    shown.is_some_and(|shown| same(shown, &id.to_string()))
}
