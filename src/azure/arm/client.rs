//! One ARM call at a time: address, headers, paging, and the waits and operations in the answer.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{Method, Request, Response};
use hyperlink_engine::bulkhead::{Bulkhead, Permit};
use hyperlink_engine::call_budget::CallBudgets;
use hyperlink_engine::client::{Condition, OperationState, Reconcile, WriteError};
use hyperlink_engine::failure::{CALL_BUDGET_EXHAUSTED, Class};
use hyperlink_engine::gate::Gate;
use serde_json::Value;
use tokio::time::Instant;
use url::Url;

use crate::arm::call::{Call, CountedCall};
use crate::arm::error::{ArmError, TOO_MANY_UNANSWERED};
use crate::arm::id::{ResourceId, SubscriptionId};
use crate::arm::message::{conditional, is_sendable, request, retry_after, shows};
use crate::arm::operation;
use crate::arm::ports::{CallVerb, Counters};
use crate::arm::throttle::{Budget, Counts, Throttle};
use crate::arm::transport::{Transport, TransportError};
use crate::kinds::Kind;

/// The largest number of pages of one list.
const MAX_PAGES: usize = 1_000;
/// The largest number of items of one list: the record sets that a zone can have.
const MAX_ITEMS: usize = 25_000;
/// The largest size of all pages of one list, in bytes. In memory they take a few times as much.
const MAX_LIST: usize = 16 << 20;
/// How long calls on an exhausted request budget are held back if Azure gives no time.
const THROTTLED_WAIT: Duration = Duration::from_secs(60);

/// A successful answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body; `Null` when there is none.
    pub body: Value,
    /// How many bytes the body had.
    pub size: usize,
    /// The wait that Azure asks for.
    pub retry_after: Option<Duration>,
    /// The URL to poll the operation at; none if Azure gives none, or one on another host.
    pub operation: Option<Url>,
}

