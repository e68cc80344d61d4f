//! What the objects of Cluster API on Azure (CAPZ) mean for private endpoints. Pure.
//!
//! Each cluster is an AzureCluster: one is the management cluster's, all others are workload clusters'. CAPZ makes a
//! Private Link Service from each item of `privateLinks`, and a private endpoint from each entry of a subnet's
//! `privateEndpoints`. These entries are what role `capz` decides on.

pub mod address;
pub mod assignments;
pub mod cluster;
pub mod condition;
pub mod dropped;
pub mod entry;
pub mod gates;
pub mod gateway;
pub mod identity;
pub mod ledger;
pub mod links;
pub mod patch;
pub mod provider_config;
pub mod reason;
#[cfg(test)]
pub(crate) mod samples;
pub mod served_links;
pub mod status;
