//! `spec.platform.aws` of a HostedCluster and a HostedControlPlane, as far as it is read.

use serde::Deserialize;

use crate::api::ResourceTag;
use crate::api::lenient::{good_items, or_default};

/// `spec.platform.aws`: the cluster on AWS.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AwsPlatform {
    /// The guest's region.
    #[serde(deserialize_with = "or_default")]
    pub region: Option<String>,
    /// The guest's network.
    #[serde(deserialize_with = "or_default")]
    pub cloud_provider_config: CloudProviderConfig,
    /// From where the API server is reached, see [`AwsPlatform::access`].
    #[serde(deserialize_with = "or_default")]
    pub endpoint_access: Option<EndpointAccess>,
    /// Principals that may connect besides the guest's own.
    #[serde(deserialize_with = "good_items")]
    pub additional_allowed_principals: Vec<String>,
    /// Tags for all that is created.
    #[serde(deserialize_with = "good_items")]
    pub resource_tags: Vec<ResourceTag>,
    /// The roles of the cluster's components.
    #[serde(deserialize_with = "or_default")]
    pub roles_ref: RolesRef,
    /// Set if the guest's VPC is another account's.
    #[serde(rename = "sharedVPC", deserialize_with = "or_default")]
    pub shared_vpc: Option<SharedVpc>,
}

/// `spec.platform.aws.cloudProviderConfig`: the guest's network.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CloudProviderConfig {
    /// Id of the guest's VPC.
    #[serde(deserialize_with = "or_default")]
    pub vpc: Option<String>,
}

/// `spec.platform.aws.endpointAccess`: from where the API server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum EndpointAccess {
    /// From the internet only.
    Public,
    /// From the internet and the guest's VPC.
    PublicAndPrivate,
    /// From the guest's VPC only.
    Private,
    /// Any value that Hyperlink does not know.
    #[serde(other)]
    Other,
}

/// `spec.platform.aws.rolesRef`: the roles of the cluster's components.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RolesRef {
    /// ARN of the control plane operator's role, which makes the endpoint.
    #[serde(rename = "controlPlaneOperatorARN", deserialize_with = "or_default")]
    pub control_plane_operator_arn: Option<String>,
}

/// `spec.platform.aws.sharedVPC`: a VPC that another account owns.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SharedVpc {
    /// The roles in the owner's account.
    #[serde(deserialize_with = "or_default")]
    pub roles_ref: SharedVpcRoles,
    /// Id of the private hosted zone of the cluster's internal names, in the owner's account.
    #[serde(rename = "localZoneID", deserialize_with = "or_default")]
    pub local_zone_id: Option<String>,
}

/// `spec.platform.aws.sharedVPC.rolesRef`: the roles in the account that owns the VPC.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SharedVpcRoles {
    /// ARN of the role for the endpoint and its security group.
    #[serde(rename = "controlPlaneARN", deserialize_with = "or_default")]
    pub control_plane_arn: Option<String>,
    /// ARN of the role for the records.
    #[serde(rename = "ingressARN", deserialize_with = "or_default")]
    pub ingress_arn: Option<String>,
}

impl AwsPlatform {
    /// From where the API server is reached.
    pub fn access(&self) -> EndpointAccess {
        self.endpoint_access.unwrap_or(EndpointAccess::Public)
    }

    /// Id of the guest's VPC; none if the spec does not have it.
    pub fn vpc(&self) -> Option<&str> {
        let vpc = self.cloud_provider_config.vpc.as_deref();
        vpc.filter(|vpc| !vpc.is_empty())
    }

    /// The roles and the zone of the account that owns the VPC, if another one does.
    pub fn shared(&self) -> Option<&SharedVpc> {
        self.shared_vpc.as_ref()
    }
}

impl EndpointAccess {
    /// Whether the guest reaches its control plane by a private path.
    pub fn is_private(self) -> bool {
        matches!(self, Self::PublicAndPrivate | Self::Private)
    }

