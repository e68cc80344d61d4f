//! Private addresses: which subnet owns which prefix, and who has which address. Five of each subnet are Azure's.

use std::net::Ipv4Addr;

use ipnet::{IpNet, Ipv4Net};
use serde_json::Value;

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::resource::Resource;

use super::write::items;

/// The prefixes of a subnet's or VNet's properties, whichever of the two fields holds them.
pub(crate) fn prefixes(properties: &Value) -> Vec<&str> {
    let one = properties["addressPrefix"].as_str();
    let many = items(&properties["addressPrefixes"])
        .iter()
        .filter_map(Value::as_str);
    one.into_iter().chain(many).collect()
}

/// The IPv4 prefixes among them.
fn nets(subnet: &Resource) -> Vec<Ipv4Net> {
    let parsed = prefixes(&subnet.body["properties"])
        .into_iter()
        .filter_map(|prefix| prefix.parse().ok());
    parsed
        .filter_map(|net| {
            if let IpNet::V4(net) = net {
                Some(net)
            } else {
                None
            }
        })
        .collect()
}

/// Azure keeps the first four addresses and the last one.
fn usable(net: &Ipv4Net) -> impl Iterator<Item = Ipv4Addr> + use<> {
    let first = u32::from(net.network()).saturating_add(4);
    (first..u32::from(net.broadcast())).map(Ipv4Addr::from)
}

/// Who has an address of a subnet.
pub(crate) fn users<'a>(
    cx: &'a Context<'_>,
    subnet: &ResourceId,
) -> impl Iterator<Item = (&'a Ipv4Addr, &'a String)> {
    cx.state.addresses.get(&subnet.key()).into_iter().flatten()
}

/// The address that `wanted` or chance would give, without taking it; `also` are taken by the same call.
pub(crate) fn choose(
    cx: &Context<'_>,
    subnet: &Resource,
    wanted: Option<&str>,
    also: &[Ipv4Addr],
) -> Result<Ipv4Addr, ArmError> {
    let taken = |address: &Ipv4Addr| {
        also.contains(address)
            || cx
                .state
                .addresses
                .get(&subnet.id.key())
                .is_some_and(|used| used.contains_key(address))
    };
    let nets = nets(subnet);
    let Some(wanted) = wanted else {
        let free = nets.iter().flat_map(usable).find(|address| !taken(address));
        return free.ok_or_else(|| {
            let prefix = prefixes(&subnet.body["properties"]).join(",");
            let message = format!(
                "Subnet {} with address prefix {prefix} does not have enough capacity for 1 IP addresses.",
                subnet.id.name()
            );
            ArmError::service(400, "SubnetIsFull", message)
        });
    };
    let outside = || {
        let message = format!(
            "Private static IP address {wanted} does not belong to the range of subnet prefix {}.",
            prefixes(&subnet.body["properties"]).join(",")
        );
        ArmError::service(400, "PrivateIPAddressNotInSubnet", message)
    };
    let address: Ipv4Addr = wanted.parse().map_err(|_| outside())?;
    let net = nets
        .iter()
        .find(|net| net.contains(&address))
        .ok_or_else(outside)?;
    if !usable(net).any(|usable| usable == address) {
        let message = format!(
            "Private static IP address {wanted} falls within reserved IP range of subnet prefix {net}."
        );
        return Err(ArmError::service(
            400,
            "PrivateIPAddressInReservedRange",
            message,
        ));
    }
    if taken(&address) {
        return Err(ArmError::service(
            400,
            "PrivateIPAddressInUse",
            format!("The IP address {wanted} is in use."),
        ));
    }
    Ok(address)
}

/// Gives an address to the IP configuration with the id `owner`.
pub(crate) fn take(cx: &mut Context<'_>, subnet: &ResourceId, address: Ipv4Addr, owner: String) {
    cx.state
        .addresses
        .entry(subnet.key())
        .or_default()
        .insert(address, owner);
}

/// Frees every address whose owner is `resource` or nested in it.
pub(crate) fn release(cx: &mut Context<'_>, resource: &ResourceId) {
    let owner = format!("{}/", resource.key());
    for used in cx.state.addresses.values_mut() {
        used.retain(|_, by| !by.to_ascii_lowercase().starts_with(&owner));
    }
}
