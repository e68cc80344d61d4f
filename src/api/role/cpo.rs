//! Role `cpo`, the part of the control plane operator: Private Endpoint, private DNS.

use super::RoleSpec;
use crate::api::markers;

/// What has to be known of the role outside its controllers.
pub(super) const SPEC: RoleSpec = RoleSpec {
    word: "cpo",
    intent_annotation: markers::CPO_INTENT,
    field_manager: "hyperlink-cpo",
    replaces: Some("hypershift-controlplane-manager"),
};
