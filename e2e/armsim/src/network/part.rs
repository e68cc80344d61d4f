//! Parts of a resource that have paths of their own: rules, routes, pools, frontends. They are stored in their parent's
//! body; to write one is to write the parent with that part changed, under the parent's rules.

use serde_json::{Value, json};

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::kind::{self, Call, Kind, Reply};
use crate::engine::operation::{Operation, OperationStatus, Verb};
use crate::engine::page;
use crate::engine::registry;
use crate::engine::resource::{ProvisioningState, Resource};

use super::precondition::precondition;
use super::reference::another_operation;
use super::settable;
use super::shape::{by_name, is_named, items, read, region_of};
use super::write::{self, Changed};
use super::written::{About, Put, Written};

/// The parts in one list of a parent.
pub(crate) struct Part {
    pub(crate) parent: &'static dyn Written,
    pub(crate) about: About,
    /// Whether a part can be put and deleted by itself.
    pub(crate) writable: bool,
}

impl Part {
    /// The list's name: the last word of the type.
    fn list(&self) -> &'static str {
        self.about.resource_type.rsplit('/').next().unwrap_or_default()
    }

    /// The parent of a part that is to be written, if nothing else is changing it.
    fn parent<'a>(&self, cx: &'a Context<'_>, call: &Call<'_>) -> Result<&'a Resource, ArmError> {
        if !self.writable {
            return Err(ArmError::method_not_allowed(call.method));
        }
        let id = parent_id(&call.id);
        let found = cx.state.store.get(&id).ok_or_else(|| ArmError::parent_not_found(&id))?;
        let known = by_name(found.property(self.list()), call.id.name());
        precondition(cx, call, known.map(|_| found.etag.as_str()))?;
        match cx.running_on(found) {
            Some(running) => Err(another_operation(call, running)),
            None => Ok(found),
        }
    }

    /// The parent's body without the part, or with `part` in its place.
    fn changed(&self, parent: &Resource, name: &str, part: Option<Value>) -> Value {
        let mut body = parent.body.clone();
        let mut all = items(parent.property(self.list())).to_vec();
        match (all.iter().position(|item| is_named(item, name)), part) {
            (Some(at), Some(part)) => all[at] = part,
            (Some(at), None) => drop(all.remove(at)),
            (None, part) => all.extend(part),
        }
        body["properties"][self.list()] = json!(all);
        body
    }
}

impl Part {
    /// Stores the parent without a part whose deletion has ended.
    fn leave_out(&self, cx: &mut Context<'_>, mut parent: Resource, name: &str) {
        let (given, region) = (self.changed(&parent, name, None), region_of(&parent.body));
        let put = Put {
            id: &parent.id,
            location: &region,
            given: &given,
            call: None,
        };
        if let Ok(plan) = self.parent.plan(cx, &put) {
            parent.body = plan.body;
            cx.state.store.insert(parent);
            plan.after.into_iter().for_each(|after| after(cx));
        }
    }
}

impl Kind for Part {
    fn resource_type(&self) -> &'static str {
        self.about.resource_type
    }

    fn first_version(&self) -> &'static str {
        self.about.first_version
    }

    fn get(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let parent = cx.find(&parent_id(&call.id))?;
        let found = shown(cx, &call.id).ok_or_else(|| ArmError::nested_not_found(&call.id))?;
        Ok(Reply::new(200).body(found).etag(&parent.etag))
    }

    fn list(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let parent = write::render(cx, self.parent, cx.find(&call.id)?);
        let all = items(&parent["properties"][self.list()]).iter();
        let keyed = all.map(|item| (item["id"].to_string().to_ascii_lowercase(), item.clone()));
        let mut keyed: Vec<(String, Value)> = keyed.collect();
        keyed.sort_by(|one, other| one.0.cmp(&other.0));
        page::page(call, keyed, cx.state.switches.network_page_rows, |shown| shown)
    }

    fn put(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let mut part = read(&call.body)?;
        settable::keep(self.resource_type(), &mut part);
        let parent = self.parent(cx, call)?;
        let (id, region) = (parent.id.clone(), region_of(&parent.body));
        let known = by_name(parent.property(self.list()), call.id.name()).cloned();
        part["name"] = known
            .as_ref()
            .map_or_else(|| json!(call.id.name()), |known| known["name"].clone());
        let given = self.changed(parent, call.id.name(), Some(part));
        let put = Put {
            id: &id,
            location: &region,
            given: &given,
            call: Some(call),
        };
        let plan = self.parent.plan(cx, &put)?;
        let changed = Changed {
            id: &id,
            region: &region,
            target: (&call.id, &self.about),
        };
        let mut reply = write::accept(cx, call, self.parent, &changed, plan);
        reply.status = if known.is_some() { 200 } else { 201 };
        reply.body = shown(cx, &call.id);
        Ok(reply)
    }

    fn delete(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        if self.writable {
            cx.find(&parent_id(&call.id))?;
        }
        let parent = self.parent(cx, call)?;
        let (id, region) = (parent.id.clone(), region_of(&parent.body));
        if by_name(parent.property(self.list()), call.id.name()).is_none() {
            return Ok(Reply::new(204));
        }
        let given = self.changed(parent, call.id.name(), None);
        let put = Put {
            id: &id,
            location: &region,
            given: &given,
            call: Some(call),
        };
        self.parent.plan(cx, &put)?;
        let target = (&call.id, &self.about);
        let operation = write::begin(cx, call, target, Verb::Delete, &region, &self.about.delete);
        let etag = cx.weak_etag();
        if let Some(parent) = cx.state.store.get_mut(&id) {
            parent.state = ProvisioningState::Updating;
            parent.operation = Some(operation.clone());
            parent.etag = etag;
        }
        Ok(Reply::new(202).operation(&operation).changed())
    }

    fn install(&self, _cx: &mut Context<'_>, _id: &ResourceId, _body: Value) -> Result<(), ArmError> {
        let message = format!("a part of {} is put with it", self.parent.about().resource_type);
        Err(ArmError::invalid_content(message))
    }

    fn finish(&self, cx: &mut Context<'_>, operation: &Operation) {
        let id = parent_id(&operation.target);
        let gone = (operation.status, operation.verb) == (OperationStatus::Succeeded, Verb::Delete);
        if let Some(parent) = cx.state.store.get(&id).filter(|_| gone).cloned() {
            self.leave_out(cx, parent, operation.target.name());
        }
        // Of the parent it was an update, whatever became of the part.
        let mut update = operation.clone();
        update.target = id;
        update.verb = Verb::Put;
        kind::finish(cx, &update);
    }
}

fn parent_id(part: &ResourceId) -> ResourceId {
    part.parent().unwrap_or_else(|| part.clone())
}

/// A part as its parent shows it.
pub(crate) fn shown(cx: &Context<'_>, id: &ResourceId) -> Option<Value> {
    let parent = cx.state.store.get(&id.parent()?)?;
    let shown = registry::kind(&parent.resource_type)?.render(cx, parent);
    let list = id.as_str().rsplit('/').nth(1)?;
    let fields = shown["properties"].as_object()?;
    let (_, list) = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(list))?;
    by_name(list, id.name()).cloned()
}
