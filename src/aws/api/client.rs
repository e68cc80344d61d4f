//! The client of one identity in one account: each call is sent once, while its action is not held back, and writes
//! only while the gate is open.

use std::sync::Arc;
use std::time::Duration;

use hyperlink_engine::bulkhead::Permit;
use hyperlink_engine::client::{Reconcile, WriteError};
use hyperlink_engine::failure::Class;
use hyperlink_engine::gate::Gate;
use tokio::time::Instant;

use crate::api::action::{Action, Verb};
use crate::api::error::{AwsError, TOO_MANY_UNANSWERED, WAITING_FOR_THROTTLING};
pub use crate::api::exchange::Connection;
use crate::api::exchange::{Unsuccessful, document};
use crate::api::request::ServiceRequest;
use crate::api::throttle::Bucket;
use crate::credentials::{Session, SessionSource};
use crate::endpoints::Service;
use crate::kinds::Kind;
use crate::wire::xml::{Element, Malformed};

/// A call waits itself for a turn that comes this soon: held back, it would come no sooner.
const SHORT_WAIT: Duration = Duration::from_secs(1);

/// Calls AWS as one identity.
#[derive(Clone)]
pub struct Client {
    connection: Connection,
    sessions: Arc<dyn SessionSource>,
    account: Arc<str>,
    gate: Arc<dyn Gate>,
}

impl Client {
    /// Calls are made with `sessions`, in `account`, whose request limits they share. Writes are sent only while `gate`
    /// is open.
    pub fn new(
        connection: Connection,
        sessions: Arc<dyn SessionSource>,
        account: impl Into<Arc<str>>,
        gate: Arc<dyn Gate>,
    ) -> Self {
        Self {
            connection,
            sessions,
            account: account.into(),
            gate,
        }
    }

    /// Sends a request that changes nothing; what `parse` reads in the answer.
    pub(crate) async fn read<T>(
        &self,
        reconcile: Reconcile,
        request: ServiceRequest,
        parse: fn(&Element) -> Result<T, Malformed>,
    ) -> Result<T, AwsError> {
        match self.call(reconcile, &request, parse).await {
            Ok(parsed) => Ok(parsed),
            Err(WriteError::Failed(error)) => Err(error),
            // Only writes ask the gate.
            Err(WriteError::NotLeading) => Err(AwsError::own(Class::Invalid, "NotLeading")),
        }
    }

    /// Sends a request that changes something; what `parse` reads in the answer.
    pub(crate) async fn write<T>(
        &self,
        reconcile: Reconcile,
        request: ServiceRequest,
        parse: fn(&Element) -> Result<T, Malformed>,
    ) -> Result<T, WriteError<AwsError>> {
        self.call(reconcile, &request, parse).await
    }

    /// Sends the request. If AWS refuses the session or the time of the request, nothing was done, and it is sent once
    /// more with a new session or the right time, if there is one.
    async fn call<T>(
        &self,
        reconcile: Reconcile,
        request: &ServiceRequest,
        parse: fn(&Element) -> Result<T, Malformed>,
    ) -> Result<T, WriteError<AwsError>> {
        self.within_throttle(reconcile, request.action)?;
        let session = self.session().await?;
        self.within_budget(reconcile, request).await?;
        let _permit = self.permit(reconcile, request.action).await?;
        let failed = match self.send(request, &session, parse).await? {
            Ok(parsed) => return Ok(parsed),
            Err(failed) => failed,
        };
        let Some(session) = self.second_session(&failed, session).await else {
            return Err(failed.error.into());
        };
        let second = self.send(request, &session, parse).await?;
        Ok(second.map_err(|failed| failed.error)?)
    }

    async fn session(&self) -> Result<Arc<Session>, AwsError> {
        let session = self.sessions.session().await;
        session.map_err(|error| error.of_unsent_call())
    }

