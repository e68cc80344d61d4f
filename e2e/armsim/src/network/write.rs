//! What every asynchronous write of Microsoft.Network has in common: preconditions, what counts as a change, the
//! operation, and deletion.

use serde_json::{Value, json};

use crate::engine::context::{Begin, Context};
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::kind::{Call, Kind, Reply, Stack};
use crate::engine::operation::{Operation, Outcome, Verb};
use crate::engine::preset::Pace;
use crate::engine::resource::{ProvisioningState, Resource};

/// A PUT that has passed all checks.
pub(crate) struct Write<'a> {
    pub(crate) kind: &'a dyn Kind,
    pub(crate) id: &'a ResourceId,
    /// What is stored.
    pub(crate) body: Value,
    /// `PutSubnetOperation`.
    pub(crate) name: &'static str,
    pub(crate) region: String,
    pub(crate) create: &'static Pace,
    pub(crate) update: &'static Pace,
}

/// Stores the body and begins the operation. A PUT that changes nothing, or only tags, is over when it is answered.
pub(crate) fn put(cx: &mut Context<'_>, call: &Call<'_>, write: Write<'_>) -> Reply {
    let known = cx.state.store.get(write.id);
    let same = known.is_some_and(|known| known.body == write.body);
    let over = known.is_some_and(|known| {
        known.state == ProvisioningState::Succeeded && without_tags(&known.body) == without_tags(&write.body)
    });
    let status = if known.is_some() { 200 } else { 201 };
    let pace = match known {
        _ if over => &Pace::AT_ONCE,
        Some(_) => write.update,
        None => write.create,
    };
    let hidden = known.map_or(Value::Null, |known| known.hidden.clone());
    let old_etag = known.filter(|_| same && over).map(|known| known.etag.clone());
    let settled = known.map_or(cx.now, |known| known.settled);
    let operation = cx.begin(Begin {
        name: write.name,
        stack: Stack::Network,
        verb: Verb::Put,
        target: write.id,
        target_type: write.kind.resource_type(),
        region: &write.region,
        api_version: &call.api_version,
        pace,
        outcome: Outcome::Succeed,
        payload: Value::Null,
    });
    cx.supersede(write.id, (write.name, &operation));
    let at_once = !cx.state.operations.get(&operation).is_some_and(Operation::running);
    let etag = old_etag.unwrap_or_else(|| cx.weak_etag());
    cx.state.store.insert(Resource {
        id: write.id.clone(),
        resource_type: write.kind.resource_type().to_owned(),
        body: write.body,
        etag,
        state: if at_once {
            ProvisioningState::Succeeded
        } else {
            ProvisioningState::Updating
        },
        operation: Some(operation.clone()),
        created: cx.now,
        settled,
        hidden,
    });
    let mut reply = Reply::new(status).operation(&operation);
    reply.changed = !(same && over);
    reply.body = cx.state.store.get(write.id).map(|stored| write.kind.render(cx, stored));
    reply
}

/// Begins the deletion of something that is there and may go.
pub(crate) fn delete(
    cx: &mut Context<'_>,
    call: &Call<'_>,
    kind: &dyn Kind,
    name: &'static str,
    region: &str,
    pace: &Pace,
) -> Reply {
    let running = cx.state.store.get(&call.id).and_then(|found| cx.running_on(found));
    if let Some(running) = running.filter(|running| running.verb == Verb::Delete) {
        return Reply::new(202).operation(&running.id.clone());
    }
    let operation = cx.begin(Begin {
        name,
        stack: Stack::Network,
        verb: Verb::Delete,
        target: &call.id,
        target_type: kind.resource_type(),
        region,
        api_version: &call.api_version,
        pace,
        outcome: Outcome::Succeed,
        payload: Value::Null,
    });
    cx.supersede(&call.id, (name, &operation));
    let etag = cx.weak_etag();
    if let Some(found) = cx.state.store.get_mut(&call.id) {
        found.state = ProvisioningState::Deleting;
        found.operation = Some(operation.clone());
        found.etag = etag;
    }
    Reply::new(202).operation(&operation).changed()
}

fn without_tags(body: &Value) -> Value {
    let mut body = body.clone();
    if let Some(fields) = body.as_object_mut() {
        fields.remove("tags");
    }
    body
}

/// `If-Match`, which Microsoft.Network honours though its spec does not say so, and `If-None-Match` by switch.
pub(crate) fn precondition(cx: &Context<'_>, call: &Call<'_>, current: Option<&str>) -> Result<(), ArmError> {
    let bare = |etag: &str| etag.trim().trim_start_matches("W/").trim_matches('"').to_owned();
    let failed = |what: String| {
        Err(ArmError::service(412, "PreconditionFailed", "Precondition failed.")
            .because("PreconditionFailedEtagMismatch", what))
    };
    let wanted = call.header("if-match").map(str::trim).filter(|etag| !etag.is_empty());
    if let Some(wanted) = wanted.filter(|etag| *etag != "*" || current.is_none())
        && current.is_none_or(|current| bare(current) != bare(wanted))
    {
        let has = current.unwrap_or("(none)");
        return failed(format!(
            "Etag provided in if-match header {wanted} does not match etag {has} of resource {} in NRP data store.",
            call.id
        ));
    }
    if cx.state.switches.network_if_none_match && call.header("if-none-match") == Some("*") && current.is_some() {
        return failed(format!("Resource {} already exists.", call.id));
    }
    Ok(())
}

