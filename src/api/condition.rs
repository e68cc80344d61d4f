//! Condition types, and every reason that is ever written.

use serde::Serialize;

use super::Platform;

/// One table for the variants and their list, so that none can be forgotten.
macro_rules! condition_types {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        /// A condition of a custom resource.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ConditionType { $($(#[$doc])* $name,)+ }

        impl ConditionType {
            /// All, of every custom resource, in the order of the table.
            pub const ALL: [ConditionType; [$(ConditionType::$name),+].len()] = [$(ConditionType::$name),+];

            /// The text in `conditions[].type`.
            pub fn as_str(self) -> &'static str {
                match self { $(ConditionType::$name => stringify!($name),)+ }
            }
        }
    };
}

condition_types! {
    /// The frontend behind `spec.loadBalancerIP` was found.
    AzureInternalLoadBalancerAvailable,
    /// The Private Link Service is as desired.
    AzurePLSCreated,
    /// The Private Endpoint exists, is connected and has an address.
    AzurePrivateEndpointAvailable,
    /// Zones, links and records are as desired.
    AzurePrivateDNSAvailable,
    /// The whole path is available: the summary of the others.
    AzurePrivateLinkServiceAvailable,
    /// The endpoint service of the Service's network load balancer is as desired.
    AWSEndpointServiceAvailable,
    /// The endpoint with its security group and its records is as desired.
    AWSEndpointAvailable,
}

impl ConditionType {
    /// Those of AzurePrivateLinkService, in the order of the path; the summary last.
    pub const OF_AZURE: [ConditionType; 5] = [
        ConditionType::AzureInternalLoadBalancerAvailable,
        ConditionType::AzurePLSCreated,
        ConditionType::AzurePrivateEndpointAvailable,
        ConditionType::AzurePrivateDNSAvailable,
        ConditionType::AzurePrivateLinkServiceAvailable,
    ];

    /// Those of AWSEndpointService, in the order of the path. None sums up the other.
    pub const OF_AWS: [ConditionType; 2] = [
        ConditionType::AWSEndpointServiceAvailable,
        ConditionType::AWSEndpointAvailable,
    ];

    /// Those of the custom resource of a platform, in the order of the path.
    pub fn of(platform: Platform) -> &'static [ConditionType] {
        match platform {
            Platform::Azure => &Self::OF_AZURE,
            Platform::Aws => &Self::OF_AWS,
        }
    }

    /// Whether a custom resource is available only while this holds: the summary of all others, or each one where none
    /// sums up.
    pub fn is_decisive(self) -> bool {
        match self {
            Self::AzurePrivateLinkServiceAvailable | Self::AWSEndpointServiceAvailable | Self::AWSEndpointAvailable => {
                true
            }
            Self::AzureInternalLoadBalancerAvailable
            | Self::AzurePLSCreated
            | Self::AzurePrivateEndpointAvailable
            | Self::AzurePrivateDNSAvailable => false,
        }
    }

    /// The reason of the condition while it holds.
    pub fn success(self) -> Reason {
        match self {
            Self::AzureInternalLoadBalancerAvailable
            | Self::AzurePLSCreated
            | Self::AzurePrivateEndpointAvailable
            | Self::AzurePrivateDNSAvailable
            | Self::AzurePrivateLinkServiceAvailable => Reason::AzureSuccess,
            Self::AWSEndpointServiceAvailable | Self::AWSEndpointAvailable => Reason::AWSSuccess,
        }
    }
}

/// The status of a condition that Hyperlink writes. Never Unknown: HyperShift's aggregation counts that as good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Status {
    /// The condition holds.
    True,
    /// The condition does not hold, or not yet.
    False,
}

impl Status {
    /// The text in `conditions[].status`.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::True => "True",
            Status::False => "False",
        }
    }
}

/// One table for the variants, their list and their texts, so that none can be forgotten.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Why a condition has its status: `conditions[].reason`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// Every reason that exists.
            pub const ALL: &'static [Reason] = &[$(Reason::$name,)*];

            /// The text in `conditions[].reason`.
            pub fn as_str(self) -> &'static str {
                match self { $(Reason::$name => stringify!($name),)* }
            }
        }
    };
}

