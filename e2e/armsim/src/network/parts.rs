//! The lists of parts that have paths of their own.

use crate::engine::preset::Pace;

use super::load_balancer::LoadBalancers;
use super::nic::NetworkInterfaces;
use super::part::Part;
use super::route_table::RouteTables;
use super::security_group::SecurityGroups;
use super::written::{About, Written};

const fn part(parent: &'static dyn Written, resource_type: &'static str, noun: &'static str) -> Part {
    Part {
        parent,
        about: About {
            resource_type,
            first_version: "2015-05-01-preview",
            noun,
            create: Pace::new(3.0, 3),
            update: Pace::new(3.0, 3),
            delete: Pace::new(10.0, 10),
        },
        writable: false,
    }
}

const fn writable(mut part: Part) -> Part {
    part.writable = true;
    part
}

pub(crate) static SECURITY_RULES: Part = writable(part(
    &SecurityGroups,
    "Microsoft.Network/networkSecurityGroups/securityRules",
    "SecurityRule",
));
pub(crate) static DEFAULT_SECURITY_RULES: Part = part(
    &SecurityGroups,
    "Microsoft.Network/networkSecurityGroups/defaultSecurityRules",
    "DefaultSecurityRule",
);
pub(crate) static ROUTES: Part = writable(part(&RouteTables, "Microsoft.Network/routeTables/routes", "Route"));
pub(crate) static FRONTENDS: Part = part(
    &LoadBalancers,
    "Microsoft.Network/loadBalancers/frontendIPConfigurations",
    "FrontendIPConfiguration",
);
pub(crate) static BACKEND_POOLS: Part = writable(part(
    &LoadBalancers,
    "Microsoft.Network/loadBalancers/backendAddressPools",
    "BackendAddressPool",
));
pub(crate) static LOAD_BALANCING_RULES: Part = part(
    &LoadBalancers,
    "Microsoft.Network/loadBalancers/loadBalancingRules",
    "LoadBalancingRule",
);
pub(crate) static PROBES: Part = part(&LoadBalancers, "Microsoft.Network/loadBalancers/probes", "Probe");
pub(crate) static OUTBOUND_RULES: Part = part(
    &LoadBalancers,
    "Microsoft.Network/loadBalancers/outboundRules",
    "OutboundRule",
);
pub(crate) static INBOUND_NAT_RULES: Part = writable(part(
    &LoadBalancers,
    "Microsoft.Network/loadBalancers/inboundNatRules",
    "InboundNatRule",
));
pub(crate) static IP_CONFIGURATIONS: Part = part(
    &NetworkInterfaces,
    "Microsoft.Network/networkInterfaces/ipConfigurations",
    "NetworkInterfaceIPConfiguration",
);
