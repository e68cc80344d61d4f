//! Writes to zones and links: accepted at once, carried out and judged when their operation ends.
//!
//! Decides when an accepted write takes effect and how a late refusal is delivered; what the write does to the resource
//! is the type's decision. Preconditions fail in the operation, never in the answer to the write.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::etag::Condition;
use crate::engine::context::{Begin, Context};
use crate::engine::error::{ArmError, ErrorDetail};
use crate::engine::id::ResourceId;
use crate::engine::kind::{Call, Reply, Stack};
use crate::engine::operation::{Operation, OperationStatus, Outcome, Verb};
use crate::engine::preset::Pace;
use crate::engine::resource::ProvisioningState;

/// What the end of an operation needs to know of its request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Wanted {
    pub(super) body: Value,
    pub(super) condition: Condition,
    /// Whether `body` is laid over what is there, as PATCH does.
    pub(super) partial: bool,
}

impl Wanted {
    /// The request as sent.
    pub(super) fn of(call: &Call<'_>, partial: bool) -> Self {
        let condition = Condition::new(call.header("if-match"), call.header("if-none-match"));
        Self {
            body: call.body.clone(),
            condition,
            partial,
        }
    }

    /// The request that began `operation`.
    pub(super) fn read(operation: &Operation) -> Self {
        let empty = Self {
            body: Value::Null,
            condition: Condition::default(),
            partial: false,
        };
        serde_json::from_value(operation.payload.clone()).unwrap_or(empty)
    }

    /// `location` and `tags` after this write over `known`.
    pub(super) fn envelope(&self, known: Option<&Value>) -> Value {
        let mut envelope = json!({ "location": "global" });
        let tags = match (&self.body["tags"], known) {
            (Value::Null, Some(known)) if self.partial => &known["tags"],
            (sent, _) => sent,
        };
        if !tags.is_null() {
            envelope["tags"] = tags.clone();
        }
        envelope
    }
}

/// A write to begin.
pub(super) struct Write<'a> {
    /// As the polling URL spells it.
    pub(super) name: &'a str,
    pub(super) verb: Verb,
    pub(super) target: &'a ResourceId,
    pub(super) target_type: &'static str,
    pub(super) pace: &'a Pace,
    pub(super) wanted: Wanted,
}

/// Accepts a write: 202, `{}` for all but a DELETE.
pub(super) fn accept(cx: &mut Context<'_>, call: &Call<'_>, write: Write<'_>) -> Result<Reply, ArmError> {
    let unreadable = |_| ArmError::service(500, "InternalServerError", "The request could not be kept.");
    let operation = cx.begin(Begin {
        name: write.name,
        stack: Stack::PrivateDns,
        verb: write.verb,
        target: write.target,
        target_type: write.target_type,
        region: "global",
        api_version: &call.api_version,
        pace: write.pace,
        outcome: Outcome::Succeed,
        payload: serde_json::to_value(write.wanted).map_err(unreadable)?,
    });
    cx.state.dns.begun(write.target);
    let reply = Reply::new(202).operation(&operation).changed();
    if let Some(known) = cx.state.store.get_mut(write.target) {
        known.state = match write.verb {
            Verb::Put => ProvisioningState::Updating,
            Verb::Delete => ProvisioningState::Deleting,
        };
    }
    Ok(if write.verb == Verb::Put {
        reply.body(json!({}))
    } else {
        reply
    })
}

/// Ends a write: `apply` carries it out unless the operation failed or a newer write came before it.
pub(super) fn finish(
    cx: &mut Context<'_>,
    operation: &Operation,
    apply: impl FnOnce(&mut Context<'_>, &Operation) -> Result<(), ErrorDetail>,
) {
    let mut effective = false;
    if operation.status == OperationStatus::Succeeded && !cx.state.dns.overtaken(operation) {
        match apply(cx, operation) {
            Ok(()) => effective = true,
            Err(error) => cx.state.operations.fail(&operation.id, error),
        }
    }
    let busy = cx.state.dns.ended(operation, effective);
    if let Some(known) = cx.state.store.get_mut(&operation.target) {
        known.state = if busy {
            ProvisioningState::Updating
        } else {
            ProvisioningState::Succeeded
        };
    }
}

/// The id as private DNS stores it: resource group and names in lower case.
pub(super) fn stored(id: &ResourceId, resource_type: &str) -> ResourceId {
    ResourceId::parse(&id.key()).map_or_else(|_| id.clone(), |lower| lower.spelled(resource_type))
}

/// The checks of ARM and of the service that every zone and link passes at once.
pub(super) fn check_envelope(body: &Value, resource_type: &str) -> Result<(), ArmError> {
    let Some(location) = body["location"].as_str().filter(|location| !location.is_empty()) else {
        let message = "The location property is required for this definition.";
        return Err(ArmError::gateway(400, "LocationRequired", message));
    };
    if !location.eq_ignore_ascii_case("global") {
        let message = format!(
            "The provided location '{location}' is not available for resource type '{resource_type}'. List of available \
             regions for the resource type is 'global'."
        );
        return Err(ArmError::gateway(400, "LocationNotAvailableForResourceType", message));
    }
    Ok(())
}

/// A late refusal.
pub(super) fn refused<T>(code: &str, message: impl Into<String>) -> Result<T, ErrorDetail> {
    Err(ErrorDetail::new(code, message))
}
