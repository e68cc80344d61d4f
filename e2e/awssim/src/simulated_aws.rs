//! The simulated AWS as a pure state machine: no socket, no async, no clock. Every call passes the time.
//!
//! Equal seeds and equal calls give equal answers.

mod control;

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use simulator::random::Random;
use simulator::wire::{Answer, WireFault};

pub use control::ControlError;

use crate::engine::call::{Answered, Call};
use crate::engine::fault::FaultAction;
use crate::engine::journal::JournalEntry;
use crate::engine::preset::Preset;
use crate::engine::service::Service;
use crate::engine::state::State;
use crate::engine::throttle::Counted;
use crate::iam::caller::{Caller, find_key};
use crate::wire::error::AwsError;
use crate::wire::params::Params;
use crate::wire::respond::{answer, refusal};
use crate::wire::sigv4::{self, Authorization};
use crate::{ec2, elbv2, route53, sts};

/// The whole of the simulated AWS. Saves and loads with serde.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SimulatedAws {
    pub(crate) state: State,
}

/// What is known of a request before it is carried out.
struct Asked {
    service: Service,
    action: String,
    region: String,
    /// The id in the path.
    id: String,
    params: Params,
    authorization: Option<Authorization>,
}

/// What came of a call.
struct Outcome {
    answered: Answered,
    changed: bool,
    late: Option<Duration>,
}

impl SimulatedAws {
    /// An empty AWS: no account. `random_seed` decides all ids.
    pub fn new(preset: Preset, random_seed: u64) -> Self {
        Self {
            state: State::new(preset, Random::new(random_seed)),
        }
    }

    /// Carries out one signed request. Its service is the one that its signature names.
    pub fn handle(&mut self, now: Timestamp, request: &Request<Bytes>) -> Answer {
        self.state.advance(now);
        let request_id = self.state.random.guid();
        let mut entry = JournalEntry {
            time: now.to_string(),
            method: request.method().to_string(),
            uri: request.uri().path().to_owned(),
            correlation_id: request_id.clone(),
            ..JournalEntry::default()
        };
        let asked = match read(request) {
            Ok(asked) => asked,
            Err((service, error)) => {
                let response = refusal(service, &error, false, &request_id);
                entry.status = response.status().as_u16();
                entry.code = Some(error.code);
                self.state.journal.add(entry);
                let wire = WireFault::default();
                return Answer { response, wire };
            }
        };
        entry.path = format!("/{}/{}", asked.service.prefix(), asked.action);
        entry.query = asked.params.without_secrets();
        entry.api_version = asked.service.version().to_owned();
        entry.region.clone_from(&asked.region);
        entry.principal = self.principal(&asked);
        let hit = self
            .state
            .faults
            .hit(request.method().as_str(), &entry.path, &entry.principal);
        let fault = hit.unwrap_or_default();
        let outcome = match fault.applies() {
            true => self.carry_out(now, &asked, request, &fault),
            false => Outcome {
                answered: Ok(vec![]),
                changed: false,
                late: None,
            },
        };
        entry.changed = outcome.changed;
        let (mut response, mut code) = self.respond(&asked, outcome.answered, &request_id);
        disturb(&mut response, &mut code, &fault, asked.service, &request_id);
        entry.status = response.status().as_u16();
        entry.code = code;
        self.state.journal.add(entry);
        let mut wire = wire_fault(&fault);
        wire.delay = wire.delay.max(outcome.late);
        Answer { response, wire }
    }

    fn respond(&self, asked: &Asked, answered: Answered, id: &str) -> (Response<Bytes>, Option<String>) {
        match answered {
            Ok(body) => (answer(asked.service, &asked.action, body, id), None),
            Err(error) => {
                let messages = self.state.switches.batch_error_has_messages && asked.service == Service::Route53;
                (refusal(asked.service, &error, messages, id), Some(error.code))
            }
        }
    }

    /// The ARN of whoever says to call, before the signature is verified.
    fn principal(&self, asked: &Asked) -> String {
        let key = asked
            .authorization
            .as_ref()
            .and_then(|found| find_key(&self.state, &found.access_key_id));
        key.map(|key| key.caller.arn).unwrap_or_default()
    }

    fn carry_out(&mut self, now: Timestamp, asked: &Asked, request: &Request<Bytes>, fault: &FaultAction) -> Outcome {
        let refused = |error| Outcome {
            answered: Err(error),
            changed: false,
            late: None,
        };
        if asked.action == "AssumeRoleWithWebIdentity" && asked.service == Service::Sts {
            let answered = sts::assume_with_web_identity(&mut self.state, now, &asked.params);
            return Outcome {
                answered,
                changed: false,
                late: None,
            };
        }
        let caller = match self.authenticate(now, asked, request) {
            Ok(caller) => caller,
            Err(error) => return refused(error),
        };
        let counted = Counted {
            service: asked.service,
            account: &caller.account,
            region: &asked.region,
            action: &asked.action,
            params: &asked.params,
        };
        if let Err(error) = self.state.throttle.count(&self.state.throttle_seed, now, &counted) {
            return refused(error);
        }
        let mut call = Call {
            state: &mut self.state,
            now,
            caller,
            region: asked.region.clone(),
            service: asked.service,
            action: asked.action.clone(),
            params: asked.params.clone(),
            changed: false,
            late: None,
            ends: fault.ends.clone(),
        };
        let answered = match asked.service {
            Service::Ec2 => ec2::answer(&mut call),
            Service::Elbv2 => elbv2::answer(&mut call),
            Service::Sts => sts::answer(&mut call),
            Service::Route53 => route53::answer(&mut call, &asked.id, request.body()),
        };
        Outcome {
            answered,
            changed: call.changed,
            late: call.late,
        }
    }

