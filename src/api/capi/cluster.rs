//! The Cluster of Cluster API: which objects of which kinds make up a cluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::NamespaceResourceScope;
use serde::Deserialize;

use crate::api::lenient::or_default;

/// A cluster, of which the references and the pause are read.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Cluster {
    /// Standard metadata of Kubernetes.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// How it should be.
    #[serde(default, deserialize_with = "or_default")]
    pub spec: ClusterSpec,
}

resource!(
    Cluster,
    "cluster.x-k8s.io",
    super::version::version(),
    "clusters",
    NamespaceResourceScope
);

/// What is read of a Cluster's spec.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterSpec {
    /// Whether somebody has paused it.
    #[serde(deserialize_with = "or_default")]
    pub paused: bool,
    /// What it is made of in a cloud; absent means nothing yet.
    #[serde(deserialize_with = "or_default")]
    pub infrastructure_ref: Option<ObjectRef>,
    /// What its control plane is; absent means nothing yet.
    #[serde(deserialize_with = "or_default")]
    pub control_plane_ref: Option<ObjectRef>,
}

/// A reference to an object in the cluster's namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ObjectRef {
    /// The kind.
    #[serde(deserialize_with = "or_default")]
    pub kind: String,
    /// The name.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
}
