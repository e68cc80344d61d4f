//! Role `ho`, the part of HyperShift's operator: load balancer, NAT subnet, Private Link Service.

use super::RoleSpec;
use crate::api::condition::ConditionType;
use crate::api::markers;

/// What has to be known of the role outside its controllers.
pub(super) const SPEC: RoleSpec = RoleSpec {
    word: "ho",
    resource: "azureprivatelinkservices",
    finalizer: markers::HO_FINALIZER,
    intent_annotation: markers::HO_INTENT,
    field_manager: "hyperlink-ho",
    replaces: Some("hypershift-operator-manager"),
    conditions: &[
        ConditionType::AzureInternalLoadBalancerAvailable,
        ConditionType::AzurePLSCreated,
    ],
    sums_up: false,
    status_fields: &[
        "internalLoadBalancerID",
        "privateLinkServiceID",
        "privateLinkServiceAlias",
    ],
    deleted_resources: &["privateLinkServiceID"],
    abandoned: "; a Private Link Service that is abandoned still forwards",
};
