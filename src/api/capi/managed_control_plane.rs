//! The control planes that Azure manages (AKS), in both of CAPZ's forms: which identity and subscription they are made
//! with.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::NamespaceResourceScope;
use serde::Deserialize;

use super::IdentityRef;
use crate::api::lenient::{or_default, positioned_items};

/// A control plane whose fields CAPZ has.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct AzureManagedControlPlane {
    /// Standard metadata of Kubernetes.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// How it should be.
    #[serde(default, deserialize_with = "or_default")]
    pub spec: AzureManagedControlPlaneSpec,
}

resource!(
    AzureManagedControlPlane,
    "infrastructure.cluster.x-k8s.io",
    "v1beta1",
    "azuremanagedcontrolplanes",
    NamespaceResourceScope
);

/// What is read of its spec.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AzureManagedControlPlaneSpec {
    /// As whom Azure is called for it.
    #[serde(deserialize_with = "or_default")]
    pub identity_ref: Option<IdentityRef>,
    /// Its subscription.
    #[serde(rename = "subscriptionID", deserialize_with = "or_default")]
    pub subscription_id: Option<String>,
}

/// A control plane made of objects of the Azure Service Operator.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct AzureASOManagedControlPlane {
    /// Standard metadata of Kubernetes.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// How it should be.
    #[serde(default, deserialize_with = "or_default")]
    pub spec: AzureASOManagedControlPlaneSpec,
}

resource!(
    AzureASOManagedControlPlane,
    "infrastructure.cluster.x-k8s.io",
    "v1beta1",
    "azureasomanagedcontrolplanes",
    NamespaceResourceScope
);

/// What is read of its spec.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct AzureASOManagedControlPlaneSpec {
    /// The objects that it is made of.
    #[serde(deserialize_with = "positioned_items")]
    pub resources: Vec<AsoResource>,
}

/// `spec.resources[]`: an object of the Azure Service Operator.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct AsoResource {
    /// Its metadata.
    #[serde(deserialize_with = "or_default")]
    pub metadata: AsoMetadata,
}

/// `spec.resources[].metadata`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct AsoMetadata {
    /// Its annotations.
    #[serde(deserialize_with = "or_default")]
    pub annotations: BTreeMap<String, String>,
}
