//! Answers as HTTP: the headers that ARM and each stack put on them, polling URLs included.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::error::{ArmError, Cause};
use super::kind::{Reply, Stack};
use super::operation::{Operation, Verb};
use super::poll::{dns_token, job_token};
use super::route::OperationUrl;
use super::signature;
use super::state::State;
use super::throttle::Remaining;
use crate::versions;

/// What is known of the call that is answered.
pub(crate) struct Asked<'a> {
    pub(crate) now: Timestamp,
    /// `https://host`.
    pub(crate) base: &'a str,
    pub(crate) api_version: &'a str,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) correlation_id: &'a str,
    pub(crate) stack: Stack,
    pub(crate) head: bool,
}

const JSON: &str = "application/json; charset=utf-8";
/// Rows that private DNS lets one read in five minutes.
const ENTITIES: u32 = 60_000;

/// Builds the answer of a type or a refusal.
pub(crate) fn respond(
    state: &mut State,
    asked: &Asked<'_>,
    result: &Result<Reply, ArmError>,
    remaining: &Remaining,
) -> Response<Bytes> {
    let mut headers = HeaderMap::new();
    let request_id = state.random.guid();
    let routing_id = state.random.guid();
    common(&mut headers, asked);
    let operation = match result {
        Ok(reply) => reply
            .operation
            .as_deref()
            .and_then(|id| state.operations.get(id))
            .cloned(),
        Err(_) => None,
    };
    let request_id = operation.as_ref().map_or(&request_id, |operation| &operation.id);
    identify(&mut headers, asked.now, request_id, (asked.correlation_id, &routing_id));
    if asked.stack == Stack::Network {
        let service_id = state.random.guid();
        set(&mut headers, "x-ms-arm-service-request-id", &service_id);
    }
    let by_gateway = matches!(result, Err(error) if error.cause == Cause::Gateway);
    if !by_gateway {
        for (name, left) in remaining {
            set(&mut headers, name, &left.to_string());
        }
    }
    let by_dns =
        asked.stack == Stack::PrivateDns && !by_gateway && !result.as_ref().is_ok_and(|reply| reply.by_gateway);
    if by_dns {
        set(&mut headers, "cache-control", "private");
        headers.remove("pragma");
        headers.remove("expires");
        set(&mut headers, "x-aspnet-version", "4.0.30319");
        set(&mut headers, "x-powered-by", "ASP.NET");
    }
    let (status, body) = match result {
        Ok(reply) => {
            success(&mut headers, asked, reply, operation.as_ref());
            let mut body = reply.body.clone();
            if let Some(body) = &mut body {
                versions::adapt(asked.api_version, body);
            }
            (reply.status, body)
        }
        Err(error) => {
            if let Some(cause) = error.failure_cause(asked.stack) {
                set(&mut headers, "x-ms-failure-cause", cause);
            }
            if let Some(seconds) = error.retry_after {
                set(&mut headers, "retry-after", &seconds.to_string());
            }
            (error.status, Some(error.body(asked.stack)))
        }
    };
    let text = body.map(|body| if by_dns { escaped(&body) } else { body.to_string() });
    finish(headers, status, text.unwrap_or_default(), asked)
}

fn finish(mut headers: HeaderMap, status: u16, body: String, asked: &Asked<'_>) -> Response<Bytes> {
    if !body.is_empty() {
        set(&mut headers, "content-type", JSON);
    }
    let mut response = Response::new(if asked.head { Bytes::new() } else { Bytes::from(body) });
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    *response.headers_mut() = headers;
    response
}

/// The JSON text as private DNS writes it: slashes are escaped.
fn escaped(body: &Value) -> String {
    body.to_string().replace('/', "\\/")
}

fn common(headers: &mut HeaderMap, asked: &Asked<'_>) {
    for (name, value) in [
        ("cache-control", "no-cache"),
        ("pragma", "no-cache"),
        ("expires", "-1"),
        ("strict-transport-security", "max-age=31536000; includeSubDomains"),
        ("x-content-type-options", "nosniff"),
        ("x-cache", "CONFIG_NOCACHE"),
    ] {
        set(headers, name, value);
    }
    let echo = asked
        .headers
        .get("x-ms-return-client-request-id")
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"));
    if echo && let Some(id) = asked.headers.get("x-ms-client-request-id") {
        headers.insert("x-ms-client-request-id", id.clone());
    }
}

