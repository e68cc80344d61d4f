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
mod load_balancer_rules;
pub(crate) mod location;
pub(crate) mod nic;
mod nic_rules;
mod part;
mod parts;
mod plain;
mod precondition;
mod public_address;
mod reference;
mod route_table;
mod security_group;
mod settable;
mod shape;
mod subnet;
mod subnet_rules;
mod view;
mod vnet;
mod write;
mod written;
mod zone_group;
mod zone_group_rules;

use crate::engine::kind::Kind;

/// The types, those that others refer to first.
pub(crate) static KINDS: &[&dyn Kind] = &[
    &plain::APPLICATION_SECURITY_GROUPS,
    &security_group::SecurityGroups,
    &parts::SECURITY_RULES,
    &parts::DEFAULT_SECURITY_RULES,
    &route_table::RouteTables,
    &parts::ROUTES,
    &public_address::PublicAddresses,
    &plain::NAT_GATEWAYS,
    &vnet::VirtualNetworks,
    &subnet::Subnets,
    &load_balancer::LoadBalancers,
    &parts::FRONTENDS,
    &parts::BACKEND_POOLS,
    &parts::LOAD_BALANCING_RULES,
    &parts::PROBES,
    &parts::OUTBOUND_RULES,
    &parts::INBOUND_NAT_RULES,
    &nic::NetworkInterfaces,
    &parts::IP_CONFIGURATIONS,
    &link_service::PrivateLinkServices,
    &endpoint::PrivateEndpoints,
    &connection::Connections,
    &location::Locations,
    &view::ADDRESS_AVAILABILITY,
    &view::USAGES,
    &view::BALANCED_INTERFACES,
    &view::INTERFACE_BALANCERS,
    &view::AUTO_APPROVED_SERVICES,
    &view::ENDPOINT_TYPES,
];

/// Those that refer to private DNS, which comes between.
pub(crate) static KINDS_OVER_DNS: &[&dyn Kind] = &[&zone_group::ZoneGroups];
