//! What each role records on an AzurePrivateLinkService.

use serde::{Deserialize, Serialize};

use crate::hypershift::identity::Identity;

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
    /// The aliases of the Private Endpoint when it was observed as owned; the last one is the one that it is about to
    /// have.
    #[serde(rename = "privateLinkServiceAliases", default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// What is there or about to be created under our names, unless it was found to be somebody else's.
    #[serde(rename = "resourceIDs", default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
}
