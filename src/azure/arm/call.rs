//! What budgets and counters have to know of a call.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use hyperlink_engine::client::Reconcile;
use hyperlink_engine::failure::Class;
use tokio::time::Instant;

use crate::arm::id::SubscriptionId;
use crate::arm::ports::{CallVerb, Counters, ObservedCall};
use crate::arm::throttle::{Budget, Draw};
use crate::kinds::Kind;

/// The properties of a call that budgets and counters need.
pub(super) struct Call<'a> {
    pub(super) reconcile: Reconcile,
    pub(super) kind: Kind,
    pub(super) verb: CallVerb,
    pub(super) budget: Budget,
    pub(super) subscription: &'a SubscriptionId,
    /// The path whose call budget it takes from.
    pub(super) address: &'a str,
}

impl Call<'_> {
    /// What it draws on.
    pub(super) fn draw(&self) -> Draw<'_> {
        Draw {
            subscription: self.subscription,
            budget: self.budget,
            kind: self.kind,
            urgency: self.reconcile.urgency,
        }
    }

    /// The request with the correlation id of its reconcile.
    pub(super) fn correlated(&self, mut request: Request<Bytes>) -> Request<Bytes> {
        if let Ok(id) = self.reconcile.correlation.to_string().parse() {
            request.headers_mut().insert("x-ms-correlation-request-id", id);
        }
        request
    }
}

/// A call that was sent. It counts when it ends, also if its caller gives it up without an answer.
pub(super) struct CountedCall<'a> {
    counters: &'a dyn Counters,
    began: Instant,
    observed: ObservedCall,
}

impl<'a> CountedCall<'a> {
    /// The call is sent now; `began` is when it was ready to be.
    pub(super) fn begin(call: &Call<'_>, counters: &'a dyn Counters, began: Instant) -> Self {
        Self {
            counters,
            began,
            observed: ObservedCall {
                kind: call.kind,
                verb: call.verb,
                status: 0,
                class: Some(Class::Down),
                took: Duration::ZERO,
            },
        }
    }

    /// An answer of this status came, or none; `class` is that of the error.
    pub(super) fn end(mut self, status: u16, class: Option<Class>) {
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
