//! What a role is about to make, recorded on the custom resource before the first write. Pure.
//!
//! Deletion needs nothing else: objects that it once came from may be gone.

use serde::{Deserialize, Serialize};

use super::identity::Identity;

/// What the HO role records.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The Private Link Service, unless it was found to be somebody else's.
    #[serde(rename = "privateLinkServiceID", default, skip_serializing_if = "Option::is_none")]
    pub link_service: Option<String>,
    /// The service's `resourceGuid`, where nothing on the service itself tells for good that it is ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_guid: Option<String>,
    /// The frontend that the service forwards to.
    #[serde(rename = "frontendID")]
    pub frontend: String,
    /// The NAT subnet of our name, if it is used or was.
    #[serde(rename = "natSubnetID", default, skip_serializing_if = "Option::is_none")]
    pub nat_subnet: Option<String>,
    /// Whether this role made the NAT subnet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nat_subnet_made: bool,
}

impl HoIntent {
    /// The cluster that it was recorded for.
    pub fn identity(&self) -> Identity {
        Identity {
            name: self.cluster.clone(),
            cluster_id: self.cluster_id.clone(),
            infra_id: self.infra_id.clone(),
        }
    }

    /// Nothing but the cluster.
    pub fn of(identity: &Identity) -> Self {
        Self {
            cluster: identity.name.clone(),
            cluster_id: identity.cluster_id.clone(),
            infra_id: identity.infra_id.clone(),
            ..Self::default()
        }
    }
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
}

/// Reads an intent from its annotation; a damaged one counts as none.
pub fn read<T: for<'a> Deserialize<'a>>(annotation: Option<&String>) -> Option<T> {
    serde_json::from_str(annotation?).ok()
}

/// Writes an intent for its annotation.
pub fn write<T: Serialize>(intent: &T) -> String {
    serde_json::to_string(intent).unwrap_or_default()
}
