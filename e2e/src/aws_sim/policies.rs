//! The policies that are shipped for the roles, and what they allow.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::ZONE_PREFIX;

/// What the program can send and works without.
pub const OPTIONAL_ACTION: &str = "ec2:ModifyVpcEndpointServiceConfiguration";
/// What HyperShift's policies allow and the program never sends.
pub const ACTIONS_NOT_SENT: [&str; 3] = [
    "ec2:AuthorizeSecurityGroupEgress",
    "ec2:DescribeVpcs",
    "ec2:RevokeSecurityGroupEgress",
];

/// The shipped policy of a role, which is HyperShift's own.
///
/// # Errors
/// The file is missing or is no JSON.
pub fn shipped_policy(role: &str) -> Result<Value> {
    let path = crate::repository().join(format!("docs/aws/role-{role}.json"));
    let text = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    serde_json::from_str(&text.replace("ZONE-ID", &format!("{ZONE_PREFIX}*")))
        .with_context(|| path.display().to_string())
}

/// The actions that a policy allows.
///
/// # Errors
/// A statement of another form.
pub fn allowed_actions(policy: &Value) -> Result<BTreeSet<String>> {
    let mut all = BTreeSet::new();
    for rule in policy["Statement"].as_array().context("no rules")? {
        ensure!(rule["Effect"] == "Allow", "{rule}");
        all.extend(serde_json::from_value::<Vec<String>>(rule["Action"].clone())?);
    }
    Ok(all)
}
