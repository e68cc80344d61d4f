//! Private addresses: which subnet owns which prefix, and who has which address. Five of each subnet are Azure's.

use std::net::Ipv4Addr;

use ipnet::{IpNet, Ipv4Net};
use serde_json::Value;

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::resource::Resource;

use super::shape::{id_of, items};

/// The prefixes of a subnet's properties or a VNet's address space, whichever of the two fields holds them.
pub(crate) fn prefixes(properties: &Value) -> Vec<&str> {
    let one = properties["addressPrefix"].as_str();
    let many = items(&properties["addressPrefixes"]).iter().filter_map(Value::as_str);
    let more = many.filter(|prefix| one != Some(*prefix));
    one.into_iter().chain(more).collect()
}

/// Those that are well formed.
pub(crate) fn parsed(properties: &Value) -> Vec<IpNet> {
    let all = prefixes(properties).into_iter();
    all.filter_map(|prefix| prefix.parse().ok()).collect()
}

/// The IPv4 prefixes of a subnet.
pub(crate) fn nets(subnet: &Resource) -> Vec<Ipv4Net> {
    let parsed = parsed(&subnet.body["properties"]).into_iter();
    parsed
        .filter_map(|net| if let IpNet::V4(net) = net { Some(net) } else { None })
        .collect()
}

/// Azure keeps the first four addresses and the last one.
fn usable(net: &Ipv4Net) -> std::ops::Range<u32> {
    u32::from(net.network()).saturating_add(4)..u32::from(net.broadcast())
}

/// Whether an address of a subnet is one of Azure's.
pub(crate) fn is_reserved(subnet: &Resource, address: Ipv4Addr) -> bool {
    !nets(subnet).iter().any(|net| usable(net).contains(&u32::from(address)))
}

/// How many addresses of a subnet can be given to anybody.
pub(crate) fn capacity(subnet: &Resource) -> usize {
    nets(subnet).iter().map(|net| usable(net).len()).sum()
}

/// Who has an address of a subnet.
pub(crate) fn users<'a>(cx: &'a Context<'_>, subnet: &ResourceId) -> impl Iterator<Item = (&'a Ipv4Addr, &'a String)> {
    cx.state.addresses.get(&subnet.key()).into_iter().flatten()
}

/// The addresses of a subnet that nobody has, lowest first.
pub(crate) fn free(cx: &Context<'_>, subnet: &Resource) -> impl Iterator<Item = Ipv4Addr> {
    let used = cx.state.addresses.get(&subnet.id.key());
    let all = nets(subnet)
        .into_iter()
        .flat_map(|net| usable(&net))
        .map(Ipv4Addr::from);
    all.filter(move |address| !used.is_some_and(|used| used.contains_key(address)))
}

/// The address that `requested` or chance would give, without taking it; `also` are taken by the same call.
pub(crate) fn choose(
    cx: &Context<'_>,
    subnet: &Resource,
    requested: Option<&str>,
    also: &[Ipv4Addr],
) -> Result<Ipv4Addr, ArmError> {
    let refuse = |code: &str, message: String| Err(ArmError::service(400, code, message));
    let prefix = || prefixes(&subnet.body["properties"]).join(",");
    let Some(requested) = requested else {
        if let Some(address) = free(cx, subnet).find(|address| !also.contains(address)) {
            return Ok(address);
        }
        let (name, prefix) = (subnet.id.name(), prefix());
        let message =
            format!("Subnet {name} with address prefix {prefix} does not have enough capacity for 1 IP addresses.");
        return refuse("SubnetIsFull", message);
    };
    let address: Option<Ipv4Addr> = requested.parse().ok();
    let nets = nets(subnet);
    let Some((address, net)) = address.and_then(|address| {
        let net = nets.iter().find(|net| net.contains(&address))?;
        Some((address, net))
    }) else {
        let prefix = prefix();
        let message =
            format!("Private static IP address {requested} does not belong to the range of subnet prefix {prefix}.");
        return refuse("PrivateIPAddressNotInSubnet", message);
    };
    if !usable(net).contains(&u32::from(address)) {
        let message =
            format!("Private static IP address {requested} falls within reserved IP range of subnet prefix {net}.");
        return refuse("PrivateIPAddressInReservedRange", message);
    }
    let used = cx.state.addresses.get(&subnet.id.key());
    if also.contains(&address) || used.is_some_and(|used| used.contains_key(&address)) {
        return refuse(
            "PrivateIPAddressInUse",
            format!("The IP address {requested} is in use."),
        );
    }
    Ok(address)
}

