//! The actions that Hyperlink knows, each with its service and whether it changes anything. No other is sent.

use crate::endpoints::Service;

/// What an action does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Changes nothing.
    Read,
    /// Creates or changes something.
    Write,
    /// Deletes something.
    Delete,
}

macro_rules! actions {
    ($($action:ident: $service:ident $verb:ident,)*) => {
        /// An action of a service, under AWS's own name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "AWS's API references describe them under these names")]
        pub enum Action {
            $($action,)*
        }

        impl Action {
            /// Every action, for tables and labels.
            pub const ALL: &[Self] = &[$(Self::$action,)*];

            /// AWS's name of the action; also the value of the metric label.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$action => stringify!($action),)*
                }
            }

            /// The service that it is sent to.
            pub fn service(self) -> Service {
                match self {
                    $(Self::$action => Service::$service,)*
                }
            }

            /// What it does.
            pub fn verb(self) -> Verb {
                match self {
                    $(Self::$action => Verb::$verb,)*
                }
            }
        }
    };
}

actions! {
    CreateVpcEndpointServiceConfiguration: Ec2 Write,
    DescribeVpcEndpointServiceConfigurations: Ec2 Read,
    ModifyVpcEndpointServiceConfiguration: Ec2 Write,
    DeleteVpcEndpointServiceConfigurations: Ec2 Delete,
    DescribeVpcEndpointServicePermissions: Ec2 Read,
    ModifyVpcEndpointServicePermissions: Ec2 Write,
    DescribeVpcEndpointConnections: Ec2 Read,
    RejectVpcEndpointConnections: Ec2 Write,
    CreateVpcEndpoint: Ec2 Write,
    DescribeVpcEndpoints: Ec2 Read,
    ModifyVpcEndpoint: Ec2 Write,
    DeleteVpcEndpoints: Ec2 Delete,
    CreateSecurityGroup: Ec2 Write,
    DescribeSecurityGroups: Ec2 Read,
    AuthorizeSecurityGroupIngress: Ec2 Write,
    RevokeSecurityGroupIngress: Ec2 Write,
    DeleteSecurityGroup: Ec2 Delete,
    DescribeSubnets: Ec2 Read,
    CreateTags: Ec2 Write,
    DescribeLoadBalancers: LoadBalancing Read,
    ListHostedZones: Route53 Read,
    ListResourceRecordSets: Route53 Read,
    ChangeResourceRecordSets: Route53 Write,
    AssumeRole: Sts Read,
    AssumeRoleWithWebIdentity: Sts Read,
    GetCallerIdentity: Sts Read,
    GetMetadataToken: InstanceMetadata Read,
    GetMetadataCredentials: InstanceMetadata Read,
}

impl Action {
    /// The action of this name.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|action| action.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn action_that_only_reads_is_named_so() {
        for action in Action::ALL {
            let name = action.name();
            let read = ["Describe", "List", "Get", "AssumeRole"]
                .iter()
                .any(|start| name.starts_with(start));
            assert_eq!(action.verb() == Verb::Read, read, "{name}");
            assert_eq!(action.verb() == Verb::Delete, name.starts_with("Delete"), "{name}");
            assert_eq!(Action::by_name(name), Some(*action));
        }
    }
}