/// The client for all ARM calls.
#[derive(Clone)]
pub struct Client {
    transport: Arc<dyn Transport>,
    endpoint: Url,
    gate: Arc<dyn Gate>,
    counters: Arc<dyn Counters>,
    throttle: Arc<Throttle>,
    bulkhead: Arc<Bulkhead<SubscriptionId>>,
    call_budgets: Arc<CallBudgets>,
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
            bulkhead: Arc::default(),
            call_budgets: Arc::default(),
        }
    }

    /// Returns this client with other call budgets.
    #[must_use]
    pub fn with_call_budgets(self, budgets: CallBudgets) -> Self {
        Self {
            call_budgets: Arc::new(budgets),
            ..self
        }
    }

    /// Reads one resource: an object with an id.
    pub async fn get(&self, reconcile: Reconcile, kind: Kind, id: &ResourceId) -> Result<Answer, ArmError> {
        let address = id.to_string();
        let mut url = self.url(kind, &address);
        if let Some(expand) = kind.spec().expand {
            url.query_pairs_mut().append_pair("$expand", expand);
        }
        let call = Call {
            reconcile,
            kind,
            verb: CallVerb::Get,
            budget: Budget::Reads,
            subscription: id.subscription(),
            address: &address,
        };
        let answer = self.call(call, request(Method::GET, &url, None)).await?;
        // An answer that is not ARM's must not pass for a resource in which everything desired is missing.
        if shows(&answer.body, id) {
            Ok(answer)
        } else {
            Err(ArmError::own(Class::Down, "NotAResource"))
        }
    }

    /// Lists what is below `path` (an id, or a subscription's or group's path with the type at its end). Reads all
    /// pages; too many pages, items or bytes are an error.
    pub async fn list(
        &self,
        reconcile: Reconcile,
        kind: Kind,
        subscription: &SubscriptionId,
        path: &str,
    ) -> Result<Vec<Value>, ArmError> {
        let mut items = Vec::new();
        let mut size = 0;
        let mut url = self.url(kind, path);
        let mut read = HashSet::new();
        while read.len() < MAX_PAGES && read.insert(url.clone()) {
            let call = Call {
                reconcile,
                kind,
                verb: CallVerb::List,
                budget: Budget::Reads,
                subscription,
                address: path,
            };
            let is_first = read.len() == 1;
            let _permit = self.permit(&call).await?;
            self.within_throttle(&call)?;
            if is_first {
                self.within_call_budget(kind, path)?;
            }
            let mut answer = self.send(call, request(Method::GET, &url, None)).await?;
            match answer.body.get_mut("value").map(Value::take) {
                Some(Value::Array(page)) => items.extend(page),
                _ => return Err(ArmError::own(Class::Down, "NotAList")),
            }
            size += answer.size;
            if items.len() > MAX_ITEMS || size > MAX_LIST {
                return Err(ArmError::own(Class::Invalid, "ListTooLong"));
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
        reconcile: Reconcile,
        kind: Kind,
        id: &ResourceId,
        body: &Value,
        condition: &Condition,
    ) -> Result<Answer, WriteError<ArmError>> {
        let address = id.to_string();
        let url = self.url(kind, &address);
        let request = conditional(request(Method::PUT, &url, Some(body)), condition);
        let call = Call {
            reconcile,
            kind,
            verb: CallVerb::Put,
            budget: Budget::Writes,
            subscription: id.subscription(),
            address: &address,
        };
        self.write(call, request).await
    }

    /// Deletes one resource. One that is already gone counts as deleted.
    pub async fn delete(
        &self,
        reconcile: Reconcile,
        kind: Kind,
        id: &ResourceId,
        condition: &Condition,
    ) -> Result<Answer, WriteError<ArmError>> {
        let address = id.to_string();
        let url = self.url(kind, &address);
        let call = Call {
            reconcile,
            kind,
            verb: CallVerb::Delete,
            budget: Budget::Deletes,
            subscription: id.subscription(),
            address: &address,
        };
        match self
            .write(call, conditional(request(Method::DELETE, &url, None), condition))
            .await
        {
            Err(WriteError::Failed(error)) if error.class == Class::Gone => Ok(Answer {
                status: 204,
                body: Value::Null,
                size: 0,
                retry_after: None,
                operation: None,
            }),
            other => other,
        }
    }

    /// Polls an operation; polls have a call budget of their own. The error `Gone`: Azure no longer knows it.
    pub async fn operation(
        &self,
        reconcile: Reconcile,
        kind: Kind,
        id: &ResourceId,
        url: &Url,
    ) -> Result<OperationState<ArmError>, ArmError> {
        let url = self.own_url(url.as_str())?;
        let call = Call {
            reconcile,
            kind,
            verb: CallVerb::Poll,
            budget: Budget::Reads,
            subscription: id.subscription(),
            address: &format!("{id}?operation"),
        };
        let answer = self.call(call, request(Method::GET, &url, None)).await?;
        operation::state(&answer)
    }

    fn url(&self, kind: Kind, path: &str) -> Url {
        let mut url = self.endpoint.clone();
        url.set_path(path);
        url.set_query(Some(&format!("api-version={}", kind.spec().api_version)));
        url
    }

    /// Parses a URL that Azure chose. It has to be on the configured host: the token goes nowhere else.
    fn own_url(&self, text: &str) -> Result<Url, ArmError> {
        let url = Url::parse(text).map_err(|_| foreign_host())?;
        if url.origin() == self.endpoint.origin() && is_sendable(&url) {
            Ok(url)
        } else {
            Err(foreign_host())
        }
    }

    /// Takes a call from the call budget of `address`. If none is left, that is a defect, and is logged as one.
    fn within_call_budget(&self, kind: Kind, address: &str) -> Result<(), ArmError> {
        let taken = self
            .call_budgets
            .take(kind.spec().rules.shared, address, Instant::now());
        taken.map_err(|exhausted| {
            self.counters.call_budget_exhausted(kind);
            if exhausted.is_new {
                tracing::error!(kind = kind.label(), address, "call budget exhausted: not sent");
            }
            ArmError {
                retry_after: Some(exhausted.wait),
                ..ArmError::own(Class::Throttled, CALL_BUDGET_EXHAUSTED)
            }
        })
    }

    async fn call(&self, call: Call<'_>, request: Request<Bytes>) -> Result<Answer, ArmError> {
        let _permit = self.admitted(&call).await?;
        self.send(call, request).await
    }

    /// Admits a call that may be sent now. What it draws on is counted last, when nothing else can keep it back.
    async fn admitted(&self, call: &Call<'_>) -> Result<Permit, ArmError> {
        let permit = self.permit(call).await?;
        self.within_throttle(call)?;
        self.within_call_budget(call.kind, call.address)?;
        Ok(permit)
    }

    /// A permit among the requests to the call's subscription.
    async fn permit(&self, call: &Call<'_>) -> Result<Permit, ArmError> {
        let permit = self.bulkhead.enter(call.subscription, call.reconcile.urgency).await;
        permit.map_err(|class| ArmError::own(class, TOO_MANY_UNANSWERED))
    }

    fn within_throttle(&self, call: &Call<'_>) -> Result<(), ArmError> {
        match self.throttle.wait(&call.draw(), Instant::now()) {
            None => Ok(()),
            wait => Err(ArmError {
                retry_after: wait,
                ..ArmError::own(Class::Throttled, "WaitingForBudget")
            }),
        }
    }

    async fn send(&self, call: Call<'_>, request: Request<Bytes>) -> Result<Answer, ArmError> {
        let counted = CountedCall::begin(&call, self.counters.as_ref(), Instant::now());
        let sent = self.transport.send(call.correlated(request)).await;
        self.answered(&call, sent, counted)
    }

    /// Sends a write. The gate is asked last, when the transport is ready to send it at once.
    async fn write(&self, call: Call<'_>, request: Request<Bytes>) -> Result<Answer, WriteError<ArmError>> {
        let _permit = self.admitted(&call).await?;
        let began = Instant::now();
        let ready = self.transport.ready().await;
        if ready.is_ok() && !self.gate.open() {
            return Err(WriteError::NotLeading);
        }
        let counted = CountedCall::begin(&call, self.counters.as_ref(), began);
        let sent = match ready {
            Ok(()) => self.transport.send(call.correlated(request)).await,
            Err(error) => Err(error),
        };
        Ok(self.answered(&call, sent, counted)?)
    }

    /// Reads the answer to a call.
    fn answered(
        &self,
        call: &Call<'_>,
        sent: Result<Response<Bytes>, TransportError>,
        counted: CountedCall<'_>,
    ) -> Result<Answer, ArmError> {
        let status = sent.as_ref().map_or(0, |answer| answer.status().as_u16());
        let result = sent.map_err(ArmError::from).and_then(|answer| self.read(call, &answer));
        counted.end(status, result.as_ref().err().map(|error| error.class));
        result.map_err(|error| self.note_throttling(call, error))
    }

    /// Holds back the calls on an exhausted request budget, for as long as the returned error says.
    fn note_throttling(&self, call: &Call<'_>, error: ArmError) -> ArmError {
        if error.class != Class::Throttled {
            return error;
        }
        let wait = error.retry_after.unwrap_or(THROTTLED_WAIT);
        let counts = if error.code == "TooManyRequests" {
            Counts::Service(call.kind.spec().service)
        } else {
            Counts::Arm
        };
        self.throttle.note_exhausted(&call.draw(), counts, wait, Instant::now());
        ArmError {
            retry_after: Some(wait),
            ..error
        }
    }

    fn read(&self, call: &Call<'_>, answer: &Response<Bytes>) -> Result<Answer, ArmError> {
        let status = answer.status();
        let headers = answer.headers();
        self.throttle
            .note_left(&call.draw(), headers, self.counters.as_ref(), Instant::now());
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
        // The write was accepted even so; the resource itself shows its progress.
        let operation = link.and_then(|text| self.own_url(text).ok());
        if operation.is_none() && link.is_some() {
            tracing::warn!("Azure names another host to ask about an operation: it is not asked");
        }
        Ok(Answer {
            status: status.as_u16(),
            body,
            size: answer.body().len(),
            retry_after,
            operation,
        })
    }
}

fn foreign_host() -> ArmError {
    ArmError::from(TransportError::ForeignHost("another host".to_owned()))
}
