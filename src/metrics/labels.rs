//! The label values that Hyperlink chooses itself. Those of ARM kinds, error classes, roles and conditions live with these.

/// What runs passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Controller {
    /// Services become AzurePrivateLinkServices.
    Observer,
    /// The management side: NAT subnet and Private Link Service.
    PrivateLinkService,
    /// Conditions of custom resources, summed up on their HostedCluster.
    HostedCluster,
    /// The guest side: Private Endpoint and private DNS.
    PrivateEndpoint,
}

impl Controller {
    /// Every controller.
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

/// How a pass ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReconcileResult {
    /// All is as wanted.
    Ready,
    /// Something has been asked for and is not there yet. No error.
    Waiting,
    /// Something must not be touched, or the object asks for what cannot be.
    Refused,
    /// A call failed.
    Failed,
    /// The pass panicked; whoever catches that counts the panic.
    Panicked,
    /// The pass was dropped before its end: the process stops or no longer leads.
    Aborted,
}

impl ReconcileResult {
    /// Every result.
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

/// What is written in Kubernetes, leases aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KubeResource {
    /// `azureprivatelinkservices`: spec, finalizers, annotations.
    PrivateLinkService,
    /// `azureprivatelinkservices/status`
    LinkServiceStatus,
    /// `hostedclusters/status`
    HostedClusterStatus,
    /// `hostedcontrolplanes`
    HostedControlPlane,
    /// `services`
    Service,
    /// `events`
    Event,
}

impl KubeResource {
    /// Every resource.
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

/// What is watched in Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Watched {
    /// The custom resources.
    PrivateLinkService,
    /// The clusters.
    HostedCluster,
    /// Their control planes.
    HostedControlPlane,
    /// What publishes them.
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

/// How it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KubeVerb {
    /// POST
    Create,
    /// PATCH of any kind, server-side apply included.
    Patch,
    /// DELETE
    Delete,
}

impl KubeVerb {
    /// Every verb.
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
