//! What a link may ask for, and what the links that are there forbid it.
//!
//! Only judges; when a refusal is delivered is the decision of [`super::links`].

use serde_json::Value;

use super::links::{self, registers};
use super::write::refused;
use crate::engine::context::Context;
use crate::engine::error::{ArmError, ErrorDetail};
use crate::engine::id::ResourceId;
use crate::engine::resource::Resource;

/// A link refers to a VNet by its id.
pub(super) fn check_vnet_id(id: &str) -> Result<(), ArmError> {
    let vnet = ResourceId::parse(id).ok();
    if vnet.is_some_and(|vnet| {
        vnet.resource_type()
            .eq_ignore_ascii_case("Microsoft.Network/virtualNetworks")
    }) {
        return Ok(());
    }
    let message = format!(
        "Property id '{id}' at path 'properties.virtualNetwork.id' is invalid. Expect fully qualified resource Id that \
         start with '/subscriptions/{{subscriptionId}}' or '/providers/{{resourceProviderNamespace}}/'."
    );
    Err(ArmError::gateway(400, "LinkedInvalidPropertyId", message))
}

/// The properties that are judged at once.
pub(super) fn check_properties(properties: &Value, id: &ResourceId) -> Result<(), ArmError> {
    let bad = |message: String| Err(ArmError::service(400, "BadRequest", message));
    if !matches!(properties["registrationEnabled"], Value::Null | Value::Bool(_)) {
        return bad("The property 'registrationEnabled' is not a boolean.".to_owned());
    }
    match properties["resolutionPolicy"].as_str() {
        None | Some("Default") => Ok(()),
        Some("NxDomainRedirect") if is_private_link(id) => Ok(()),
        Some("NxDomainRedirect") => {
            bad("The resolution policy 'NxDomainRedirect' needs a privatelink zone.".to_owned())
        }
        Some(other) => bad(format!("The resolution policy '{other}' is not known.")),
    }
}

/// Whether the zone of this link is one of the service's `privatelink` names, the only ones with a resolution policy.
pub(super) fn is_private_link(id: &ResourceId) -> bool {
    let zone = id.parent();
    zone.is_some_and(|zone| {
        zone.name()
            .split('.')
            .any(|label| label.eq_ignore_ascii_case("privatelink"))
    })
}

/// What the VNet's other links forbid: a second link of the same zone, a second zone of the same name, a second zone with
/// registration, one zone more than the quota.
pub(super) fn check_others(
    cx: &Context<'_>,
    id: &ResourceId,
    vnet: &ResourceId,
    registering: bool,
) -> Result<(), ErrorDetail> {
    let zone = id.parent().unwrap_or_else(|| id.clone());
    let quotas = cx.state.quotas(id.subscription());
    let (mut linked, mut registered) = (0, 0);
    for link in links::to(&cx.state.store, vnet).filter(|link| !id.is(link.id.as_str())) {
        linked += 1;
        let other = link.id.parent().unwrap_or_else(|| link.id.clone());
        if zone.is(other.as_str()) {
            let message = format!("Private zone '{zone}' is already linked to the virtual network '{vnet}'.");
            return refused("Conflict", message);
        }
        if other.name().eq_ignore_ascii_case(zone.name()) {
            let message = format!(
                "A virtual network cannot be linked to multiple zones with overlapping namespaces. You tried to link virtual \
                 network with '{}' and '{}' zones.",
                zone.name(),
                other.name()
            );
            return refused("BadRequest", message);
        }
        registered += usize::from(registers(link));
        if registering && registered >= quotas.registration_zones_per_vnet {
            let message = format!(
                "A virtual network can only be linked to {} Private DNS zone(s) with auto-registration enabled; conflicting \
                 Private DNS zone is '{}'.",
                quotas.registration_zones_per_vnet,
                other.key()
            );
            return refused("Conflict", message);
        }
    }
    if linked >= quotas.zones_per_vnet {
        let message = format!(
            "A virtual network can be linked to at most {} private DNS zones.",
            quotas.zones_per_vnet
        );
        return refused("QuotaExceeded", message);
    }
    Ok(())
}

/// The zone's limits of links: for one that is new, and for one that begins to register.
pub(super) fn check_quotas(cx: &Context<'_>, id: &ResourceId, new: bool, registering: bool) -> Result<(), ErrorDetail> {
    let zone = id.parent().unwrap_or_else(|| id.clone());
    let quotas = cx.state.quotas(id.subscription());
    let links: Vec<&Resource> = links::of(&cx.state.store, &zone).collect();
    let registered = links.iter().filter(|link| registers(link)).count();
    let full = new && links.len() >= quotas.links_per_zone;
    if full || (registering && registered >= quotas.registration_links_per_zone) {
        let message = format!(
            "The zone '{}' can have at most {} virtual network links, {} of them with registration.",
            zone.name(),
            quotas.links_per_zone,
            quotas.registration_links_per_zone
        );
        return refused("QuotaExceeded", message);
    }
    Ok(())
}
