//! The simulated Azure as a pure state machine: no socket, no async, no clock. Every call passes the time.
//!
//! Equal seeds and equal calls give equal answers.

mod control;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::engine::context::Context;
use crate::engine::disturb::disturb;
use crate::engine::error::ArmError;
use crate::engine::fault::FaultAction;
use crate::engine::journal::JournalEntry;
use crate::engine::pipeline::{Passage, carry_out};
use crate::engine::preset::Preset;
use crate::engine::respond::{Asked, base, identify, respond};
use crate::engine::state::State;
use simulator::random::Random;
pub use simulator::wire::{Answer, WireFault};

pub use control::{ControlError, ListedResource, OperationInFlight};

use crate::spec::{Checker, Specs, Tally, Violation};

/// An authenticated caller, as its token names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The tenant that issued the token.
    pub tenant_id: String,
    /// The application.
    pub client_id: String,
    /// What role assignments name.
    pub object_id: String,
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

/// The whole of the simulated Azure. Saves and loads with serde.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SimulatedAzure {
    pub(crate) state: State,
    /// Not part of the state: what is checked does not change what is answered.
    #[serde(skip)]
    checker: Option<Checker>,
}

impl SimulatedAzure {
    /// An empty Azure: no tenant, no subscription. `random_seed` decides all GUIDs and durations.
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

    /// What was held against the specs so far, in every [`SimulatedAzure`] that shares them; nothing where none are.
    pub fn spec_tally(&self) -> Option<Tally> {
        self.checker.as_ref().map(Checker::tally)
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
            cx.reads = method == http::Method::GET;
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
        let (request_id, routing_id) = (self.state.random.guid(), self.state.random.guid());
        identify(response.headers_mut(), now, &request_id, (&correlation_id, &routing_id));
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

    /// The tenant of the subscription that a path is in.
    pub fn tenant_of(&self, path: &str) -> Option<&str> {
        let mut parts = path.trim_start_matches('/').split('/');
        let subscription = parts.next().filter(|part| part.eq_ignore_ascii_case("subscriptions"));
        let subscription = self.state.subscription(subscription.and(parts.next())?);
        subscription.map(|known| known.tenant.as_str())
    }

    /// Counts a call for the fault rules and returns what is to happen to it. ARM calls do this in [`SimulatedAzure::handle`];
    /// [`crate::Server`] asks for all others.
    pub fn fault(&mut self, method: &str, path: &str, client_id: Option<&str>) -> Option<FaultAction> {
        self.state.faults.hit(method, path, client_id.unwrap_or_default())
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
