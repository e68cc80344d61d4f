//! The rights that the shipped files grant.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use e2e::hyperlink::Role;
use e2e::repository;
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::Value;

/// `group/resource verb`, and the name where the right is for one object alone.
pub(crate) type Right = String;

pub(crate) fn right(group: &str, resource: &str, subresource: &str, verb: &str, name: &str) -> Right {
    let slash = if subresource.is_empty() { "" } else { "/" };
    let right = format!("{group}/{resource}{slash}{subresource} {verb} {name}");
    right.trim_end().to_owned()
}

/// All rights of a role on Azure.
pub(crate) fn granted_rights(role: Role) -> Result<BTreeSet<Right>> {
    let more: &[&str] = match role {
        Role::Ho => &["role-ho-aggregate.yaml", "role-metrics.yaml"],
        Role::Cpo => &["role-cpo-many.yaml"],
    };
    granted_by(role.as_str(), more)
}

/// The rights of the file of this name, of that for leases, and of `more`.
pub(crate) fn granted_by(name: &str, more: &[&str]) -> Result<BTreeSet<Right>> {
    let mut granted = BTreeSet::new();
    let own = format!("role-{name}.yaml");
    for file in [&own, "role-lease.yaml"].iter().chain(more) {
        for rule in rules(file)? {
            let mut names = rule.resource_names.clone().unwrap_or_else(|| vec![String::new()]);
            if *file == "role-lease.yaml" && rule.resource_names.is_some() {
                // Each role keeps the name of its own.
                names.retain(|lease| *lease == format!("hyperlink-{name}"));
                ensure!(names.len() == 1, "{names:?}");
            }
            for group in rule.api_groups.iter().flatten() {
                for resource in rule.resources.iter().flatten() {
                    let verbs = rule.verbs.iter();
                    let of_each =
                        verbs.flat_map(|verb| names.iter().map(|name| right(group, resource, "", verb, name)));
                    granted.extend(of_each);
                }
            }
        }
    }
    Ok(granted)
}

pub(crate) fn rules(file: &str) -> Result<Vec<PolicyRule>> {
    let text = std::fs::read_to_string(repository().join("charts/hyperlink/files").join(file))?;
    let mut role: Value = serde_saphyr::from_str(&text)?;
    Ok(serde_json::from_value(role["rules"].take())?)
}
