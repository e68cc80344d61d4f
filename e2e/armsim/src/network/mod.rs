//! Microsoft.Network without private DNS.

mod address;
pub(crate) mod connection;
pub(crate) mod endpoint;
mod endpoint_body;
mod endpoint_rules;
mod link_service;
mod link_service_rules;
mod load_balancer;
pub(crate) mod nic;
mod plain;
mod subnet;
mod subnet_rules;
mod vnet;
mod write;

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
