//! The AzureClusterIdentity of Cluster API's Azure provider (CAPZ): as whom Azure is called for clusters, and which
//! namespaces may use that.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube::core::NamespaceResourceScope;
use serde::Deserialize;

use crate::api::lenient::or_default;

/// An identity for clusters.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct AzureClusterIdentity {
    /// Standard metadata of Kubernetes.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Which identity it is.
    #[serde(default, deserialize_with = "or_default")]
    pub spec: AzureClusterIdentitySpec,
}

resource!(
    AzureClusterIdentity,
    "infrastructure.cluster.x-k8s.io",
    "v1beta1",
    "azureclusteridentities",
    NamespaceResourceScope
);

/// What is read of an AzureClusterIdentity's spec.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AzureClusterIdentitySpec {
    /// How the identity is proven.
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub kind: Option<IdentityType>,
    /// The tenant, by its id or domain.
    #[serde(rename = "tenantID", deserialize_with = "or_default")]
    pub tenant_id: Option<String>,
    /// The client id.
    #[serde(rename = "clientID", deserialize_with = "or_default")]
    pub client_id: Option<String>,
    /// The Secret with what proves it.
    #[serde(deserialize_with = "or_default")]
    pub client_secret: SecretRef,
    /// A certificate in the Pod of CAPZ.
    #[serde(deserialize_with = "or_default")]
    pub cert_path: Option<String>,
    /// The namespaces that may use it; absent means none.
    #[serde(deserialize_with = "or_default")]
    pub allowed_namespaces: Option<AllowedNamespaces>,
}

/// `spec.type`: how an identity is proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
pub enum IdentityType {
    /// A token of the Pod that the tenant trusts.
    WorkloadIdentity,
    /// A managed identity of the machine.
    #[serde(rename = "UserAssignedMSI")]
    UserAssignedMsi,
    /// A client secret.
    ServicePrincipal,
    /// A client secret that somebody else renews.
    ManualServicePrincipal,
    /// A certificate.
    ServicePrincipalCertificate,
    /// Any other.
    #[serde(other)]
    Other,
}

impl IdentityType {
    /// Every type.
    pub const ALL: [Self; 6] = [
        Self::WorkloadIdentity,
        Self::UserAssignedMsi,
        Self::ServicePrincipal,
        Self::ManualServicePrincipal,
        Self::ServicePrincipalCertificate,
        Self::Other,
    ];

    /// The text in `spec.type`; of any other `other`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WorkloadIdentity => "WorkloadIdentity",
            Self::UserAssignedMsi => "UserAssignedMSI",
            Self::ServicePrincipal => "ServicePrincipal",
            Self::ManualServicePrincipal => "ManualServicePrincipal",
            Self::ServicePrincipalCertificate => "ServicePrincipalCertificate",
            Self::Other => "other",
        }
    }
}

/// `spec.clientSecret`: a Secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct SecretRef {
    /// Its name.
    #[serde(deserialize_with = "or_default")]
    pub name: Option<String>,
    /// Its namespace; absent means that of the identity.
    #[serde(deserialize_with = "or_default")]
    pub namespace: Option<String>,
}

/// `spec.allowedNamespaces`: the namespaces that may use an identity. Without both fields: all.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct AllowedNamespaces {
    /// By their names.
    #[serde(rename = "list", deserialize_with = "or_default")]
    pub names: Option<Vec<String>>,
    /// By their labels. An empty selector matches nothing.
    #[serde(deserialize_with = "or_default")]
    pub selector: Option<LabelSelector>,
}
