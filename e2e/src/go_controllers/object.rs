//! How the Go controllers write a custom resource. They write finalizers by an Update of the whole object. On Azure they
//! write the status by a merge patch without a resourceVersion, with their whole list of conditions; on AWS by an Update,
//! which the API server refuses if anybody has written meanwhile.

use anyhow::{Context, Result};
use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Map, Value, json};

/// The annotation that names the HostedCluster of a custom resource or HostedControlPlane: `<namespace>/<name>`.
pub(super) const CLUSTER_ANNOTATION: &str = "hypershift.openshift.io/cluster";

/// Whether the object has a deletion timestamp.
pub(super) fn is_deleting(object: &DynamicObject) -> bool {
    object.metadata.deletion_timestamp.is_some()
}

/// Whether the object has this finalizer.
pub(super) fn has_finalizer(object: &DynamicObject, finalizer: &str) -> bool {
    object.finalizers().iter().any(|one| one == finalizer)
}

/// Whether the API server refused a write because the object has changed since it was read.
pub(super) fn is_conflict(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<kube::Error>(), Some(kube::Error::Api(status)) if status.code == 409)
}

/// The text of a field; empty where the field is missing.
pub(super) fn text<'a>(object: &'a DynamicObject, pointer: &str) -> &'a str {
    object.data.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The object's finalizers, with this one at the end or without it.
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

/// Updates the whole object. The API server refuses if the resourceVersion is not the current one.
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

/// Updates the status, if it is another one. The API server refuses if the resourceVersion is not the current one.
pub(super) async fn update_status(
    api: &Api<DynamicObject>,
    before: &DynamicObject,
    status: Value,
    manager: &str,
) -> Result<()> {
    if before.data["status"] == status {
        return Ok(());
    }
    let mut whole = before.clone();
    whole.data["status"] = status;
    let params = PostParams {
        field_manager: Some(manager.to_owned()),
        ..PostParams::default()
    };
    api.replace_status(&whole.name_any(), &params, &whole).await?;
    Ok(())
}

/// Sets a condition like `meta.SetStatusCondition`: the transition time changes only with the status.
pub(super) fn set_condition(conditions: &mut Vec<Value>, mut condition: Value) {
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    condition["lastTransitionTime"] = now.into();
    let Some(existing) = conditions.iter_mut().find(|one| one["type"] == condition["type"]) else {
        conditions.push(condition);
        return;
    };
    if existing["status"] == condition["status"] {
        condition["lastTransitionTime"] = existing["lastTransitionTime"].take();
    }
    *existing = condition;
}

fn params(manager: &str) -> PatchParams {
    PatchParams {
        field_manager: Some(manager.to_owned()),
        ..PatchParams::default()
    }
}

/// The changes of one status write. The write removes a field whose value is null.
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

    /// Sets a condition, as of the generation that was read.
    pub(super) fn condition(mut self, kind: &str, is_true: bool, reason: &str, message: &str) -> Self {
        let status = if is_true { "True" } else { "False" };
        let condition = json!({"type": kind, "status": status, "reason": reason, "message": message,
            "observedGeneration": self.generation});
        set_condition(&mut self.conditions, condition);
        self
    }

    /// Sends what differs from `object`, and replaces `object` by the answer.
    pub(super) async fn send(self, api: &Api<DynamicObject>, object: &mut DynamicObject, manager: &str) -> Result<()> {
        let before = object.data.get("status").cloned().unwrap_or_default();
        let mut fields = self.fields;
        if !self.conditions.is_empty() {
            fields.insert("conditions".to_owned(), self.conditions.into());
        }
        // An empty patch is sent too: its answer shows the caller what others have written.
        fields.retain(|name, value| before.get(name).unwrap_or(&Value::Null) != value);
        let patch = Patch::Merge(json!({"status": fields}));
        let name = object.name_any();
        let answer = api.patch_status(&name, &params(manager), &patch).await;
        *object = answer.context("patch the status")?;
        Ok(())
    }
}
