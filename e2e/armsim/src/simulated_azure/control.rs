//! What the control API asks of the simulated Azure: to start again from a seed, to show the state, to change it behind
//! everybody's back, and to break answers.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::SimulatedAzure;
use crate::engine::context::Context;
use crate::engine::fault::FaultRule;
use crate::engine::id::ResourceId;
use crate::engine::journal::JournalEntry;
use crate::engine::operation::Operation;
use crate::engine::registry;
use crate::engine::resource::Resource;
use crate::engine::seed::{Role, Seed, SeedError, Service, Switches, Tenant};
use crate::engine::state::State;

/// An operation that still runs.
#[derive(Clone, Debug, Serialize)]
pub struct OperationInFlight {
    /// GUID.
    pub id: String,
    /// `PutPrivateEndpointOperation`.
    pub name: String,
    /// ARM id of what it changes.
    pub resource: String,
    /// RFC 3339.
    pub started: String,
    /// RFC 3339; nothing for one that never ends.
    pub ends: Option<String>,
}

/// A resource in a listing.
#[derive(Clone, Debug, Serialize)]
pub struct ListedResource {
    /// ARM id.
    pub id: String,
    /// In Azure's spelling.
    pub resource_type: String,
    /// `Succeeded`, `Updating`, …
    pub state: &'static str,
}

/// A control call that cannot be done.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ControlError(String);

impl SimulatedAzure {
    /// Replaces everything by what the seed describes; on error nothing is changed.
    pub fn seed(&mut self, now: Timestamp, seed: Seed) -> Result<(), SeedError> {
        let mut state = State::new(self.state.preset, self.state.random.clone());
        state.tenants = seed.tenants;
        for subscription in &seed.subscriptions {
            for namespace in &subscription.unregistered {
                state.registrations.never(&subscription.id, namespace);
            }
        }
        state.subscriptions = seed.subscriptions;
        state.roles = seed.roles;
        state.services = seed.services;
        state.switches = seed.switches;
        state.throttle_seed = seed.throttle;
        let mut resources = Vec::new();
        for body in seed.resources {
            let id = body["id"].as_str().unwrap_or_default().to_owned();
            let wrong = |why: String| SeedError::Resource { id: id.clone(), why };
            let parsed = ResourceId::parse(&id).map_err(|error| wrong(error.to_string()))?;
            let depth = parsed.as_str().split('/').count();
            resources.push((registry::rank(&parsed.resource_type()), depth, parsed, body));
        }
        // What others refer to comes first, parents before children.
        resources.sort_by_key(|(rank, depth, _, _)| (*rank, *depth));
        let mut cx = Context::new(&mut state, now);
        for (_, _, id, body) in resources {
            install(&mut cx, &id, body).map_err(|why| SeedError::Resource {
                id: id.to_string(),
                why,
            })?;
        }
        self.state = state;
        Ok(())
    }

    /// All resources whose id starts with `prefix` in any case, as GET shows them.
    pub fn resources(&mut self, now: Timestamp, prefix: &str) -> Vec<Value> {
        self.advance(now);
        let prefix = prefix.to_ascii_lowercase();
        let cx = Context::new(&mut self.state, now);
        cx.state.store.starting(prefix).map(|found| show(&cx, found)).collect()
    }

    /// All resources whose id starts with `prefix` in any case, in few words.
    pub fn listing(&mut self, now: Timestamp, prefix: &str) -> Vec<ListedResource> {
        self.advance(now);
        let prefix = prefix.to_ascii_lowercase();
        let found = self.state.store.starting(prefix);
        let listed = |found: &Resource| ListedResource {
            id: found.id.to_string(),
            resource_type: found.resource_type.clone(),
            state: found.state.as_str(),
        };
        found.map(listed).collect()
    }

    /// Creates or replaces a resource behind everybody's back, `Succeeded` at once. `body` is ARM JSON.
    pub fn put_resource(&mut self, now: Timestamp, id: &str, body: Value) -> Result<Value, ControlError> {
        self.advance(now);
        let id = ResourceId::parse(id).map_err(|error| ControlError(error.to_string()))?;
        let mut cx = Context::new(&mut self.state, now);
        install(&mut cx, &id, body).map_err(ControlError)?;
        let shown = cx.state.store.get(&id).map(|found| show(&cx, found));
        Ok(shown.unwrap_or_default())
    }

