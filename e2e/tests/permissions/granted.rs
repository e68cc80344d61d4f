//! The rights that the shipped files grant to the roles on Azure.

use std::collections::BTreeSet;

use anyhow::Result;
use e2e::hyperlink::Role;
use e2e::rights::{Right, granted_by};

/// All rights of a role on Azure.
pub(crate) fn granted_rights(role: Role) -> Result<BTreeSet<Right>> {
    let more: &[&str] = match role {
        Role::Ho => &["role-ho-aggregate.yaml", "role-metrics.yaml"],
        Role::Cpo => &["role-cpo-many.yaml"],
    };
    granted_by(role.as_str(), more)
}
