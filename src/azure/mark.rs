//! The mark by which a resource is proven to be ours.

use std::collections::BTreeMap;

use serde_json::Value;

/// Azure's limit of tags on a resource.
pub(super) const MAX_TAGS: usize = 50;

/// Tags (metadata, on record sets) that are written, one of which proves ownership.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Marks {
    /// The tag that proves ownership, and its value.
    pub owner: (String, String),
    /// Tags that only describe.
    pub labels: BTreeMap<String, String>,
}

impl Marks {
    /// All tags to write.
    pub fn all(&self) -> BTreeMap<String, String> {
        let mut all = self.labels.clone();
        all.insert(self.owner.0.clone(), self.owner.1.clone());
        all
    }

    /// Whether the tags of `body` prove that it is ours.
    pub fn prove(&self, body: &Value) -> bool {
        let (_, value) = &self.owner;
        !value.is_empty() && self.owner_in(body.get("tags")) == Some(value)
    }

    /// Whether the tags of `body`, or its metadata, name another owner: then no structure makes it ours.
    pub fn deny(&self, body: &Value) -> bool {
        let all = [body.get("tags"), body.pointer("/properties/metadata")];
        all.into_iter()
            .any(|tags| self.owner_in(tags).is_some_and(|found| found != self.owner.1))
    }

    fn owner_in<'a>(&self, tags: Option<&'a Value>) -> Option<&'a str> {
        let tags = tags.and_then(Value::as_object)?;
        let mark = tags.iter().find(|(k, _)| k.eq_ignore_ascii_case(&self.owner.0));
        mark.and_then(|(_, v)| v.as_str()).filter(|v| !v.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_whole_mark_proves() {
        let marks = Marks {
            owner: ("cluster".into(), "a".into()),
            labels: BTreeMap::from([("type".into(), "x".into())]),
        };
        assert!(marks.prove(&json!({"tags": {"Cluster": "a"}})));
        assert!(!marks.prove(&json!({"tags": {"cluster": "A"}})));
        assert!(!marks.prove(&json!({"tags": {"type": "x"}})));
        assert!(!marks.prove(&json!({"tags": null})));
    }

    #[test]
    fn an_empty_owner_proves_nothing() {
        assert!(!Marks::default().prove(&json!({"tags": {"": ""}})));
    }

    #[test]
    fn mark_of_another_cluster_denies_and_a_missing_one_does_not() {
        let marks = |id: &str| Marks {
            owner: ("cluster".into(), id.into()),
            ..Marks::default()
        };
        let (theirs, none) = (json!({"tags": {"Cluster": "b"}}), json!({"tags": {"type": "x"}}));
        assert!(marks("a").deny(&theirs) && !marks("b").deny(&theirs) && !marks("a").deny(&none));
        assert!(marks("").deny(&theirs), "whose id is not known has marked nothing");
        assert!(marks("a").deny(&json!({"properties": {"metadata": {"cluster": "b"}}})));
    }
}
