//! What Azure refuses of a private endpoint: subnet, target and its visibility, quotas, immutable fields.
//!
//! Codes that begin with `PrivateEndpoint...CannotBeChanged`, `...Required`, `...NotSupported` and `...LimitReached`
//! are the simulator's: Azure's own are not documented.

use serde_json::{Value, json};

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::resource::Resource;

use super::connection;
use super::endpoint::{TYPE, first_connection};
use super::link_service;
use super::nic;
use super::reference::{self, must_be_provisioned, referenced, referring};
use super::shape::{id_of, items};
use super::subnet;
use super::written::Put;

pub(crate) const AUTOMATIC: &str = "privateLinkServiceConnections";
pub(crate) const MANUAL: &str = "manualPrivateLinkServiceConnections";

/// What an endpoint connects to.
pub(crate) struct Target {
    /// As it is shown: the id in Azure's spelling, or the alias as given.
    pub(crate) reference: String,
    /// The private link service; nothing for a service of another kind, which nobody simulates.
    pub(crate) service: Option<ResourceId>,
}

impl Target {
    /// The connection that a new endpoint makes on the service.
    pub(crate) fn new_connection(&self, endpoint: &ResourceId, body: &Value) -> Option<ResourceId> {
        let guid = body["properties"]["resourceGuid"].as_str()?;
        Some(connection::id_of(self.service.as_ref()?, endpoint, guid))
    }
}

fn refuse<T>(code: &str, message: String) -> Result<T, ArmError> {
    Err(ArmError::service(400, code, message))
}

