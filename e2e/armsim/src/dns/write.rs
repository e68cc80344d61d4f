//! Zones and links: writes that are accepted at once, carried out and judged when their operation ends.
//!
//! Decides when an accepted write takes effect and how a late refusal is delivered; what the write does to the resource
//! is the type's decision. Preconditions fail in the operation, never in the answer to the write.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::etag::{Condition, Unmet};
use crate::engine::context::{Begin, Context};
use crate::engine::error::{ArmError, ErrorDetail};
use crate::engine::id::ResourceId;
use crate::engine::kind::{Call, Kind, LinkedScope, Reply, Stack};
use crate::engine::operation::{Operation, OperationStatus, Outcome, Verb};
use crate::engine::page::page;
use crate::engine::preset::Pace;
use crate::engine::resource::{ProvisioningState, Resource};

/// The first version of private DNS as a service of its own.
pub(super) const FIRST_VERSION: &str = "2018-09-01";
/// Rows of a page unless `$top` asks for another number.
pub(super) const PAGE: usize = 100;

/// What zones and links do differently.
pub(crate) trait Tracked: Sync {
    const TYPE: &'static str;
    /// The operation as the polling URL spells it, and how long it takes.
    const UPSERT: (&'static str, Pace);
    const DELETE: (&'static str, Pace);

    /// What a call must be allowed to do on what its body refers to.
    fn links(_call: &Call<'_>) -> Vec<LinkedScope> {
        vec![]
    }

    /// The refusal of a name, at once.
    fn check_name(name: &str) -> Result<(), String>;

    /// What is refused of a body at once; `whole` for a PUT.
    fn check_body(id: &ResourceId, body: &Value, whole: bool) -> Result<(), ArmError>;

    /// Whether what this would be in is there, at once and again at the end.
    fn check_parent(cx: &Context<'_>, id: &ResourceId) -> Result<(), ArmError>;

    /// What is refused when the operation ends. `known` is what is there.
    fn judge(
        cx: &Context<'_>,
        id: &ResourceId,
        request: &WriteRequest,
        known: Option<&Resource>,
    ) -> Result<(), ErrorDetail>;

    /// Puts the resource under a new etag.
    fn store(cx: &mut Context<'_>, id: &ResourceId, request: &WriteRequest);

    /// What stands in the way of a deletion, at once and again at the end.
    fn check_deletion(_cx: &Context<'_>, _id: &ResourceId) -> Result<(), ErrorDetail> {
        Ok(())
    }

    /// The end of a deletion.
    fn take_away(cx: &mut Context<'_>, operation: &Operation) {
        cx.remove(&operation.target);
    }

    /// The end of an operation that [`Tracked::take_away`] began; returns whether it was one.
    fn forget(_cx: &mut Context<'_>, _operation: &Operation) -> bool {
        false
    }

    /// The text of a failed precondition.
    fn unmet(id: &ResourceId, unmet: Unmet) -> String;

    /// Adds the properties that are not stored.
    fn show(cx: &Context<'_>, resource: &Resource, properties: &mut Value);
}

/// The type of what is [`Tracked`].
pub(super) struct TrackedKind<T>(pub(super) T);

impl<T: Tracked> Kind for TrackedKind<T> {
    fn resource_type(&self) -> &'static str {
        T::TYPE
    }

    fn first_version(&self) -> &'static str {
        FIRST_VERSION
    }

    fn stack(&self) -> Stack {
        Stack::PrivateDns
    }

    fn tracked(&self) -> bool {
        true
    }

    fn links(&self, _cx: &Context<'_>, call: &Call<'_>) -> Vec<LinkedScope> {
        T::links(call)
    }

    fn list(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let found = cx.state.store.of_type(&call.id, T::TYPE);
        let found = found.map(|resource| (resource.id.key(), resource)).collect();
        page(call, found, PAGE, |resource| self.render(cx, resource))
    }

    fn put(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        T::check_parent(cx, &call.id)?;
        T::check_name(call.id.name()).map_err(|message| ArmError::service(400, "BadRequest", message))?;
        check_envelope(&call.body, T::TYPE)?;
        T::check_body(&call.id, &call.body, true)?;
        accept::<T>(cx, call, Verb::Put, WriteRequest::of(call, false))
    }

    fn patch(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        live(cx, &call.id).ok_or_else(|| ArmError::resource_not_found(&call.id))?;
        T::check_body(&call.id, &call.body, false)?;
        accept::<T>(cx, call, Verb::Put, WriteRequest::of(call, true))
    }

    fn delete(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        if live(cx, &call.id).is_none() {
            return Ok(Reply::new(204).by_gateway());
        }
        T::check_deletion(cx, &call.id).map_err(|error| ArmError::gateway(409, &error.code, error.message))?;
        accept::<T>(cx, call, Verb::Delete, WriteRequest::of(call, false))
    }

    fn render(&self, cx: &Context<'_>, resource: &Resource) -> Value {
        let mut shown = resource.body.clone();
        shown["id"] = json!(resource.id);
        shown["name"] = json!(resource.id.name());
        shown["type"] = json!(T::TYPE);
        shown["etag"] = json!(resource.etag);
        shown["properties"]["provisioningState"] = json!(resource.state.as_str());
        T::show(cx, resource, &mut shown["properties"]);
        shown
    }

    fn install(&self, cx: &mut Context<'_>, id: &ResourceId, body: Value) -> Result<(), ArmError> {
        let request = WriteRequest {
            body,
            condition: Condition::default(),
            partial: false,
        };
        T::store(cx, &stored(id, T::TYPE), &request);
        Ok(())
    }

    fn finish(&self, cx: &mut Context<'_>, operation: &Operation) {
        if !T::forget(cx, operation) {
            finish::<T>(cx, operation);
        }
    }
}

/// What the end of an operation needs to know of its request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct WriteRequest {
    pub(super) body: Value,
    pub(super) condition: Condition,
    /// Whether `body` is laid over what is there, as PATCH does.
    pub(super) partial: bool,
}

impl WriteRequest {
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

/// Begins a write of `call`'s resource: 202, `{}` for all but a DELETE.
fn accept<T: Tracked>(
    cx: &mut Context<'_>,
    call: &Call<'_>,
    verb: Verb,
    request: WriteRequest,
) -> Result<Reply, ArmError> {
    let unreadable = |_| ArmError::service(500, "InternalServerError", "The request could not be kept.");
    let target = stored(&call.id, T::TYPE);
    let (name, pace) = match verb {
        Verb::Put | Verb::Post => T::UPSERT,
        Verb::Delete => T::DELETE,
    };
    let operation = cx.begin(Begin {
        name,
        stack: Stack::PrivateDns,
        verb,
        target: &target,
        target_type: T::TYPE,
        region: "global",
        api_version: &call.api_version,
        pace: &pace,
        outcome: Outcome::Succeed,
        payload: serde_json::to_value(request).map_err(unreadable)?,
    });
    cx.state.dns.begun(&target);
    if let Some(known) = cx.state.store.get_mut(&target) {
        known.state = match verb {
            Verb::Put | Verb::Post => ProvisioningState::Updating,
            Verb::Delete => ProvisioningState::Deleting,
        };
    }
    let reply = Reply::new(202).operation(&operation).changed();
    Ok(if verb == Verb::Put {
        reply.body(json!({}))
    } else {
        reply
    })
}

/// Ends a write: carries it out unless the operation failed or a newer write came before it.
fn finish<T: Tracked>(cx: &mut Context<'_>, operation: &Operation) {
    let mut effective = false;
    if operation.status == OperationStatus::Succeeded && !cx.state.dns.overtaken(operation) {
        let applied = match operation.verb {
            Verb::Put | Verb::Post => put_at_end::<T>(cx, operation),
            Verb::Delete => delete_at_end::<T>(cx, operation),
        };
        match applied {
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

fn put_at_end<T: Tracked>(cx: &mut Context<'_>, operation: &Operation) -> Result<(), ErrorDetail> {
    let (id, request) = (&operation.target, WriteRequest::read(operation));
    T::check_parent(cx, id).map_err(|refused| refused.error)?;
    let known = live(cx, id);
    check_condition::<T>(&request, id, known)?;
    if known.is_none() && request.partial {
        return Err(ArmError::resource_not_found(id).error);
    }
    T::judge(cx, id, &request, known)?;
    T::store(cx, id, &request);
    Ok(())
}

fn delete_at_end<T: Tracked>(cx: &mut Context<'_>, operation: &Operation) -> Result<(), ErrorDetail> {
    let id = &operation.target;
    let Some(known) = live(cx, id) else {
        return Ok(());
    };
    check_condition::<T>(&WriteRequest::read(operation), id, Some(known))?;
    T::check_deletion(cx, id)?;
    T::take_away(cx, operation);
    Ok(())
}

fn check_condition<T: Tracked>(
    request: &WriteRequest,
    id: &ResourceId,
    known: Option<&Resource>,
) -> Result<(), ErrorDetail> {
    let current = known.map(|known| known.etag.as_str());
    let unmet = request.condition.check(current).map_err(|unmet| T::unmet(id, unmet));
    unmet.or_else(|message| refused("PreconditionFailed", message))
}

/// The resource, unless it is only still shown.
pub(super) fn live<'a>(cx: &'a Context<'_>, id: &ResourceId) -> Option<&'a Resource> {
    cx.state.store.get(id).filter(|found| is_live(found))
}

/// Whether a resource is there; one whose deletion has ended may be shown for a while.
pub(super) fn is_live(resource: &Resource) -> bool {
    resource.hidden["gone"] != true
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