    fn authenticate(&self, now: Timestamp, asked: &Asked, request: &Request<Bytes>) -> Result<Caller, AwsError> {
        let Some(authorization) = &asked.authorization else {
            let message = "Request is missing Authentication Token";
            return Err(AwsError::new(403, "MissingAuthenticationToken", message));
        };
        let caller = sigv4::verify(&self.state, now, asked.service, authorization, request)?;
        let expected = match (asked.service, caller.partition.as_str()) {
            (Service::Route53, "aws") => "us-east-1",
            (Service::Route53, "aws-cn") => "cn-northwest-1",
            (Service::Route53, _) => "us-gov-west-1",
            _ => return Ok(caller),
        };
        match asked.region == expected {
            true => Ok(caller),
            false => {
                let message = format!("Credential should be scoped to a valid region, not '{}'.", asked.region);
                Err(AwsError::new(403, "SignatureDoesNotMatch", message))
            }
        }
    }
}

/// What a request asks for: by the service of its signature, and of its host where that names one.
fn read(request: &Request<Bytes>) -> Result<Asked, (Service, AwsError)> {
    let authorization = Authorization::read(request.headers());
    let path = request.uri().path();
    let is_route53 = path.starts_with("/2013-04-01");
    let guess = if is_route53 { Service::Route53 } else { Service::Sts };
    let service = match &authorization {
        Some(found) => Service::named(&found.service).ok_or_else(|| {
            let message = format!(
                "Credential should be scoped to correct service, not '{}'.",
                found.service
            );
            (guess, AwsError::new(403, "SignatureDoesNotMatch", message))
        })?,
        None => guess,
    };
    if let Some(named) = host_service(request).filter(|named| *named != service) {
        let message = format!("Credential should be scoped to correct service: '{}'.", named.prefix());
        return Err((named, AwsError::new(403, "SignatureDoesNotMatch", message)));
    }
    let fail = |error| (service, error);
    let (action, id, params) = if service == Service::Route53 {
        let (action, id) = route53::route(request.method(), path).ok_or_else(|| {
            let message = format!("Unable to determine the operation of {} {path}", request.method());
            fail(AwsError::new(404, "UnknownOperationException", message))
        })?;
        let query = request.uri().query().unwrap_or_default();
        (action.to_owned(), id, Params::parse(query.as_bytes()).map_err(fail)?)
    } else {
        let params = form(request).map_err(fail)?;
        let action = params.text("Action").map(str::to_owned);
        let missing = "The request must contain the parameter Action";
        let action = action.ok_or_else(|| fail(AwsError::bad("MissingAction", missing)))?;
        if params.text("Version") != Some(service.version()) {
            let message = format!("The action {action} is not valid for this web service version.");
            return Err(fail(AwsError::bad("InvalidAction", message)));
        }
        (action, String::new(), params)
    };
    let region = authorization
        .as_ref()
        .map(|found| found.region.clone())
        .unwrap_or_default();
    Ok(Asked {
        service,
        action,
        region,
        id,
        params,
        authorization,
    })
}

/// The parameters of a query request, from its form and its query.
fn form(request: &Request<Bytes>) -> Result<Params, AwsError> {
    if request.uri().path() != "/" || !matches!(*request.method(), Method::GET | Method::POST) {
        return Err(AwsError::new(404, "UnknownOperationException", "Only POST / is served"));
    }
    let query = request.uri().query().unwrap_or_default();
    let mut form = query.as_bytes().to_vec();
    if !form.is_empty() && !request.body().is_empty() {
        form.push(b'&');
    }
    form.extend_from_slice(request.body());
    Params::parse(&form)
}

/// The service that one of AWS's own host names is for.
fn host_service(request: &Request<Bytes>) -> Option<Service> {
    let header = request.headers().get("host").and_then(|host| host.to_str().ok());
    let host = header.or_else(|| request.uri().host())?;
    let name = host.split(':').next().unwrap_or(host);
    let is_aws = [".amazonaws.com", ".amazonaws.com.cn"]
        .iter()
        .any(|domain| name.ends_with(domain));
    name.split('.').next().filter(|_| is_aws).and_then(Service::named)
}

/// What a fault rule changes in the answer.
fn disturb(response: &mut Response<Bytes>, code: &mut Option<String>, fault: &FaultAction, service: Service, id: &str) {
    if let Some(status) = fault.status {
        let name = fault.code.as_deref().unwrap_or("InternalError");
        let message = fault.message.as_deref().unwrap_or("An internal error has occurred");
        *response = refusal(service, &AwsError::new(status, name, message), false, id);
        *code = Some(name.to_owned());
    }
    if let Some(body) = &fault.body {
        *response.body_mut() = Bytes::from(body.clone());
    }
    for (name, value) in &fault.headers {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name.as_str()), HeaderValue::try_from(text)) {
            response.headers_mut().insert(name, value);
        }
    }
    if fault.drop.is_some() && fault.status.is_none() && !fault.applies() {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
}

fn wire_fault(fault: &FaultAction) -> WireFault {
    WireFault {
        delay: fault.delay_ms.map(Duration::from_millis),
        // A status takes the place of the dropped answer.
        drop: fault.drop.filter(|_| fault.status.is_none()),
        cut_body_at: fault.cut_body_at,
        content_length: fault.content_length,
    }
}
