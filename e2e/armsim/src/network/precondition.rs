//! What is checked before a type's own rules: etags and the region.

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::kind::Call;

use super::shape::{region, region_of};

/// `If-Match`, which Microsoft.Network honours though its spec does not list it, and `If-None-Match` by switch.
pub(crate) fn precondition(cx: &Context<'_>, call: &Call<'_>, current: Option<&str>) -> Result<(), ArmError> {
    let bare = |etag: &str| etag.trim().trim_start_matches("W/").trim_matches('"').to_owned();
    let failed = |what: String| {
        Err(ArmError::service(412, "PreconditionFailed", "Precondition failed.")
            .because("PreconditionFailedEtagMismatch", what))
    };
    let required = call.header("if-match").map(str::trim).filter(|etag| !etag.is_empty());
    if let Some(required) = required.filter(|etag| *etag != "*" || current.is_none())
        && current.is_none_or(|current| bare(current) != bare(required))
    {
        let has = current.unwrap_or("(none)");
        return failed(format!(
            "Etag provided in if-match header {required} does not match etag {has} of resource {} in NRP data store.",
            call.id
        ));
    }
    if cx.state.switches.network_if_none_match && call.header("if-none-match") == Some("*") && current.is_some() {
        return failed(format!("Resource {} already exists.", call.id));
    }
    Ok(())
}

/// The region of what is written, as ARM spells it: required, and fixed once it is there. A nested resource is where
/// its parent is.
pub(crate) fn location(cx: &Context<'_>, call: &Call<'_>) -> Result<String, ArmError> {
    if let Some(parent) = call.id.parent() {
        let found = cx.state.store.get(&parent);
        return found
            .map(|found| region_of(&found.body))
            .ok_or_else(|| ArmError::parent_not_found(&parent));
    }
    let given = call.body["location"]
        .as_str()
        .map(region)
        .filter(|given| !given.is_empty());
    let Some(given) = given else {
        let message = "The location property is required for this definition.";
        return Err(ArmError::gateway(400, "LocationRequired", message));
    };
    let known = cx.state.store.get(&call.id);
    match known.map(|known| region_of(&known.body)) {
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
