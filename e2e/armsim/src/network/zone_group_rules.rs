//! What Azure refuses of a DNS zone group: a second one, too many zones, zones that are missing or named twice.
//!
//! Codes that end in `LimitReached` and `NotSupported` are the simulator's: Azure's own are not documented.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::kind::Call;
use crate::engine::resource::Resource;

use super::reference::{must_be_provisioned, referenced};
use super::shape::items;
use super::zone_group::TYPE;

/// The ids of the zones that a body names.
pub(crate) fn zone_ids(body: &Value) -> impl Iterator<Item = &str> {
    let configs = items(&body["properties"]["privateDnsZoneConfigs"]).iter();
    configs.filter_map(|config| config["properties"]["privateDnsZoneId"].as_str())
}

/// Every rule for a PUT, in the order in which they are checked.
pub(crate) fn check(cx: &Context<'_>, endpoint: &Resource, call: &Call<'_>) -> Result<(), ArmError> {
    must_be_provisioned(cx, endpoint, endpoint.state, &call.id)?;
    check_form(call)?;
    let quotas = cx.state.quotas(call.id.subscription());
    let others = cx.state.store.of_type(&endpoint.id, TYPE);
    let others = others.filter(|other| !other.id.is(call.id.as_str())).count();
    if others >= quotas.zone_groups_per_endpoint {
        let most = match quotas.zone_groups_per_endpoint {
            1 => "one".to_owned(),
            most => most.to_string(),
        };
        let message = format!(
            "Cannot create more than {most} private dns zone groups in the private endpoint {}.",
            endpoint.id
        );
        return refuse("PrivateDnsZoneGroupLimitReached", message);
    }
    if zone_ids(&call.body).count() > quotas.zones_per_group {
        let message = format!(
            "Private dns zone group {} can have at most {} private dns zones.",
            call.id, quotas.zones_per_group
        );
        return refuse("PrivateDnsZoneGroupZoneLimitReached", message);
    }
    let mut earlier = BTreeSet::new();
    for zone in zone_ids(&call.body) {
        referenced(cx, &call.id, zone)?;
        if !earlier.insert(zone.to_ascii_lowercase()) {
            let message = format!("Private dns zone group {} names the zone {zone} twice.", call.id);
            return refuse("PrivateDnsZoneGroupWithDuplicateZonesNotSupported", message);
        }
    }
    Ok(())
}

/// Each zone has a name of its own in the group, and a zone's id.
fn check_form(call: &Call<'_>) -> Result<(), ArmError> {
    let wrong = |code: &str, message: String| {
        Err(ArmError::service(400, "InvalidRequestFormat", "Cannot parse the request.").because(code, message))
    };
    let mut names = BTreeSet::new();
    for config in items(&call.body["properties"]["privateDnsZoneConfigs"]) {
        let Some(name) = config["name"].as_str().filter(|name| !name.is_empty()) else {
            return wrong(
                "MissingJsonReferenceName",
                "A private dns zone config has no name.".to_owned(),
            );
        };
        if !names.insert(name.to_ascii_lowercase()) {
            let message = format!(
                "Resource {} has two child resources with the same name ({name}).",
                call.id
            );
            return wrong("DuplicateResourceName", message);
        }
        let zone = &config["properties"]["privateDnsZoneId"];
        let id = zone.as_str().and_then(|zone| ResourceId::parse(zone).ok());
        if !id.is_some_and(|id| {
            id.resource_type()
                .eq_ignore_ascii_case("Microsoft.Network/privateDnsZones")
        }) {
            let message = format!("The value {} is no id of a private dns zone.", json!(zone));
            return wrong("InvalidJsonReferenceFormat", message);
        }
    }
    Ok(())
}

fn refuse(code: &str, message: String) -> Result<(), ArmError> {
    Err(ArmError::service(400, code, message))
}
