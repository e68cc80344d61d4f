//! Identity-based policies: actions and resources with wildcards; a denial counts more than a permission.

use serde::{Deserialize, Serialize};

use crate::engine::filter::matches;

/// A policy document, in IAM's form. Conditions are not simulated and therefore refused.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// `2012-10-17`.
    #[serde(rename = "Version", default)]
    pub version: String,
    /// What is allowed and denied.
    #[serde(rename = "Statement")]
    pub rules: Vec<PolicyRule>,
}

/// One rule of a policy; IAM calls it a rule.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyRule {
    /// Its name.
    #[serde(rename = "Sid", default)]
    pub sid: String,
    /// `Allow` or `Deny`.
    #[serde(rename = "Effect")]
    pub effect: Effect,
    /// `ec2:Describe*`, one or several.
    #[serde(rename = "Action")]
    pub actions: OneOrMany,
    /// ARNs, one or several.
    #[serde(rename = "Resource")]
    pub resources: OneOrMany,
}

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// Permits.
    Allow,
    /// Forbids, whatever else permits.
    Deny,
}

/// A text or a list of texts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    /// A text.
    One(String),
    /// A list.
    Many(Vec<String>),
}

impl OneOrMany {
    fn any(&self, hit: impl Fn(&str) -> bool) -> bool {
        match self {
            Self::One(text) => hit(text),
            Self::Many(list) => list.iter().any(|text| hit(text)),
        }
    }
}

/// Whether the policies allow an action (`ec2:CreateTags`) on a resource (an ARN, or `*`).
pub(crate) fn allows(policies: &[Policy], action: &str, resource: &str) -> bool {
    let action = action.to_ascii_lowercase();
    let hit = |rule: &&PolicyRule| {
        rule.actions
            .any(|pattern| matches(&pattern.to_ascii_lowercase(), &action))
            && rule.resources.any(|pattern| matches(pattern, resource))
    };
    let hits: Vec<&PolicyRule> = policies.iter().flat_map(|policy| &policy.rules).filter(hit).collect();
    !hits.is_empty() && hits.iter().all(|rule| rule.effect == Effect::Allow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denial_counts_more_than_permission() {
        let policies: Vec<Policy> = serde_json::from_str(
            r#"[{"Statement": [
                {"Effect": "Allow", "Action": ["ec2:Describe*", "route53:*"], "Resource": "*"},
                {"Effect": "Deny", "Action": "route53:Change*", "Resource": "arn:aws:route53:::hostedzone/Z1"}]}]"#,
        )
        .unwrap();
        assert!(allows(&policies, "ec2:DescribeVpcs", "*"));
        assert!(!allows(&policies, "ec2:CreateTags", "*"));
        let change = "route53:ChangeResourceRecordSets";
        assert!(allows(&policies, change, "arn:aws:route53:::hostedzone/Z2"));
        assert!(!allows(&policies, change, "arn:aws:route53:::hostedzone/Z1"));
    }

    #[test]
    fn condition_is_refused_by_name() {
        let error = serde_json::from_str::<Policy>(
            r#"{"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": {}}]}"#,
        );
        assert!(error.unwrap_err().to_string().contains("Condition"));
    }
}
