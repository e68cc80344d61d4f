//! The security group of an endpoint: who may connect to it.
//!
//! Body: `Id`, `GroupName`, `VpcId`, `Tags`, and `Rules`, a rule for each range: `Protocol`, `FromPort`, `ToPort`,
//! `Range`, `Description`; `TagsPending` where no tag is shown yet. To create one, `Description` too.

use std::collections::BTreeSet;

use hyperlink_engine::cloud::Key;
use hyperlink_engine::resource::{Difference, Owned, Resource};
use ipnet::IpNet;
use serde_json::{Value, json};

use super::{Kind, Rules};
use crate::body::{tags, text};
use crate::cloud::Aws;
use crate::owner_tags::OwnerTags;
use crate::slot::Slot;

/// What the engine has to know of security groups.
pub const RULES: Rules = Rules {
    create_if_new: true,
    // Whose it is shows by its tags.
    completed: |body| body["TagsPending"] != true,
    in_use: Some("DependencyViolation"),
    // Name and VPC, which prove with the tags whose it is, cannot be changed.
    in_use_shows_it: true,
    deleted_at_once: true,
    shows_predecessor: true,
    ..Rules::DEFAULT
};

/// The description of the group, which cannot be changed.
const GROUP_DESCRIPTION: &str = "VPC endpoint security group";
/// The description of a rule, which tells our rules from those of others.
pub(crate) const RULE_DESCRIPTION: &str = "Control plane service";

/// A desired security group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecurityGroup {
    /// The slot, with the group's name and its VPC.
    pub slot: Slot,
    /// Its tags.
    pub owner_tags: OwnerTags,
    /// The key of the tag that proves with name and VPC that it is owned, whose value is `owned`.
    pub cluster_tag: String,
    /// The TCP port of the service.
    pub port: u16,
    /// From where it may be reached.
    pub ranges: BTreeSet<IpNet>,
}

/// A rule that lets in connections from one range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct IngressRule {
    /// The TCP port.
    pub port: u16,
    /// From where.
    pub range: IpNet,
}

/// What has to be sent to come from one set of rules to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleChange {
    /// Those to authorize.
    pub authorized: BTreeSet<IngressRule>,
    /// Those to revoke.
    pub revoked: BTreeSet<IngressRule>,
}

impl RuleChange {
    /// The change from what was read to the body of a put. AWS refuses a call as a whole if one of its rules is there
    /// already, whatever its description.
    pub fn between(found: Option<&Value>, body: &Value) -> Self {
        let desired: BTreeSet<IngressRule> = rules(body).map(|(rule, _)| rule).collect();
        let current: Vec<(IngressRule, bool)> = found.into_iter().flat_map(rules).collect();
        let there: BTreeSet<IngressRule> = current.iter().map(|(rule, _)| *rule).collect();
        let revocable = current.iter().filter(|(rule, own)| {
            *own && desired.iter().any(|other| other.port == rule.port) && !desired.contains(rule)
        });
        Self {
            authorized: desired.difference(&there).copied().collect(),
            revoked: revocable.map(|(rule, _)| *rule).collect(),
        }
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.authorized.is_empty() && self.revoked.is_empty()
    }
}

/// The rules for one TCP port that the body shows, and whether their description is that of ours.
fn rules(body: &Value) -> impl Iterator<Item = (IngressRule, bool)> + '_ {
    let rules = body["Rules"].as_array().into_iter().flatten();
    rules.filter_map(|rule| {
        let port = rule["FromPort"]
            .as_u64()
            .filter(|port| rule["ToPort"].as_u64() == Some(*port))?;
        let range: IpNet = text(rule, "Range").parse().ok()?;
        let rule_read = IngressRule {
            port: u16::try_from(port).ok()?,
            range: range.trunc(),
        };
        let is_own = text(rule, "Description") == RULE_DESCRIPTION;
        (text(rule, "Protocol") == "tcp").then_some((rule_read, is_own))
    })
}

