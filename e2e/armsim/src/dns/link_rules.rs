//! What a link may ask for, and what the links that are there forbid it.
//!
//! Only judges; when a refusal is delivered is the decision of [`super::links`].

use serde_json::Value;

use super::links::{self, is_live, registers, vnet};
use super::write::refused;
use crate::engine::context::Context;
use crate::engine::error::{ArmError, ErrorDetail};
use crate::engine::id::ResourceId;
use crate::engine::resource::{Resource, Store};

/// <https://learn.microsoft.com/azure/dns/private-dns-privatednszone#limits>
const MOST_ZONES_PER_VNET: usize = 1000;
pub(super) const MOST_REGISTERING_PER_ZONE: usize = 100;

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

/// What the VNet's other links forbid: a second zone of the same name, a second zone with registration.
pub(super) fn check_others(store: &Store, id: &ResourceId, to: &str, registering: bool) -> Result<(), ErrorDetail> {
    let zone = id.parent().unwrap_or_else(|| id.clone());
    let mut linked = 0;
    for link in store
        .all_of_type(links::TYPE)
        .filter(|link| is_live(link) && !id.is(link.id.as_str()))
    {
        if !vnet(link).eq_ignore_ascii_case(to) {
            continue;
        }
        linked += 1;
        let other = link.id.parent().unwrap_or_else(|| link.id.clone());
        if other.name().eq_ignore_ascii_case(zone.name()) {
            let message = format!(
                "A virtual network cannot be linked to multiple zones with overlapping namespaces. You tried to link virtual \
                 network with '{}' and '{}' zones.",
                zone.name(),
                other.name()
            );
            return refused("BadRequest", message);
        }
        if registering && registers(link) {
            let message = format!(
                "A virtual network can only be linked to 1 Private DNS zone(s) with auto-registration enabled; conflicting \
                 Private DNS zone is '{}'.",
                other.key()
            );
            return refused("Conflict", message);
        }
    }
    if linked >= MOST_ZONES_PER_VNET {
        let message = format!("A virtual network can be linked to at most {MOST_ZONES_PER_VNET} private DNS zones.");
        return refused("QuotaExceeded", message);
    }
    Ok(())
}

/// The zone's limits of links.
pub(super) fn check_quotas(cx: &Context<'_>, id: &ResourceId, registering: bool) -> Result<(), ErrorDetail> {
    let zone = id.parent().unwrap_or_else(|| id.clone());
    let most = cx.state.quotas(id.subscription()).links_per_zone;
    let links: Vec<&Resource> = links::of(&cx.state.store, &zone).collect();
    let with_registration = links.iter().filter(|link| registers(link)).count();
    if links.len() >= most || (registering && with_registration >= MOST_REGISTERING_PER_ZONE) {
        let message = format!(
            "The zone '{}' can have at most {most} virtual network links, {MOST_REGISTERING_PER_ZONE} of them with \
             registration.",
            zone.name()
        );
        return refused("QuotaExceeded", message);
    }
    Ok(())
}
