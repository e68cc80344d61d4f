//! Role `capz`: private endpoints for clusters made by Cluster API on Azure.

use super::RoleSpec;
use crate::api::markers::capz::LEDGER;

/// What has to be known of the role outside its controllers.
pub(super) const SPEC: RoleSpec = RoleSpec {
    word: "capz",
    intent_annotation: LEDGER,
    field_manager: "hyperlink-capz",
    replaces: None,
};