impl SecurityGroup {
    /// The tag that is not written while nothing else proves whose the group is.
    fn kept_tag(&self, current: &Value) -> Option<&str> {
        let is_proof = !self.owner_tags.prove(current);
        is_proof.then_some(self.cluster_tag.as_str())
    }
}

impl Owned<Aws> for SecurityGroup {
    fn kind(&self) -> Kind {
        Kind::SecurityGroup
    }

    fn key(&self) -> &Slot {
        &self.slot
    }

    /// Its name, its VPC and a tag of the cluster are all right: that of HyperShift, which has the user's value where the
    /// user gives one, or that of the owner.
    fn is_owned(&self, current: &Value) -> bool {
        let tags = tags(current);
        let tag = tags.get(&self.cluster_tag).map(String::as_str);
        let is_of_cluster =
            tag.is_some_and(|tag| tag == "owned" || self.owner_tags.value(&self.cluster_tag) == Some(tag));
        text(current, "GroupName") == self.slot.name()
            && Some(text(current, "VpcId")) == self.slot.container()
            && (is_of_cluster || self.owner_tags.prove(current))
            && !self.owner_tags.deny(current)
    }
}

impl Resource<Aws> for SecurityGroup {
    fn differs(&self, current: &Value) -> Vec<Difference> {
        let change = RuleChange::between(Some(current), &self.body(None));
        let rules = [
            (!change.is_empty(), Difference::of("Rules")),
            (
                self.owner_tags.differ_beside(self.kept_tag(current), current),
                Difference::of("Tags"),
            ),
        ];
        let differing = rules.into_iter().filter(|(differs, _)| *differs);
        differing.map(|(_, difference)| difference).collect()
    }

