//! Sends one request and reads its answer: signs it, counts it, and makes an error of everything but a success.

use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use hyperlink_engine::bulkhead::Bulkhead;
use hyperlink_engine::failure::Class;
use tokio::time::Instant;

use crate::api::action::Action;
use crate::api::budget::Budgets;
use crate::api::clock::Clock;
use crate::api::error::{AwsError, UNEXPECTED_ANSWER};
use crate::api::ports::{Counters, ObservedCall};
use crate::api::request::ServiceRequest;
use crate::api::request_rate::RequestRate;
use crate::api::sign::{SigningScope, sign};
use crate::api::throttle::{Bucket, Throttle};
use crate::api::transport::Transport;
use crate::credentials::Session;
use crate::endpoints::Endpoints;
use crate::wire::xml::{Element, Malformed};

/// What all identities of a process share. Clones share everything.
#[derive(Clone)]
pub struct Connection(Arc<Shared>);

struct Shared {
    transport: Arc<dyn Transport>,
    endpoints: Endpoints,
    counters: Arc<dyn Counters>,
    clock: Clock,
    throttle: Throttle,
    budgets: Budgets,
    route53_rate: RequestRate,
    bulkhead: Bulkhead<Bucket>,
}

/// A request without success.
#[derive(Debug)]
pub(crate) struct Unsuccessful {
    /// Why.
    pub(crate) error: AwsError,
    /// Whether the answer corrected the clock: signed again, the request may be accepted.
    pub(crate) corrected_clock: bool,
}

impl Connection {
    /// Requests go to `endpoints`, by `transport`; `counters` count them.
    pub fn new(transport: Arc<dyn Transport>, endpoints: Endpoints, counters: Arc<dyn Counters>) -> Self {
        Self(Arc::new(Shared {
            transport,
            endpoints,
            counters,
            clock: Clock::default(),
            throttle: Throttle::default(),
            budgets: Budgets::default(),
            route53_rate: RequestRate::default(),
            bulkhead: Bulkhead::default(),
        }))
    }

    /// Where requests go.
    pub fn endpoints(&self) -> &Endpoints {
        &self.0.endpoints
    }

    pub(crate) fn throttle(&self) -> &Throttle {
        &self.0.throttle
    }

    pub(crate) fn budgets(&self) -> &Budgets {
        &self.0.budgets
    }

    /// How many requests are sent to Route 53.
    pub(crate) fn route53_rate(&self) -> &RequestRate {
        &self.0.route53_rate
    }

    pub(crate) fn bulkhead(&self) -> &Bulkhead<Bucket> {
        &self.0.bulkhead
    }

    pub(crate) fn counters(&self) -> &dyn Counters {
        self.0.counters.as_ref()
    }

    /// Sends `request`, signed by the keys of `session` if there is one, and returns what `parse` reads in the answer.
    pub(crate) async fn send<T>(
        &self,
        request: &ServiceRequest,
        session: Option<&Session>,
        parse: impl FnOnce(&Response<Bytes>) -> Result<T, Malformed>,
    ) -> Result<T, Unsuccessful> {
        let counted = CountedCall::begin(request.action, self.counters());
        let ahead = self.0.clock.ahead();
        let sent = self.exchange(request, session, ahead).await;
        let status = sent.as_ref().map_or(0, |answer| answer.status().as_u16());
        let result = sent.and_then(|answer| self.read(request.action, &answer, ahead, parse));
        counted.end(status, result.as_ref().err().map(|failed| failed.error.class));
        result
    }

    async fn exchange(
        &self,
        request: &ServiceRequest,
        session: Option<&Session>,
        ahead: i64,
    ) -> Result<Response<Bytes>, Unsuccessful> {
        let endpoints = self.endpoints();
        let mut http = request.to_http(endpoints).ok_or_else(unsendable)?;
        if let Some(session) = session {
            let scope = SigningScope {
                service: request.service().label(),
                region: endpoints.signing_region(request.service()),
                time: Clock::now(ahead),
            };
            sign(&mut http, session, scope).map_err(|_| unsendable())?;
        }
        let sent = self.0.transport.send(http).await;
        sent.map_err(|error| Unsuccessful::of(AwsError::from(&error)))
    }

    fn read<T>(
        &self,
        action: Action,
        answer: &Response<Bytes>,
        ahead: i64,
        parse: impl FnOnce(&Response<Bytes>) -> Result<T, Malformed>,
    ) -> Result<T, Unsuccessful> {
        let status = answer.status();
        if !status.is_success() {
            let error = AwsError::from_answer(action.verb(), status.as_u16(), answer.body()).of_action(action);
            let corrected_clock = error.refuses_time() && self.0.clock.correct(answer.headers(), ahead);
            return Err(Unsuccessful { error, corrected_clock });
        }
        parse(answer).map_err(|malformed| {
            let root = Element::parse(answer.body()).ok();
            let error = root.and_then(|root| AwsError::in_answer(action.verb(), status.as_u16(), &root));
            Unsuccessful::of(error.map(|error| error.of_action(action)).unwrap_or_else(|| {
                let text = format!("{}: {malformed}", action.name());
                AwsError::own(Class::Down, UNEXPECTED_ANSWER).with_text(&text)
            }))
        })
    }
}

impl Unsuccessful {
    fn of(error: AwsError) -> Self {
        Self {
            error,
            corrected_clock: false,
        }
    }
}

fn unsendable() -> Unsuccessful {
    Unsuccessful::of(AwsError::own(Class::Invalid, "UnsendableRequest"))
}

/// The document of an answer, if its root is that of the action's answer.
pub(crate) fn document(action: Action, answer: &Response<Bytes>) -> Result<Element, Malformed> {
    let root = Element::parse(answer.body())?;
    if root.name().strip_suffix("Response") == Some(action.name()) {
        Ok(root)
    } else {
        Err(Malformed::OtherRoot)
    }
}

/// A call that was sent. It counts when it ends, also if its caller gives it up without an answer.
struct CountedCall<'a> {
    counters: &'a dyn Counters,
    began: Instant,
    observed: ObservedCall,
}

impl<'a> CountedCall<'a> {
    fn begin(action: Action, counters: &'a dyn Counters) -> Self {
        Self {
            counters,
            began: Instant::now(),
            observed: ObservedCall {
                action,
                status: 0,
                class: Some(Class::Down),
                took: std::time::Duration::ZERO,
            },
        }
    }

    fn end(mut self, status: u16, class: Option<Class>) {
        self.observed.status = status;
        self.observed.class = class;
    }
}

impl Drop for CountedCall<'_> {
    fn drop(&mut self) {
        self.counters.call(ObservedCall {
            took: self.began.elapsed(),
            ..self.observed
        });
    }
}
