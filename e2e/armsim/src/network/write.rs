//! What the writes of all types of Microsoft.Network have in common: preconditions, what counts as a change, the
//! operation, deletion. A type defines by [`Written`] what is its own.

use serde_json::{Value, json};

use crate::engine::context::{Begin, Context};
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::kind::{self, Call, Kind, LinkedScope, Reply, Stack};
use crate::engine::operation::{Operation, OperationStatus, Outcome, Verb};
use crate::engine::preset::Pace;
use crate::engine::registry;
use crate::engine::resource::{ProvisioningState, Resource};
use crate::engine::tags;

use super::precondition::{location, precondition};
use super::reference::another_operation;
use super::settable;
use super::shape::{read, region_of};
use super::written::{About, Plan, Put, Written};

impl<T: Written> Kind for T {
    fn resource_type(&self) -> &'static str {
        self.about().resource_type
    }

    fn first_version(&self) -> &'static str {
        self.about().first_version
    }

    fn links(&self, cx: &Context<'_>, call: &Call<'_>) -> Vec<LinkedScope> {
        self.needs(cx, call)
    }

    fn get(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let found = find(cx, &call.id)?;
        let mut shown = self.render(cx, found);
        for path in call.parameter("$expand").unwrap_or_default().split(',') {
            expand(cx, &mut shown, path.trim());
        }
        Ok(Reply::new(200).body(shown).etag(&self.etag(cx, found)))
    }

    fn put(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let mut given = read(&call.body)?;
        settable::keep(self.resource_type(), &mut given);
        let location = location(cx, call)?;
        let known = cx.state.store.get(&call.id);
        precondition(cx, call, known.map(|known| etag(cx, known)))?;
        not_being_deleted(cx, call)?;
        known.map_or(Ok(()), |known| self.is_open(known))?;
        let put = Put {
            id: &call.id,
            location: &location,
            given: &given,
            call: Some(call),
        };
        let plan = self.plan(cx, &put)?;
        let written = Changed {
            id: &call.id,
            region: &location,
            target: (&call.id, self.about()),
        };
        Ok(accept(cx, call, self, &written, plan))
    }

    /// Replaces the tags, at once.
    fn patch(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        if call.id.parent().is_some() {
            return Err(ArmError::method_not_allowed(call.method));
        }
        let found = cx.find(&call.id)?;
        precondition(cx, call, Some(&found.etag))?;
        self.is_open(found)?;
        not_being_deleted(cx, call)?;
        tags::patch(cx, call, self)
    }

    fn delete(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let region = match call.id.parent() {
            Some(parent) => region_of(&cx.find(&parent)?.body),
            None => cx
                .state
                .store
                .get(&call.id)
                .map(|found| region_of(&found.body))
                .unwrap_or_default(),
        };
        let Some(found) = cx.state.store.get(&call.id) else {
            return Ok(Reply::new(204));
        };
        if let Some(running) = cx.running_on(found).filter(|running| running.verb == Verb::Delete) {
            return Ok(Reply::new(202).operation(&running.id.clone()));
        }
        precondition(cx, call, Some(etag(cx, found)))?;
        self.is_open(found)?;
        self.may_go(cx, call, found)?;
        let about = self.about();
        let operation = begin(cx, call, (&call.id, about), Verb::Delete, &region, &about.delete);
        let etag = cx.weak_etag();
        if let Some(found) = cx.state.store.get_mut(&call.id) {
            found.state = ProvisioningState::Deleting;
            found.operation = Some(operation.clone());
            found.etag = etag;
        }
        touch_parent(cx, &call.id);
        Ok(Reply::new(202).operation(&operation).changed())
    }

    fn etag(&self, cx: &Context<'_>, resource: &Resource) -> String {
        etag(cx, resource).to_owned()
    }

    fn render(&self, cx: &Context<'_>, resource: &Resource) -> Value {
        render(cx, self, resource)
    }

    fn install(&self, cx: &mut Context<'_>, id: &ResourceId, body: Value) -> Result<(), ArmError> {
        let body = read(&body)?;
        let known = cx.state.store.get(id).map(|known| known.id.clone());
        let id = known.unwrap_or_else(|| id.spelled(self.resource_type()));
        let home = id.parent().and_then(|parent| cx.state.store.get(&parent));
        let location = region_of(home.map_or(&body, |home| &home.body));
        let put = Put {
            id: &id,
            location: &location,
            given: &body,
            call: None,
        };
        let plan = self.plan(cx, &put)?;
        cx.store(self.resource_type(), &id, plan.body);
        if let Some(after) = plan.after {
            after(cx);
        }
        if body["properties"]["provisioningState"] == json!("Failed")
            && let Some(stored) = cx.state.store.get_mut(&id)
        {
            stored.state = ProvisioningState::Failed;
        }
        touch_parent(cx, &id);
        Ok(())
    }

    fn finish(&self, cx: &mut Context<'_>, operation: &Operation) {
        let mut operation = operation.clone();
        let succeeded = operation.status == OperationStatus::Succeeded;
        if let Some(error) = self.fails(cx, &operation).filter(|_| succeeded) {
            cx.state.operations.fail(&operation.id, error);
            operation.status = OperationStatus::Failed;
        }
        kind::finish(cx, &operation);
        touch_parent(cx, &operation.target);
        self.ended(cx, &operation);
    }

    fn removed(&self, cx: &mut Context<'_>, gone: &Resource) {
        touch_parent(cx, &gone.id);
        self.gone(cx, gone);
    }
}

