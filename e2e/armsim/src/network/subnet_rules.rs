//! What Azure refuses of a write to a VNet or subnet: prefixes, references, network policies, a busy VNet, what is in use.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::Value;

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::kind::Call;
use crate::engine::seed::VnetBusy;

use super::address;
use super::endpoint;
use super::link_service;
use super::reference::{self, another_operation, must_be_provisioned, referring, retryable};
use super::shape::id_of;
use super::subnet::{LINKS, TYPE, vnet_id};
use super::written::Put;

fn refuse<T>(code: &str, message: String) -> Result<T, ArmError> {
    Err(ArmError::service(400, code, message))
}

/// Refuses a second write to a VNet while one is running.
pub(crate) fn vnet_is_free(cx: &Context<'_>, call: &Call<'_>, vnet: &ResourceId) -> Result<(), ArmError> {
    let itself = cx.state.store.get(vnet).into_iter();
    let mut network = itself.chain(cx.state.store.of_type(vnet, TYPE));
    let Some(running) = network.find_map(|resource| cx.running_on(resource)) else {
        return Ok(());
    };
    match cx.state.switches.vnet_busy {
        VnetBusy::Conflict => Err(another_operation(call, running)),
        VnetBusy::Retryable => {
            let wait_s = 11 + running.id.bytes().map(u32::from).sum::<u32>() % 4;
            let message = format!(
                "Operation {} ({}) is updating resource {}. The call can be retried in {wait_s} seconds.",
                running.name, running.id, running.target
            );
            let mut refused = retryable("RetryableErrorDueToAnotherOperation", message);
            refused.retry_after = Some(wait_s);
            Err(refused)
        }
    }
}

/// Refuses a write to a subnet while an operation runs on an endpoint or link service in it.
pub(crate) fn users_are_idle(cx: &Context<'_>, subnet: &ResourceId) -> Result<(), ArmError> {
    for user in [endpoint::TYPE, link_service::TYPE]
        .into_iter()
        .flat_map(|user| referring(cx, subnet, user))
    {
        if !user.is_idle() {
            must_be_provisioned(cx, user, user.state, subnet)?;
        }
    }
    Ok(())
}

/// Refuses the deletion of a subnet with addresses in use.
pub(crate) fn not_in_use(cx: &Context<'_>, subnet: &ResourceId) -> Result<(), ArmError> {
    let users: Vec<&str> = address::users(cx, subnet).map(|(_, user)| user.as_str()).collect();
    if users.is_empty() {
        return Ok(());
    }
    let message = format!(
        "Subnet {} is in use by {} and cannot be deleted. In order to delete the subnet, delete all the resources within the \
         subnet. See aka.ms/deletesubnet.",
        subnet.name(),
        users.join(", ")
    );
    refuse("InUseSubnetCannotBeDeleted", message)
}

/// Every rule for a PUT of a subnet, in the order in which they are checked.
pub(crate) fn check(cx: &Context<'_>, put: &Put<'_>, body: &Value) -> Result<(), ArmError> {
    let vnet = vnet_id(put.id);
    let space = cx
        .state
        .store
        .get(&vnet)
        .map(|vnet| vnet.property("addressSpace").clone());
    let space = address::parsed(&space.unwrap_or_default());
    let nets = nets_of(put.id, &body["properties"])?;
    inside(put.id, &nets, &space)?;
    for other in cx
        .state
        .store
        .of_type(&vnet, TYPE)
        .filter(|other| !other.id.is(put.id.as_str()))
    {
        apart(put.id, &nets, &address::parsed(&other.body["properties"]))?;
    }
    check_use(cx, put.id, put.location, body, &nets)
}

/// Every rule for a PUT of a VNet and the subnets that its body holds.
pub(crate) fn check_vnet(
    cx: &Context<'_>,
    put: &Put<'_>,
    body: &Value,
    subnets: &[(ResourceId, Value)],
) -> Result<(), ArmError> {
    let space = nets_of(put.id, &body["properties"]["addressSpace"])?;
    for (at, net) in space.iter().enumerate() {
        if space.iter().take(at).any(|other| overlap(net, other)) {
            let message = format!("Address prefixes of virtual network {} overlap at {net}.", put.id);
            return refuse("VirtualNetworkAddressPrefixesOverlap", message);
        }
    }
    let mut before: Vec<Vec<IpNet>> = Vec::new();
    for (id, body) in subnets {
        let nets = nets_of(id, &body["properties"])?;
        inside(id, &nets, &space)?;
        before.iter().try_for_each(|others| apart(id, &nets, others))?;
        check_use(cx, id, put.location, body, &nets)?;
        before.push(nets);
    }
    Ok(())
}

/// What a subnet refers to, and what refers to it.
fn check_use(cx: &Context<'_>, id: &ResourceId, region: &str, body: &Value, nets: &[IpNet]) -> Result<(), ArmError> {
    let known = cx.state.store.get(id);
    for (field, _) in LINKS {
        let Some(reference) = id_of(&body["properties"][field]) else {
            continue;
        };
        // What it has already may be busy.
        if known.and_then(|known| id_of(known.property(field))) != Some(reference) {
            reference::usable(cx, id, reference, region)?;
        }
    }
    allocations_stay(cx, id, nets)?;
    check_policies(cx, id, body)
}

