//! The form of control calls: JSON that is taken strictly, refusals in words. What the calls are is the cloud's.

use axum::{
    Router,
    body::Bytes,
    extract::DefaultBodyLimit,
    http::{Method, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use http_body_util::BodyExt as _;
use hyper::{Request, body::Incoming};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::wire::{Answer, Dropped, WireBody, WireFault, perform};

/// A seed for hundreds of clusters fits.
const MAX_BODY: usize = 64 * 1024 * 1024;

/// A refusal in words.
pub struct Refused(pub StatusCode, pub String);

/// What a control call answers.
pub type Answered<T> = Result<T, Refused>;

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.0, axum::Json(json!({"error": self.1}))).into_response()
    }
}

/// A refusal of what the caller sent.
pub fn bad(message: impl ToString) -> Refused {
    Refused(StatusCode::BAD_REQUEST, message.to_string())
}

/// Reads a body.
///
/// # Errors
/// Another form, an unknown key, which is named.
pub fn parse<T: DeserializeOwned>(body: &Bytes) -> Answered<T> {
    serde_json::from_slice(body).map_err(bad)
}

/// Reads a query.
///
/// # Errors
/// Another form, an unknown key, which is named.
pub fn query<T: DeserializeOwned>(uri: &Uri) -> Answered<T> {
    let parsed = axum::extract::Query::try_from_uri(uri);
    parsed.map(|query| query.0).map_err(|error| bad(error.body_text()))
}

/// The answer of a call that has nothing to show.
pub fn done() -> axum::Json<Value> {
    axum::Json(json!({}))
}

/// These calls with their state; all others are refused in words.
pub fn router<S: Clone + Send + Sync + 'static>(calls: Router<S>, state: S) -> Router {
    calls
        .fallback(
            |uri: Uri| async move { Refused(StatusCode::NOT_FOUND, format!("no such control call: {}", uri.path())) },
        )
        .method_not_allowed_fallback(|method: Method, uri: Uri| async move {
            let message = format!("{} does not take {method}", uri.path());
            Refused(StatusCode::METHOD_NOT_ALLOWED, message)
        })
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(state)
}

/// Answers a request; a [`WireFault`] among the response's extensions breaks the answer.
///
/// # Errors
/// A fault rule forbids an answer.
pub async fn answer(router: Router, request: Request<Incoming>) -> Result<hyper::Response<WireBody>, Dropped> {
    let mut response = router.oneshot(request).await.unwrap_or_else(|never| match never {});
    let wire = response.extensions_mut().remove::<WireFault>().unwrap_or_default();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.map_err(|_| Dropped)?.to_bytes();
    let response = hyper::Response::from_parts(parts, body);
    perform(Answer { response, wire }).await
}