    /// Whether the guest has no private path. A value that is not known does not say so.
    pub fn is_public_only(self) -> bool {
        self == Self::Public
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::api::HostedControlPlane;
    use crate::api::hypershift::PlatformType;

    fn control_plane(aws: &Value) -> HostedControlPlane {
        serde_json::from_value(json!({"metadata": {"name": "example"}, "spec": {
            "networking": {"machineNetwork": [{"cidr": "10.0.0.0/16"}, "x", {"cidr": 7}]},
            "platform": {"type": "AWS", "aws": aws}}}))
        .unwrap()
    }

    #[test]
    fn fields_of_a_cluster_in_a_shared_vpc_are_read() {
        let plane = control_plane(&json!({
            "region": "us-east-1", "endpointAccess": "Private",
            "cloudProviderConfig": {"vpc": "vpc-1", "zone": "us-east-1a", "subnet": {"id": "subnet-1"}},
            "rolesRef": {"controlPlaneOperatorARN": "arn:cpo", "ingressARN": "arn:i"},
            "additionalAllowedPrincipals": ["arn:a", 7],
            "resourceTags": [{"key": "k", "value": "v"}, {"key": "no value"}],
            "sharedVPC": {"localZoneID": "Z1",
                "rolesRef": {"controlPlaneARN": "arn:shared", "ingressARN": "arn:zone"}}}));
        assert_eq!(plane.spec.platform.kind, Some(PlatformType::Aws));
        let aws = plane.spec.aws().unwrap();
        assert_eq!((aws.region.as_deref(), aws.vpc()), (Some("us-east-1"), Some("vpc-1")));
        assert_eq!(aws.access(), EndpointAccess::Private);
        assert_eq!(aws.roles_ref.control_plane_operator_arn.as_deref(), Some("arn:cpo"));
        assert_eq!(aws.additional_allowed_principals, ["arn:a"]);
        let keys: Vec<_> = aws.resource_tags.iter().map(|tag| tag.key.as_str()).collect();
        assert_eq!(keys, ["k"]);
        let shared = aws.shared().unwrap();
        assert_eq!(shared.roles_ref.control_plane_arn.as_deref(), Some("arn:shared"));
        assert_eq!(shared.roles_ref.ingress_arn.as_deref(), Some("arn:zone"));
        assert_eq!(shared.local_zone_id.as_deref(), Some("Z1"));
        let networks = plane.spec.networking.machine_network;
        let cidrs: Vec<_> = networks.iter().filter_map(|network| network.cidr.as_deref()).collect();
        assert_eq!(cidrs, ["10.0.0.0/16"]);
        assert!(plane.spec.platform.azure.is_none());
    }

    #[rstest]
    #[case::absent(json!({}), EndpointAccess::Public, (false, true))]
    #[case::null(json!({"endpointAccess": null}), EndpointAccess::Public, (false, true))]
    #[case::both(json!({"endpointAccess": "PublicAndPrivate"}), EndpointAccess::PublicAndPrivate, (true, false))]
    #[case::unknown(json!({"endpointAccess": "Moon"}), EndpointAccess::Other, (false, false))]
    #[case::number(json!({"endpointAccess": 7}), EndpointAccess::Public, (false, true))]
    fn unknown_access_is_neither_private_nor_public(
        #[case] aws: Value,
        #[case] access: EndpointAccess,
        #[case] expected: (bool, bool),
    ) {
        let plane = control_plane(&aws);
        let found = plane.spec.aws().unwrap().access();
        assert_eq!(found, access);
        assert_eq!((found.is_private(), found.is_public_only()), expected);
    }

    #[test]
    fn strange_shapes_are_read_as_absent() {
        let strange = json!({"region": {}, "cloudProviderConfig": "vpc-1", "additionalAllowedPrincipals": "*",
            "resourceTags": {"k": "v"}, "rolesRef": [], "sharedVPC": {"rolesRef": 1, "localZoneID": []}});
        let plane = control_plane(&strange);
        let shared_vpc = Some(SharedVpc::default());
        let expected = AwsPlatform {
            shared_vpc,
            ..AwsPlatform::default()
        };
        assert_eq!(plane.spec.aws(), Some(&expected));
        assert_eq!(control_plane(&json!("x")).spec.aws(), None);
    }

    #[test]
    fn empty_vpc_is_none() {
        let plane = control_plane(&json!({"cloudProviderConfig": {"vpc": ""}}));
        assert_eq!(plane.spec.aws().unwrap().vpc(), None);
    }
}
