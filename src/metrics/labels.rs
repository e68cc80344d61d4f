//! The label values that Hyperlink chooses itself. Those of ARM kinds, error classes, roles and conditions are defined
//! with these.

/// A controller, which runs reconciles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Controller {
    /// Role `cpo`: creates AzurePrivateLinkServices from Services.
    Observer,
    /// Role `ho`: NAT subnet and Private Link Service.
    PrivateLinkService,
    /// Role `ho`: conditions of custom resources, aggregated on their HostedCluster.
    HostedCluster,
    /// Role `cpo`: Private Endpoint and private DNS.
    PrivateEndpoint,
}

impl Controller {
    /// Every controller there is.
    pub const ALL: [Controller; 4] = [
        Controller::Observer,
        Controller::PrivateLinkService,
        Controller::HostedCluster,
        Controller::PrivateEndpoint,
    ];

    /// The metric label, and the word in logs.
    pub fn label(self) -> &'static str {
        match self {
            Controller::Observer => "observer",
            Controller::PrivateLinkService => "private_link_service",
            Controller::HostedCluster => "hosted_cluster",
            Controller::PrivateEndpoint => "private_endpoint",
        }
    }
}

/// The result of a reconcile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReconcileResult {
    /// Everything is as desired.
    Ready,
    /// Something was requested and does not exist yet. No error.
    Waiting,
    /// Something must not be changed, or the object asks for what is not possible.
    Refused,
    /// A call failed.
    Failed,
    /// The reconcile panicked; the code that catches the panic counts it.
    Panicked,
    /// The reconcile was dropped before its end: the process stops or no longer leads.
    Aborted,
}

impl ReconcileResult {
    /// Every result of a reconcile.
    pub const ALL: [ReconcileResult; 6] = [
        ReconcileResult::Ready,
        ReconcileResult::Waiting,
        ReconcileResult::Refused,
        ReconcileResult::Failed,
        ReconcileResult::Panicked,
        ReconcileResult::Aborted,
    ];

    /// The metric label.
    pub fn label(self) -> &'static str {
        match self {
            ReconcileResult::Ready => "ready",
            ReconcileResult::Waiting => "waiting",
            ReconcileResult::Refused => "refused",
            ReconcileResult::Failed => "failed",
            ReconcileResult::Panicked => "panicked",
            ReconcileResult::Aborted => "aborted",
        }
    }
}

/// A resource that is written in Kubernetes, leases aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KubeResource {
    /// `azureprivatelinkservices`: spec, finalizers, annotations.
    PrivateLinkService,
    /// `azureprivatelinkservices/status`: status of the custom resource.
    LinkServiceStatus,
    /// `hostedclusters/status`: aggregated conditions.
    HostedClusterStatus,
    /// `hostedcontrolplanes`: their finalizers.
    HostedControlPlane,
    /// `services`: external Services.
    Service,
    /// `events`: what people should know.
    Event,
}

impl KubeResource {
    /// Every resource that is written.
    pub const ALL: [KubeResource; 6] = [
        KubeResource::PrivateLinkService,
        KubeResource::LinkServiceStatus,
        KubeResource::HostedClusterStatus,
        KubeResource::HostedControlPlane,
        KubeResource::Service,
        KubeResource::Event,
    ];

    /// The metric label: the resource as in a role's rules.
    pub fn label(self) -> &'static str {
        match self {
            KubeResource::PrivateLinkService => "azureprivatelinkservices",
            KubeResource::LinkServiceStatus => "azureprivatelinkservices/status",
            KubeResource::HostedClusterStatus => "hostedclusters/status",
            KubeResource::HostedControlPlane => "hostedcontrolplanes",
            KubeResource::Service => "services",
            KubeResource::Event => "events",
        }
    }
}

/// A resource that is watched in Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Watched {
    /// The custom resources.
    PrivateLinkService,
    /// The HostedClusters themselves.
    HostedCluster,
    /// Their control planes.
    HostedControlPlane,
    /// The Services that publish them.
    Service,
}

impl Watched {
    /// Everything that is watched.
    pub const ALL: [Watched; 4] = [
        Watched::PrivateLinkService,
        Watched::HostedCluster,
        Watched::HostedControlPlane,
        Watched::Service,
    ];

    /// The metric label, and the word in logs: the resource as in a role's rules.
    pub fn label(self) -> &'static str {
        match self {
            Watched::PrivateLinkService => "azureprivatelinkservices",
            Watched::HostedCluster => "hostedclusters",
            Watched::HostedControlPlane => "hostedcontrolplanes",
            Watched::Service => "services",
        }
    }
}

/// The verb of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KubeVerb {
    /// POST, which creates.
    Create,
    /// PATCH of any kind, server-side apply included.
    Patch,
    /// DELETE, which deletes.
    Delete,
}

impl KubeVerb {
    /// Every verb of a write.
    pub const ALL: [KubeVerb; 3] = [KubeVerb::Create, KubeVerb::Patch, KubeVerb::Delete];

    /// The metric label: the verb as in a role's rules.
    pub fn label(self) -> &'static str {
        match self {
            KubeVerb::Create => "create",
            KubeVerb::Patch => "patch",
            KubeVerb::Delete => "delete",
        }
    }
}
