//! HyperShift's own kinds, as far as they are read.
//!
//! Read-only views: they cannot be serialised, so that a part is never written back as the whole. A field of an
//! unexpected shape counts as absent.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::NamespaceResourceScope;
use serde::Deserialize;

use super::lenient::{good_items, or_default};

mod aws;
mod node_pool;

pub use aws::{AwsPlatform, CloudProviderConfig, EndpointAccess, RolesRef, SharedVpc, SharedVpcRoles};
pub use node_pool::{NodePoolPlatform, NodePoolSpec, NodeSubnet, NodesOnAws};

/// A kind of `hypershift.openshift.io/v1beta1` of which `spec` is read.
macro_rules! read_only_kind {
    ($(#[$doc:meta])* $name:ident, $plural:literal, $spec:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, Deserialize)]
        pub struct $name {
            /// Standard metadata of Kubernetes.
            #[serde(default)]
            pub metadata: ObjectMeta,
            /// The fields that are read.
            #[serde(default, deserialize_with = "or_default")]
            pub spec: $spec,
        }

        impl kube::Resource for $name {
            type DynamicType = ();
            type Scope = NamespaceResourceScope;

            fn kind(_: &()) -> Cow<'_, str> {
                stringify!($name).into()
            }
            fn group(_: &()) -> Cow<'_, str> {
                "hypershift.openshift.io".into()
            }
            fn version(_: &()) -> Cow<'_, str> {
                "v1beta1".into()
            }
            fn plural(_: &()) -> Cow<'_, str> {
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

read_only_kind!(
    /// The cluster as its owner describes it, in the owner's namespace.
    HostedCluster,
    "hostedclusters",
    ClusterSpec
);
read_only_kind!(
    /// The control plane of a HostedCluster, in a namespace of its own.
    HostedControlPlane,
    "hostedcontrolplanes",
    ClusterSpec
);
read_only_kind!(
    /// Workers of a HostedCluster, in its namespace.
    NodePool,
    "nodepools",
    NodePoolSpec
);

/// What is read of a HostedCluster's and a HostedControlPlane's spec.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterSpec {
    /// The cluster's UUID.
    #[serde(rename = "clusterID", deserialize_with = "or_default")]
    pub cluster_id: Option<String>,
    /// The name that the cluster's cloud resources derive from.
    #[serde(rename = "infraID", deserialize_with = "or_default")]
    pub infra_id: Option<String>,
    /// How long the cluster is paused, see [`super::Paused`].
    #[serde(deserialize_with = "or_default")]
    pub paused_until: Option<String>,
    /// The cluster's domain.
    #[serde(deserialize_with = "or_default")]
    pub dns: Dns,
    /// How the control plane's services are published.
    #[serde(deserialize_with = "good_items")]
    pub services: Vec<PublishedService>,
    /// Where the cluster runs.
    #[serde(deserialize_with = "or_default")]
    pub platform: Platform,
    /// The cluster's networks.
    #[serde(deserialize_with = "or_default")]
    pub networking: Networking,
}

/// `spec.networking`: the cluster's networks.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Networking {
    /// The networks that the workers are in.
    #[serde(deserialize_with = "good_items")]
    pub machine_network: Vec<MachineNetwork>,
}

/// `spec.networking.machineNetwork[]`: one network of the workers.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineNetwork {
    /// Its addresses, in CIDR notation.
    #[serde(deserialize_with = "or_default")]
    pub cidr: Option<String>,
}

/// `spec.dns`: the cluster's domain.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Dns {
    /// The cluster's base domain.
    #[serde(deserialize_with = "or_default")]
    pub base_domain: Option<String>,
    /// The part before the base domain in the cluster's own domain. Absent means the cluster's name. May be empty.
    #[serde(deserialize_with = "or_default")]
    pub base_domain_prefix: Option<String>,
}

/// `spec.services[]`: one service of the control plane.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PublishedService {
    /// Which service: `APIServer`, `OAuthServer`, …
    #[serde(deserialize_with = "or_default")]
    pub service: Option<String>,
    /// How it is published.
    #[serde(deserialize_with = "or_default")]
    pub service_publishing_strategy: PublishingStrategy,
}

impl PublishedService {
    /// The host name of the service, and how it is published there; `None` without a host name.
    pub fn host(&self) -> Option<(PublishingType, &str)> {
        let strategy = &self.service_publishing_strategy;
        let kind = strategy.kind?;
        let host = match kind {
            PublishingType::Route => &strategy.route,
            PublishingType::LoadBalancer => &strategy.load_balancer,
            PublishingType::Other => return None,
        };
        let name = host.hostname.as_deref().filter(|name| !name.is_empty())?;
        Some((kind, name))
    }
}

/// `spec.services[].servicePublishingStrategy`: how a service is published.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PublishingStrategy {
    /// How the service is published.
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub kind: Option<PublishingType>,
    /// The host, for [`PublishingType::Route`].
    #[serde(deserialize_with = "or_default")]
    pub route: PublishedHost,
    /// The host, for [`PublishingType::LoadBalancer`].
    #[serde(deserialize_with = "or_default")]
    pub load_balancer: PublishedHost,
}

