//! What all kinds of ARM resources have in common: what is observed of them, how they are compared and which body they
//! need.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use serde_json::{Map, Value};

use super::error::ArmError;
use super::id::ResourceId;
pub use super::kinds::Kind;

/// A resource that this process has never observed is gone for certain after reads have shown that for this long.
pub const GONE_FOR: Duration = Duration::from_secs(30);

/// A resource that was there and is not found counts as absent only if a second read, this long after the first, does
/// not find it either.
pub const MISSED: Duration = Duration::from_secs(5);

/// What was observed of one resource.
#[derive(Debug, Clone, PartialEq)]
pub enum Observed {
    /// The resource is there; holds ARM's JSON.
    Found(Value),
    /// The resource is not there.
    Absent,
    /// A create was accepted and is still under way; nothing can be read yet.
    Pending,
    /// The last PUT of the resource was refused, or its operation failed.
    WriteFailed(ArmError),
    /// The last DELETE of the resource was refused, or its operation failed.
    DeleteFailed(ArmError),
    /// The resource could not be read.
    ReadFailed(ArmError),
}

impl Observed {
    /// ARM's JSON, if the resource is there.
    pub fn found(&self) -> Option<&Value> {
        match self {
            Observed::Found(body) => Some(body),
            _ => None,
        }
    }
}

/// The state of a resource by its `provisioningState`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Nothing is under way.
    Ready,
    /// An operation creates or changes the resource.
    InProgress,
    /// An operation deletes the resource.
    Deleting,
    /// The last operation failed or was cancelled.
    Failed,
}

/// Reads `properties.provisioningState`. A missing one means ready, an unknown one means in progress
/// (<https://learn.microsoft.com/azure/azure-resource-manager/management/async-operations>).
pub fn progress(body: &Value) -> Progress {
    match body.pointer("/properties/provisioningState").and_then(Value::as_str) {
        None | Some("Succeeded") => Progress::Ready,
        Some("Failed" | "Canceled") => Progress::Failed,
        Some("Deleting") => Progress::Deleting,
        Some(_) => Progress::InProgress,
    }
}

/// A field that is not as desired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// The field's name in ARM's JSON.
    pub field: &'static str,
    /// Whether Azure cannot change it: the resource has to be recreated.
    pub immutable: bool,
}

impl Difference {
    /// A field that a PUT can change.
    pub fn of(field: &'static str) -> Self {
        Self {
            field,
            immutable: false,
        }
    }

    /// A field that only a new resource can have.
    pub fn immutable(field: &'static str) -> Self {
        Self { field, immutable: true }
    }
}

/// What must be known of a resource to delete it.
pub trait Owned: Debug + Send + Sync {
    /// The resource's kind.
    fn kind(&self) -> Kind;
    /// The resource's ARM id.
    fn id(&self) -> &ResourceId;
    /// Whether `current` is owned for certain: by the owner tags, or by a structure that only this cluster's resource
    /// can have.
    fn is_owned(&self, current: &Value) -> bool;
}

/// A desired resource.
pub trait Resource: Owned {
    /// Whether an operation under way was certainly started by others and leaves the resource in force meanwhile.
    fn moved_by_others(&self, _current: &Value) -> bool {
        false
    }
    /// The fields that are not as desired in `current`. Missing owner tags are no difference.
    fn differs(&self, current: &Value) -> Vec<Difference>;
    /// The body to PUT: the desired fields, laid over what is there.
    fn body(&self, current: Option<&Value>) -> Value;
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