reasons! {
    /// The condition is True, on Azure.
    AzureSuccess,
    /// Something on Azure is not as desired, and no other reason fits.
    AzureError,
    /// The condition is True, on AWS.
    AWSSuccess,
    /// Something on AWS is not as desired, and no other reason fits.
    AWSError,
    // Failed steps.
    /// The load balancers could not be read.
    ILBLookupFailed,
    /// The NAT subnet could not be read, chosen or written.
    NATSubnetCreationFailed,
    /// The Private Link Service could not be created.
    PLSCreationFailed,
    /// The Private Link Service could not be changed.
    PLSUpdateFailed,
    /// The Private Endpoint's connection is not approved.
    PrivateEndpointConnectionNotApproved,
    /// The Private Endpoint could not be read.
    PrivateEndpointGetFailed,
    /// The Private Endpoint could not be written.
    PrivateEndpointCreationFailed,
    /// The internal zone could not be read or written.
    DNSZoneCreationFailed,
    /// The internal zone's link could not be read or written.
    VNetLinkCreationFailed,
    /// The internal zone's records could not be read or written.
    ARecordCreationFailed,
    /// The base domain's zone could not be read or written.
    BaseDomainDNSZoneCreationFailed,
    /// The base domain zone's link could not be read or written.
    BaseDomainVNetLinkCreationFailed,
    /// The base domain zone's records could not be read or written.
    BaseDomainARecordCreationFailed,
    /// The network load balancer could not be read, or is not active yet.
    LoadBalancerNotActive,
    /// The endpoint service could not be read or written.
    EndpointServiceFailed,
    /// The principals that may connect to the endpoint service could not be read or written.
    PrincipalsFailed,
    /// The security group could not be read or written.
    SecurityGroupFailed,
    /// The endpoint could not be read or written, or AWS did not create it.
    EndpointFailed,
    /// Nobody has accepted the endpoint's connection.
    EndpointNotAccepted,
    /// Somebody has rejected the endpoint's connection.
    EndpointRejected,
    /// No subnet is known in which the endpoint can be.
    NoSubnets,
    /// The load balancer is in none of the zones of the guest's subnets.
    NoCommonZone,
    /// No private hosted zone has the name of the cluster's internal zone.
    HostedZoneNotFound,
    /// Several private hosted zones have that name.
    AmbiguousHostedZone,
    /// The records could not be read or written.
    RecordsFailed,
    /// Something could not be deleted.
    DeletionFailed,
    // Waiting.
    /// The Service has no address yet, or no frontend has it.
    WaitingForLoadBalancer,
    /// The Private Link Service has no alias yet.
    WaitingForPrivateLinkService,
    /// The Private Endpoint has no address yet.
    WaitingForPrivateEndpoint,
    /// An operation in Azure is in progress.
    Provisioning,
    /// The custom resource is being deleted.
    Deleting,
    // Refusals: nothing is written to Azure until something changes.
    /// An annotation, id or derived name is not valid in Azure.
    InvalidSpec,
    /// The annotation names no HostedCluster that exists.
    HostedClusterNotFound,
    /// The owner reference names no HostedControlPlane that exists.
    HostedControlPlaneNotFound,
    /// HostedCluster and HostedControlPlane disagree about the cluster.
    IdentityMismatch,
    /// Another, older cluster has this cluster id or infra id.
    DuplicateIdentity,
    /// Another cluster has claimed a host name that this one names.
    HostNameClaimed,
    /// The cluster is in an Azure cloud that this process does not serve.
    CloudMismatch,
    /// A resource with a name of this cluster belongs to somebody else.
    NotOurs,
    /// The resource lies outside the scopes that this process may use.
    ScopeNotAllowed,
    /// A lock forbids the change.
    ScopeLocked,
    /// Several frontends fit.
    AmbiguousLoadBalancer,
    /// Replacing the Private Link Service would cut the cluster off.
    ReplacementBlocked,
    /// HyperShift's control plane operator keeps a Private Endpoint to a Private Link Service that is deleted.
    EndpointNotConnected,
    /// The resource was created in another place than this process is configured for.
    ConfigurationChanged,
    /// Another zone of that name is linked to the guest's VNet.
    VNetLinkedToOtherZone,
    /// The condition is True, but another controller serves the cluster, too.
    OtherControllerActive,
    /// The condition is True, but the zone hides public names from the guest.
    ZoneShadowsBaseDomain,
}

impl Reason {
    /// The reason with this text; `None` if Hyperlink never writes it.
    pub fn parse(text: &str) -> Option<Reason> {
        Self::ALL.iter().copied().find(|reason| reason.as_str() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_condition_is_of_one_custom_resource() {
        let all: Vec<_> = ConditionType::OF_AZURE
            .into_iter()
            .chain(ConditionType::OF_AWS)
            .collect();
        assert_eq!(all, ConditionType::ALL);
    }

    #[test]
    fn texts_are_the_names_of_the_variants() {
        for kind in ConditionType::ALL {
            assert_eq!(kind.as_str(), format!("{kind:?}"));
        }
        for reason in Reason::ALL {
            assert_eq!(Reason::parse(reason.as_str()), Some(*reason));
        }
        assert_eq!(Reason::parse("azuresuccess"), None);
    }
}