/// The public name of a published service.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PublishedHost {
    /// A DNS name.
    #[serde(deserialize_with = "or_default")]
    pub hostname: Option<String>,
}

/// `spec.services[].servicePublishingStrategy.type`: the means of publishing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum PublishingType {
    /// Through the router.
    Route,
    /// With a load balancer of its own.
    LoadBalancer,
    /// Any other means.
    #[serde(other)]
    Other,
}

/// `spec.platform`: where the cluster runs.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Platform {
    /// Which platform it is.
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub kind: Option<PlatformType>,
    /// The details, for [`PlatformType::Azure`].
    #[serde(deserialize_with = "or_default")]
    pub azure: Option<AzurePlatform>,
    /// The details, for [`PlatformType::Aws`].
    #[serde(deserialize_with = "or_default")]
    pub aws: Option<AwsPlatform>,
}

/// `spec.platform.type`: the kind of platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum PlatformType {
    /// The Azure platform.
    Azure,
    /// The AWS platform.
    #[serde(rename = "AWS")]
    Aws,
    /// Any other platform.
    #[serde(other)]
    Other,
}

/// `spec.platform.azure`: the cluster's place in Azure.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AzurePlatform {
    /// `AzurePublicCloud`, `AzureUSGovernmentCloud`, …; absent means public.
    #[serde(deserialize_with = "or_default")]
    pub cloud: Option<String>,
    /// The guest's region.
    #[serde(deserialize_with = "or_default")]
    pub location: Option<String>,
    /// The guest's resource group.
    #[serde(deserialize_with = "or_default")]
    pub resource_group: Option<String>,
    /// The guest's subscription.
    #[serde(rename = "subscriptionID", deserialize_with = "or_default")]
    pub subscription_id: Option<String>,
    /// ARM id of the guest's VNet.
    #[serde(rename = "vnetID", deserialize_with = "or_default")]
    pub vnet_id: Option<String>,
    /// ARM id of the guest's subnet.
    #[serde(rename = "subnetID", deserialize_with = "or_default")]
    pub subnet_id: Option<String>,
    /// How the API server is reached; absent means [`Topology::Public`].
    #[serde(deserialize_with = "or_default")]
    pub topology: Option<Topology>,
    /// Set when the topology is not public.
    #[serde(deserialize_with = "or_default")]
    pub private: Option<PrivateAccess>,
}

/// The cloud of a cluster that names none.
pub const PUBLIC_CLOUD: &str = "AzurePublicCloud";

impl AzurePlatform {
    /// How the cluster is private; `None` if the spec does not have it.
    pub fn private_type(&self) -> Option<PrivateType> {
        self.private.as_ref()?.kind
    }

    /// The name of the cluster's cloud.
    pub fn cloud_name(&self) -> &str {
        self.cloud
            .as_deref()
            .filter(|name| !name.is_empty())
            .unwrap_or(PUBLIC_CLOUD)
    }
}

impl ClusterSpec {
    /// The Azure part of the spec, if the cluster is on Azure.
    pub fn azure(&self) -> Option<&AzurePlatform> {
        let azure = self.platform.azure.as_ref();
        azure.filter(|_| self.platform.kind == Some(PlatformType::Azure))
    }

    /// The AWS part of the spec, if the cluster is on AWS.
    pub fn aws(&self) -> Option<&AwsPlatform> {
        let aws = self.platform.aws.as_ref();
        aws.filter(|_| self.platform.kind == Some(PlatformType::Aws))
    }
}

/// `spec.platform.azure.topology`: from where the API server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Topology {
    /// From the internet only.
    Public,
    /// From the internet and the guest's VNet.
    PublicAndPrivate,
    /// From the guest's VNet only.
    Private,
    /// Any value that Hyperlink does not know.
    #[serde(other)]
    Other,
}

/// `spec.platform.azure.private`: private access to the cluster.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PrivateAccess {
    /// How the cluster is private.
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub kind: Option<PrivateType>,
    /// The details, for [`PrivateType::PrivateLink`].
    #[serde(deserialize_with = "or_default")]
    pub private_link: PrivateLink,
}

/// `spec.platform.azure.private.type`: the kind of private access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum PrivateType {
    /// Azure Private Link.
    PrivateLink,
    /// Swift, or a value that Hyperlink does not know: Hyperlink does not serve the cluster.
    #[serde(other)]
    Other,
}

/// `spec.platform.azure.private.privateLink`: settings of Private Link.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PrivateLink {
    /// ARM id of the subnet for the Private Link Service. If absent, one is created.
    #[serde(rename = "natSubnetID", deserialize_with = "or_default")]
    pub nat_subnet_id: Option<String>,
    /// Subscriptions that may connect besides the guest's own.
    #[serde(deserialize_with = "good_items")]
    pub additional_allowed_subscriptions: Vec<String>,
}

#[cfg(test)]
mod tests;
