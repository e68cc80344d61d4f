//! One ARM call at a time: address, headers, paging, and what the answer says about time and operations.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH, RETRY_AFTER};
use http::{HeaderMap, Method, Request, Response};
use serde_json::Value;
use tokio::time::Instant;
use url::Url;
use uuid::Uuid;

use super::error::{ArmError, Class};
use super::id::{ResourceId, SubscriptionId};
use super::ports::{CallSeen, CallVerb, Counters, Gate};
use super::resource::Kind;
use super::throttle::{Budget, Counts, Throttle, count_budgets};
use super::transport::{Transport, TransportError};

/// Pages of one list, at most.
const MAX_PAGES: usize = 1_000;
/// The wait that stands in where Azure says "throttled" and no time.
const THROTTLED_WAIT: Duration = Duration::from_secs(60);

/// What all calls of one pass share.
#[derive(Debug, Clone, Copy)]
pub struct Pass {
    /// Sent as `x-ms-correlation-request-id`, and logged.
    pub correlation: Uuid,
}

impl Pass {
    /// A new pass.
    pub fn begin() -> Self {
        Self {
            correlation: Uuid::new_v4(),
        }
    }
}

/// Preconditions of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// None.
    Any,
    /// Only if it does not exist.
    New,
    /// Only if it is unchanged since this etag.
    Unchanged(String),
}

/// A successful answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body; `Null` when there is none.
    pub body: Value,
    /// How long Azure asks to wait.
    pub retry_after: Option<Duration>,
    /// Where the operation can be asked about; none where Azure names no place, or one on another host.
    pub operation: Option<Url>,
}

/// What an operation's URL says.
#[derive(Debug, Clone, PartialEq)]
pub enum OperationState {
    /// Not ended; how long Azure asks to wait.
    Running(Option<Duration>),
    /// Ended well.
    Succeeded,
    /// Ended badly.
    Failed(ArmError),
}

/// Calls ARM.
#[derive(Clone)]
pub struct Client {
    transport: Arc<dyn Transport>,
    endpoint: Url,
    gate: Arc<dyn Gate>,
    counters: Arc<dyn Counters>,
    throttle: Arc<Throttle>,
}

impl Client {
    /// A client for the ARM at `endpoint`. Writes are sent only while `gate` is open.
    pub fn new(transport: Arc<dyn Transport>, endpoint: Url, gate: Arc<dyn Gate>, counters: Arc<dyn Counters>) -> Self {
        Self {
            transport,
            endpoint,
            gate,
            counters,
            throttle: Arc::default(),
        }
    }

    /// Reads one resource: an object with an id. A private endpoint comes with its network interfaces.
    pub async fn get(&self, pass: Pass, kind: Kind, id: &ResourceId) -> Result<Answer, ArmError> {
        let mut url = self.url(kind, &id.to_string());
        if kind == Kind::Endpoint {
            url.query_pairs_mut().append_pair("$expand", "networkInterfaces");
        }
        let call = Call {
            pass,
            kind,
            verb: CallVerb::Get,
            budget: Budget::Reads,
            subscription: id.subscription(),
        };
        let answer = self.call(call, request(Method::GET, &url, None)).await?;
        // Whoever answers instead of ARM must not pass for a resource that has nothing of what is wanted.
        match answer.body.get("id") {
            Some(_) => Ok(answer),
            None => Err(ArmError::own(Class::Down, "NotAResource")),
        }
    }

    /// Lists what is below `path` (an id, or a subscription's or group's path with the type at its end), all pages.
    pub async fn list(
        &self,
        pass: Pass,
        kind: Kind,
        subscription: &SubscriptionId,
        path: &str,
    ) -> Result<Vec<Value>, ArmError> {
        let mut items = Vec::new();
        let mut url = self.url(kind, path);
        let mut read = HashSet::new();
        while read.len() < MAX_PAGES && read.insert(url.clone()) {
            let call = Call {
                pass,
                kind,
                verb: CallVerb::List,
                budget: Budget::Reads,
                subscription,
            };
            let mut answer = self.call(call, request(Method::GET, &url, None)).await?;
            match answer.body.get_mut("value").map(Value::take) {
                Some(Value::Array(page)) => items.extend(page),
                _ => return Err(ArmError::own(Class::Down, "NotAList")),
            }
            match answer.body.get("nextLink").and_then(Value::as_str) {
                None | Some("") => return Ok(items),
                Some(next) => url = self.own_url(next)?,
            }
        }
        Err(ArmError::own(Class::Down, "EndlessList"))
    }

