//! The label values that Hyperlink chooses itself. Those of ARM kinds, error classes, roles and conditions are defined
//! with these.

/// One table for the variants and their label values, so that none can be forgotten.
macro_rules! label_values {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $label:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$of])* $variant,)* }

        impl $name {
            pub(super) const LABELS: &'static [&'static str] = &[$($label,)*];

            /// The value of the metric label, and the word in logs.
            pub fn label(self) -> &'static str {
                match self { $($name::$variant => $label,)* }
            }
        }
    };
}

label_values! {
    /// A controller, which runs reconciles.
    Controller {
        /// Role `cpo`: creates custom resources from Services.
        Observer = "observer",
        /// Role `ho`: NAT subnet and Private Link Service.
        PrivateLinkService = "private_link_service",
        /// Role `ho`: conditions of custom resources, aggregated on their HostedCluster.
        HostedCluster = "hosted_cluster",
        /// Role `cpo`: Private Endpoint and private DNS.
        PrivateEndpoint = "private_endpoint",
        /// Role `ho` on AWS: endpoint service.
        EndpointService = "endpoint_service",
        /// Role `cpo` on AWS: endpoint, security group and records.
        VpcEndpoint = "vpc_endpoint",
        /// Role `capz`: private endpoints of AzureClusters.
        AzureCluster = "azure_cluster",
        /// Role `capz`: the gates of new control planes.
        KubeadmControlPlane = "kubeadm_control_plane",
        /// Role `capz`: Crossplane's ProviderConfigs.
        ProviderConfig = "provider_config",
    }
}

label_values! {
    /// The result of a reconcile.
    ReconcileResult {
        /// Everything is as desired.
        Ready = "ready",
        /// Something was requested and does not exist yet. No error.
        Waiting = "waiting",
        /// Something must not be changed, or the object asks for what is not possible.
        Refused = "refused",
        /// A call failed.
        Failed = "failed",
        /// The reconcile panicked; the code that catches the panic counts it.
        Panicked = "panicked",
        /// The reconcile was dropped before its end: the process stops or no longer leads.
        Aborted = "aborted",
    }
}

label_values! {
    /// A resource that is written in Kubernetes, leases aside, by its name in a role's rules.
    KubeResource {
        /// Custom resources: spec, finalizers, annotations.
        PrivateLinkService = "azureprivatelinkservices",
        /// Their status.
        LinkServiceStatus = "azureprivatelinkservices/status",
        /// Custom resources on AWS: spec, finalizers, annotations.
        EndpointService = "awsendpointservices",
        /// Their status.
        EndpointServiceStatus = "awsendpointservices/status",
        /// HostedClusters: aggregated conditions.
        HostedClusterStatus = "hostedclusters/status",
        /// HostedControlPlanes: their finalizers.
        HostedControlPlane = "hostedcontrolplanes",
        /// External Services.
        Service = "services",
        /// AzureClusters: entries, finalizers, annotations.
        AzureCluster = "azureclusters",
        /// Their conditions.
        AzureClusterStatus = "azureclusters/status",
        /// Control planes by kubeadm: their pause.
        KubeadmControlPlane = "kubeadmcontrolplanes",
        /// Clusters of Cluster API: their finalizers.
        Cluster = "clusters",
        /// Crossplane's ProviderConfigs.
        ProviderConfig = "providerconfigs",
        /// Events: what people should know.
        Event = "events",
    }
}

label_values! {
    /// A resource that is watched in Kubernetes, by its name in a role's rules.
    Watched {
        /// The custom resources.
        PrivateLinkService = "azureprivatelinkservices",
        /// The custom resources on AWS.
        EndpointService = "awsendpointservices",
        /// The HostedClusters themselves.
        HostedCluster = "hostedclusters",
        /// Their control planes.
        HostedControlPlane = "hostedcontrolplanes",
        /// The Services that publish them.
        Service = "services",
        /// The workers of HostedClusters, on AWS.
        NodePool = "nodepools",
        /// The subnets that Karpenter uses, on AWS.
        ConfigMap = "configmaps",
        /// The clusters of Cluster API on Azure.
        AzureCluster = "azureclusters",
        /// Their identities.
        AzureClusterIdentity = "azureclusteridentities",
        /// The clusters of Cluster API, on any cloud.
        Cluster = "clusters",
        /// Their control planes by kubeadm.
        KubeadmControlPlane = "kubeadmcontrolplanes",
    }
}

label_values! {
    /// The verb of a write, as in a role's rules.
    KubeVerb {
        /// POST, which creates.
        Create = "create",
        /// PATCH of any kind, server-side apply included.
        Patch = "patch",
        /// DELETE, which deletes.
        Delete = "delete",
    }
}

label_values! {
    /// What came of the last use of an AzureClusterIdentity.
    IdentityResult {
        /// Azure answered.
        Accepted = "accepted",
        /// It cannot be used: something of it is missing, or not allowed.
        Unusable = "unusable",
        /// Azure denied a read.
        Denied = "denied",
        /// Azure did not answer, or with another error.
        Failed = "failed",
    }
}

label_values! {
    /// What came of a patch of the management cluster's AzureCluster.
    ManagementWrite {
        /// It was taken.
        Written = "written",
        /// Somebody else's write came between the read and the patch.
        Conflict = "conflict",
        /// The API server refused it, or did not answer.
        Failed = "failed",
    }
}