/// Every rule for a PUT, in the order in which they are checked.
pub(crate) fn check(cx: &Context<'_>, put: &Put<'_>) -> Result<Target, ArmError> {
    let (id, body) = (put.id, put.given);
    let properties = &body["properties"];
    if items(&properties[AUTOMATIC]).len() + items(&properties[MANUAL]).len() != 1 {
        let message = format!("Private endpoint {id} needs exactly one private link service connection.");
        return refuse("PrivateEndpointConnectionRequired", message);
    }
    if first_connection(body)["name"].as_str().is_none_or(str::is_empty) {
        return Err(ArmError::invalid_content(
            "A private link service connection needs a name.",
        ));
    }
    short_message(cx, id, body)?;
    if let Some(known) = cx.state.store.get(id) {
        unchangeable(id, known, properties)?;
        return Ok(Target {
            reference: first_connection(&known.body)["properties"]["privateLinkServiceId"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            service: None,
        });
    }
    let Some(reference) = properties["subnet"]["id"].as_str() else {
        return refuse(
            "PrivateEndpointSubnetRequired",
            format!("Private endpoint {id} needs a subnet."),
        );
    };
    let found = subnet::usable(cx, put, reference)?;
    in_subnet(cx, put, found)?;
    names(cx, put)?;
    let target = usable(cx, id, body)?;
    quotas(cx, id, &found.id, &target)?;
    Ok(target)
}

/// The code is Azure's for other services than link services, which answer with it when the operation ends.
fn short_message(cx: &Context<'_>, id: &ResourceId, body: &Value) -> Result<(), ArmError> {
    let limit = cx.state.switches.request_message_limit;
    let message = first_connection(body)["properties"]["requestMessage"].as_str();
    if limit == 0 || message.is_none_or(|message| message.chars().count() <= limit) {
        return Ok(());
    }
    let message = format!("The request message of private endpoint {id} may only be a maximum of {limit} characters.");
    refuse("RequestMessageTooLong", message)
}

/// Subnet, interface name, and everything of the connection but its message. Static addresses can be taken off and put on
/// again; recorded by the Azure CLI's `private-endpoint ip-config`.
fn unchangeable(id: &ResourceId, known: &Resource, given: &Value) -> Result<(), ArmError> {
    let old = &known.body["properties"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_ascii_lowercase();
    let connection = |properties: &Value, list: &str| {
        let first = &properties[list][0];
        (text(&first["name"]), text(&first["properties"]["privateLinkServiceId"]))
    };
    let changed = if text(&old["subnet"]["id"]) != text(&given["subnet"]["id"]) {
        "Subnet"
    } else if text(&old["customNetworkInterfaceName"]) != text(&given["customNetworkInterfaceName"]) {
        "CustomNetworkInterfaceName"
    } else if [AUTOMATIC, MANUAL]
        .into_iter()
        .any(|list| connection(old, list) != connection(given, list))
    {
        "PrivateLinkServiceConnection"
    } else {
        let state = &first_connection(&known.body)["properties"]["privateLinkServiceConnectionState"]["status"];
        if *state == json!("Disconnected") {
            let message = format!("Private endpoint {id} is disconnected; it can only be deleted.");
            return refuse("PrivateEndpointDisconnectedUpdateNotSupported", message);
        }
        return Ok(());
    };
    let message = format!(
        "{changed} of private endpoint {id} cannot be changed. Remove the private endpoint and create it again."
    );
    refuse(&format!("PrivateEndpoint{changed}CannotBeChanged"), message)
}

/// Its security groups are there, and its interface's name is free.
fn names(cx: &Context<'_>, put: &Put<'_>) -> Result<(), ArmError> {
    let properties = &put.given["properties"];
    for group in items(&properties["applicationSecurityGroups"]).iter().filter_map(id_of) {
        reference::usable(cx, put.id, group, put.location)?;
    }
    let custom = properties["customNetworkInterfaceName"].as_str().unwrap_or_default();
    let nic = put.id.sibling(nic::TYPE, custom);
    if !custom.is_empty() && cx.state.store.get(&nic).is_some() {
        let message = format!(
            "Network interface {nic} is there already; private endpoint {} cannot take it.",
            put.id
        );
        return refuse("PrivateEndpointExistingNetworkInterfaceNotSupported", message);
    }
    Ok(())
}

fn in_subnet(cx: &Context<'_>, put: &Put<'_>, found: &Resource) -> Result<(), ArmError> {
    let id = put.id;
    if subnet::is_delegated(found) {
        let message = format!(
            "Private endpoint {id} cannot be created in subnet {} since it is delegated.",
            found.id
        );
        return refuse("PrivateEndpointCreationNotAllowedAsSubnetIsDelegated", message);
    }
    let enabled = found.property("privateEndpointNetworkPolicies").as_str() == Some("Enabled");
    if enabled && cx.state.switches.endpoint_needs_policies_disabled {
        let message = format!(
            "Private endpoint {id} cannot be created in a subnet {} since it has private endpoint network policies enabled.",
            found.id
        );
        return refuse(
            "PrivateEndpointCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled",
            message,
        );
    }
    Ok(())
}

/// The service that a body names, whether it can be used or not.
pub(crate) fn target(cx: &Context<'_>, body: &Value) -> Result<Target, ArmError> {
    let reference = first_connection(body)["properties"]["privateLinkServiceId"]
        .as_str()
        .unwrap_or_default();
    if !reference.starts_with('/') {
        let service = link_service::by_alias(cx, reference).map(|service| service.id.clone());
        return Ok(Target {
            reference: reference.to_owned(),
            service: Some(service.ok_or_else(invalid)?),
        });
    }
    let found = cx.state.store.find(reference).ok_or_else(invalid)?;
    let service = Some(found.id.clone()).filter(|_| found.resource_type == link_service::TYPE);
    Ok(Target {
        reference: found.id.to_string(),
        service,
    })
}

fn invalid() -> ArmError {
    ArmError::service(400, "InvalidPrivateLinkServiceId", "Invalid private link service id.")
}

/// The same, and it can be connected to by this endpoint now.
fn usable(cx: &Context<'_>, id: &ResourceId, body: &Value) -> Result<Target, ArmError> {
    let automatic = !items(&body["properties"][AUTOMATIC]).is_empty();
    let reference = first_connection(body)["properties"]["privateLinkServiceId"]
        .as_str()
        .unwrap_or_default();
    let by_alias = !reference.starts_with('/');
    if by_alias && automatic {
        let message =
            format!("Private endpoint {id} can use an alias only in manual private link service connections.");
        return refuse("PrivateEndpointAliasWithoutManualConnectionNotSupported", message);
    }
    if !by_alias {
        referenced(cx, id, reference)?;
    }
    let target = target(cx, body)?;
    let Some(service) = target.service.as_ref().and_then(|service| cx.state.store.get(service)) else {
        return Ok(target);
    };
    let same_subscription = service.id.subscription().eq_ignore_ascii_case(id.subscription());
    let hidden = if by_alias {
        !link_service::is_visible(cx, service, id.subscription())
    } else {
        !same_subscription && !link_service::lists(service, "visibility", id.subscription())
    };
    if hidden {
        return Err(invalid());
    }
    if !link_service::is_provisioned(service) {
        must_be_provisioned(cx, service, service.state, id)?;
    }
    Ok(target)
}

fn quotas(cx: &Context<'_>, id: &ResourceId, subnet: &ResourceId, target: &Target) -> Result<(), ArmError> {
    let quotas = cx.state.quotas(id.subscription());
    let limit = |limit: usize, of: String| {
        let message = format!("Cannot create more than {limit} private endpoints {of}.");
        refuse("PrivateEndpointLimitReached", message)
    };
    if let Ok(here) = ResourceId::parse(&format!("/subscriptions/{}", id.subscription()))
        && cx.state.store.of_type(&here, TYPE).count() >= quotas.endpoints
    {
        return limit(quotas.endpoints, "for this subscription".to_owned());
    }
    let vnet = subnet::vnet_id(subnet);
    let subnets = cx.state.store.of_type(&vnet, subnet::TYPE);
    let in_vnet: usize = subnets.map(|found| referring(cx, &found.id, TYPE).count()).sum();
    if in_vnet >= quotas.endpoints_per_vnet {
        return limit(quotas.endpoints_per_vnet, format!("in virtual network {vnet}"));
    }
    if let Some(service) = &target.service {
        let most = cx.state.quotas(service.subscription()).endpoints_per_pls;
        if connection::of(cx, service).count() >= most {
            return limit(most, format!("for private link service {service}"));
        }
    }
    Ok(())
}
