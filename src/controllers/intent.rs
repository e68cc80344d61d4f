//! What a role is about to make, recorded on the custom resource before the first write. Pure.
//!
//! Deletion needs nothing else: objects that it once came from may be gone.

use kube::ResourceExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::api::{AzurePrivateLinkService, Role};

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

/// The guarded merge patch that records an intent together with the role's finalizer, unless both stand.
pub fn patch(cr: &AzurePrivateLinkService, role: Role, intent: &str) -> Option<Value> {
    let (finalizer, annotation) = (role.finalizer(), role.intent_annotation());
    let held = cr.finalizers().iter().any(|f| f == finalizer);
    if held && cr.annotations().get(annotation).is_some_and(|stands| stands == intent) {
        return None;
    }
    let mut finalizers = cr.finalizers().to_vec();
    if !held && cr.metadata.deletion_timestamp.is_none() {
        finalizers.push(finalizer.to_owned());
    }
    Some(
        json!({"metadata": {"resourceVersion": cr.metadata.resource_version, "finalizers": finalizers,
        "annotations": {annotation: intent}}}),
    )
}

/// The guarded merge patch that takes the role's finalizer and intent away.
pub fn release_patch(cr: &AzurePrivateLinkService, role: Role) -> Value {
    let finalizers: Vec<&String> = cr.finalizers().iter().filter(|f| *f != role.finalizer()).collect();
    json!({"metadata": {"resourceVersion": cr.metadata.resource_version, "finalizers": finalizers,
        "annotations": {role.intent_annotation(): null}}})
}
