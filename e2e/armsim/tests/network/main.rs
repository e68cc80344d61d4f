//! Microsoft.Network, type by type.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod elsewhere;
mod endpoint;
mod endpoint_drift;
mod endpoint_refusals;
mod every_type;
mod link_service;
mod link_service_refusals;
mod load_balancer;
#[path = "../network_support/mod.rs"]
mod network_support;
mod nic;
mod pages;
mod security_group;
mod subnet;
mod visibility;
mod vnet;
mod zone_group;
