//! Which keys the recorded answers of a type have, by api-version: what a cassette shows about fields that one answer
//! happens not to show.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Keys whose objects are maps: their own keys are data.
const MAPS: [&str; 2] = ["tags", "metadata"];

/// The keys observed, by shape.
#[derive(Default)]
pub(super) struct Shapes(BTreeMap<String, BTreeSet<String>>);

impl Shapes {
    /// Adds all keys of a recorded answer.
    pub(super) fn learn(&mut self, shape: &str, body: &Value) {
        let observed = self.0.entry(shape.to_owned()).or_default();
        collect("", body, observed);
        for item in body["value"].as_array().into_iter().flatten() {
            collect("", item, observed);
        }
    }

    /// Whether any recorded answer of that shape has the key.
    pub(super) fn has(&self, shape: &str, at: &str) -> bool {
        // A resource in a list has the keys of a resource.
        let one = at.strip_prefix("value[].");
        let observed = self.0.get(shape);
        observed.is_some_and(|observed| observed.contains(at) || one.is_some_and(|one| observed.contains(one)))
    }
}

/// The path of a key below `at`.
pub(super) fn step(at: &str, key: &str) -> String {
    if at.is_empty() {
        key.to_owned()
    } else {
        format!("{at}.{key}")
    }
}

fn collect(at: &str, value: &Value, observed: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let at = step(at, key);
                observed.insert(at.clone());
                if !MAPS.contains(&key.as_str()) {
                    collect(&at, value, observed);
                }
            }
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| collect(&format!("{at}[]"), item, observed)),
        _ => {}
    }
}
