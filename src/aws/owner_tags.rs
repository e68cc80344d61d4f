//! The tags of a resource: those of HyperShift, those that the user asks for, and the one that proves the owner.

use serde_json::Value;

use crate::body::{Tags, tags};

/// The key of the tag that says which cluster a resource belongs to.
pub const CLUSTER_ID_TAG: &str = "hypershift.openshift.io/cluster-id";

/// Whose value counts where the user and HyperShift give one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precedence {
    /// HyperShift's: on endpoint services and endpoints.
    HyperShift,
    /// The user's: on security groups.
    User,
}

/// The tags that a resource should have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerTags {
    cluster_id: String,
    others: Tags,
}

impl OwnerTags {
    /// Joins the tags. Keys that begin with `aws:` are left out: AWS refuses the whole call for one
    /// (<https://docs.aws.amazon.com/tag-editor/latest/userguide/best-practices-and-strats.html>).
    pub fn new(cluster_id: &str, hypershift: Tags, user: &Tags, precedence: Precedence) -> Self {
        let usable = |key: &str| !key.to_ascii_lowercase().starts_with("aws:") && key != CLUSTER_ID_TAG;
        let user = user.iter().filter(|(key, _)| usable(key));
        let user: Tags = user.map(|(key, value)| (key.clone(), value.clone())).collect();
        let (mut others, winners) = match precedence {
            Precedence::HyperShift => (user, hypershift),
            Precedence::User => (hypershift, user),
        };
        others.extend(winners);
        Self {
            cluster_id: cluster_id.to_owned(),
            others,
        }
    }

    /// All tags, the owner's among them.
    pub fn all(&self) -> Tags {
        let mut all = self.others.clone();
        all.insert(CLUSTER_ID_TAG.to_owned(), self.cluster_id.clone());
        all
    }

    /// The owner's tag, and the one with this key, if it is to be there.
    pub fn marks(&self, key: &str) -> Tags {
        let mut marks = self.all();
        marks.retain(|known, _| known == CLUSTER_ID_TAG || known == key);
        marks
    }

    /// Whether the body shows that the resource belongs to this cluster.
    pub fn prove(&self, body: &Value) -> bool {
        tags(body).get(CLUSTER_ID_TAG) == Some(&self.cluster_id)
    }

    /// Whether the body shows that the resource belongs to another cluster.
    pub fn deny(&self, body: &Value) -> bool {
        tags(body)
            .get(CLUSTER_ID_TAG)
            .is_some_and(|owner| *owner != self.cluster_id)
    }

    /// The value that a tag should have; none for the owner's tag, and one that should not be there.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.others.get(key).map(String::as_str)
    }

    /// Whether the body lacks a tag, or shows another value. The owner's tag is not among them: HyperShift's own
    /// controllers do not set it.
    pub fn differ(&self, body: &Value) -> bool {
        self.differ_beside(None, body)
    }

    /// Whether the body lacks a tag beside this one, or shows another value.
    pub fn differ_beside(&self, key: Option<&str>, body: &Value) -> bool {
        let current = tags(body);
        let mut others = self.others.iter().filter(|(other, _)| Some(other.as_str()) != key);
        others.any(|(key, value)| current.get(key) != Some(value))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Tags {
        let pairs = pairs.iter();
        pairs
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn key_given_twice_is_sent_once_with_the_value_that_counts() {
        let user = of(&[("Name", "mine"), ("team", "x")]);
        let hypershift = of(&[("Name", "theirs")]);
        let name = |precedence| OwnerTags::new("id", hypershift.clone(), &user, precedence).all()["Name"].clone();
        assert_eq!(name(Precedence::HyperShift), "theirs");
        assert_eq!(name(Precedence::User), "mine");
    }

    #[test]
    fn reserved_keys_and_a_forged_owner_are_left_out() {
        let user = of(&[("aws:x", "1"), ("AWS:y", "2"), (CLUSTER_ID_TAG, "forged"), ("ok", "3")]);
        let tags = OwnerTags::new("id", Tags::new(), &user, Precedence::User);
        assert_eq!(tags.all(), of(&[(CLUSTER_ID_TAG, "id"), ("ok", "3")]));
    }

    #[test]
    fn only_the_owners_tag_proves_or_denies() {
        let tags = OwnerTags::new("id", of(&[("a", "1")]), &Tags::new(), Precedence::HyperShift);
        let (own, other, none) = (
            json!({"Tags": {CLUSTER_ID_TAG: "id"}}),
            json!({"Tags": {CLUSTER_ID_TAG: "other"}}),
            json!({"Tags": {"a": "1"}}),
        );
        assert!(tags.prove(&own) && !tags.deny(&own) && tags.differ(&own));
        assert!(!tags.prove(&other) && tags.deny(&other));
        // Made by HyperShift's own controllers: nothing to write.
        assert!(!tags.prove(&none) && !tags.deny(&none) && !tags.differ(&none));
    }
}
