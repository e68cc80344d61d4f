//! The state of operations as their URLs answer it.

use base64::Engine as _;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::access;
use super::context::Context;
use super::error::ArmError;
use super::id::ResourceId;
use super::kind::{Reply, Stack};
use super::operation::{Operation, OperationStatus, Verb};
use super::registry;
use super::route::OperationUrl;
use super::signature::{self, Signature};
use crate::Caller;

/// What private DNS puts into its polling URLs in base64.
pub(crate) fn dns_token(operation: &Operation) -> String {
    let twin = uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, operation.id.as_bytes());
    URL_SAFE.encode(format!(
        "FrontEndAsyncOperation;{};{}_{twin}",
        operation.name, operation.id
    ))
}

/// What ARM puts into the URL of its own jobs: base64 of a small JSON object.
pub(crate) fn job_token(operation: &Operation) -> String {
    let escaped = operation.target.name().to_uppercase().replace('-', ":2D");
    let (id, region) = (&operation.id, &operation.region);
    let job = format!(
        "RESOURCEGROUPDELETIONJOB-{escaped}-{}-{}",
        id.to_uppercase(),
        region.to_uppercase()
    );
    URL_SAFE_NO_PAD.encode(json!({ "jobId": job, "jobLocation": region }).to_string())
}

/// The id in a polling URL, whichever form it has.
fn operation_id(token: &str) -> String {
    let decoded = URL_SAFE.decode(token).or_else(|_| URL_SAFE_NO_PAD.decode(token)).ok();
    let Some(text) = decoded.and_then(|bytes| String::from_utf8(bytes).ok()) else {
        return token.to_owned();
    };
    if let Ok(job) = serde_json::from_str::<Value>(&text) {
        let job = job["jobId"].as_str().unwrap_or_default();
        // A GUID stands before the last dash.
        let id = job
            .rsplit_once('-')
            .and_then(|(start, _)| start.len().checked_sub(36).and_then(|at| start.get(at..)));
        return id.unwrap_or(token).to_owned();
    }
    let ids = text.rsplit(';').next().and_then(|ids| ids.split('_').next());
    ids.unwrap_or(token).to_owned()
}

/// A polling URL that somebody asks.
pub(crate) struct Poll<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) scope: &'a ResourceId,
    pub(crate) token: &'a str,
    pub(crate) url: OperationUrl,
    /// What the URL pretends to be: `Microsoft.Network/locations/operations`.
    pub(crate) resource_type: &'a str,
    pub(crate) query: &'a [(String, String)],
}

/// Whether a path is a polling URL of that operation.
pub(crate) fn asks_for(operation: &Operation, path: &str) -> bool {
    operation_id(path.rsplit('/').next().unwrap_or_default()) == operation.id
}

/// Answers a polling URL.
pub(crate) fn poll(cx: &mut Context<'_>, poll: &Poll<'_>) -> Result<Reply, ArmError> {
    let id = operation_id(poll.token);
    let (scope, url) = (poll.scope, poll.url);
    let signature = signature::judge(&id, url, poll.query);
    let known = cx.state.operations.get(&id).is_some();
    if known && signature == Signature::Changed && cx.state.switches.changed_signature_is_refused {
        let message = "The signature of the operation's URL is not valid. Use the URL as it was given out.";
        return Err(ArmError::gateway(403, "AuthorizationFailed", message));
    }
    may_poll(cx, poll, signature)?;
    let gone = || ArmError::service(404, "NotFound", format!("The operation '{id}' could not be found."));
    let known = cx.state.operations.get(&id).filter(|operation| !operation.lost);
    let operation = known
        .filter(|operation| operation.target.is_in(scope))
        .ok_or_else(gone)?
        .clone();
    match (url, operation.stack) {
        (OperationUrl::Status, Stack::PrivateDns) => Ok(dns_status(&operation)),
        (OperationUrl::Status, _) => Ok(status(cx, &operation)),
        (OperationUrl::Result, _) => result(cx, &operation),
    }
}

/// Who has a signed URL may ask it, unless a switch requires the role too; without the signature the role is needed.
fn may_poll(cx: &Context<'_>, poll: &Poll<'_>, signature: Signature) -> Result<(), ArmError> {
    let switches = &cx.state.switches;
    let always = match poll.resource_type {
        "Microsoft.Network/locations/operations" => switches.network_poll_needs_role,
        "Microsoft.Resources/subscriptions/operationresults" => false,
        _ => switches.dns_poll_needs_role,
    };
    if signature == Signature::Genuine && !always {
        return Ok(());
    }
    let action = format!("{}/read", poll.resource_type);
    access::authorize(cx.state, poll.caller, &action, poll.scope.as_str())
}

fn status(cx: &Context<'_>, operation: &Operation) -> Reply {
    let mut reply = Reply::new(200).body(words(operation));
    if operation.running() && operation.retry_after_s > 0 {
        // The first polls of a long operation get a shorter `Retry-After` than the later ones.
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

fn words(operation: &Operation) -> Value {
    let mut body = json!({ "status": operation.status.as_str() });
    if let Some(error) = &operation.error {
        body["error"] = error.shown(operation.stack);
    }
    body
}

/// The `Location` URL: 202 while it runs, then what the operation leaves.
fn result(cx: &mut Context<'_>, operation: &Operation) -> Result<Reply, ArmError> {
    match (operation.status, operation.verb) {
        (OperationStatus::InProgress, _) => Ok(Reply::new(202).operation(&operation.id)),
        (OperationStatus::Succeeded, Verb::Delete) if operation.stack == Stack::Network => {
            Ok(Reply::new(204).operation(&operation.id))
        }
        (OperationStatus::Succeeded, Verb::Delete) => Ok(Reply::new(200)),
        (OperationStatus::Succeeded, Verb::Post) => Ok(Reply::new(200).body(operation.payload.clone())),
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
