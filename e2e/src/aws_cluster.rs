//! HyperShift's part in the life of one private hosted cluster on AWS: what the installer and HyperShift's operators
//! create, and in which order they delete it. Hyperlink's part is not here, except for the observer's, which
//! [`AwsHostedCluster::create_custom_resources`] plays.

mod connection;
mod creation;
mod custom_resource;
mod deletion;
mod objects;
mod published;

use kube::api::{Api, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use uuid::Uuid;

pub use self::connection::Connection;
pub use self::custom_resource::load_balancer_name;
pub use self::published::KUBE_API_SERVER;
use crate::aws_sim::{GUEST, REGION, SHARED_ENDPOINTS_ROLE, SHARED_RECORDS_ROLE, VPC_OWNER, ZONE_PREFIX};
use crate::hosted_cluster::{NAMESPACE, ROUTER};

/// The ids of the zones that the subnets of a guest lie in. The load balancers are in both.
const SUBNETS: [&str; 3] = ["use1-az1", "use1-az2", "use1-az1"];

/// A private hosted cluster on AWS. All names derive from its name, so that one environment can hold many.
#[derive(Clone, Debug)]
pub struct AwsHostedCluster {
    name: String,
    node_pools: Vec<String>,
    resource_tags: Vec<(String, String)>,
    hosted_cluster_patch: Value,
    control_plane_patch: Value,
    platform_patch: Value,
    service_patch: Value,
    services: Vec<&'static str>,
    api_server_is_routed: bool,
    network_account: &'static str,
}

impl AwsHostedCluster {
    /// A cluster with a router alone, with two node pools, in its second and its first subnet, and with one tag for all
    /// resources.
    pub fn new(name: &str) -> Self {
        let mut this = Self {
            name: name.to_owned(),
            node_pools: Vec::new(),
            resource_tags: vec![("team".to_owned(), name.to_owned())],
            hosted_cluster_patch: json!({}),
            control_plane_patch: json!({}),
            platform_patch: json!({}),
            service_patch: json!({}),
            services: vec![ROUTER],
            api_server_is_routed: true,
            network_account: GUEST,
        };
        let [first, second, _] = this.subnets();
        this.node_pools = vec![second, first];
        this
    }

    /// Has one node pool in each of these subnets.
    #[must_use]
    pub fn with_node_pools(mut self, subnets: &[&str]) -> Self {
        self.node_pools = subnets.iter().map(|id| (*id).to_owned()).collect();
        self
    }

    /// Asks for these tags, and no others, on all resources.
    #[must_use]
    pub fn with_resource_tags(mut self, tags: &[(&str, &str)]) -> Self {
        let tags = tags.iter();
        self.resource_tags = tags
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        self
    }

    /// Applies this merge patch (RFC 7396) to `spec.platform.aws` of HostedCluster and HostedControlPlane before they
    /// are created.
    #[must_use]
    pub fn with_platform(mut self, patch: Value) -> Self {
        self.platform_patch = patch;
        self
    }

    /// Has workers in a VPC that [`VPC_OWNER`] shares, and the internal hosted zone in that account.
    #[must_use]
    pub fn with_shared_vpc(mut self) -> Self {
        self.network_account = VPC_OWNER;
        let roles = json!({"controlPlaneARN": SHARED_ENDPOINTS_ROLE, "ingressARN": SHARED_RECORDS_ROLE});
        let patch = json!({
            "sharedVPC": {"rolesRef": roles, "localZoneID": self.zone()},
            "additionalAllowedPrincipals": [SHARED_ENDPOINTS_ROLE],
        });
        self.with_platform(patch)
    }

    /// Whether another account shares the workers' VPC.
    pub fn is_in_shared_vpc(&self) -> bool {
        self.network_account == VPC_OWNER
    }

    /// Applies this merge patch (RFC 7396) to the HostedCluster before it is created.
    #[must_use]
    pub fn with_hosted_cluster(mut self, patch: Value) -> Self {
        self.hosted_cluster_patch = patch;
        self
    }

    /// Applies this merge patch (RFC 7396) to the HostedControlPlane before it is created.
    #[must_use]
    pub fn with_control_plane(mut self, patch: Value) -> Self {
        self.control_plane_patch = patch;
        self
    }

    /// Applies this merge patch (RFC 7396) to the Services before they are created.
    #[must_use]
    pub fn with_service(mut self, patch: Value) -> Self {
        self.service_patch = patch;
        self
    }

    /// The name of HostedCluster and HostedControlPlane.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `<namespace>/<name>` of the HostedCluster.
    pub fn full_name(&self) -> String {
        format!("{NAMESPACE}/{}", self.name)
    }

    /// The namespace of the HostedControlPlane.
    pub fn control_plane_namespace(&self) -> String {
        format!("{NAMESPACE}-{}", self.name)
    }

    /// The cluster id, which is `spec.clusterID`.
    pub fn cluster_id(&self) -> String {
        self.uuid("").to_string()
    }

    /// The infra id, which is `spec.infraID`.
    pub fn infra_id(&self) -> String {
        let id = self.cluster_id();
        format!("{}-{}", self.name, id.get(..5).unwrap_or_default())
    }

    /// Id of the workers' VPC.
    pub fn vpc(&self) -> String {
        self.ec2_id("vpc", "")
    }

    /// Ids of the workers' subnets, in the order of their addresses: two in the first zone, one in the second.
    pub fn subnets(&self) -> [String; 3] {
        ["1", "2", "3"].map(|number| self.ec2_id("subnet", number))
    }

    /// The subnets of the node pools, sorted.
    pub fn node_pool_subnets(&self) -> Vec<String> {
        let mut subnets = self.node_pools.clone();
        subnets.sort_unstable();
        subnets.dedup();
        subnets
    }

    /// Id of the private hosted zone that the installer has created.
    pub fn zone(&self) -> String {
        let digits = self.uuid("zone").simple().to_string().to_ascii_uppercase();
        format!("{ZONE_PREFIX}{}", digits.get(..16).unwrap_or_default())
    }

    /// The name of that zone.
    pub fn zone_name(&self) -> String {
        format!("{}.hypershift.local", self.name)
    }

    /// The tags that are asked for on all resources.
    pub fn resource_tags(&self) -> &[(String, String)] {
        &self.resource_tags
    }

    /// The objects of one of HyperShift's kinds in a namespace.
    pub fn api(&self, client: &kube::Client, kind: &str, namespace: &str) -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("hypershift.openshift.io", "v1beta1", kind));
        Api::namespaced_with(client.clone(), namespace, &kind)
    }

    fn uuid(&self, part: &str) -> Uuid {
        Uuid::new_v5(&Uuid::NAMESPACE_DNS, format!("{}{part}", self.name).as_bytes())
    }

    /// An id of EC2's form.
    fn ec2_id(&self, kind: &str, part: &str) -> String {
        let digits = self.uuid(&format!("{kind}{part}")).simple().to_string();
        format!("{kind}-{}", digits.get(..17).unwrap_or_default())
    }

    /// The ARN of something of EC2 in the account of the workers' network.
    fn arn(&self, resource: &str) -> String {
        format!("arn:aws:ec2:{REGION}:{}:{resource}", self.network_account)
    }
}
