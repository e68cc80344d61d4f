//! The KubeadmControlPlane of Cluster API: the machines of a cluster's control plane.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::NamespaceResourceScope;
use serde::Deserialize;

use crate::api::lenient::or_default;

/// A control plane, of which it is read whether it is initialized.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct KubeadmControlPlane {
    /// Standard metadata of Kubernetes.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// How it is.
    #[serde(default, deserialize_with = "or_default")]
    pub status: KubeadmControlPlaneStatus,
}

resource!(
    KubeadmControlPlane,
    "controlplane.cluster.x-k8s.io",
    super::version::version(),
    "kubeadmcontrolplanes",
    NamespaceResourceScope
);

/// What is read of a KubeadmControlPlane's status.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct KubeadmControlPlaneStatus {
    /// How far its creation has come, in v1beta2.
    #[serde(deserialize_with = "or_default")]
    pub initialization: Initialization,
    /// Whether its API server has answered, in v1beta1.
    #[serde(deserialize_with = "or_default")]
    pub initialized: bool,
}

impl KubeadmControlPlaneStatus {
    /// Whether its API server has answered.
    pub fn is_initialized(&self) -> bool {
        self.initialized || self.initialization.control_plane_initialized
    }
}

/// `status.initialization`: how far the creation of a control plane has come.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Initialization {
    /// Whether its API server has answered.
    #[serde(deserialize_with = "or_default")]
    pub control_plane_initialized: bool,
}
