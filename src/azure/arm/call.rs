//! What budgets and counters have to know of a call.

use bytes::Bytes;
use http::Request;
use hyperlink_engine::client::Reconcile;

use crate::arm::id::SubscriptionId;
use crate::arm::ports::CallVerb;
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
