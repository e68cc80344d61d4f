//! The HTTPS address: connections, bearer tokens, and which of ARM and Entra a request is for. Hands ARM requests to the engine and performs
//! what a fault rule wants done to the connection.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, header, request::Parts};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use serde_json::json;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::{
    Shared, http_json,
    token::{Refusal, Subject},
    wire::{Dropped, WireBody},
};
use crate::{Answer, WireFault};

/// ARM's limit for a request body.
const MAX_BODY: usize = 4 * 1024 * 1024;
const HANDSHAKE: Duration = Duration::from_secs(10);
/// What running calls get to end in when the server stops.
const GRACE: Duration = Duration::from_secs(5);

/// Serves connections until told to stop.
pub(super) async fn serve(
    listener: TcpListener,
    tls: TlsAcceptor,
    shared: Arc<Shared>,
    stop: CancellationToken,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => {
                    connections.spawn(connection(socket, tls.clone(), Arc::clone(&shared), stop.clone()));
                }
                Err(error) => {
                    // Out of file descriptors, most likely: a busy loop would not free any.
                    tracing::warn!(%error, "accept failed");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    let _ = timeout(GRACE, async {
        while connections.join_next().await.is_some() {}
    })
    .await;
}

async fn connection(
    socket: TcpStream,
    tls: TlsAcceptor,
    shared: Arc<Shared>,
    stop: CancellationToken,
) {
    let _ = socket.set_nodelay(true);
    let Ok(Ok(stream)) = timeout(HANDSHAKE, tls.accept(socket)).await else {
        return;
    };
    let service = service_fn(|request| answer(Arc::clone(&shared), request));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}

async fn answer(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<WireBody>, Dropped> {
    let (mut parts, body) = request.into_parts();
    let body = match Limited::new(body, MAX_BODY).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return Ok(too_large()),
        Err(_) => return Err(Dropped),
    };
    let Some(uri) = absolute(&parts, &shared.arm) else {
        return Ok(whole(arm_error(
            StatusCode::BAD_REQUEST,
            "BadRequest",
            "The Host header is not valid.",
        )));
    };
    parts.uri = uri;
    let Answer { response, wire } = shared.answer(&Request::from_parts(parts, body));
    perform(response, wire).await
}

/// The URI with the scheme and host that the client used, so that links in the answer lead back the same way.
fn absolute(parts: &Parts, arm: &str) -> Option<Uri> {
    let own = arm.strip_prefix("https://").unwrap_or(arm);
    let host = match parts.headers.get(header::HOST) {
        Some(host) => host.to_str().ok().filter(|host| !host.is_empty())?,
        None => own,
    };
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    Uri::builder()
        .scheme("https")
        .authority(host)
        .path_and_query(path)
        .build()
        .ok()
}

async fn perform(
    response: Response<Bytes>,
    wire: WireFault,
) -> Result<Response<WireBody>, Dropped> {
    if let Some(delay) = wire.delay {
        tokio::time::sleep(delay).await;
    }
    if wire.drop.is_some() {
        return Err(Dropped);
    }
    let (mut parts, body) = response.into_parts();
    let promised = wire.content_length.unwrap_or(body.len() as u64);
    let kept = wire.cut_body_at.map_or(body.len(), |at| at.min(body.len()));
    if kept as u64 == promised {
        return Ok(Response::from_parts(
            parts,
            WireBody::whole(body.slice(..kept)),
        ));
    }
    parts
        .headers
        .insert(header::CONTENT_LENGTH, HeaderValue::from(promised));
    Ok(Response::from_parts(
        parts,
        WireBody::broken(body.slice(..kept)),
    ))
}

fn whole(response: Response<Bytes>) -> Response<WireBody> {
    response.map(WireBody::whole)
}

fn too_large() -> Response<WireBody> {
    let mut response = whole(arm_error(
        StatusCode::PAYLOAD_TOO_LARGE,
        "RequestEntityTooLarge",
        "The request content size exceeds the maximum size of '4194304' bytes.",
    ));
    // The rest of the body is still on its way.
    response
        .headers_mut()
        .insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// An error of ARM's front door.
fn arm_error(status: StatusCode, code: &str, message: &str) -> Response<Bytes> {
    let mut response = http_json(
        status,
        &json!({"error": {"code": code, "message": message}}),
    );
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

    /// The answer, with the challenge that leads clients to the authority.
    pub(super) fn response(&self, authority: &str) -> Response<Bytes> {
        let Self { code, message } = self;
        let mut response = arm_error(StatusCode::UNAUTHORIZED, code, message);
        let challenge = format!(
            "Bearer authorization_uri=\"{authority}/common\", error=\"invalid_token\", error_description=\"{message}\""
        );
        if let Ok(challenge) = HeaderValue::from_str(&challenge) {
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

/// Who the bearer token says the caller is.
pub(super) fn authenticate(
    shared: &Shared,
    headers: &HeaderMap,
    real: Timestamp,
) -> Result<Subject, Unauthorized> {
    let refuse = |code, message: &str| Err(Unauthorized::new(code, message));
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        return refuse(
            "AuthenticationFailed",
            "Authentication failed. The 'Authorization' header is missing.",
        );
    };
    let Some(token) = value.to_str().ok().and_then(bearer) else {
        let message =
            "Authentication failed. The 'Authorization' header is provided in an invalid format.";
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
