//! What a resource type may do: read and change the state at one moment, for one caller, and begin operations.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::error::ArmError;
use super::fault::{OperationFault, OperationFaultKind};
use super::id::ResourceId;
use super::kind::Stack;
use super::operation::{Operation, OperationStatus, Outcome, Verb};
use super::preset::Pace;
use super::registry;
use super::resource::{ProvisioningState, Resource};
use super::state::State;
use crate::Caller;

/// The state at one moment.
pub(crate) struct Context<'a> {
    pub(crate) state: &'a mut State,
    pub(crate) now: Timestamp,
    /// Who calls; nobody for seed, control calls and the ends of operations.
    pub(crate) caller: Option<&'a Caller>,
    /// Some fields are shown by some versions only; empty outside a call.
    pub(crate) api_version: String,
    /// Whether the call only reads: some ids are spelled otherwise then.
    pub(crate) reads: bool,
    /// How the next operation is to go wrong.
    pub(crate) fault: Option<OperationFault>,
}

/// An operation to begin.
pub(crate) struct Begin<'a> {
    pub(crate) name: &'a str,
    pub(crate) stack: Stack,
    pub(crate) verb: Verb,
    pub(crate) target: &'a ResourceId,
    pub(crate) target_type: &'a str,
    pub(crate) region: &'a str,
    pub(crate) api_version: &'a str,
    pub(crate) pace: &'a Pace,
    /// How it ends unless a fault rule sets another outcome.
    pub(crate) outcome: Outcome,
    pub(crate) payload: Value,
}

impl<'a> Context<'a> {
    pub(crate) fn new(state: &'a mut State, now: Timestamp) -> Self {
        Self {
            state,
            now,
            caller: None,
            api_version: String::new(),
            reads: false,
            fault: None,
        }
    }

    /// The resource, or ARM's 404.
    pub(crate) fn find(&self, id: &ResourceId) -> Result<&Resource, ArmError> {
        self.state.store.get(id).ok_or_else(|| ArmError::resource_not_found(id))
    }

    /// Whether the caller's version shows what came with `version`; outside a call everything is shown.
    pub(crate) fn shows_since(&self, version: &str) -> bool {
        self.api_version.is_empty() || self.api_version.as_str() >= version
    }

    /// A new GUID.
    pub(crate) fn guid(&mut self) -> String {
        self.state.random.guid()
    }

    /// A new weak etag, as Microsoft.Network has them.
    pub(crate) fn weak_etag(&mut self) -> String {
        format!("W/\"{}\"", self.guid())
    }

    /// Puts a resource as it is, `Succeeded`, under a new weak etag; what the engine keeps apart leaves the body.
    pub(crate) fn store(&mut self, resource_type: &str, id: &ResourceId, body: Value) {
        let etag = self.weak_etag();
        self.store_with_etag(resource_type, id, body, etag);
    }

    /// Puts a resource as [`Self::store`] does, under a given etag.
    pub(crate) fn store_with_etag(&mut self, resource_type: &str, id: &ResourceId, mut body: Value, etag: String) {
        strip(&mut body);
        let known = self.state.store.get(id);
        let id = known.map_or_else(|| id.spelled(resource_type), |known| known.id.clone());
        let hidden = known.map_or(Value::Null, |known| known.hidden.clone());
        self.state.store.insert(Resource {
            id,
            resource_type: resource_type.to_owned(),
            body,
            etag,
            state: ProvisioningState::Succeeded,
            operation: None,
            created: self.now,
            changed: self.now,
            hidden,
        });
    }

