//! What a role is about to make, recorded on the custom resource before the first write. Pure.
//!
//! Deletion needs nothing else: objects that it once came from may be gone.

use serde::{Deserialize, Serialize};

/// What the HO role records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HoIntent {
    /// The cluster's name.
    pub cluster: String,
    /// `spec.clusterID` of the cluster.
    #[serde(rename = "clusterID")]
    pub cluster_id: String,
    /// `spec.infraID` of the cluster.
    #[serde(rename = "infraID")]
    pub infra_id: String,
    /// The Private Link Service.
    #[serde(rename = "privateLinkServiceID")]
    pub link_service: String,
    /// The frontend that the service forwards to.
    #[serde(rename = "frontendID")]
    pub frontend: String,
    /// The NAT subnet, if this role makes it.
    #[serde(rename = "natSubnetID", default, skip_serializing_if = "Option::is_none")]
    pub nat_subnet: Option<String>,
}

/// What the CPO role records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CpoIntent {
    /// The cluster's name.
    pub cluster: String,
    /// `spec.clusterID` of the cluster.
    #[serde(rename = "clusterID")]
    pub cluster_id: String,
    /// `spec.infraID` of the cluster.
    #[serde(rename = "infraID")]
    pub infra_id: String,
    /// The alias that the endpoint led to when it was last seen as ours, or that it is about to lead to.
    #[serde(rename = "privateLinkServiceAlias", default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
}

/// Reads an intent from its annotation; a damaged one counts as none.
pub fn read<T: for<'a> Deserialize<'a>>(annotation: Option<&String>) -> Option<T> {
    serde_json::from_str(annotation?).ok()
}

/// Writes an intent for its annotation.
pub fn write<T: Serialize>(intent: &T) -> String {
    serde_json::to_string(intent).unwrap_or_default()
}
