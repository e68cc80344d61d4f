//! The mark by which a resource is proven to be ours.

use std::collections::BTreeMap;

use serde_json::Value;

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
        self.value_at(body.get("tags"))
    }

    /// Whether the metadata of the record set `body` proves that it is ours.
    pub fn prove_record(&self, body: &Value) -> bool {
        self.value_at(body.pointer("/properties/metadata"))
    }

    fn value_at(&self, tags: Option<&Value>) -> bool {
        let (key, value) = &self.owner;
        let tags = tags.and_then(Value::as_object);
        !value.is_empty()
            && tags
                .into_iter()
                .flatten()
                .any(|(k, v)| k.eq_ignore_ascii_case(key) && v.as_str() == Some(value))
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
        assert!(marks.prove_record(&json!({"properties": {"metadata": {"cluster": "a"}}})));
    }

    #[test]
    fn an_empty_owner_proves_nothing() {
        assert!(!Marks::default().prove(&json!({"tags": {"": ""}})));
    }
}
