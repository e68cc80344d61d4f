//! A cluster that Cluster API makes on Azure, a management cluster or a workload cluster: its Kubernetes objects, and
//! what CAPZ has made for it in Azure before any private link. The rest of CAPZ's part is in
//! [`crate::capz_controllers`].

mod creation;
mod links;
mod names;
mod objects;
mod state;

use serde_json::{Value, json};

pub use self::links::PrivateLink;
pub use self::names::BASE_DOMAIN;
pub(crate) use self::objects::AZURE_CLUSTER;
pub use self::state::entries;
pub(crate) use self::state::{api, resource};
use crate::capz_env::{
    CERTIFICATE_CLIENT, FEDERATED_CLIENT, LOCATION, MANAGED_CLIENT, MANAGEMENT, SECRET_CLIENT, WORKLOAD,
};

/// The subnet of the nodes. Private endpoints and NAT addresses lie in it, as Giant Swarm has it.
pub const NODE_SUBNET: &str = "node-subnet";
/// The subnet of the control plane.
pub const CONTROL_PLANE_SUBNET: &str = "control-plane-subnet";
/// The annotation of the management cluster that records the private endpoints whose entries were removed.
pub const DROPPED_ENDPOINTS: &str = "hyperlink.hypershift.openshift.io/capz-dropped-endpoints";

/// How the API server of a cluster is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadBalancer {
    /// By a private address alone.
    Internal,
    /// By a public address.
    Public,
}

/// The type of the identity of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentityType {
    /// Tokens of a ServiceAccount.
    WorkloadIdentity,
    /// A managed identity.
    UserAssignedMsi,
    /// A client secret.
    ServicePrincipal,
    /// A certificate.
    ServicePrincipalCertificate,
}

impl IdentityType {
    fn as_str(self) -> &'static str {
        match self {
            Self::WorkloadIdentity => "WorkloadIdentity",
            Self::UserAssignedMsi => "UserAssignedMSI",
            Self::ServicePrincipal => "ServicePrincipal",
            Self::ServicePrincipalCertificate => "ServicePrincipalCertificate",
        }
    }

    /// The client id of the identity of this type in the simulated Azure.
    pub fn client_id(self) -> &'static str {
        match self {
            Self::WorkloadIdentity => FEDERATED_CLIENT,
            Self::UserAssignedMsi => MANAGED_CLIENT,
            Self::ServicePrincipal => SECRET_CLIENT,
            Self::ServicePrincipalCertificate => CERTIFICATE_CLIENT,
        }
    }
}

/// A cluster on Azure. All names derive from its name, so that one environment can hold many.
#[derive(Clone, Debug)]
pub struct CapzCluster {
    namespace: String,
    name: String,
    load_balancer: LoadBalancer,
    subscription: String,
    resource_group: String,
    location: String,
    links: Vec<PrivateLink>,
    identity: IdentityType,
    /// The cluster whose AzureClusterIdentity it uses.
    identity_of: String,
    azure_cluster_patch: Value,
    identity_patch: Value,
    cluster_patch: Value,
    control_plane_patch: Value,
}

impl CapzCluster {
    /// A management cluster in [`MANAGEMENT`], with a workload identity and no links.
    pub fn management(namespace: &str, name: &str, load_balancer: LoadBalancer) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            load_balancer,
            subscription: MANAGEMENT.to_owned(),
            resource_group: name.to_owned(),
            location: LOCATION.to_owned(),
            links: Vec::new(),
            identity: IdentityType::WorkloadIdentity,
            identity_of: name.to_owned(),
            azure_cluster_patch: json!({}),
            identity_patch: json!({}),
            cluster_patch: json!({}),
            control_plane_patch: json!({}),
        }
    }

    /// A workload cluster in [`WORKLOAD`], with a workload identity. A private one has one link,
    /// `NAME-api-privatelink`, which approves [`MANAGEMENT`].
    pub fn workload(namespace: &str, name: &str, load_balancer: LoadBalancer) -> Self {
        let this = Self::management(namespace, name, load_balancer).in_subscription(WORKLOAD);
        match load_balancer {
            LoadBalancer::Internal => this.with_links(1),
            LoadBalancer::Public => this,
        }
    }

    /// Uses the identity of another cluster of its namespace, which exists already.
    #[must_use]
    pub fn with_identity_of(mut self, other: &Self) -> Self {
        self.identity = other.identity;
        self.identity_of = other.name.clone();
        self
    }

    /// Lies in another subscription.
    #[must_use]
    pub fn in_subscription(mut self, id: &str) -> Self {
        self.subscription = id.to_owned();
        self
    }

    /// Has another resource group than one of its own name.
    #[must_use]
    pub fn in_resource_group(mut self, name: &str) -> Self {
        self.resource_group = name.to_owned();
        self
    }

    /// Lies in another region.
    #[must_use]
    pub fn in_location(mut self, location: &str) -> Self {
        self.location = location.to_owned();
        self
    }

    /// Has this many links, which approve [`MANAGEMENT`]: `NAME-api-privatelink`, `NAME-2-privatelink` and so on. A
    /// load balancer takes eight at most.
    #[must_use]
    pub fn with_links(mut self, count: usize) -> Self {
        let names = (1..=count).map(|number| match number {
            1 => format!("{}-api-privatelink", self.name),
            _ => format!("{}-{number}-privatelink", self.name),
        });
        self.links = names.map(|name| PrivateLink::new(&name)).collect();
        self
    }

    /// Has these links and no others.
    #[must_use]
    pub fn with_private_links(mut self, links: &[PrivateLink]) -> Self {
        self.links = links.to_vec();
        self
    }

    /// Has an identity of this type.
    #[must_use]
    pub fn with_identity_type(mut self, identity: IdentityType) -> Self {
        self.identity = identity;
        self
    }

    /// Applies this merge patch (RFC 7396) to the AzureCluster before it is created.
    #[must_use]
    pub fn with_azure_cluster(mut self, patch: Value) -> Self {
        self.azure_cluster_patch = patch;
        self
    }

    /// Applies this merge patch (RFC 7396) to the AzureClusterIdentity before it is created.
    #[must_use]
    pub fn with_identity(mut self, patch: Value) -> Self {
        self.identity_patch = patch;
        self
    }

    /// Applies this merge patch (RFC 7396) to the Cluster before it is created.
    #[must_use]
    pub fn with_cluster(mut self, patch: Value) -> Self {
        self.cluster_patch = patch;
        self
    }

    /// Applies this merge patch (RFC 7396) to the KubeadmControlPlane before it is created.
    #[must_use]
    pub fn with_control_plane(mut self, patch: Value) -> Self {
        self.control_plane_patch = patch;
        self
    }

    /// The namespace of its objects.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The name of its Cluster, AzureCluster, AzureClusterIdentity and KubeadmControlPlane.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its subscription.
    pub fn subscription(&self) -> &str {
        &self.subscription
    }

    /// Its region.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// How its API server is published.
    pub fn load_balancer(&self) -> LoadBalancer {
        self.load_balancer
    }

    /// Its links.
    pub fn links(&self) -> &[PrivateLink] {
        &self.links
    }
}
