//! Identity-based policies: actions and resources with wildcards; a denial counts more than a permission.

use serde::{Deserialize, Serialize};

use crate::engine::filter::matches;

/// A policy document, in IAM's form. Of conditions one is simulated; others are refused.
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
    /// When it counts; always without one.
    #[serde(rename = "Condition", default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
}

/// When a rule counts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// Keys that have to be there with one of these values.
    #[serde(rename = "StringEquals")]
    pub string_equals: ConditionKeys,
}

/// The condition keys that are simulated.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConditionKeys {
    /// The create that tags what it makes. What is tagged later has no such key.
    #[serde(rename = "ec2:CreateAction")]
    pub create_action: OneOrMany,
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

impl PolicyRule {
    /// Whether it counts for what this create makes, or for no create.
    fn counts(&self, create_action: Option<&str>) -> bool {
        let Some(Condition { string_equals }) = &self.condition else {
            return true;
        };
        create_action.is_some_and(|action| string_equals.create_action.any(|one| one == action))
    }
}

/// Whether the policies allow an action (`ec2:CreateTags`) on a resource (an ARN, or `*`). `create_action` is the create
/// that takes the action for what it makes.
pub(crate) fn allows(policies: &[Policy], action: &str, resource: &str, create_action: Option<&str>) -> bool {
    let action = action.to_ascii_lowercase();
    let hit = |rule: &&PolicyRule| {
        rule.actions
            .any(|pattern| matches(&pattern.to_ascii_lowercase(), &action))
            && rule.resources.any(|pattern| matches(pattern, resource))
            && rule.counts(create_action)
    };
    let hits: Vec<&PolicyRule> = policies.iter().flat_map(|policy| &policy.rules).filter(hit).collect();
    !hits.is_empty() && hits.iter().all(|rule| rule.effect == Effect::Allow)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn denial_counts_more_than_permission() {
        let policies: Vec<Policy> = serde_json::from_str(
            r#"[{"Statement": [
                {"Effect": "Allow", "Action": ["ec2:Describe*", "route53:*"], "Resource": "*"},
                {"Effect": "Deny", "Action": "route53:Change*", "Resource": "arn:aws:route53:::hostedzone/Z1"}]}]"#,
        )
        .unwrap();
        assert!(allows(&policies, "ec2:DescribeVpcs", "*", None));
        assert!(!allows(&policies, "ec2:CreateTags", "*", None));
        let change = "route53:ChangeResourceRecordSets";
        assert!(allows(&policies, change, "arn:aws:route53:::hostedzone/Z2", None));
        assert!(!allows(&policies, change, "arn:aws:route53:::hostedzone/Z1", None));
    }

    /// A policy that allows everything under this condition.
    fn under(condition: serde_json::Value) -> Result<Policy, serde_json::Error> {
        let rule = json!({"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": condition});
        serde_json::from_value(json!({ "Statement": [rule] }))
    }

    #[test]
    fn condition_on_the_create_holds_for_what_that_makes() {
        let creates = json!(["CreateVpcEndpoint", "CreateSecurityGroup"]);
        let policies = [under(json!({"StringEquals": {"ec2:CreateAction": creates}})).unwrap()];
        let allowed = |create| allows(&policies, "ec2:CreateTags", "*", create);
        assert!(allowed(Some("CreateVpcEndpoint")) && allowed(Some("CreateSecurityGroup")));
        assert!(!allowed(Some("CreateVpcEndpointServiceConfiguration")) && !allowed(None));
    }

    #[test]
    fn other_condition_is_refused_by_name() {
        let refusal = |condition| under(condition).unwrap_err().to_string();
        assert!(refusal(json!({"StringLike": {"ec2:CreateAction": "*"}})).contains("StringLike"));
        assert!(refusal(json!({"StringEquals": {"aws:RequestTag/team": "x"}})).contains("aws:RequestTag/team"));
    }
}
