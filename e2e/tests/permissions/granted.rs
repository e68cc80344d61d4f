//! Which rights the files that are shipped grant.

use std::collections::BTreeSet;

use anyhow::Result;
use e2e::hyperlink::Role;
use e2e::repository;
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde_json::Value;

/// `group/resource verb`
pub(crate) type Right = String;

pub(crate) fn right(group: &str, resource: &str, subresource: &str, verb: &str) -> Right {
    let slash = if subresource.is_empty() { "" } else { "/" };
    format!("{group}/{resource}{slash}{subresource} {verb}")
}

pub(crate) fn granted_rights(role: Role) -> Result<BTreeSet<Right>> {
    let mut granted = BTreeSet::new();
    let more: &[&str] = match role {
        Role::Ho => &["role-ho-aggregate.yaml", "role-metrics.yaml"],
        Role::Cpo => &[],
    };
    let own = format!("role-{}.yaml", role.as_str());
    for file in [&own, "role-lease.yaml"].iter().chain(more) {
        for rule in rules(file)? {
            for group in rule.api_groups.iter().flatten() {
                for resource in rule.resources.iter().flatten() {
                    granted.extend(rule.verbs.iter().map(|verb| right(group, resource, "", verb)));
                }
            }
        }
    }
    Ok(granted)
}

pub(crate) fn rules(file: &str) -> Result<Vec<PolicyRule>> {
    let text = std::fs::read_to_string(repository().join("charts/hyperlink/files").join(file))?;
    let mut role: Value = serde_yaml_ng::from_str(&text)?;
    Ok(serde_json::from_value(role["rules"].take())?)
}