    fn body(&self, current: Option<&Value>) -> Value {
        let mut tags = self.owner_tags.all();
        if let Some(kept) = current.and_then(|current| self.kept_tag(current)) {
            tags.remove(kept);
        }
        let rules = self.ranges.iter().map(|range| {
            json!({"Protocol": "tcp", "FromPort": self.port, "ToPort": self.port, "Range": range.trunc().to_string(),
                "Description": RULE_DESCRIPTION})
        });
        json!({
            "GroupName": self.slot.name(),
            "VpcId": self.slot.container(),
            "Description": GROUP_DESCRIPTION,
            "Tags": tags,
            "Rules": rules.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::body::Tags;
    use crate::owner_tags::{CLUSTER_ID_TAG, Precedence};
    use crate::slot::Scope;

    fn desired(ranges: &[&str]) -> SecurityGroup {
        let scope = Scope::own("123456789012", "us-east-1");
        let cluster_tag = "kubernetes.io/cluster/infra";
        let tags = Tags::from([(cluster_tag.to_owned(), "owned".to_owned())]);
        SecurityGroup {
            slot: Slot::security_group(&scope, "vpc-1", "infra-vpce-private-router"),
            owner_tags: OwnerTags::new("id", tags, &Tags::new(), Precedence::User),
            cluster_tag: cluster_tag.to_owned(),
            port: 443,
            ranges: ranges.iter().map(|range| range.parse().unwrap()).collect(),
        }
    }

    fn rule(port: u16, range: &str, description: &str) -> Value {
        json!({"Protocol": "tcp", "FromPort": port, "ToPort": port, "Range": range, "Description": description})
    }

    fn shown(rules: &[Value]) -> Value {
        json!({"Id": "sg-1", "GroupName": "infra-vpce-private-router", "VpcId": "vpc-1",
            "Tags": {"kubernetes.io/cluster/infra": "owned"}, "Rules": rules})
    }

    /// What is authorized and revoked to come from `current` to the desired ranges.
    fn change(ranges: &[&str], current: &[Value]) -> (Vec<String>, Vec<String>) {
        let change = RuleChange::between(Some(&shown(current)), &desired(ranges).body(None));
        let texts = |rules: BTreeSet<IngressRule>| rules.iter().map(|rule| rule.range.to_string()).collect();
        (texts(change.authorized), texts(change.revoked))
    }

    #[test]
    fn only_missing_rules_are_authorized() {
        let current = [rule(443, "10.0.0.0/16", "Control plane service")];
        let (authorized, revoked) = change(&["10.0.0.0/16", "10.1.0.0/16", "2001:db8::/56"], &current);
        assert_eq!(
            (authorized, revoked.len()),
            (vec!["10.1.0.0/16".to_owned(), "2001:db8::/56".to_owned()], 0)
        );
    }

    #[test]
    fn rule_with_another_description_is_there_already() {
        let current = [rule(443, "10.0.0.0/16", "by hand")];
        assert_eq!(change(&["10.0.0.0/16"], &current), (vec![], vec![]));
    }

    #[test]
    fn own_rule_that_is_not_desired_is_revoked() {
        let current = [
            rule(443, "10.0.0.0/16", "Control plane service"),
            rule(443, "10.9.0.0/16", "Control plane service"),
            rule(443, "10.8.0.0/16", "by hand"),
            rule(22, "10.9.0.0/16", "Control plane service"),
        ];
        assert_eq!(
            change(&["10.0.0.0/16"], &current),
            (vec![], vec!["10.9.0.0/16".to_owned()])
        );
    }

    #[test]
    fn range_with_host_bits_is_the_network_it_is_in() {
        let current = [rule(443, "10.0.0.0/16", "Control plane service")];
        assert_eq!(change(&["10.0.7.7/16"], &current), (vec![], vec![]));
        assert_eq!(desired(&["10.0.7.7/16"]).differs(&shown(&current)), []);
    }

    #[test]
    fn rule_for_a_range_of_ports_is_another_rule() {
        let mut wide = rule(443, "10.0.0.0/16", "Control plane service");
        wide["FromPort"] = json!(0);
        assert_eq!(change(&["10.0.0.0/16"], &[wide]).0, ["10.0.0.0/16"]);
    }

    /// The user gives a tag with the key of the cluster tag.
    fn with_user_tag() -> SecurityGroup {
        let group = desired(&[]);
        let user = Tags::from([(group.cluster_tag.clone(), "mine".to_owned())]);
        SecurityGroup {
            owner_tags: OwnerTags::new("id", Tags::new(), &user, Precedence::User),
            ..group
        }
    }

    #[test]
    fn users_value_of_the_cluster_tag_is_a_proof_like_hypershifts() {
        let mut body = shown(&[]);
        for (value, owned) in [("mine", true), ("owned", true), ("shared", false)] {
            body["Tags"] = json!({"kubernetes.io/cluster/infra": value});
            assert_eq!(with_user_tag().is_owned(&body), owned, "{value}");
        }
    }

    #[test]
    fn cluster_tag_is_repaired_only_where_the_owners_tag_shows() {
        let group = with_user_tag();
        let mut body = shown(&[]);
        assert_eq!(group.differs(&body), []);
        assert_eq!(group.body(Some(&body))["Tags"], json!({CLUSTER_ID_TAG: "id"}));
        body["Tags"][CLUSTER_ID_TAG] = json!("id");
        assert_eq!(group.differs(&body), [Difference::of("Tags")]);
        assert_eq!(
            group.body(Some(&body))["Tags"]["kubernetes.io/cluster/infra"],
            json!("mine")
        );
    }

    #[rstest]
    #[case::other_name("/GroupName", json!("other"))]
    #[case::other_vpc("/VpcId", json!("vpc-2"))]
    #[case::cluster_tag_is_shared("/Tags/kubernetes.io~1cluster~1infra", json!("shared"))]
    #[case::no_tags("/Tags", json!({}))]
    #[case::other_owner("/Tags", json!({"kubernetes.io/cluster/infra": "owned", CLUSTER_ID_TAG: "other"}))]
    fn group_without_one_of_the_proofs_is_foreign(#[case] pointer: &str, #[case] value: Value) {
        let mut body = shown(&[]);
        assert!(desired(&[]).is_owned(&body));
        *body.pointer_mut(pointer).unwrap() = value;
        assert!(!desired(&[]).is_owned(&body));
    }
}