/// A prefix stays as long as an address of it is in use; by switch it may be replaced by a larger one.
fn allocations_stay(cx: &Context<'_>, id: &ResourceId, nets: &[IpNet]) -> Result<(), ArmError> {
    let Some(known) = cx.state.store.get(id) else {
        return Ok(());
    };
    let may_grow = cx.state.switches.prefix_in_use_can_grow;
    for old in address::parsed(&known.body["properties"]) {
        let used = address::users(cx, id).any(|(address, _)| old.contains(&IpAddr::V4(*address)));
        if used && !nets.iter().any(|net| *net == old || may_grow && net.contains(&old)) {
            let message = format!(
                "IpPrefix {old} on Subnet {} has active allocations and cannot be deleted.",
                id.name()
            );
            return refuse("InUsePrefixCannotBeDeleted", message);
        }
    }
    Ok(())
}

fn inside(id: &ResourceId, nets: &[IpNet], space: &[IpNet]) -> Result<(), ArmError> {
    if nets.iter().all(|net| space.iter().any(|space| space.contains(net))) {
        return Ok(());
    }
    let message = format!(
        "Subnet '{}' is not valid because its IP address range is outside the IP address range of virtual network '{}'.",
        id.name(),
        vnet_id(id).name()
    );
    refuse("NetcfgSubnetRangeOutsideVnet", message)
}

/// Prefixes of one VNet's subnets are apart.
fn apart(id: &ResourceId, nets: &[IpNet], others: &[IpNet]) -> Result<(), ArmError> {
    if !others.iter().any(|theirs| nets.iter().any(|net| overlap(net, theirs))) {
        return Ok(());
    }
    let message = format!(
        "Subnet '{}' is not valid because its IP address range overlaps with that of an existing subnet in virtual network '{}'.",
        id.name(),
        vnet_id(id).name()
    );
    refuse("NetcfgSubnetRangesOverlap", message)
}

fn overlap(one: &IpNet, other: &IpNet) -> bool {
    one.contains(other) || other.contains(one)
}

/// The prefixes of a subnet or address space, each well formed and apart from the ones before it.
fn nets_of(id: &ResourceId, properties: &Value) -> Result<Vec<IpNet>, ArmError> {
    let given = address::prefixes(properties);
    if given.is_empty() {
        let message = format!("Resource {id} must have at least one address prefix.");
        return refuse("AddressPrefixStringCannotBeNullOrEmpty", message);
    }
    let is_subnet = id.parent().is_some();
    let mut nets = Vec::new();
    for prefix in given {
        let Ok(net) = prefix.parse::<IpNet>() else {
            let message = format!(
                "Address prefix {prefix} of resource {id} is not formatted correctly. It should follow CIDR notation, for \
                 example 10.0.0.0/24."
            );
            return refuse("InvalidAddressPrefixFormat", message);
        };
        if net.trunc() != net {
            let message = format!(
                "The address prefix {prefix} in resource {id} has an invalid CIDR notation. For the given prefix length, the \
                 address prefix should be {}.",
                net.trunc()
            );
            return refuse("InvalidCIDRNotation", message);
        }
        if is_subnet && matches!(net, IpNet::V4(_)) && net.prefix_len() > 29 {
            let (name, network) = (id.name(), vnet_id(id));
            let message = format!("Subnet '{name}' is not valid in virtual network '{}'.", network.name());
            return refuse("NetcfgInvalidSubnet", message);
        }
        if is_subnet {
            apart(id, &[net], &nets)?;
        }
        nets.push(net);
    }
    Ok(nets)
}

/// Policies cannot be switched on where endpoints or link services live.
fn check_policies(cx: &Context<'_>, id: &ResourceId, body: &Value) -> Result<(), ArmError> {
    for (field, user, code, what) in [
        (
            "privateEndpointNetworkPolicies",
            endpoint::TYPE,
            "PrivateEndpointNetworkPoliciesCannotBeEnabledOnPrivateEndpointSubnet",
            "Private endpoint",
        ),
        (
            "privateLinkServiceNetworkPolicies",
            link_service::TYPE,
            "PrivateLinkServiceNetworkPoliciesCannotBeEnabledOnPrivateLinkServiceSubnet",
            "Private link service",
        ),
    ] {
        let enabled = |body: &Value| {
            let policy = body["properties"][field].as_str();
            policy.is_some_and(|policy| policy.eq_ignore_ascii_case("Enabled"))
        };
        let already = cx.state.store.get(id).is_some_and(|known| enabled(&known.body));
        if !enabled(body) || already {
            continue;
        }
        let users: Vec<&str> = referring(cx, id, user).map(|user| user.id.as_str()).collect();
        if !users.is_empty() {
            let message = format!(
                "{what} network policies cannot be enabled on subnet {id} because it is used by {}.",
                users.join(", ")
            );
            return refuse(code, message);
        }
    }
    Ok(())
}
