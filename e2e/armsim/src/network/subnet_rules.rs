//! What Azure refuses of a write to a subnet: prefixes, references, network policies, a busy VNet, a subnet in use.

use ipnet::IpNet;
use serde_json::Value;

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::kind::Call;
use crate::engine::seed::VnetBusy;

use super::address;
use super::subnet::{LINKS, TYPE, owners, vnet_id};
use super::write;

/// Refuses a second write to a VNet while one is running.
pub(crate) fn vnet_is_free(cx: &Context<'_>, call: &Call<'_>, vnet: &ResourceId) -> Result<(), ArmError> {
    let network = cx
        .state
        .store
        .get(vnet)
        .into_iter()
        .chain(cx.state.store.of_type(vnet, TYPE));
    let Some(running) = network.filter_map(|resource| cx.running_on(resource)).next() else {
        return Ok(());
    };
    match cx.state.switches.vnet_busy {
        VnetBusy::Conflict => Err(write::another_operation(call, running)),
        VnetBusy::Retryable => {
            let message = format!(
                "Operation on resource {} is blocked by operation {} ({}) in progress on resource {}.",
                call.id, running.name, running.id, running.target
            );
            Err(write::retryable("RetryableErrorDueToAnotherOperation", message))
        }
    }
}

/// An endpoint or link service on its way in the subnet stops writes to it.
pub(crate) fn users_are_settled(cx: &Context<'_>, subnet: &ResourceId) -> Result<(), ArmError> {
    for field in ["privateEndpoint", "privateLinkService"] {
        for owner in owners(cx, subnet, field) {
            let Some(user) = cx.state.store.find(&owner) else {
                continue;
            };
            if !user.is_settled() {
                write::must_be_provisioned(cx, user, user.state, subnet)?;
            }
        }
    }
    Ok(())
}

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
    Err(ArmError::service(400, "InUseSubnetCannotBeDeleted", message))
}

/// The same for all subnets of a VNet that is to go, or that a PUT leaves out.
pub(crate) fn may_go(cx: &Context<'_>, subnets: &[ResourceId]) -> Result<(), ArmError> {
    subnets.iter().try_for_each(|subnet| not_in_use(cx, subnet))
}

/// Form, place in the VNet and overlap of the prefixes; a prefix in use stays.
pub(crate) fn check_prefixes(cx: &Context<'_>, id: &ResourceId, body: &Value) -> Result<(), ArmError> {
    let vnet = vnet_id(id);
    let given = prefixes_of(id, &body["properties"])?;
    let space = cx
        .state
        .store
        .get(&vnet)
        .map(|vnet| vnet.property("addressSpace").clone())
        .unwrap_or_default();
    let space: Vec<IpNet> = address::prefixes(&space)
        .iter()
        .filter_map(|prefix| prefix.parse().ok())
        .collect();
    let (name, network) = (id.name(), vnet.name());
    if !given.iter().all(|net| space.iter().any(|space| space.contains(net))) {
        let message = format!("Subnet '{name}' is not valid in virtual network '{network}'.");
        return Err(ArmError::service(400, "NetcfgInvalidSubnet", message));
    }
    no_overlap(cx, id, &given)?;
    let stranded = address::users(cx, id)
        .any(|(address, _)| !given.iter().any(|net| net.contains(&std::net::IpAddr::V4(*address))));
    if stranded {
        let old = cx
            .state
            .store
            .get(id)
            .map(|known| address::prefixes(&known.body["properties"]).join(","))
            .unwrap_or_default();
        let message = format!("IpPrefix {old} on Subnet {name} has active allocations and cannot be deleted.");
        return Err(ArmError::service(400, "InUsePrefixCannotBeDeleted", message));
    }
    Ok(())
}

/// Prefixes of one VNet are apart.
fn no_overlap(cx: &Context<'_>, id: &ResourceId, given: &[IpNet]) -> Result<(), ArmError> {
    let vnet = vnet_id(id);
    let (name, network) = (id.name(), vnet.name());
    for other in cx
        .state
        .store
        .of_type(&vnet, TYPE)
        .filter(|other| !other.id.is(id.as_str()))
    {
        let others = address::prefixes(&other.body["properties"])
            .into_iter()
            .filter_map(|prefix| prefix.parse::<IpNet>().ok());
        for theirs in others {
            if given.iter().any(|net| net.contains(&theirs) || theirs.contains(net)) {
                let message = format!(
                    "Subnet '{name}' is not valid because its IP address range overlaps with that of an existing subnet in \
                     virtual network '{network}'."
                );
                return Err(ArmError::service(400, "NetcfgSubnetRangesOverlap", message));
            }
        }
    }
    Ok(())
}

fn prefixes_of(id: &ResourceId, properties: &Value) -> Result<Vec<IpNet>, ArmError> {
    let given = address::prefixes(properties);
    if given.is_empty() {
        let message = format!("Subnet {} must have at least one address prefix.", id.name());
        return Err(ArmError::service(
            400,
            "AddressPrefixStringCannotBeNullOrEmpty",
            message,
        ));
    }
    let mut nets = Vec::new();
    for prefix in given {
        let Ok(net) = prefix.parse::<IpNet>() else {
            let message = format!(
                "Address prefix {prefix} of resource {id} is not formatted correctly. It should follow CIDR notation, for \
                 example 10.0.0.0/24."
            );
            return Err(ArmError::service(400, "InvalidAddressPrefixFormat", message));
        };
        if net.trunc() != net {
            let message = format!(
                "The address prefix {prefix} in resource {id} has an invalid CIDR notation. For the given prefix length, the \
                 address prefix should be {}.",
                net.trunc()
            );
            return Err(ArmError::service(400, "InvalidCIDRNotation", message));
        }
        if matches!(net, IpNet::V4(_)) && net.prefix_len() > 29 {
            let message = format!(
                "Subnet '{}' is not valid in virtual network '{}'.",
                id.name(),
                vnet_id(id).name()
            );
            return Err(ArmError::service(400, "NetcfgInvalidSubnet", message));
        }
        nets.push(net);
    }
    Ok(nets)
}

pub(crate) fn check_references(cx: &Context<'_>, id: &ResourceId, body: &Value) -> Result<(), ArmError> {
    for (field, _) in LINKS {
        if let Some(reference) = body["properties"][field]["id"].as_str() {
            write::referenced(cx, id, reference)?;
        }
    }
    Ok(())
}

/// Policies cannot be switched on where endpoints or link services live.
pub(crate) fn check_policies(cx: &Context<'_>, id: &ResourceId, body: &Value) -> Result<(), ArmError> {
    for (field, owner, code, what) in [
        (
            "privateEndpointNetworkPolicies",
            "privateEndpoint",
            "PrivateEndpointNetworkPoliciesCannotBeEnabledOnPrivateEndpointSubnet",
            "Private endpoint",
        ),
        (
            "privateLinkServiceNetworkPolicies",
            "privateLinkService",
            "PrivateLinkServiceNetworkPoliciesCannotBeEnabledOnPrivateLinkServiceSubnet",
            "Private link service",
        ),
    ] {
        let enabled = |body: &Value| {
            body["properties"][field]
                .as_str()
                .is_some_and(|policy| policy.eq_ignore_ascii_case("Enabled"))
        };
        let already = cx.state.store.get(id).is_some_and(|known| enabled(&known.body));
        if enabled(body) && !already && !owners(cx, id, owner).is_empty() {
            let message = format!(
                "{what} network policies cannot be enabled on subnet {id} because it is used by {}.",
                owners(cx, id, owner).join(", ")
            );
            return Err(ArmError::service(400, code, message));
        }
    }
    Ok(())
}
