//! Everything with sockets: the HTTPS address (ARM and Entra), the control address (tests, the managed identity's endpoint), start and stop.
//! Decides nothing about Azure: that is the engine's part, which lives behind one lock that is never held across an await.

mod arm;
mod assertion;
mod control;
mod entra;
mod fault;
mod identity;
mod jwt;
mod login;
mod server;
mod token;
mod token_requests;

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use jiff::Timestamp;
use serde_json::Value;

use simulator::clock::Clock;

use crate::{Answer, Caller, SimulatedAzure};
pub use login::login;
use login::{Login, Route};
pub use server::{Options, Server, StartError};
use token::{TokenIssuer, TokenTimes};
use token_requests::TokenRequests;

/// What all connections share.
struct Shared {
    /// `https://ADDRESS`, without a slash at the end.
    arm: String,
    /// What a token may be for to be good here.
    audiences: Vec<String>,
    issuer: TokenIssuer,
    simulation: Mutex<Simulation>,
}

/// The simulated Azure and its time; locked as one.
struct Simulation {
    azure: SimulatedAzure,
    clock: Clock,
    token_requests: TokenRequests,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Simulation> {
        self.simulation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers one request on the HTTPS address.
    fn answer(&self, request: &Request<Bytes>) -> Answer {
        let real = Timestamp::now();
        if let Some(route) = Route::of(request.uri().path()) {
            let client_id = login::client_id(request);
            let mut simulation = self.lock();
            if let Route::Token { tenant } = route {
                simulation.token_requests.count(tenant, client_id.as_deref());
            }
            let fault = simulation
                .azure
                .fault(request.method().as_str(), request.uri().path(), client_id.as_deref());
            let azure = &simulation.azure;
            let login = Login {
                tenants: azure.tenants(),
                times: token_times(azure),
                issuer: &self.issuer,
                audiences: &self.audiences,
                real,
            };
            return fault::disturb(fault, login::refusal, || login.answer(&route, request));
        }
        let subject = arm::authenticate(self, request.headers(), real);
        let mut simulation = self.lock();
        let now = simulation.clock.now();
        let known = simulation.azure.violations().len();
        let answer = match subject {
            Ok(subject) => {
                let caller = Caller {
                    tenant_id: subject.tenant,
                    client_id: subject.client_id,
                    object_id: subject.object_id,
                };
                simulation.azure.handle(now, &caller, request)
            }
            Err(refusal) => {
                let tenant = simulation.azure.tenant_of(request.uri().path());
                let response = refusal.response(&self.arm, tenant);
                simulation.azure.refused(now, request, refusal.code, response)
            }
        };
        for violation in simulation.azure.violations().iter().skip(known) {
            tracing::error!("against the specs: {violation}");
        }
        answer
    }
}

fn token_times(azure: &SimulatedAzure) -> TokenTimes {
    let switches = azure.switches();
    TokenTimes {
        life_s: switches.token_life_s,
        skew_s: switches.token_skew_s,
    }
}

fn http_json(status: StatusCode, body: &Value) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json; charset=utf-8"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
