//! Two definitions compared key by key, as the API server stores them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Intended differences: the end of their pointers, and the reason.
const ALLOWED: [(&str, &str); 2] = [
    ("/group", "ours stands beside the real one under a group of its own"),
    (
        "/message",
        "what a person reads is in our words; the rules themselves are equal",
    ),
];

/// Every key in which the specs of two definitions differ, except [`ALLOWED`] ones that have some
/// value on both sides. Descriptions are not compared.
pub(crate) fn differences(real: &Value, own: &Value) -> Vec<String> {
    let (real, own) = (leaves(real), leaves(own));
    let pointers: BTreeSet<_> = real.keys().chain(own.keys()).collect();
    let differing = pointers
        .into_iter()
        .filter(|pointer| match (real.get(*pointer), own.get(*pointer)) {
            (Some(a), Some(b)) => a != b && !ALLOWED.iter().any(|(end, _)| pointer.ends_with(end)),
            _ => true,
        });
    differing
        .map(|pointer| format!("{pointer}: real {:?}, ours {:?}", real.get(pointer), own.get(pointer)))
        .collect()
}

/// Every value that is no map and no list, by its pointer; empty maps and lists too.
fn leaves(value: &Value) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    collect(value, String::new(), &mut found);
    found
}

fn collect(value: &Value, pointer: String, found: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, inner) in map {
                // A field of the resource could be called description too; none is.
                if key != "description" {
                    collect(inner, format!("{pointer}/{key}"), found);
                }
            }
        }
        Value::Array(list) if !list.is_empty() => {
            for (index, inner) in list.iter().enumerate() {
                collect(inner, format!("{pointer}/{index}"), found);
            }
        }
        leaf => drop(found.insert(pointer, leaf.clone())),
    }
}
