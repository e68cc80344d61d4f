//! What Azure refuses of a network interface: who manages it, its subnet, what it refers to.
//!
//! `NetworkInterfaceIsManagedByAnotherResource`, `NetworkInterface...Required`, `...NotSupported` and
//! `...CannotBeChanged` are the simulator's: Azure's own codes are not documented.

use serde_json::Value;

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::kind::LinkedScope;
use crate::engine::resource::Resource;

use super::nic::{CONFIGURATIONS, LISTS};
use super::reference::{missing, usable};
use super::shape::{by_name, id_of, items};
use super::subnet;
use super::written::Put;

fn refuse<T>(code: &str, message: String) -> Result<T, ArmError> {
    Err(ArmError::service(400, code, message))
}

/// What a caller must be allowed to join to put this interface.
pub(crate) fn joins(properties: &Value) -> Vec<LinkedScope> {
    let scope = |reference: &Value, action: &'static str| {
        let id = id_of(reference)?.to_owned();
        Some(LinkedScope { id, action })
    };
    let group = "Microsoft.Network/networkSecurityGroups/join/action";
    let mut links: Vec<LinkedScope> = scope(&properties["networkSecurityGroup"], group).into_iter().collect();
    for item in items(&properties[CONFIGURATIONS]) {
        let from = &item["properties"];
        links.extend(scope(
            &from["subnet"],
            "Microsoft.Network/virtualNetworks/subnets/join/action",
        ));
        links.extend(scope(
            &from["publicIPAddress"],
            "Microsoft.Network/publicIPAddresses/join/action",
        ));
        for (list, action) in [
            (
                LISTS[0],
                "Microsoft.Network/loadBalancers/backendAddressPools/join/action",
            ),
            (LISTS[1], "Microsoft.Network/loadBalancers/inboundNatRules/join/action"),
        ] {
            links.extend(items(&from[list]).iter().filter_map(|pool| scope(pool, action)));
        }
    }
    links
}

/// Refuses a change of the interface of an endpoint or link service: it is created and deleted with that.
pub(crate) fn not_managed(found: &Resource) -> Result<(), ArmError> {
    let Some(owner) = found.body["managedBy"].as_str() else {
        return Ok(());
    };
    let id = &found.id;
    if found.property("privateEndpoint").is_object() {
        let message =
            format!("Network interface {id} is attached to private endpoint {owner}. It can not be modified by user.");
        return refuse("CannotModifyNicAttachedToPrivateEndpoint", message);
    }
    let message = format!("Network interface {id} is managed by {owner} and cannot be changed by itself.");
    refuse("NetworkInterfaceIsManagedByAnotherResource", message)
}

/// Every rule for a PUT, in the order in which they are checked.
pub(crate) fn check(cx: &Context<'_>, put: &Put<'_>, configurations: &[(&str, &Value)]) -> Result<(), ArmError> {
    let id = put.id;
    if configurations.is_empty() {
        let message = format!("Network interface {id} must have one or more IP configurations.");
        return refuse("NetworkInterfaceIpConfigurationRequired", message);
    }
    let known = cx.state.store.get(id);
    let group = &put.given["properties"]["networkSecurityGroup"];
    if let Some(group) = id_of(group)
        .filter(|group| known.and_then(|known| id_of(known.property("networkSecurityGroup"))) != Some(group))
    {
        usable(cx, id, group, put.location)?;
    }
    let old = known.map(|known| &known.property(CONFIGURATIONS)[0]);
    let mut vnet = old.and_then(vnet_of);
    for (name, item) in configurations {
        let given = &item["properties"];
        in_subnet(cx, put, given)?;
        let here = vnet_of(item);
        match (&vnet, &here) {
            (Some(vnet), Some(here)) if !vnet.is(here.as_str()) => {
                let message = format!("IP configurations of network interface {id} must stay in one virtual network.");
                return refuse("NetworkInterfaceVirtualNetworkCannotBeChanged", message);
            }
            (None, _) => vnet = here,
            _ => {}
        }
        for list in LISTS {
            let before = known.and_then(|known| by_name(known.property(CONFIGURATIONS), name));
            let before = before.map(|before| &before["properties"][list]);
            items(&given[list])
                .iter()
                .filter_map(id_of)
                .try_for_each(|reference| named(cx, put, reference, before))?;
        }
        if let Some(public) = id_of(&given["publicIPAddress"]) {
            free_public_address(cx, put, public)?;
        }
    }
    Ok(())
}

fn vnet_of(configuration: &Value) -> Option<ResourceId> {
    let subnet = ResourceId::parse(id_of(&configuration["properties"]["subnet"])?).ok()?;
    Some(subnet::vnet_id(&subnet))
}

fn in_subnet(cx: &Context<'_>, put: &Put<'_>, given: &Value) -> Result<(), ArmError> {
    let Some(reference) = id_of(&given["subnet"]) else {
        let message = format!("An IP configuration of network interface {} needs a subnet.", put.id);
        return refuse("NetworkInterfaceSubnetRequired", message);
    };
    let found = subnet::usable(cx, put, reference)?;
    if subnet::is_delegated(found) {
        let message = format!(
            "Network interface {} cannot be in subnet {} since it is delegated.",
            put.id, found.id
        );
        return refuse("NetworkInterfaceInDelegatedSubnetNotSupported", message);
    }
    Ok(())
}

/// A pool or rule is a part of a load balancer, which is there and provisioned; an application security group stands alone.
fn named(cx: &Context<'_>, put: &Put<'_>, reference: &str, before: Option<&Value>) -> Result<(), ArmError> {
    let same = |item: &Value| id_of(item).is_some_and(|old| old.eq_ignore_ascii_case(reference));
    if before.is_some_and(|before| items(before).iter().any(same)) {
        return Ok(());
    }
    if cx.state.store.find(reference).is_some() {
        return usable(cx, put.id, reference, put.location).map(|_| ());
    }
    let parsed = ResourceId::parse(reference).map_err(|_| missing(put.id, reference))?;
    let parent = parsed.parent().and_then(|parent| cx.state.store.get(&parent));
    let parent = parent.filter(|parent| {
        let list = reference.rsplit('/').nth(1).unwrap_or_default();
        let fields = parent.body["properties"].as_object();
        let list = fields.and_then(|fields| fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(list)));
        list.is_some_and(|(_, list)| by_name(list, parsed.name()).is_some())
    });
    let parent = parent.ok_or_else(|| missing(put.id, reference))?;
    usable(cx, put.id, parent.id.as_str(), put.location).map(|_| ())
}

/// A public address belongs to one IP configuration.
fn free_public_address(cx: &Context<'_>, put: &Put<'_>, reference: &str) -> Result<(), ArmError> {
    let found = usable(cx, put.id, reference, put.location)?;
    let other = cx
        .state
        .store
        .referring(&found.id)
        .find(|user| !user.id.is(put.id.as_str()));
    let Some(other) = other else { return Ok(()) };
    let message = format!(
        "Resource {} is referencing public IP address {} that is already allocated to resource {}.",
        put.id, found.id, other.id
    );
    refuse("PublicIPAddressInUse", message)
}
