//! HyperShift's names for Azure resources and tags. Pure.

use std::collections::BTreeMap;

use crate::api::markers::PRIVATE_ROUTER;
use crate::azure::arm::id::{IdError, ResourceId, SubscriptionId};
use crate::azure::kinds::Kind;
use crate::azure::owner_tags::OwnerTags;

pub use crate::hypershift::names::load_balancer;

/// The tag (metadata, on records) that proves which cluster a resource belongs to.
pub const CLUSTER_ID_TAG: &str = "hypershift.openshift.io_cluster-id";
/// The tag that says which management cluster serves a Private Link Service: the UID of its namespace kube-system.
pub const MANAGEMENT_CLUSTER_TAG: &str = "hypershift.openshift.io_management-cluster-id";
/// The tag that says what a resource is for.
const RESOURCE_TYPE_TAG: &str = "hypershift.openshift.io_resource-type";

/// The message that the owner of the Private Link Service reads with a connection request.
pub const REQUEST_MESSAGE: &str = "HyperShift CPO auto-connect";

/// The name of the Private Link Service of a custom resource.
pub fn link_service(cr: &str, cluster_id: &str) -> String {
    if cr == PRIVATE_ROUTER {
        format!("pls-{cluster_id}")
    } else {
        format!("pls-{cr}-{cluster_id}")
    }
}

/// The name of the NAT subnet that is created where none is given.
pub fn nat_subnet(infra_id: &str) -> String {
    format!("{infra_id}-pls-nat")
}

/// The cluster id in the name of the Private Link Service of a custom resource.
pub fn cluster_id_of_link_service<'a>(cr: &str, name: &'a str) -> Option<&'a str> {
    let empty = link_service(cr, "");
    let (start, rest) = name.split_at_checked(empty.len())?;
    start.eq_ignore_ascii_case(&empty).then_some(rest)
}

/// The infra id in the name of a NAT subnet that was created.
pub fn infra_id_of_nat_subnet(name: &str) -> Option<&str> {
    let end = nat_subnet("");
    let (infra_id, rest) = name.split_at_checked(name.len().checked_sub(end.len())?)?;
    rest.eq_ignore_ascii_case(&end)
        .then_some(infra_id)
        .filter(|id| !id.is_empty())
}

/// The name of the Private Endpoint of a custom resource, and of its connection.
pub fn endpoint(cr: &str) -> String {
    format!("{cr}-pe")
}

/// The name of the internal zone's virtual network link.
pub fn internal_link(cr: &str) -> String {
    format!("{cr}-vnet-link")
}

/// The name of the virtual network link of the base domain's zone.
pub fn base_domain_link(cr: &str) -> String {
    format!("{cr}-basedomain-vnet-link")
}

/// The name of the API server's record in the base domain's zone.
pub fn api_record(cluster: &str) -> String {
    format!("api-{cluster}")
}

/// The name of OAuth's record in the base domain's zone.
pub fn oauth_record(cluster: &str) -> String {
    format!("oauth-{cluster}")
}

/// How a frontend is proven to belong to the Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrontendMatch {
    /// By its name, which Azure's cloud provider derives from the Service's UID, and by its address.
    Name,
    /// By its address alone, for other providers: not one that Azure's derived from another Service's UID.
    Address,
}

/// Whether a frontend has such a name, of whichever Service; behind a dash a subnet may follow.
pub fn is_load_balancer(frontend: &str) -> bool {
    let name = frontend.split_once('-').map_or(frontend, |(name, _)| name);
    let digits = name.strip_prefix('a').unwrap_or_default();
    digits.len() == 31 && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Owner tags of a Private Link Service.
pub fn private_link_service_tags(cluster: &str, cluster_id: &str) -> OwnerTags {
    let mut tags = owner_tags(cluster_id, "private-link-service");
    tags.labels
        .insert(format!("kubernetes.io_cluster_{cluster}"), "owned".to_owned());
    tags
}

/// Owner tags of the resources on the guest's side; `resource_type` as HyperShift names it.
pub fn owner_tags(cluster_id: &str, resource_type: &str) -> OwnerTags {
    OwnerTags {
        owner: (CLUSTER_ID_TAG.to_owned(), cluster_id.to_owned()),
        labels: BTreeMap::from([(RESOURCE_TYPE_TAG.to_owned(), resource_type.to_owned())]),
    }
}

/// Owner tags of a record set, which has no other tags.
pub fn record_tags(cluster_id: &str) -> OwnerTags {
    OwnerTags {
        owner: (CLUSTER_ID_TAG.to_owned(), cluster_id.to_owned()),
        labels: BTreeMap::new(),
    }
}

/// The id of a resource directly in a resource group.
pub fn in_group(kind: Kind, subscription: &SubscriptionId, group: &str, name: &str) -> Result<ResourceId, IdError> {
    ResourceId::new(kind, subscription, group, &[name])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_private_router_has_the_short_name() {
        assert_eq!(link_service("private-router", "id"), "pls-id");
        assert_eq!(link_service("oauth-openshift", "id"), "pls-oauth-openshift-id");
    }
}