    /// Creates or replaces one resource.
    pub async fn put(
        &self,
        pass: Pass,
        kind: Kind,
        id: &ResourceId,
        body: &Value,
        condition: &Condition,
    ) -> Result<Answer, ArmError> {
        let url = self.url(kind, &id.to_string());
        let mut request = request(Method::PUT, &url, Some(body));
        let header = match condition {
            Condition::Any => None,
            Condition::New => Some((IF_NONE_MATCH, "*")),
            Condition::Unchanged(etag) => Some((IF_MATCH, etag.as_str())),
        };
        if let Some((name, value)) = header
            && let Ok(value) = value.parse()
        {
            request.headers_mut().insert(name, value);
        }
        let call = Call {
            pass,
            kind,
            verb: CallVerb::Put,
            budget: Budget::Writes,
            subscription: id.subscription(),
        };
        self.call(call, request).await
    }

    /// Removes one resource. What is gone already counts as removed.
    pub async fn delete(&self, pass: Pass, kind: Kind, id: &ResourceId) -> Result<Answer, ArmError> {
        let url = self.url(kind, &id.to_string());
        let call = Call {
            pass,
            kind,
            verb: CallVerb::Delete,
            budget: Budget::Deletes,
            subscription: id.subscription(),
        };
        match self.call(call, request(Method::DELETE, &url, None)).await {
            Err(error) if error.class == Class::Gone => Ok(Answer {
                status: 204,
                body: Value::Null,
                retry_after: None,
                operation: None,
            }),
            other => other,
        }
    }

    /// Asks how an operation stands. The error's class is `Gone` when Azure does not know it any more.
    pub async fn operation(
        &self,
        pass: Pass,
        kind: Kind,
        subscription: &SubscriptionId,
        url: &Url,
    ) -> Result<OperationState, ArmError> {
        let url = self.own_url(url.as_str())?;
        let call = Call {
            pass,
            kind,
            verb: CallVerb::Poll,
            budget: Budget::Reads,
            subscription,
        };
        let answer = self.call(call, request(Method::GET, &url, None)).await?;
        Ok(match answer.body.get("status").and_then(Value::as_str) {
            Some("Succeeded") => OperationState::Succeeded,
            Some(word @ ("Failed" | "Canceled")) => {
                let mut error = ArmError::from_json(answer.status, &answer.body, None);
                if answer.body.get("error").is_none() {
                    error = ArmError {
                        code: format!("Operation{word}"),
                        class: Class::Busy,
                        ..error
                    };
                }
                OperationState::Failed(error)
            }
            None if answer.status == 204 => OperationState::Succeeded,
            None if answer.status != 202 => return Err(ArmError::own(Class::Down, "NotAnOperation")),
            _ => OperationState::Running(answer.retry_after),
        })
    }

    fn url(&self, kind: Kind, path: &str) -> Url {
        let mut url = self.endpoint.clone();
        url.set_path(path);
        url.set_query(Some(&format!("api-version={}", kind.api_version())));
        url
    }

    /// A URL that Azure chose, if it stays on the configured host: the token goes nowhere else.
    fn own_url(&self, text: &str) -> Result<Url, ArmError> {
        let foreign = || ArmError::from(TransportError::ForeignHost("another host".to_owned()));
        let url = Url::parse(text).map_err(|_| foreign())?;
        if url.origin() == self.endpoint.origin() {
            Ok(url)
        } else {
            Err(foreign())
        }
    }

