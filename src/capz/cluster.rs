//! What one AzureCluster says of itself: where it lies, how its API server is reached, in which subnet private endpoints
//! are made.

use kube::ResourceExt;
use uuid::Uuid;

use super::reason::{Problem, Reason};
use crate::api::capi::{AzureCluster, PrivateLink};
use crate::api::hypershift::PUBLIC_CLOUD;
use crate::api::markers::capz::FINALIZER;
use crate::api::{ClusterRef, held_by};
use crate::azure::arm::id::SubscriptionId;

/// How many characters a UUID has.
const UUID_LENGTH: usize = 36;

/// The role of the subnet in which private endpoints are made.
const NODES: &str = "node";

/// From where the API server of a cluster is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// From its own network alone.
    Internal,
    /// From the internet too.
    Public,
}

/// From where the API server of a cluster is reached. One without a load balancer, or without its type, is public: so
/// CAPZ defaults it, and so are managed clusters and those whose control plane others manage.
///
/// # Errors
/// The type is unknown.
pub fn access(cluster: &AzureCluster) -> Result<Access, Problem> {
    let balancer = cluster.spec.network_spec.api_server_lb.as_ref();
    match balancer.and_then(|balancer| balancer.kind.as_deref()) {
        Some("Internal") => Ok(Access::Internal),
        None | Some("Public" | "") => Ok(Access::Public),
        Some(_) => Err(Problem::new(
            Reason::UnknownLoadBalancerType,
            format!(
                "the apiServerLB of AzureCluster {} has a type that is neither Internal nor Public",
                reference(cluster)
            ),
        )),
    }
}

/// The namespace and name of a cluster.
pub fn reference(cluster: &AzureCluster) -> ClusterRef {
    ClusterRef {
        namespace: cluster.namespace().unwrap_or_default(),
        name: cluster.name_any(),
    }
}

/// The UID of a cluster.
pub fn uid(cluster: &AzureCluster) -> &str {
    cluster.metadata.uid.as_deref().unwrap_or_default()
}

/// Whether a cluster has a deletion timestamp.
pub fn is_deleting(cluster: &AzureCluster) -> bool {
    cluster.metadata.deletion_timestamp.is_some()
}

/// Whether this role delays the deletion of a cluster.
pub fn is_held(cluster: &AzureCluster) -> bool {
    held_by(cluster, FINALIZER)
}

/// The subscription of a cluster; none if it names none that can be in a path.
pub fn subscription(cluster: &AzureCluster) -> Option<SubscriptionId> {
    let text = cluster.spec.subscription_id.as_deref()?;
    // Each entry that a cluster asks for has it: it must not be long.
    let is_uuid = Uuid::try_parse(text).is_ok() && text.len() == UUID_LENGTH;
    SubscriptionId::parse(text).ok().filter(|_| is_uuid)
}

/// The resource group of a cluster: the one that it names, else the one of its name.
pub fn resource_group(cluster: &AzureCluster) -> String {
    let given = cluster.spec.resource_group.as_deref().filter(|group| !group.is_empty());
    given.map_or_else(|| cluster.name_any(), str::to_owned)
}

/// The cloud that a cluster is in.
pub fn cloud(cluster: &AzureCluster) -> &str {
    let given = cluster.spec.azure_environment.as_deref();
    given.filter(|name| !name.is_empty()).unwrap_or(PUBLIC_CLOUD)
}

/// The links of a cluster.
pub fn links(cluster: &AzureCluster) -> &[PrivateLink] {
    let balancer = cluster.spec.network_spec.api_server_lb.as_ref();
    balancer.map_or(&[], |balancer| &balancer.private_links)
}

/// The position of the subnet in which new private endpoints are made: the first for nodes, else the first of all.
pub fn endpoint_subnet(cluster: &AzureCluster) -> Option<usize> {
    let subnets = &cluster.spec.network_spec.subnets;
    let named = || (0..subnets.len()).filter(|at| !subnets[*at].name.is_empty());
    named().find(|at| subnets[*at].role == NODES).or_else(|| named().next())
}

/// Orders clusters by their age; of equally old ones by their names.
pub fn age(cluster: &AzureCluster) -> (Option<i64>, ClusterRef) {
    let created = cluster.metadata.creation_timestamp.as_ref();
    (created.map(|time| time.0.as_second()), reference(cluster))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::capz::samples::workload;

    fn with(spec: Value) -> AzureCluster {
        let mut cluster = json!({"metadata": {"name": "wc", "namespace": "org"}});
        cluster["spec"] = spec;
        serde_json::from_value(cluster).unwrap()
    }

    #[rstest]
    #[case::absent(json!({}), Some(Access::Public))]
    #[case::without_a_type(json!({"networkSpec": {"apiServerLB": {"name": "x"}}}), Some(Access::Public))]
    #[case::empty(json!({"networkSpec": {"apiServerLB": {"type": ""}}}), Some(Access::Public))]
    #[case::internal(json!({"networkSpec": {"apiServerLB": {"type": "Internal"}}}), Some(Access::Internal))]
    #[case::unknown(json!({"networkSpec": {"apiServerLB": {"type": "SomethingNew"}}}), None)]
    fn access_is_the_type_of_the_load_balancer(#[case] spec: Value, #[case] expected: Option<Access>) {
        let found = access(&with(spec));
        assert_eq!(found.as_ref().ok().copied(), expected);
        if let Err(problem) = found {
            assert!(problem.message.contains("AzureCluster org/wc"), "{}", problem.message);
        }
    }

    #[rstest]
    #[case::first_for_nodes(json!([{"name": "a", "role": "control-plane"}, {"name": "b", "role": "node"},
        {"name": "c", "role": "node"}]), Some(1))]
    #[case::first_of_all(json!([{"name": "a", "role": "bastion"}, {"name": "b", "role": "cluster"}]), Some(0))]
    #[case::none(json!([]), None)]
    #[case::without_a_name(json!([null, {"name": "b", "role": "cluster"}]), Some(1))]
    fn endpoints_are_made_in_the_subnet_for_nodes(#[case] subnets: Value, #[case] expected: Option<usize>) {
        assert_eq!(
            endpoint_subnet(&with(json!({"networkSpec": {"subnets": subnets}}))),
            expected
        );
    }

    #[test]
    fn group_that_is_not_given_has_the_name_of_the_cluster() {
        assert_eq!(resource_group(&with(json!({"resourceGroup": ""}))), "wc");
        assert_eq!(resource_group(&with(json!({"resourceGroup": "other"}))), "other");
        assert_eq!(cloud(&with(json!({"azureEnvironment": ""}))), PUBLIC_CLOUD);
    }

    #[test]
    fn finalizer_of_the_reference_holds_a_cluster() {
        assert!(is_held(&workload("wc").cluster()));
    }
}