    /// Begins an operation. One that takes no time has ended, well, before this returns; its target's type is not asked
    /// to finish it.
    pub(crate) fn begin(&mut self, begin: Begin<'_>) -> String {
        let id = self.guid();
        let mut pace = self.state.next_pace.unwrap_or(*begin.pace);
        if !self.state.switches.rare_durations {
            pace.tails = &[];
        }
        let duration = self.state.preset.duration(&pace, &mut self.state.random);
        let at_once = duration.is_zero();
        let fault = if at_once { None } else { self.fault.take() };
        let mut ends = Some(self.now.saturating_add(duration).unwrap_or(Timestamp::MAX));
        let mut outcome = begin.outcome;
        let mut lost = false;
        if let Some(fault) = fault {
            match fault.kind {
                OperationFaultKind::Fail => outcome = Outcome::Fail(fault.error()),
                OperationFaultKind::Cancel => outcome = Outcome::Cancel,
                OperationFaultKind::Hang => ends = None,
                OperationFaultKind::Lost => lost = true,
            }
        }
        let status = if at_once {
            OperationStatus::Succeeded
        } else {
            OperationStatus::InProgress
        };
        let operation = Operation {
            id: id.clone(),
            seq: 0,
            name: begin.name.to_owned(),
            stack: begin.stack,
            verb: begin.verb,
            target: begin.target.clone(),
            target_type: begin.target_type.to_owned(),
            region: begin.region.to_owned(),
            api_version: begin.api_version.to_owned(),
            started: self.now,
            ends: ends.filter(|_| !at_once),
            outcome,
            status,
            error: None,
            lost,
            retry_after_s: self.state.preset.retry_after(pace.retry_after_s),
            payload: begin.payload,
        };
        self.state.operations.begin(operation);
        id
    }

    /// Cancels what runs on `target` because `by` = (name, id) takes its place.
    pub(crate) fn supersede(&mut self, target: &ResourceId, by: (&str, &str)) {
        let running = self
            .state
            .store
            .get(target)
            .and_then(|resource| resource.operation.clone());
        if let Some(running) = running {
            self.state.operations.supersede(&running, by, self.now);
        }
    }

    /// The operation that is changing a resource.
    pub(crate) fn running_on(&self, resource: &Resource) -> Option<&Operation> {
        let operation = self.state.operations.get(resource.operation.as_deref()?)?;
        Some(operation).filter(|operation| operation.running())
    }

    /// Gives a resource its state at the end of `operation` and a new weak etag, unless a newer operation has it.
    pub(crate) fn settle(&mut self, operation: &Operation, state: ProvisioningState) {
        let etag = self.weak_etag();
        let now = operation.ends.unwrap_or(self.now);
        if let Some(resource) = self.state.store.get_mut(&operation.target)
            && resource.operation.as_deref() == Some(&operation.id)
        {
            resource.state = state;
            resource.etag = etag;
            resource.changed = now;
        }
    }

    /// Takes a resource and everything below it out of the store; their types do the rest.
    pub(crate) fn remove(&mut self, id: &ResourceId) {
        let mut gone: Vec<ResourceId> = self.state.store.below(id).map(|resource| resource.id.clone()).collect();
        gone.reverse();
        gone.push(id.clone());
        for id in gone {
            let Some(resource) = self.state.store.remove(&id) else {
                continue;
            };
            if let Some(running) = &resource.operation {
                let by = ("DeleteResourceOperation", running.as_str());
                self.state.operations.supersede(running, by, self.now);
            }
            if let Some(kind) = registry::kind(&resource.resource_type) {
                kind.removed(self, &resource);
            }
        }
    }

    /// Ends everything that is over at `self.now`, in order, each at its own time.
    pub(crate) fn advance(&mut self) {
        let now = self.now;
        while let Some(operation) = self.state.operations.end_one(now) {
            self.now = operation.ends.unwrap_or(now);
            if let Some(kind) = registry::kind(&operation.target_type) {
                kind.finish(self, &operation);
            }
        }
        self.now = now;
    }
}

/// Removes what the engine keeps apart from the body, and makes `properties` an object.
fn strip(body: &mut Value) {
    if !body.is_object() {
        *body = json!({});
    }
    if let Some(fields) = body.as_object_mut() {
        for name in ["id", "name", "type", "etag"] {
            fields.remove(name);
        }
        let properties = fields.entry("properties").or_insert_with(|| json!({}));
        if !properties.is_object() {
            *properties = json!({});
        }
        if let Some(properties) = properties.as_object_mut() {
            properties.remove("provisioningState");
        }
    }
}
