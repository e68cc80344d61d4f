//! The simulated Azure as a pure state machine: no socket, no async, no clock. Every call says what time it is.
//!
//! Equal seeds and equal calls give equal answers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::engine::context::Context;
use crate::engine::disturb::disturb;
use crate::engine::error::ArmError;
use crate::engine::fault::{DropWhen, FaultAction, FaultRule};
use crate::engine::id::ResourceId;
use crate::engine::journal::JournalEntry;
use crate::engine::pipeline::{Passage, carry_out};
use crate::engine::preset::Preset;
use crate::engine::random::Random;
use crate::engine::registry;
use crate::engine::resource::Resource;
use crate::engine::respond::{Asked, base, respond};
use crate::engine::seed::{Seed, SeedError, Service, Switches, Tenant};
use crate::engine::state::State;
use crate::spec::{Checker, Specs, Tally, Violation};

/// An authenticated caller, as its token says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The tenant that issued the token.
    pub tenant_id: String,
    /// The application.
    pub client_id: String,
    /// What role assignments name.
    pub object_id: String,
}

/// What goes back to the caller.
#[derive(Debug)]
pub struct Answer {
    /// The answer, complete but for `Content-Length`.
    pub response: Response<Bytes>,
    /// What the socket does to it.
    pub wire: WireFault,
}

/// Faults that only a socket can show. The default is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WireFault {
    /// Wait this long before anything is sent.
    pub delay: Option<Duration>,
    /// Close the connection without an answer.
    pub drop: Option<DropWhen>,
    /// Send only this many bytes of the body, then close.
    pub cut_body_at: Option<usize>,
    /// Send this `Content-Length` with the real body.
    pub content_length: Option<u64>,
}

impl From<FaultAction> for WireFault {
    fn from(fault: FaultAction) -> Self {
        Self {
            delay: fault.delay_ms.map(Duration::from_millis),
            // A status takes the place of the dropped answer.
            drop: fault.drop.filter(|_| fault.status.is_none()),
            cut_body_at: fault.cut_body_at,
            content_length: fault.content_length,
        }
    }
}

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

/// The whole of the simulated Azure. Saves and loads with serde.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct World {
    pub(crate) state: State,
    /// Not part of the state: what is checked does not change what is answered.
    #[serde(skip)]
    checker: Option<Checker>,
}

impl World {
    /// An empty world: no tenant, no subscription. `random_seed` decides all GUIDs and durations.
    pub fn new(preset: Preset, random_seed: u64) -> Self {
        Self {
            state: State::new(preset, Random::new(random_seed)),
            checker: None,
        }
    }

    /// From now on every exchange is held against the specs, and one that breaks them is answered by 500 `SpecViolation`.
    pub fn check_against(&mut self, specs: Arc<Specs>) {
        self.checker = Some(Checker::new(specs));
    }

    /// What broke the specs so far.
    pub fn violations(&self) -> &[Violation] {
        self.checker.as_ref().map_or(&[], Checker::violations)
    }

    /// What was held against the specs so far, in all worlds that share them; nothing where none are.
    pub fn spec_tally(&self) -> Option<Tally> {
        self.checker.as_ref().map(Checker::tally)
    }

    /// Replaces everything by the seed's world; on error nothing is changed.
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

    /// Carries out one ARM call of an authenticated caller.
    ///
    /// Polling URLs and `nextLink` point to the scheme and host of the request's URI, or else to its `Host` header.
    pub fn handle(&mut self, now: Timestamp, caller: &Caller, request: &Request<Bytes>) -> Answer {
        let (method, path) = (request.method(), request.uri().path());
        let fault = self
            .fault(method.as_str(), path, Some(&caller.client_id))
            .unwrap_or_default();
        self.advance(now);
        let base = base(request);
        let correlation_id = self.correlation_id(request.headers());
        let mut passage = Passage::default();
        let mut result = Err(ArmError::gateway(
            503,
            "ServerUnavailable",
            "The connection was dropped.",
        ));
        if fault.applies() {
            let mut cx = Context::new(&mut self.state, now);
            cx.caller = Some(caller);
            cx.fault = fault.operation_fault();
            result = carry_out(&mut cx, caller, request, format!("{base}{path}"), &mut passage);
        }
        let asked = Asked {
            now,
            base: &base,
            api_version: &passage.api_version,
            headers: request.headers(),
            correlation_id: &correlation_id,
            stack: passage.stack,
            head: method == http::Method::HEAD,
        };
        let mut response = respond(&mut self.state, &asked, &result, &passage.remaining);
        if let Some(checker) = self.checker.as_mut().filter(|_| fault.applies()) {
            checker.check(request, &mut response);
        }
        disturb(&mut response, &fault, request);
        let mut entry = JournalEntry::of(now, request, &caller.client_id, &correlation_id);
        entry.answered(&response);
        entry.changed = result.is_ok_and(|reply| reply.changed);
        entry.resource_kind = passage.resource_type;
        self.state.journal.add(entry);
        Answer {
            response,
            wire: fault.into(),
        }
    }

    /// Journals a call that was refused with `code` before its caller was known.
    pub fn refused(
        &mut self,
        now: Timestamp,
        request: &Request<Bytes>,
        code: &str,
        mut response: Response<Bytes>,
    ) -> Answer {
        let correlation_id = self.correlation_id(request.headers());
        let mut entry = JournalEntry::of(now, request, "", &correlation_id);
        entry.status = response.status().as_u16();
        entry.code = Some(code.to_owned());
        self.state.journal.add(entry);
        if let Some(checker) = &mut self.checker {
            checker.check(request, &mut response);
        }
        Answer {
            response,
            wire: WireFault::default(),
        }
    }

    /// Counts a call for the fault rules and returns what is to happen to it. ARM calls do this in [`World::handle`];
    /// the faces ask for all others.
    pub fn fault(&mut self, method: &str, path: &str, client_id: Option<&str>) -> Option<FaultAction> {
        self.state.faults.hit(method, path, client_id.unwrap_or_default())
    }

    /// All resources whose id starts with `prefix` in any case, as GET shows them.
    pub fn resources(&mut self, now: Timestamp, prefix: &str) -> Vec<Value> {
        self.advance(now);
        let prefix = prefix.to_ascii_lowercase();
        let cx = Context::new(&mut self.state, now);
        cx.state.store.starting(prefix).map(|found| show(&cx, found)).collect()
    }

    /// The same resources in few words.
    pub fn listing(&mut self, now: Timestamp, prefix: &str) -> Vec<ListedResource> {
        self.advance(now);
        let prefix = prefix.to_ascii_lowercase();
        let found = self
            .state
            .store
            .all()
            .filter(|found| found.id.key().starts_with(&prefix));
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

    /// Removes a resource and what is nested in it behind everybody's back; says whether it was there.
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
        let show = |operation: &crate::engine::operation::Operation| OperationInFlight {
            id: operation.id.clone(),
            name: operation.name.clone(),
            resource: operation.target.to_string(),
            started: operation.started.to_string(),
            ends: operation.ends.map(|ends| ends.to_string()),
        };
        running.map(show).collect()
    }

    /// Ends what is over at `now`.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        Context::new(&mut self.state, now).advance();
    }

    fn correlation_id(&mut self, headers: &HeaderMap) -> String {
        let given = headers
            .get("x-ms-correlation-request-id")
            .and_then(|value| value.to_str().ok());
        given
            .filter(|id| !id.is_empty())
            .map_or_else(|| self.state.random.guid(), str::to_owned)
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
