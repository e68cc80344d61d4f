//! Private DNS: zones, their links to VNets, record sets.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../dns_support/mod.rs"]
mod dns_support;
mod link_refusals;
mod links;
mod records;
mod zone_deletion;
mod zones;
