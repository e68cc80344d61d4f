//! How the Go controllers write a custom resource: the whole object by Update for finalizers, a merge patch without any
//! resourceVersion for its status, with the whole list of conditions as they hold it.

use anyhow::{Context, Result};
use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Map, Value, json};

/// The HostedCluster of a custom resource and of a HostedControlPlane: `<namespace>/<name>`.
pub(super) const CLUSTER_ANNOTATION: &str = "hypershift.openshift.io/cluster";

/// Whether it is being deleted.
pub(super) fn deleting(object: &DynamicObject) -> bool {
    object.metadata.deletion_timestamp.is_some()
}

/// Whether a finalizer stands.
pub(super) fn holds(object: &DynamicObject, finalizer: &str) -> bool {
    object.finalizers().iter().any(|one| one == finalizer)
}

/// Whether the API server refused because somebody was quicker.
pub(super) fn conflict(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<kube::Error>(), Some(kube::Error::Api(status)) if status.code == 409)
}

/// A text field, empty where there is none.
pub(super) fn text<'a>(object: &'a DynamicObject, pointer: &str) -> &'a str {
    object.data.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Those of the object, with this one at the end or without it.
fn finalizers(object: &DynamicObject, finalizer: &str, add: bool) -> Vec<String> {
    let others = object.finalizers().iter().filter(|one| *one != finalizer).cloned();
    others.chain(add.then(|| finalizer.to_owned())).collect()
}

/// Adds or removes a finalizer by an Update of the whole object.
pub(super) async fn update_finalizer(
    api: &Api<DynamicObject>,
    object: &DynamicObject,
    finalizer: &str,
    add: bool,
    manager: &str,
) -> Result<()> {
    let mut whole = object.clone();
    whole.metadata.finalizers = Some(finalizers(object, finalizer, add));
    update(api, &whole, manager).await.map(drop)
}

/// Update: the whole object, guarded by the resourceVersion in it.
pub(super) async fn update(api: &Api<DynamicObject>, whole: &DynamicObject, manager: &str) -> Result<DynamicObject> {
    let params = PostParams {
        field_manager: Some(manager.to_owned()),
        ..PostParams::default()
    };
    Ok(api.replace(&whole.name_any(), &params, whole).await?)
}

/// Adds or removes a finalizer by a merge patch with the resourceVersion.
pub(super) async fn patch_finalizer(
    api: &Api<DynamicObject>,
    object: &DynamicObject,
    finalizer: &str,
    add: bool,
    manager: &str,
) -> Result<()> {
    let finalizers = finalizers(object, finalizer, add);
    let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": object.metadata.resource_version}});
    let params = params(manager);
    api.patch(&object.name_any(), &params, &Patch::Merge(patch)).await?;
    Ok(())
}

fn params(manager: &str) -> PatchParams {
    PatchParams {
        field_manager: Some(manager.to_owned()),
        ..PatchParams::default()
    }
}

/// What a status write changes; a field that is null goes.
pub(super) struct Change {
    generation: Option<i64>,
    fields: Map<String, Value>,
    conditions: Vec<Value>,
}

impl Change {
    pub(super) fn of(object: &DynamicObject) -> Self {
        let conditions = object.data.pointer("/status/conditions").and_then(Value::as_array);
        Self {
            generation: object.metadata.generation,
            fields: Map::new(),
            conditions: conditions.cloned().unwrap_or_default(),
        }
    }

    pub(super) fn field(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    /// `meta.SetStatusCondition`
    pub(super) fn condition(mut self, kind: &str, holds: bool, reason: &str, message: &str) -> Self {
        let status = if holds { "True" } else { "False" };
        let stands = self.conditions.iter_mut().find(|one| one["type"] == kind);
        let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let mut condition = json!({"type": kind, "status": status, "reason": reason, "message": message,
            "observedGeneration": self.generation, "lastTransitionTime": now});
        match stands {
            Some(stands) => {
                if stands["status"] == status {
                    condition["lastTransitionTime"] = stands["lastTransitionTime"].take();
                }
                *stands = condition;
            }
            None => self.conditions.push(condition),
        }
        self
    }

    /// Sends what differs from the object as it was last seen, and goes on with the answer.
    pub(super) async fn send(self, api: &Api<DynamicObject>, object: &mut DynamicObject, manager: &str) -> Result<()> {
        let before = object.data.get("status").cloned().unwrap_or_default();
        let mut fields = self.fields;
        if !self.conditions.is_empty() {
            fields.insert("conditions".to_owned(), self.conditions.into());
        }
        // An empty patch is sent too: its answer is how the holder of the object hears of what others have written.
        fields.retain(|name, value| before.get(name).unwrap_or(&Value::Null) != value);
        let patch = Patch::Merge(json!({"status": fields}));
        let name = object.name_any();
        let answer = api.patch_status(&name, &params(manager), &patch).await;
        *object = answer.context("patch the status")?;
        Ok(())
    }
}
