//! ARM's JSON of a resource: its state, and how a body to PUT is made of it.

use std::collections::BTreeMap;

use hyperlink_engine::cloud::Cloud;
use hyperlink_engine::resource::Progress;
use serde_json::{Map, Value};

use crate::arm::id::ResourceId;
use crate::cloud::Arm;

/// Reads `properties.provisioningState`. A missing one means ready, an unknown one means in progress
/// (<https://learn.microsoft.com/azure/azure-resource-manager/management/async-operations>).
pub fn progress(body: &Value) -> Progress {
    match Arm::state(body) {
        None | Some("Succeeded") => Progress::Ready,
        Some("Failed" | "Canceled") => Progress::Failed,
        Some("Deleting") => Progress::Deleting,
        Some(_) => Progress::InProgress,
    }
}

/// The body to start from: what is there, without the fields that only the service writes, or an empty object.
pub(super) fn base(current: Option<&Value>) -> Value {
    let mut body = current.cloned().unwrap_or_else(|| Value::Object(Map::new()));
    if let Some(root) = body.as_object_mut() {
        root.remove("etag");
        if let Some(properties) = root.get_mut("properties").and_then(Value::as_object_mut) {
            properties.remove("provisioningState");
        }
    }
    body
}

/// Sets the value at a path of object keys. Creates missing objects on the way.
pub(super) fn set(body: &mut Value, path: &[&str], value: Value) {
    let mut at = body;
    for key in path {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        at = &mut at[*key];
    }
    *at = value;
}

/// Adds owner tags (or record metadata) at `path` and keeps the others. Adds none if there is no room for all.
pub(super) fn mark(body: &mut Value, path: &str, owner_tags: &BTreeMap<String, String>, max_entries: usize) {
    let mut all = body.get(path).and_then(Value::as_object).cloned().unwrap_or_default();
    for (key, value) in owner_tags {
        all.insert(key.clone(), Value::String(value.clone()));
    }
    if all.len() <= max_entries {
        set(body, &[path], Value::Object(all));
    }
}

/// The id at a JSON pointer, if there is one that parses.
pub fn id_at(body: &Value, pointer: &str) -> Option<ResourceId> {
    body.pointer(pointer)
        .and_then(Value::as_str)
        .and_then(|text| ResourceId::parse(text).ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_provisioning_state_means_in_progress() {
        let state = |word: &str| progress(&json!({"properties": {"provisioningState": word}}));
        assert_eq!(state("Succeeded"), Progress::Ready);
        assert_eq!(state("Canceled"), Progress::Failed);
        assert_eq!(state("Updating"), Progress::InProgress);
        assert_eq!(state("Pondering"), Progress::InProgress);
        assert_eq!(progress(&json!({})), Progress::Ready);
    }

    #[test]
    fn owner_tags_without_room_are_left_out_and_the_others_stay() {
        let full: Map<String, Value> = (0..15).map(|n| (format!("t{n}"), json!("x"))).collect();
        let mut body = json!({"tags": full.clone()});
        mark(
            &mut body,
            "tags",
            &BTreeMap::from([("ours".to_owned(), "1".to_owned())]),
            15,
        );
        assert_eq!(body["tags"], Value::Object(full));
    }
}