    async fn call(&self, call: Call<'_>, mut request: Request<Bytes>) -> Result<Answer, ArmError> {
        if let Some(wait) = self
            .throttle
            .wait(call.subscription, call.budget, call.kind, Instant::now())
        {
            return Err(ArmError {
                retry_after: Some(wait),
                ..ArmError::own(Class::Throttled, "WaitingForBudget")
            });
        }
        if let Ok(id) = call.pass.correlation.to_string().parse() {
            request.headers_mut().insert("x-ms-correlation-request-id", id);
        }
        let began = Instant::now();
        let ready = if call.budget == Budget::Reads {
            Ok(())
        } else {
            self.transport.ready().await
        };
        if ready.is_ok() && call.budget != Budget::Reads && !self.gate.open() {
            return Err(ArmError::own(Class::Down, GATE_SHUT));
        }
        let sent = match ready {
            Ok(()) => self.transport.send(request).await,
            Err(error) => Err(error),
        };
        let status = sent.as_ref().map_or(0, |answer| answer.status().as_u16());
        let result = sent.map_err(ArmError::from).and_then(|answer| self.read(&answer));
        let class = result.as_ref().err().map(|error| error.class);
        self.counters.call(CallSeen {
            kind: call.kind,
            verb: call.verb,
            status,
            class,
            took: began.elapsed(),
        });
        result.map_err(|error| self.note_throttling(&call, error))
    }

    /// Holds back the calls on a budget that is used up, for as long as the error then says.
    fn note_throttling(&self, call: &Call<'_>, error: ArmError) -> ArmError {
        if error.class != Class::Throttled {
            return error;
        }
        let wait = error.retry_after.unwrap_or(THROTTLED_WAIT);
        let counts = if error.code == "TooManyRequests" {
            Counts::service(call.kind)
        } else {
            Counts::Arm
        };
        self.throttle
            .used_up(call.subscription, call.budget, counts, wait, Instant::now());
        ArmError {
            retry_after: Some(wait),
            ..error
        }
    }

    fn read(&self, answer: &Response<Bytes>) -> Result<Answer, ArmError> {
        let (status, headers) = (answer.status(), answer.headers());
        count_budgets(headers, self.counters.as_ref());
        let retry_after = retry_after(headers, SystemTime::now());
        if !status.is_success() {
            return Err(ArmError::from_answer(status.as_u16(), answer.body(), retry_after));
        }
        let body = match answer.body().as_ref() {
            [] => Value::Null,
            bytes => serde_json::from_slice(bytes).map_err(|_| ArmError::own(Class::Down, "NotJson"))?,
        };
        let link = ["azure-asyncoperation", "location"]
            .into_iter()
            .find_map(|name| headers.get(name)?.to_str().ok());
        // The write was taken all the same; the resource itself tells how it goes on.
        let operation = link.and_then(|text| self.own_url(text).ok());
        if operation.is_none() && link.is_some() {
            tracing::warn!("Azure names another host to ask about an operation: it is not asked");
        }
        Ok(Answer {
            status: status.as_u16(),
            body,
            retry_after,
            operation,
        })
    }
}

/// The code of the error for a write that was held back by the gate.
pub const GATE_SHUT: &str = "NotLeading";

/// What a call is, for budgets and counters.
struct Call<'a> {
    pass: Pass,
    kind: Kind,
    verb: CallVerb,
    budget: Budget,
    subscription: &'a SubscriptionId,
}

fn request(method: Method, url: &Url, body: Option<&Value>) -> Request<Bytes> {
    let bytes = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
    let mut request = Request::new(bytes);
    *request.method_mut() = method;
    // Every URL was parsed by `url`, whose output is a valid URI.
    *request.uri_mut() = url.as_str().parse().unwrap_or_default();
    request
        .headers_mut()
        .insert(ACCEPT, http::HeaderValue::from_static("application/json"));
    if body.is_some() {
        request
            .headers_mut()
            .insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    }
    request
}

/// `Retry-After`: seconds, or a date in the future (RFC 9110, 10.2.3). Zero, the past and garbage count as absent.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return (seconds > 0).then(|| Duration::from_secs(seconds.min(3_600)));
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    let wait = SystemTime::from(date).duration_since(now).ok()?;
    (!wait.is_zero()).then_some(wait.min(Duration::from_secs(3_600)))
}