/// What support asks for: the ids of the call, of what it belongs to, and of its way through ARM.
pub(crate) fn identify(headers: &mut HeaderMap, now: Timestamp, request: &str, (correlation, routing): (&str, &str)) {
    set(headers, "x-ms-request-id", request);
    set(headers, "x-ms-correlation-request-id", correlation);
    let time = now.strftime("%Y%m%dT%H%M%SZ");
    set(headers, "x-ms-routing-request-id", &format!("ARMSIM:{time}:{routing}"));
}

fn success(headers: &mut HeaderMap, asked: &Asked<'_>, reply: &Reply, operation: Option<&Operation>) {
    if let Some(etag) = &reply.etag {
        set(headers, "etag", etag);
    }
    if let Some(seconds) = reply.retry_after {
        set(headers, "retry-after", &seconds.to_string());
    }
    if let Some(rows) = reply.rows.filter(|_| asked.stack == Stack::PrivateDns) {
        let name = "x-ms-ratelimit-remaining-subscription-resource-entities-read";
        set(headers, name, &ENTITIES.saturating_sub(rows).to_string());
    }
    let Some(operation) = operation else { return };
    if operation.stack != Stack::Resources {
        set(
            headers,
            "azure-asyncoperation",
            &url(asked, operation, OperationUrl::Status),
        );
    }
    if operation.stack == Stack::Network {
        set(headers, "azure-asyncnotification", "Enabled");
    }
    if operation.stack != Stack::Network || operation.verb != Verb::Put {
        set(headers, "location", &url(asked, operation, OperationUrl::Result));
    }
    if operation.retry_after_s > 0 && operation.running() {
        set(headers, "retry-after", &operation.retry_after_s.to_string());
    }
    if reply.status == 204 {
        set(headers, "content-type", JSON);
    }
}

/// A polling URL, signed as ARM signs them: longer than 3,000 bytes.
fn url(asked: &Asked<'_>, operation: &Operation, kind: OperationUrl) -> String {
    let status = kind == OperationUrl::Status;
    let subscription = operation.target.subscription();
    let group = operation.target.resource_group().unwrap_or_default();
    let path = match (operation.stack, status) {
        (Stack::Network, _) => {
            let word = if status { "operations" } else { "operationResults" };
            let region = &operation.region;
            format!(
                "/subscriptions/{subscription}/providers/Microsoft.Network/locations/{region}/{word}/{}",
                operation.id
            )
        }
        (Stack::PrivateDns, _) => {
            let word = if status {
                "privateDnsOperationStatuses"
            } else {
                "privateDnsOperationResults"
            };
            let token = dns_token(operation);
            format!("/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Network/{word}/{token}")
        }
        (Stack::Resources, _) => format!(
            "/subscriptions/{subscription}/operationresults/{}",
            job_token(operation)
        ),
    };
    let signature = signature::sign(&operation.id, kind, asked.now);
    format!("{}{path}?api-version={}&{signature}", asked.base, asked.api_version)
}

/// Sets a header; a value that no header can carry is left out.
pub(crate) fn set(headers: &mut HeaderMap, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
        headers.insert(name, value);
    }
}

/// A body for a refusal that no type made.
pub(crate) fn error_body(code: &str, message: &str) -> Value {
    json!({ "error": { "code": code, "message": message } })
}

/// Where the caller reached ARM: `https://host`.
pub(crate) fn base(request: &Request<Bytes>) -> String {
    let uri = request.uri();
    let host = uri.authority().map(|host| host.as_str().to_owned());
    let host = host.or_else(|| {
        request
            .headers()
            .get(http::header::HOST)
            .and_then(|host| host.to_str().ok())
            .map(str::to_owned)
    });
    let host = host.unwrap_or_else(|| "management.azure.com".to_owned());
    format!("{}://{host}", uri.scheme_str().unwrap_or("https"))
}
