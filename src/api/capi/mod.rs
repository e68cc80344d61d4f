//! Kinds of Cluster API, and the one by which Crossplane works for its clusters, as far as they are read.
//!
//! Read-only views: they cannot be serialised, so that a part is never written back as the whole. A field of an
//! unexpected shape counts as absent.

/// The type by which an object of Cluster API is known to Kubernetes.
macro_rules! resource {
    ($name:ident, $group:literal, $version:expr, $plural:literal, $scope:ty) => {
        impl kube::Resource for $name {
            type DynamicType = ();
            type Scope = $scope;

            fn kind(_: &()) -> std::borrow::Cow<'_, str> {
                stringify!($name).into()
            }
            fn group(_: &()) -> std::borrow::Cow<'_, str> {
                $group.into()
            }
            fn version(_: &()) -> std::borrow::Cow<'_, str> {
                $version.into()
            }
            fn plural(_: &()) -> std::borrow::Cow<'_, str> {
                $plural.into()
            }
            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }
            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

mod azure_cluster;
mod azure_cluster_identity;
mod cluster;
mod kubeadm_control_plane;
mod managed_control_plane;
mod provider_config;
pub mod version;

pub use azure_cluster::{
    ApiServerLoadBalancer, AzureCluster, AzureClusterSpec, AzureClusterStatus, Conditions, Connection, Entries, Entry,
    IdentityRef, NetworkSpec, PrivateLink, Subnet,
};
pub use azure_cluster_identity::{
    AllowedNamespaces, AzureClusterIdentity, AzureClusterIdentitySpec, IdentityType, SecretRef,
};
pub use cluster::{Cluster, ClusterSpec, ObjectRef};
pub use kubeadm_control_plane::{Initialization, KubeadmControlPlane, KubeadmControlPlaneStatus};
pub use managed_control_plane::{
    AsoMetadata, AsoResource, AzureASOManagedControlPlane, AzureASOManagedControlPlaneSpec, AzureManagedControlPlane,
    AzureManagedControlPlaneSpec,
};
pub use provider_config::{ProviderConfig, ProviderConfigSpec, ProviderCredentials};

use serde::Deserialize;

use super::lenient::or_default;

/// A condition of Cluster API's v1beta1 contract: with a severity, and without the generation that it is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CapiCondition {
    /// What it is about.
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    #[serde(deserialize_with = "or_default")]
    pub status: String,
    /// `Error`, `Warning` or `Info` of a condition that is False.
    #[serde(deserialize_with = "or_default")]
    pub severity: String,
    /// One word for the cause.
    #[serde(deserialize_with = "or_default")]
    pub reason: String,
    /// The text for people.
    #[serde(deserialize_with = "or_default")]
    pub message: String,
    /// When the status changed last, in RFC 3339.
    #[serde(deserialize_with = "or_default")]
    pub last_transition_time: String,
}

impl CapiCondition {
    /// Whether it is True.
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }
}
