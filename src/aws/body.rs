//! How the JSON is read in which the engine keeps what AWS shows of a resource. Its fields have the names of AWS's own
//! elements; tags are one object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// Tags of a resource: values by key.
pub type Tags = BTreeMap<String, String>;

/// The text of a field; empty if there is none.
pub fn text<'a>(body: &'a Value, field: &str) -> &'a str {
    body[field].as_str().unwrap_or_default()
}

/// The texts in a field's list.
pub fn texts(body: &Value, field: &str) -> BTreeSet<String> {
    let list = body[field].as_array().into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The tags that the body shows.
pub fn tags(body: &Value) -> Tags {
    let tags = body["Tags"].as_object().into_iter().flatten();
    let tags = tags.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
    tags.collect()
}

/// The state in lower case: AWS writes it in several ways.
pub fn state(body: &Value) -> String {
    text(body, "State").to_ascii_lowercase()
}

/// A set as a list in a body.
pub(crate) fn list(set: &BTreeSet<String>) -> Value {
    json!(set.iter().collect::<Vec<_>>())
}
