//! The simulated Azure as a transport: it handles each request at the time that the paused clock shows.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use armsim::{Answer, Caller, Preset, Seed, SimulatedAzure};
use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use hyperlink::azure::arm::transport::{Transport, TransportError};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::time::Instant;

#[path = "../../e2e/armsim/tests/spec_support/mod.rs"]
mod spec_support;

use crate::seed::{PRINCIPAL, TENANT};

/// A request as it was sent.
pub(crate) struct Sent {
    pub(crate) request: Request<Bytes>,
    pub(crate) at: Instant,
}

impl Sent {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.request.headers().get(name).map(|value| value.to_str().unwrap())
    }

    /// `GET`, `PUT` or `DELETE`; `POLL` for the state of an operation.
    pub(crate) fn verb(&self) -> &str {
        verb(&self.request)
    }
}

fn verb(request: &Request<Bytes>) -> &str {
    let path = request.uri().path();
    let polls = ["/operations/", "/operationResults/", "/privateDnsOperation"];
    if polls.iter().any(|part| path.contains(part)) {
        "POLL"
    } else {
        request.method().as_str()
    }
}

/// Gives the action of a fault rule for a call, by its verb and its path in lower case.
pub(crate) type Script = Box<dyn FnMut(&str, &str) -> Option<Value> + Send>;

pub(crate) struct SimTransport {
    world: Mutex<SimulatedAzure>,
    sent: Mutex<Vec<Sent>>,
    latency: Mutex<Duration>,
    script: Mutex<Option<Script>>,
    began: Instant,
}

impl SimTransport {
    pub(crate) fn new(seed: &Value) -> Self {
        let mut world = SimulatedAzure::new(Preset::Recorded, 1);
        spec_support::check(&mut world);
        let seed = Seed::parse(seed.to_string().as_bytes()).unwrap();
        world.seed(epoch(), seed).unwrap();
        Self {
            world: Mutex::new(world),
            sent: Mutex::default(),
            latency: Mutex::default(),
            script: Mutex::default(),
            began: Instant::now(),
        }
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, SimulatedAzure> {
        self.world.lock().unwrap()
    }

    pub(crate) fn sent(&self) -> MutexGuard<'_, Vec<Sent>> {
        self.sent.lock().unwrap()
    }

    /// Makes each request from now on take this long to reach Azure.
    pub(crate) fn set_latency(&self, latency: Duration) {
        *self.latency.lock().unwrap() = latency;
    }

    /// Lets the script decide on each call from now on, in place of fault rules.
    pub(crate) fn follow(&self, script: impl FnMut(&str, &str) -> Option<Value> + Send + 'static) {
        *self.script.lock().unwrap() = Some(Box::new(script));
    }

    fn apply_script(&self, request: &Request<Bytes>) {
        let mut script = self.script.lock().unwrap();
        let Some(script) = script.as_mut() else {
            return;
        };
        let path = request.uri().path().to_lowercase();
        let action = script(verb(request), &path);
        let rules: Vec<Value> = action
            .into_iter()
            .map(|action| json!({"match": {}, "do": action}))
            .collect();
        let rules = armsim::parse_faults(json!(rules).to_string().as_bytes()).unwrap();
        self.world().set_faults(rules);
    }

    /// Ends a loop without waits: the clock stands still in it, so nothing else would end it.
    fn assert_no_hot_loop(&self, request: &Request<Bytes>) {
        let (sent, now) = (self.sent(), Instant::now());
        let same = |call: &&Sent| call.at == now && call.request.uri() == request.uri();
        let at_once = sent.iter().rev().filter(same).count();
        drop(sent);
        assert!(at_once < 100, "hot loop: {} {}", request.method(), request.uri());
    }

    /// The largest number of calls to one address within `window`, whatever the method, and the address.
    pub(crate) fn busiest(&self, window: Duration) -> (usize, String) {
        let sent = self.sent();
        let mut times = std::collections::BTreeMap::<&str, Vec<Instant>>::new();
        for call in sent.iter() {
            times.entry(call.request.uri().path()).or_default().push(call.at);
        }
        let most = |at: &[Instant]| {
            let within = |from: &Instant| at.iter().filter(|one| *one >= from && **one < *from + window).count();
            at.iter().map(within).max().unwrap_or_default()
        };
        let counted = times.iter().map(|(path, at)| (most(at), (*path).to_owned()));
        counted.max().unwrap_or_default()
    }

    /// The time of Azure's clock.
    pub(crate) fn now(&self) -> Timestamp {
        epoch() + SignedDuration::try_from(self.began.elapsed()).unwrap()
    }
}

impl Drop for SimTransport {
    fn drop(&mut self) {
        spec_support::kept(&self.world());
    }
}

fn epoch() -> Timestamp {
    "2026-01-05T10:00:00Z".parse().unwrap()
}

#[async_trait]
impl Transport for SimTransport {
    async fn ready(&self) -> Result<(), TransportError> {
        Ok(())
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        self.assert_no_hot_loop(&request);
        let latency = *self.latency.lock().unwrap();
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        let caller = Caller {
            tenant_id: TENANT.into(),
            client_id: "hyperlink".into(),
            object_id: PRINCIPAL.into(),
        };
        self.apply_script(&request);
        let Answer { mut response, wire } = self.world().handle(self.now(), &caller, &request);
        self.sent().push(Sent {
            request,
            at: Instant::now(),
        });
        if let Some(delay) = wire.delay {
            tokio::time::sleep(delay).await;
        }
        if wire.drop.is_some() {
            return Err(TransportError::Connection("dropped".into()));
        }
        if let Some(bytes) = wire.cut_body_at {
            response.body_mut().truncate(bytes);
        }
        Ok(response)
    }
}
