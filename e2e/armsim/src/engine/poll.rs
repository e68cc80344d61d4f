//! The state of operations as their URLs answer it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use serde_json::json;

use super::context::Context;
use super::error::ArmError;
use super::id::ResourceId;
use super::kind::{Reply, Stack};
use super::operation::{Operation, OperationStatus, Verb};
use super::registry;
use super::route::OperationUrl;

/// What private DNS puts into its polling URLs in base64.
pub(crate) fn dns_token(operation: &Operation) -> String {
    let twin = uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, operation.id.as_bytes());
    URL_SAFE.encode(format!(
        "FrontEndAsyncOperation;{};{}_{twin}",
        operation.name, operation.id
    ))
}

/// The id in a polling URL.
fn operation_id(token: &str) -> String {
    let decoded = URL_SAFE
        .decode(token)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let inner = decoded
        .as_deref()
        .and_then(|text| text.rsplit(';').next())
        .and_then(|ids| ids.split('_').next());
    inner.unwrap_or(token).to_owned()
}

/// Whether a path is a polling URL of that operation.
pub(crate) fn asks_for(operation: &Operation, path: &str) -> bool {
    operation_id(path.rsplit('/').next().unwrap_or_default()) == operation.id
}

/// Answers a polling URL.
pub(crate) fn poll(
    cx: &mut Context<'_>,
    scope: &ResourceId,
    token: &str,
    url: OperationUrl,
) -> Result<Reply, ArmError> {
    let id = operation_id(token);
    let gone = || ArmError::service(404, "NotFound", format!("The operation '{id}' could not be found."));
    let known = cx.state.operations.get(&id).filter(|operation| !operation.lost);
    let operation = known
        .filter(|operation| operation.target.key().starts_with(&scope.key()))
        .ok_or_else(gone)?
        .clone();
    match (url, operation.stack) {
        (OperationUrl::Status, Stack::PrivateDns) => Ok(dns_status(&operation)),
        (OperationUrl::Status, _) => Ok(status(cx, &operation)),
        (OperationUrl::Result, _) => result(cx, &operation),
    }
}

fn status(cx: &Context<'_>, operation: &Operation) -> Reply {
    let mut reply = Reply::new(200).body(words(operation));
    if operation.running() && operation.retry_after_s > 0 {
        // The first polls of a long operation are told to come back sooner than the later ones.
        let old = cx.now.duration_since(operation.started).as_secs() >= 15;
        let seconds = if old && operation.retry_after_s == 10 {
            20
        } else {
            operation.retry_after_s
        };
        reply.retry_after = Some(seconds);
    }
    reply
}

fn dns_status(operation: &Operation) -> Reply {
    if operation.running() {
        return Reply::new(202).body(words(operation)).operation(&operation.id);
    }
    Reply::new(200).body(words(operation))
}

fn words(operation: &Operation) -> serde_json::Value {
    let mut body = json!({ "status": operation.status.as_str() });
    if let Some(error) = &operation.error {
        body["error"] = json!(error);
    }
    body
}

/// The `Location` URL: 202 while it runs, then what the operation leaves.
fn result(cx: &mut Context<'_>, operation: &Operation) -> Result<Reply, ArmError> {
    match (operation.status, operation.verb) {
        (OperationStatus::InProgress, _) => Ok(Reply::new(202).operation(&operation.id)),
        (OperationStatus::Succeeded, Verb::Delete) if operation.stack == Stack::Network => Ok(Reply::new(204)),
        (OperationStatus::Succeeded, Verb::Delete) => Ok(Reply::new(200)),
        (OperationStatus::Succeeded, Verb::Put) if operation.answers() => {
            Ok(Reply::new(200).body(operation.payload.clone()))
        }
        (OperationStatus::Succeeded, Verb::Put) => {
            let found = cx.find(&operation.target)?;
            let shown = registry::kind(&operation.target_type).map(|kind| kind.render(cx, found));
            Ok(Reply::new(200).body(shown.unwrap_or_default()))
        }
        (OperationStatus::Failed | OperationStatus::Canceled, _) => {
            let error = operation
                .error
                .clone()
                .unwrap_or_else(|| super::error::ErrorDetail::new("InternalServerError", ""));
            let mut refused = ArmError::service(409, &error.code, "");
            refused.error = error;
            Err(refused)
        }
    }
}