/// The region of a tracked resource, as ARM spells it. It is required and cannot change.
pub(crate) fn location(cx: &Context<'_>, call: &Call<'_>) -> Result<String, ArmError> {
    let given = call.body["location"]
        .as_str()
        .map(region)
        .filter(|given| !given.is_empty());
    let Some(given) = given else {
        return Err(ArmError::gateway(
            400,
            "LocationRequired",
            "The location property is required for this definition.",
        ));
    };
    let old = cx
        .state
        .store
        .get(&call.id)
        .and_then(|known| known.body["location"].as_str())
        .map(region);
    match old {
        Some(old) if old != given => {
            let message = format!(
                "The resource '{}' already exists in location '{old}' in resource group '{}'. A resource with the same name \
                 cannot be created in location '{given}'. Please select a new resource name.",
                call.id.name(),
                call.id.resource_group().unwrap_or_default()
            );
            Err(ArmError::gateway(409, "InvalidResourceLocation", message))
        }
        _ => Ok(given),
    }
}

/// `West US 2` is `westus2`.
pub(crate) fn region(text: &str) -> String {
    text.chars()
        .filter(|letter| !letter.is_whitespace())
        .collect::<String>()
        .to_ascii_lowercase()
}

/// A new body with location and tags.
pub(crate) fn tracked(location: &str, given: &Value) -> Value {
    let mut body = json!({ "location": location });
    for name in ["tags", "extendedLocation", "zones"] {
        if let Some(value) = given.get(name).filter(|value| !value.is_null()) {
            body[name] = value.clone();
        }
    }
    body
}

/// The resource that a body refers to, or the provider's refusal.
pub(crate) fn referenced<'a>(cx: &'a Context<'_>, by: &ResourceId, id: &str) -> Result<&'a Resource, ArmError> {
    cx.state.store.find(id).ok_or_else(|| missing_reference(by, id))
}

/// The refusal of a reference to something that is not there.
pub(crate) fn missing_reference(by: &ResourceId, id: &str) -> ArmError {
    let message = format!(
        "Resource {id} referenced by resource {by} was not found. Please make sure that the referenced resource exists, and \
         that both resources are in the same region."
    );
    ArmError::service(400, "InvalidResourceReference", message).because("NotFound", format!("Resource {id} not found."))
}

/// A neighbour that is not in `state` Succeeded stops the write for a while: 429 without any throttling.
pub(crate) fn must_be_provisioned(
    cx: &Context<'_>,
    used: &Resource,
    state: ProvisioningState,
    by: &ResourceId,
) -> Result<(), ArmError> {
    if state == ProvisioningState::Succeeded {
        return Ok(());
    }
    let operation = used.operation.as_deref().and_then(|id| cx.state.operations.get(id));
    let name = operation.map_or("PutResourceOperation", |operation| operation.name.as_str());
    let message = format!(
        "Cannot proceed with operation because resource {} used by resource {by} is not in Succeeded state. Resource is in \
         {} state and the last operation that updated/is updating the resource is {name}.",
        used.id,
        state.as_str()
    );
    Err(retryable("ReferencedResourceNotProvisioned", message))
}

/// 429 `RetryableError` around the real reason.
pub(crate) fn retryable(code: &str, message: String) -> ArmError {
    ArmError::service(429, "RetryableError", "A retryable error occurred.").because(code, message)
}

/// A write on something that is being deleted, or whose neighbour's write is running.
pub(crate) fn another_operation(call: &Call<'_>, running: &Operation) -> ArmError {
    let uri = format!(
        "{}/subscriptions/{}/providers/Microsoft.Network/locations/{}/operations/{}?api-version={}",
        call.base(),
        running.target.subscription(),
        running.region,
        running.id,
        running.api_version
    );
    let message = format!(
        "Another operation on this or dependent resource is in progress. To retrieve status of the operation use uri: {uri}."
    );
    ArmError::service(409, "AnotherOperationInProgress", message)
}

/// A resource that is going cannot be written.
pub(crate) fn not_being_deleted(cx: &Context<'_>, call: &Call<'_>) -> Result<(), ArmError> {
    let running = cx.state.store.get(&call.id).and_then(|found| cx.running_on(found));
    match running.filter(|running| running.verb == Verb::Delete) {
        Some(running) => Err(another_operation(call, running)),
        None => Ok(()),
    }
}

/// GET of a nested resource: ARM answers for the parent, the provider for the rest.
pub(crate) fn find_nested<'a>(cx: &'a Context<'_>, id: &ResourceId) -> Result<&'a Resource, ArmError> {
    if let Some(parent) = id.parent() {
        cx.find(&parent)?;
    }
    cx.state.store.get(id).ok_or_else(|| ArmError::nested_not_found(id))
}

/// An array of the body, empty where there is none.
pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A nested resource as it is shown inside its parent: under the parent's id and etag.
pub(crate) fn nested(item: &Value, parent: &Resource, list: &str, resource_type: &str) -> Value {
    let name = item["name"].as_str().unwrap_or_default();
    let mut shown = json!({
        "name": name,
        "id": format!("{}/{list}/{name}", parent.id),
        "etag": parent.etag,
        "type": format!("{resource_type}/{list}"),
        "properties": item["properties"],
    });
    if let Some(zones) = item.get("zones") {
        shown["zones"] = zones.clone();
    }
    shown["properties"]["provisioningState"] = json!("Succeeded");
    shown
}
