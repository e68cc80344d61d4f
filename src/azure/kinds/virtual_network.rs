//! The virtual network: only read, for its subnets and its address space.

use super::{KindSpec, NETWORK, NETWORK_API, Rules};

/// What generic code has to know of virtual networks.
pub const SPEC: KindSpec = KindSpec {
    label: "virtual_network",
    provider: NETWORK,
    path: &["virtualNetworks"],
    api_version: NETWORK_API,
    service: NETWORK,
    rules: Rules {
        shared: true,
        ..Rules::DEFAULT
    },
    ..KindSpec::DEFAULT
};