/// An address and the IP configuration that has or gets it.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) subnet: ResourceId,
    pub(crate) address: Ipv4Addr,
    /// The IP configuration's name.
    pub(crate) name: String,
}

/// The address for one IP configuration (`given`) of `owner` in `subnet`: what it had in that subnet stays unless
/// another one is asked for. `claims` are those of the same call.
pub(crate) fn claim(
    cx: &Context<'_>,
    subnet: &Resource,
    name: &str,
    given: &Value,
    before: Option<&Value>,
    claims: &[Claim],
) -> Result<Claim, ArmError> {
    let before = before.map(|before| &before["properties"]);
    let before = before.filter(|before| id_of(&before["subnet"]).is_some_and(|old| subnet.id.is(old)));
    let before = before.and_then(|before| before["privateIPAddress"].as_str());
    let fixed = is_static(given);
    let requested = given["privateIPAddress"].as_str().filter(|address| !address.is_empty());
    // A dynamic address that a client sends back is none that it asks for.
    let requested = if fixed { requested } else { before.or(requested) };
    let address = match requested
        .filter(|requested| before == Some(*requested))
        .and_then(|own| own.parse().ok())
    {
        Some(own) => own,
        None => {
            let here = claims.iter().filter(|claim| claim.subnet.is(subnet.id.as_str()));
            let also: Vec<Ipv4Addr> = here.map(|claim| claim.address).collect();
            choose(cx, subnet, requested, &also)?
        }
    };
    Ok(Claim {
        subnet: subnet.id.clone(),
        address,
        name: name.to_owned(),
    })
}

/// Whether an IP configuration's properties ask for a static address.
pub(crate) fn is_static(properties: &Value) -> bool {
    let method = properties["privateIPAllocationMethod"].as_str();
    method.is_some_and(|method| method.eq_ignore_ascii_case("Static"))
}

/// `Static` or `Dynamic`, of an IP configuration's properties.
pub(crate) fn method(properties: &Value) -> &'static str {
    if is_static(properties) { "Static" } else { "Dynamic" }
}

/// The claims that a list of stored IP configurations stands for.
pub(crate) fn claims_of(configurations: &Value) -> Vec<Claim> {
    let claim = |item: &Value| {
        let properties = &item["properties"];
        Some(Claim {
            subnet: ResourceId::parse(id_of(&properties["subnet"])?).ok()?,
            address: properties["privateIPAddress"].as_str()?.parse().ok()?,
            name: item["name"].as_str()?.to_owned(),
        })
    };
    items(configurations).iter().filter_map(claim).collect()
}

/// Frees the addresses that `owner` had and gives it those that it has now; owners are `OWNER/list/NAME`.
pub(crate) fn settle(cx: &mut Context<'_>, owner: &ResourceId, list: &str, old: &[Claim], new: &[Claim]) {
    for claim in old {
        let Some(used) = cx.state.addresses.get_mut(&claim.subnet.key()) else {
            continue;
        };
        let by = owner.child(list, &claim.name);
        if used.get(&claim.address).is_some_and(|owner| by.is(owner)) {
            used.remove(&claim.address);
        }
    }
    for claim in new {
        let used = cx.state.addresses.entry(claim.subnet.key()).or_default();
        used.insert(claim.address, owner.child(list, &claim.name).to_string());
    }
}