/// Which resource a write changes, in which region, and what its operation is about: the resource or a part of it.
pub(crate) struct Changed<'a> {
    pub(crate) id: &'a ResourceId,
    pub(crate) region: &'a str,
    pub(crate) target: (&'a ResourceId, &'a About),
}

/// Stores what was planned and begins the operation. A PUT that changes nothing, or only tags, is over when answered.
pub(crate) fn accept(
    cx: &mut Context<'_>,
    call: &Call<'_>,
    kind: &dyn Written,
    changed: &Changed<'_>,
    plan: Plan,
) -> Reply {
    let about = kind.about();
    let known = cx.state.store.get(changed.id);
    let over = known.is_some_and(|known| {
        !plan.more && known.state == ProvisioningState::Succeeded && equal_but_tags(&known.body, &plan.body)
    });
    let same = over && known.is_some_and(|known| known.body == plan.body);
    let status = if known.is_some() { 200 } else { 201 };
    let pace = match known {
        _ if over || plan.at_once => &Pace::AT_ONCE,
        Some(_) => &about.update,
        None => &about.create,
    };
    let hidden = known.map_or(Value::Null, |known| known.hidden.clone());
    let old_etag = known.filter(|_| same).map(|known| known.etag.clone());
    // What changes nothing is not what the resource was last written by.
    let unchanged = known.filter(|_| same).and_then(|known| known.operation.clone());
    let last_changed = known.map_or(cx.now, |known| known.changed);
    let operation = begin(cx, call, changed.target, Verb::Put, changed.region, pace);
    let running = cx.state.operations.get(&operation).is_some_and(Operation::running);
    let etag = old_etag.unwrap_or_else(|| cx.weak_etag());
    cx.state.store.insert(Resource {
        id: changed.id.clone(),
        resource_type: about.resource_type.to_owned(),
        body: plan.body,
        etag,
        state: if running {
            ProvisioningState::Updating
        } else {
            ProvisioningState::Succeeded
        },
        operation: unchanged.or_else(|| Some(operation.clone())),
        created: cx.now,
        changed: last_changed,
        hidden,
    });
    if let Some(after) = plan.after {
        after(cx);
    }
    let mut reply = Reply::new(status).operation(&operation);
    reply.changed = !same;
    if reply.changed {
        touch_parent(cx, changed.id);
    }
    reply.body = cx.state.store.get(changed.id).map(|stored| render(cx, kind, stored));
    reply
}

/// Begins the operation of a write; what ran on the target is superseded.
pub(crate) fn begin(
    cx: &mut Context<'_>,
    call: &Call<'_>,
    (target, about): (&ResourceId, &About),
    verb: Verb,
    region: &str,
    pace: &Pace,
) -> String {
    let word = if verb == Verb::Delete { "Delete" } else { "Put" };
    let name = format!("{word}{}Operation", about.noun);
    let operation = cx.begin(Begin {
        name: &name,
        stack: Stack::Network,
        verb,
        target,
        target_type: about.resource_type,
        region,
        api_version: &call.api_version,
        pace,
        outcome: Outcome::Succeed,
        payload: Value::Null,
    });
    cx.supersede(target, (&name, &operation));
    operation
}