    /// The session for a second try; none if that would fare no better.
    async fn second_session(&self, failed: &Unsuccessful, session: Arc<Session>) -> Option<Arc<Session>> {
        if failed.corrected_clock {
            return Some(session);
        }
        if !failed.error.refuses_session() {
            return None;
        }
        self.sessions.invalidate(&session);
        let newer = self.sessions.session().await.ok()?;
        (!Arc::ptr_eq(&newer, &session)).then_some(newer)
    }

    /// Sends the request once, and notes whether AWS throttles its action. The gate is asked last.
    async fn send<T>(
        &self,
        request: &ServiceRequest,
        session: &Session,
        parse: fn(&Element) -> Result<T, Malformed>,
    ) -> Result<Result<T, Unsuccessful>, WriteError<AwsError>> {
        let action = request.action;
        if action.verb() != Verb::Read && !self.gate.open() {
            return Err(WriteError::NotLeading);
        }
        let (sent, bucket) = (Instant::now(), self.bucket(action));
        if action.service() == Service::Route53 {
            self.connection.route53_rate().note(&bucket, sent);
        }
        let parse = |answer: &_| parse(&document(action, answer)?);
        let result = self.connection.send(request, Some(session), parse).await;
        let throttle = self.connection.throttle();
        Ok(match result {
            Err(failed) if failed.error.class == Class::Throttled => {
                let wait = throttle.note_throttled(&bucket, sent, Instant::now());
                let error = AwsError {
                    retry_after: Some(wait),
                    exact: true,
                    ..failed.error
                };
                Err(Unsuccessful { error, ..failed })
            }
            other => {
                // Also an error is an answer: AWS took the request.
                if other.as_ref().err().is_none_or(|failed| failed.error.status != 0) {
                    throttle.note_answered(&bucket, sent);
                }
                other
            }
        })
    }

    fn within_throttle(&self, reconcile: Reconcile, action: Action) -> Result<(), AwsError> {
        let throttle = self.connection.throttle();
        let wait = throttle.wait(&self.bucket(action), reconcile.urgency, Instant::now());
        self.held_back(action, wait)
    }

    /// A permit among the requests of the action: one that takes long must not occupy what others need.
    async fn permit(&self, reconcile: Reconcile, action: Action) -> Result<Permit, AwsError> {
        let bulkhead = self.connection.bulkhead();
        let permit = bulkhead.enter(&self.bucket(action), reconcile.urgency).await;
        permit.map_err(|class| AwsError::own(class, TOO_MANY_UNANSWERED))
    }

    /// Takes the request from AWS's budget. A long list gets the turns of its pages one after another.
    async fn within_budget(&self, reconcile: Reconcile, request: &ServiceRequest) -> Result<(), AwsError> {
        let (action, bucket) = (request.action, self.bucket(request.action));
        let take = || {
            let budgets = self.connection.budgets();
            budgets.take(&bucket, action, &request.content(), reconcile.urgency, Instant::now())
        };
        let mut wait = take();
        while let Some(short) = wait.filter(|wait| *wait <= SHORT_WAIT) {
            tokio::time::sleep(short).await;
            wait = take();
        }
        self.held_back(action, wait)
    }

    fn held_back(&self, action: Action, wait: Option<Duration>) -> Result<(), AwsError> {
        let Some(wait) = wait else {
            return Ok(());
        };
        self.connection.counters().held_back(action);
        Err(AwsError {
            retry_after: Some(wait),
            ..AwsError::own(Class::Throttled, WAITING_FOR_THROTTLING)
        })
    }

    /// Counts a call that is not sent because its resource has no call budget left.
    pub(crate) fn note_call_budget_exhausted(&self, kind: Kind) {
        self.connection.counters().call_budget_exhausted(kind);
    }

    fn bucket(&self, action: Action) -> Bucket {
        let region = self.connection.endpoints().region().name();
        Bucket::of(&self.account, region, action)
    }
}

#[cfg(test)]
mod tests;
