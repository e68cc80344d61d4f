//! Role `ho`, the part of HyperShift's operator: load balancer, NAT subnet, Private Link Service.

use super::RoleSpec;
use crate::api::markers;

/// What has to be known of the role outside its controllers.
pub(super) const SPEC: RoleSpec = RoleSpec {
    word: "ho",
    intent_annotation: markers::HO_INTENT,
    field_manager: "hyperlink-ho",
    replaces: Some("hypershift-operator-manager"),
};