/// The GUID of a resource: the same as long as it lives.
pub(crate) fn resource_guid(cx: &mut Context<'_>, id: &ResourceId) -> Value {
    let known = cx
        .state
        .store
        .get(id)
        .map(|known| known.property("resourceGuid").clone());
    known.filter(Value::is_string).unwrap_or_else(|| json!(cx.guid()))
}

/// A resource as GET and lists show it.
pub(crate) fn render(cx: &Context<'_>, kind: &dyn Written, resource: &Resource) -> Value {
    let mut shown = resource.body.clone();
    shown["id"] = json!(resource.id);
    shown["name"] = json!(resource.id.name());
    shown["type"] = json!(kind.about().resource_type);
    shown["etag"] = json!(etag(cx, resource));
    shown["properties"]["provisioningState"] = json!(resource.state.as_str());
    kind.show(cx, resource, &mut shown);
    shown
}

/// A nested resource carries its parent's etag.
fn etag<'a>(cx: &'a Context<'_>, resource: &'a Resource) -> &'a str {
    let parent = resource.id.parent().and_then(|parent| cx.state.store.get(&parent));
    parent.map_or(&resource.etag, |parent| &parent.etag)
}

/// Any write to a nested resource changes the etag of its parent.
pub(crate) fn touch_parent(cx: &mut Context<'_>, id: &ResourceId) {
    let Some(parent) = id.parent() else { return };
    let etag = cx.weak_etag();
    if let Some(parent) = cx.state.store.get_mut(&parent) {
        parent.etag = etag;
    }
}

/// ARM answers for what is missing; the provider for a nested resource whose parent is there.
fn find<'a>(cx: &'a Context<'_>, id: &ResourceId) -> Result<&'a Resource, ArmError> {
    let Some(parent) = id.parent() else {
        return cx.find(id);
    };
    cx.find(&parent)?;
    cx.state.store.get(id).ok_or_else(|| ArmError::nested_not_found(id))
}

/// A resource that is being deleted cannot be written.
fn not_being_deleted(cx: &Context<'_>, call: &Call<'_>) -> Result<(), ArmError> {
    let running = cx.state.store.get(&call.id).and_then(|found| cx.running_on(found));
    match running.filter(|running| running.verb == Verb::Delete) {
        Some(running) => Err(another_operation(call, running)),
        None => Ok(()),
    }
}

fn equal_but_tags(one: &Value, other: &Value) -> bool {
    let fields = |body: &Value| {
        body.as_object()
            .map_or(0, |fields| fields.keys().filter(|name| *name != "tags").count())
    };
    let mut all = one.as_object().into_iter().flatten();
    fields(one) == fields(other) && all.all(|(name, value)| name == "tags" || other.get(name) == Some(value))
}

/// Replaces references under a path of properties (`networkInterfaces`, `subnets/networkSecurityGroup`) by what they name.
fn expand(cx: &Context<'_>, shown: &mut Value, path: &str) {
    let (first, rest) = path
        .split_once('/')
        .map_or((path, None), |(first, rest)| (first, Some(rest)));
    let fields = shown.get_mut("properties").and_then(Value::as_object_mut);
    let found = fields.and_then(|fields| fields.iter_mut().find(|(name, _)| name.eq_ignore_ascii_case(first)));
    let slots = match found {
        Some((_, Value::Array(all))) => all.iter_mut().collect(),
        Some((_, one)) if one.is_object() => vec![one],
        _ => vec![],
    };
    for slot in slots {
        if let Some(rest) = rest {
            expand(cx, slot, rest);
            continue;
        }
        let named = slot["id"].as_str().and_then(|id| cx.state.store.find(id));
        if let Some(shown) = named.and_then(|named| Some(registry::kind(&named.resource_type)?.render(cx, named))) {
            *slot = shown;
        }
    }
}
