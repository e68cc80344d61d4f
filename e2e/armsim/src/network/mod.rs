//! Microsoft.Network without private DNS.

mod address;
pub(crate) mod connection;
pub(crate) mod endpoint;
mod endpoint_body;
mod endpoint_rules;
mod group_names;
mod link_service;
mod link_service_rules;
mod load_balancer;
pub(crate) mod nic;
mod plain;
mod subnet;
mod subnet_rules;
mod vnet;
mod write;
mod zone_group;
mod zone_group_rules;

use crate::engine::kind::Kind;

/// The types, those that others refer to first.
pub(crate) static KINDS: &[&dyn Kind] = &[
    &plain::Plain("Microsoft.Network/networkSecurityGroups"),
    &plain::Plain("Microsoft.Network/routeTables"),
    &plain::Plain("Microsoft.Network/natGateways"),
    &plain::Plain("Microsoft.Network/publicIPAddresses"),
    &vnet::VirtualNetworks,
    &subnet::Subnets,
    &load_balancer::LoadBalancers,
    &load_balancer::Frontends,
    &nic::NetworkInterfaces,
    &link_service::PrivateLinkServices,
    &endpoint::PrivateEndpoints,
    &connection::Connections,
];

/// Those that refer to private DNS, which comes between.
pub(crate) static KINDS_OVER_DNS: &[&dyn Kind] = &[&zone_group::ZoneGroups];
