//! The owner tags that prove that a resource belongs to this cluster, and the stamp of a management cluster.

use std::collections::BTreeMap;

use serde_json::Value;

/// Azure's limit of tags on a resource.
pub(super) const MAX_TAGS: usize = 50;

/// The tags to write (metadata, on record sets). One of them proves ownership.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OwnerTags {
    /// The tag that proves ownership, and its value.
    pub owner: (String, String),
    /// Tags that only describe the resource.
    pub labels: BTreeMap<String, String>,
}

impl OwnerTags {
    /// All tags to write, as a map.
    pub fn all(&self) -> BTreeMap<String, String> {
        let mut all = self.labels.clone();
        all.insert(self.owner.0.clone(), self.owner.1.clone());
        all
    }

    /// Whether the tags of `body` prove that it is owned.
    pub fn prove(&self, body: &Value) -> bool {
        let (_, value) = &self.owner;
        !value.is_empty() && self.owner_in(body.get("tags")) == Some(value)
    }

    /// Whether the tags or the metadata of `body` name another owner. Then no structure proves that it is owned.
    pub fn deny(&self, body: &Value) -> bool {
        let all = [body.get("tags"), body.pointer("/properties/metadata")];
        all.into_iter()
            .any(|tags| self.owner_in(tags).is_some_and(|found| found != self.owner.1))
    }

    fn owner_in<'a>(&self, tags: Option<&'a Value>) -> Option<&'a str> {
        value(tags, &self.owner.0)
    }
}

/// A tag that distinguishes management clusters that share a resource group and may use one name. Each one sets its own
/// value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stamp {
    /// The tag's name.
    pub tag: String,
    /// This management cluster's value.
    pub own: String,
    /// The value of the management cluster that this one replaces, as an administrator says.
    pub former: Option<String>,
}

/// Which stamp a resource carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamped {
    /// This management cluster's stamp.
    Own,
    /// The stamp of the management cluster that this one replaces.
    Former,
    /// Another management cluster's stamp. Then nothing else proves that the resource is owned.
    Other,
    /// No stamp at all.
    Not,
}

impl Stamp {
    /// Which stamp `body` carries.
    pub fn on(&self, body: &Value) -> Stamped {
        match value(body.get("tags"), &self.tag) {
            None => Stamped::Not,
            Some(found) if found == self.own => Stamped::Own,
            Some(found) if self.former.as_deref() == Some(found) => Stamped::Former,
            Some(_) => Stamped::Other,
        }
    }
}

/// The value of a tag; none if it is empty.
fn value<'a>(tags: Option<&'a Value>, tag: &str) -> Option<&'a str> {
    let tags = tags.and_then(Value::as_object)?;
    let found = tags.iter().find(|(name, _)| name.eq_ignore_ascii_case(tag));
    found
        .and_then(|(_, value)| value.as_str())
        .filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_whole_mark_proves() {
        let owner_tags = OwnerTags {
            owner: ("cluster".into(), "a".into()),
            labels: BTreeMap::from([("type".into(), "x".into())]),
        };
        assert!(owner_tags.prove(&json!({"tags": {"Cluster": "a"}})));
        assert!(!owner_tags.prove(&json!({"tags": {"cluster": "A"}})));
        assert!(!owner_tags.prove(&json!({"tags": {"type": "x"}})));
        assert!(!owner_tags.prove(&json!({"tags": null})));
    }

    #[test]
    fn stamp_is_that_of_one_management_cluster() {
        let stamp = Stamp {
            tag: "management".into(),
            own: "a".into(),
            former: Some("b".into()),
        };
        let on = |tags: Value| stamp.on(&json!({"tags": tags}));
        assert_eq!(on(json!({"Management": "a"})), Stamped::Own);
        assert_eq!(on(json!({"management": "b"})), Stamped::Former);
        assert_eq!(on(json!({"management": "c"})), Stamped::Other);
        assert_eq!(on(json!({"management": ""})), Stamped::Not);
        assert_eq!(on(Value::Null), Stamped::Not);
    }

    #[test]
    fn an_empty_owner_proves_nothing() {
        assert!(!OwnerTags::default().prove(&json!({"tags": {"": ""}})));
    }

    #[test]
    fn mark_of_another_cluster_denies_and_a_missing_one_does_not() {
        let owner_tags = |id: &str| OwnerTags {
            owner: ("cluster".into(), id.into()),
            ..OwnerTags::default()
        };
        let (theirs, none) = (json!({"tags": {"Cluster": "b"}}), json!({"tags": {"type": "x"}}));
        assert!(owner_tags("a").deny(&theirs) && !owner_tags("b").deny(&theirs) && !owner_tags("a").deny(&none));
        assert!(owner_tags("").deny(&theirs), "whose id is not known has marked nothing");
        assert!(owner_tags("a").deny(&json!({"properties": {"metadata": {"cluster": "b"}}})));
    }
}