    /// Removes a resource and what is nested in it behind everybody's back; returns whether it was there.
    pub fn delete_resource(&mut self, now: Timestamp, id: &str) -> Result<bool, ControlError> {
        self.advance(now);
        let id = ResourceId::parse(id).map_err(|error| ControlError(error.to_string()))?;
        let mut cx = Context::new(&mut self.state, now);
        let known = cx.state.store.get(&id).is_some();
        cx.remove(&id);
        Ok(known)
    }

    /// The calls after number `since`.
    pub fn journal(&self, since: u64) -> &[JournalEntry] {
        self.state.journal.since(since)
    }

    /// Forgets the calls made so far; their numbers are not used again.
    pub fn clear_journal(&mut self) {
        self.state.journal.clear();
    }

    /// Replaces all role assignments; they count for the next call.
    pub fn set_roles(&mut self, roles: Vec<Role>) {
        self.state.roles = roles;
    }

    /// Replaces all fault rules and their counts.
    pub fn set_faults(&mut self, rules: Vec<FaultRule>) {
        self.state.faults.set(rules);
    }

    /// Removes all fault rules.
    pub fn clear_faults(&mut self) {
        self.state.faults.set(vec![]);
    }

    /// The directories of the seed.
    pub fn tenants(&self) -> &[Tenant] {
        &self.state.tenants
    }

    /// The choices in force.
    pub fn switches(&self) -> &Switches {
        &self.state.switches
    }

    /// What stands behind frontends.
    pub fn services(&self) -> &[Service] {
        &self.state.services
    }

    /// Says what stands behind a frontend, in place of what stood there.
    pub fn put_service(&mut self, service: Service) {
        self.delete_service(&service.load_balancer, &service.frontend);
        self.state.services.push(service);
    }

    /// Nothing stands behind that frontend any more.
    pub fn delete_service(&mut self, load_balancer: &str, frontend: &str) {
        self.state.services.retain(|known| {
            !known.load_balancer.eq_ignore_ascii_case(load_balancer) || !known.frontend.eq_ignore_ascii_case(frontend)
        });
    }

    /// Operations that run at `now`, oldest first.
    pub fn operations_in_flight(&mut self, now: Timestamp) -> Vec<OperationInFlight> {
        self.advance(now);
        let running = self.state.operations.running().into_iter();
        let show = |operation: &Operation| OperationInFlight {
            id: operation.id.clone(),
            name: operation.name.clone(),
            resource: operation.target.to_string(),
            started: operation.started.to_string(),
            ends: operation.ends.map(|ends| ends.to_string()),
        };
        running.map(show).collect()
    }
}

fn install(cx: &mut Context<'_>, id: &ResourceId, body: Value) -> Result<(), String> {
    if !body.is_object() || !matches!(body["properties"], Value::Null | Value::Object(_)) {
        return Err("a resource is an object, and so are its properties".to_owned());
    }
    let missing = |id: &ResourceId| cx.state.store.get(id).is_none();
    if cx.state.subscription(id.subscription()).is_none() {
        return Err(format!("subscription '{}' is unknown", id.subscription()));
    }
    if let Some(group) = id.group_id().filter(|group| !id.is(group.as_str()) && missing(group)) {
        return Err(format!("resource group '{}' is missing", group.name()));
    }
    if let Some(parent) = id.parent().filter(missing) {
        return Err(format!("parent '{parent}' is missing"));
    }
    let resource_type = id.resource_type();
    match registry::kind(&resource_type) {
        Some(kind) => kind.install(cx, id, body).map_err(|error| error.error.message),
        None => {
            cx.store(&resource_type, id, body);
            Ok(())
        }
    }
}

/// A resource as GET shows it; types that nobody simulates show what they were given.
fn show(cx: &Context<'_>, resource: &Resource) -> Value {
    if let Some(kind) = registry::kind(&resource.resource_type) {
        return kind.render(cx, resource);
    }
    let mut shown = resource.body.clone();
    shown["id"] = json!(resource.id);
    shown["name"] = json!(resource.id.name());
    shown["type"] = json!(resource.resource_type);
    shown
}
