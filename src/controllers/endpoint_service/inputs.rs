//! What a decision for an AWSEndpointService is made from, as Kubernetes shows it. Data only.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::ObjectReference;

use crate::api::NodePool;
use crate::hypershift::aws::load_balancer_name::ServiceFacts;
use crate::hypershift::aws::principals::DesiredPrincipals;
use crate::hypershift::aws::subnet_ids::KarpenterList;
use crate::hypershift::identity::{DeletedCluster, Identity};
use crate::hypershift::problem::Problem;
use crate::runtime::prune::Prune;

/// What Kubernetes shows around a custom resource.
#[derive(Debug, Clone)]
pub struct EndpointServiceInputs {
    /// The cluster, if HostedCluster and HostedControlPlane agree on it and no other HostedCluster has what it names.
    pub identity: Result<Identity, Problem>,
    /// The annotation's value for the HostedCluster, `<namespace>/<name>`.
    pub cluster: Option<String>,
    /// The HostedCluster, if its control plane is in this namespace: it gets the Events too.
    pub hosted_cluster: Option<ObjectReference>,
    /// Why the cluster is not to be touched now.
    pub paused: Option<Problem>,
    /// `spec.pausedUntil` of the HostedCluster.
    pub paused_until: Option<String>,
    /// The Service of the same name.
    pub service: Option<ServiceFacts>,
    /// Why the custom resource is to be deleted, if it is.
    pub unwanted: Option<&'static str>,
    /// Who may connect.
    pub principals: Result<DesiredPrincipals, Problem>,
    /// The NodePools of the cluster.
    pub node_pools: Vec<NodePool>,
    /// Karpenter's list of subnets.
    pub karpenter: KarpenterList,
    /// Whether an older custom resource, of any cluster, names the same load balancer.
    pub load_balancer_claimed: bool,
    /// In a deletion: the load balancers that the cluster's other custom resource names. Their endpoint services are its.
    pub named_by_others: BTreeSet<String>,
    /// The cluster whose resources are deleted with the custom resource.
    pub deleted_cluster: DeletedCluster,
}

impl Prune for EndpointServiceInputs {
    fn prune(&mut self) {}
}
