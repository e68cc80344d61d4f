//! Lists that are worked out of other resources when somebody reads them.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde_json::{Value, json};

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::kind::{Call, Kind, Reply};
use crate::engine::page;
use crate::engine::registry;
use crate::engine::resource::Resource;

use super::address;
use super::link_service;
use super::load_balancer;
use super::nic;
use super::shape::{id_of, items, region, region_of};
use super::subnet;

/// One such list, read below a scope.
pub(crate) struct View {
    resource_type: &'static str,
    first_version: &'static str,
    read: fn(&Context<'_>, &Call<'_>) -> Result<Reply, ArmError>,
}

impl Kind for View {
    fn resource_type(&self) -> &'static str {
        self.resource_type
    }

    fn first_version(&self) -> &'static str {
        self.first_version
    }

    fn list(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        (self.read)(cx, call)
    }

    fn install(&self, _cx: &mut Context<'_>, _id: &ResourceId, _body: Value) -> Result<(), ArmError> {
        Err(ArmError::invalid_content("this is only a view of other resources"))
    }
}

/// Whether an address of a VNet is free; if not, up to five that are.
pub(crate) static ADDRESS_AVAILABILITY: View = View {
    resource_type: "Microsoft.Network/virtualNetworks/checkIPAddressAvailability",
    first_version: "2015-06-15",
    read: address_availability,
};

/// How full the subnets of a VNet are.
pub(crate) static USAGES: View = View {
    resource_type: "Microsoft.Network/virtualNetworks/usages",
    first_version: "2017-03-01",
    read: usages,
};

/// The network interfaces in the pools of a load balancer.
pub(crate) static BALANCED_INTERFACES: View = View {
    resource_type: "Microsoft.Network/loadBalancers/networkInterfaces",
    first_version: "2017-06-01",
    read: |cx, call| {
        let members = cx.state.store.referring_below(&call.id);
        listed(cx, call, members.filter(|member| member.resource_type == nic::TYPE))
    },
};

/// The load balancers in whose pools a network interface is.
pub(crate) static INTERFACE_BALANCERS: View = View {
    resource_type: "Microsoft.Network/networkInterfaces/loadBalancers",
    first_version: "2017-06-01",
    read: interface_balancers,
};

/// The private link services in a region that approve a subscription by themselves.
pub(crate) static AUTO_APPROVED_SERVICES: View = View {
    resource_type: "Microsoft.Network/locations/autoApprovedPrivateLinkServices",
    first_version: "2019-07-01",
    read: auto_approved_services,
};

/// What private endpoints can be for: here, private link services only.
pub(crate) static ENDPOINT_TYPES: View = View {
    resource_type: "Microsoft.Network/locations/availablePrivateEndpointTypes",
    first_version: "2019-04-01",
    read: |_cx, call| {
        let name = link_service::TYPE.replace('/', ".");
        let here = format!(
            "/subscriptions/{}/providers/Microsoft.Network/AvailablePrivateEndpointTypes/{name}",
            call.id.subscription()
        );
        let only = json!({
            "name": name,
            "id": here,
            "type": "Microsoft.Network/AvailablePrivateEndpointTypes",
            "resourceName": link_service::TYPE,
            "displayName": link_service::TYPE,
        });
        page::page(call, vec![(name, only)], 1000, |shown| shown)
    },
};

/// Resources as a list shows them, each once.
fn listed<'a>(cx: &Context<'_>, call: &Call<'_>, found: impl Iterator<Item = &'a Resource>) -> Result<Reply, ArmError> {
    let found: BTreeMap<String, &Resource> = found.map(|found| (found.id.key(), found)).collect();
    page::page(
        call,
        found.into_iter().collect(),
        cx.state.switches.network_page_rows,
        |found| registry::kind(&found.resource_type).map_or(Value::Null, |kind| kind.render(cx, found)),
    )
}

fn address_availability(cx: &Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
    let given = call.parameter("ipAddress").unwrap_or_default();
    let asked: Ipv4Addr = given.parse().map_err(|_| {
        let message = format!("The IP address '{given}' is not a valid IPv4 address.");
        ArmError::service(400, "InvalidIPAddressFormat", message)
    })?;
    let subnets: Vec<&Resource> = cx.state.store.of_type(&call.id, subnet::TYPE).collect();
    let home = subnets
        .iter()
        .find(|subnet| address::nets(subnet).iter().any(|net| net.contains(&asked)));
    let Some(home) = home else {
        let message = format!("The IP address {asked} is in no subnet of virtual network {}.", call.id);
        return Err(ArmError::service(400, "PrivateIPAddressNotInAnySubnet", message));
    };
    let reserved = address::is_reserved(home, asked);
    let available = !reserved && !address::users(cx, &home.id).any(|(used, _)| *used == asked);
    let mut shown = json!({ "available": available, "isPlatformReserved": reserved });
    if !available {
        let free: Vec<String> = address::free(cx, home).take(5).map(|free| free.to_string()).collect();
        shown["availableIPAddresses"] = json!(free);
    }
    Ok(Reply::new(200).body(shown))
}

fn usages(cx: &Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
    let subnets = cx.state.store.of_type(&call.id, subnet::TYPE).map(|subnet| {
        let shown = json!({
            "currentValue": address::users(cx, &subnet.id).count(),
            "id": subnet.id,
            "limit": address::capacity(subnet),
            "name": { "localizedValue": "Subnet size and usage", "value": "SubnetSpace" },
            "unit": "Count",
        });
        (subnet.id.key(), shown)
    });
    page::page(call, subnets.collect(), cx.state.switches.network_page_rows, |shown| {
        shown
    })
}

fn interface_balancers(cx: &Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
    let interface = cx.find(&call.id)?;
    let configurations = items(interface.property(nic::CONFIGURATIONS)).iter();
    let lists = configurations.flat_map(|item| [nic::LISTS[0], nic::LISTS[1]].map(|list| &item["properties"][list]));
    let parts = lists.flat_map(items).filter_map(id_of);
    let balancers = parts.filter_map(|part| cx.state.store.get(&ResourceId::parse(part).ok()?.parent()?));
    listed(
        cx,
        call,
        balancers.filter(|found| found.resource_type == load_balancer::TYPE),
    )
}

fn auto_approved_services(cx: &Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
    let (here, subscription) = (region(call.id.name()), call.id.subscription());
    let services = cx.state.store.all_of_type(link_service::TYPE);
    let services = services.filter(|service| {
        region_of(&service.body) == here
            && link_service::lists(service, "autoApproval", subscription)
            && link_service::is_visible(cx, service, subscription)
    });
    let shown = services.map(|service| (service.id.key(), json!({ "privateLinkService": service.id })));
    page::page(call, shown.collect(), cx.state.switches.network_page_rows, |shown| {
        shown
    })
}
