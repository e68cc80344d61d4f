//! Crossplane's ProviderConfig for Azure: as whom its provider calls Azure for one cluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::ClusterResourceScope;
use serde::Deserialize;

use crate::api::lenient::or_default;

/// A configuration of Crossplane's provider.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct ProviderConfig {
    /// Standard metadata of Kubernetes.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// How it should be.
    #[serde(default, deserialize_with = "or_default")]
    pub spec: ProviderConfigSpec,
}

resource!(
    ProviderConfig,
    "azure.upbound.io",
    "v1beta1",
    "providerconfigs",
    ClusterResourceScope
);

/// What is read of a ProviderConfig's spec.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderConfigSpec {
    /// Where the credentials are.
    #[serde(deserialize_with = "or_default")]
    pub credentials: ProviderCredentials,
    /// The client id.
    #[serde(rename = "clientID", deserialize_with = "or_default")]
    pub client_id: String,
    /// The subscription.
    #[serde(rename = "subscriptionID", deserialize_with = "or_default")]
    pub subscription_id: String,
    /// The tenant.
    #[serde(rename = "tenantID", deserialize_with = "or_default")]
    pub tenant_id: String,
}

/// `spec.credentials`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ProviderCredentials {
    /// Of which kind they are.
    #[serde(deserialize_with = "or_default")]
    pub source: String,
}
