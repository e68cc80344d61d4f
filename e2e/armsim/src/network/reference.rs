//! Resources that refer to each other: what a write may name, and what is refused because others are busy or use it.

use crate::engine::context::Context;
use crate::engine::error::{ArmError, RETRYABLE};
use crate::engine::id::ResourceId;
use crate::engine::kind::Call;
use crate::engine::operation::Operation;
use crate::engine::resource::{ProvisioningState, Resource};

use super::shape::region_of;

/// The resource that a body refers to, or the provider's refusal.
pub(crate) fn referenced<'a>(cx: &'a Context<'_>, by: &ResourceId, id: &str) -> Result<&'a Resource, ArmError> {
    cx.state.store.find(id).ok_or_else(|| missing(by, id))
}

/// The resource that a body refers to, provisioned and in `region`, or the refusal.
pub(crate) fn usable<'a>(
    cx: &'a Context<'_>,
    by: &ResourceId,
    id: &str,
    region: &str,
) -> Result<&'a Resource, ArmError> {
    let found = referenced(cx, by, id)?;
    in_region(by, region, found)?;
    must_be_provisioned(cx, found, found.state, by)?;
    Ok(found)
}

/// References do not leave their region.
pub(crate) fn in_region(by: &ResourceId, region: &str, used: &Resource) -> Result<(), ArmError> {
    if region_of(&used.body) == region {
        return Ok(());
    }
    Err(missing(by, used.id.as_str()))
}

/// The refusal of a reference to something that is not there.
pub(crate) fn missing(by: &ResourceId, id: &str) -> ArmError {
    let message = format!(
        "Resource {id} referenced by resource {by} was not found. Please make sure that the referenced resource exists, and \
         that both resources are in the same region."
    );
    ArmError::service(400, "InvalidResourceReference", message).because("NotFound", format!("Resource {id} not found."))
}

/// A referenced resource that is not in `state` Succeeded stops the write for a while: 429 without any throttling.
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
    ArmError::service(429, RETRYABLE, "A retryable error occurred.").because(code, message)
}

/// A write on something that another operation is changing.
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

/// What is used cannot be deleted; `what` is `Network security group`, `users` are ids.
pub(crate) fn not_in_use(code: &str, what: &str, id: &ResourceId, users: &[String]) -> Result<(), ArmError> {
    if users.is_empty() {
        return Ok(());
    }
    let message = format!(
        "{what} {id} cannot be deleted because it is in use by the following resources: {}. In order to delete the {}, \
         remove the association with the resource(s).",
        users.join(", "),
        what.to_lowercase()
    );
    Err(ArmError::service(400, code, message))
}

/// The ids of what refers to `id`.
pub(crate) fn users(cx: &Context<'_>, id: &ResourceId) -> Vec<String> {
    cx.state.store.referring(id).map(|user| user.id.to_string()).collect()
}

/// What refers to `id` and is of that type.
pub(crate) fn referring<'a>(
    cx: &'a Context<'_>,
    id: &ResourceId,
    resource_type: &'static str,
) -> impl Iterator<Item = &'a Resource> {
    let all = cx.state.store.referring(id);
    all.filter(move |found| found.resource_type == resource_type)
}
