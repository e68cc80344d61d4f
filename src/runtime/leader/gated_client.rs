//! A Kubernetes client whose writes ask the gate, and that can read whatever a tenant has written.
//!
//! It asks as late as this process can: after the client's own queue, right before the request is given to the
//! connection. It does not retry by itself, because a repeated request would not ask the gate again.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Method, Request};
use kube::Client;
use kube::client::{Body, ClientBuilder};
use tower::util::MapResponseLayer;
use tower::{BoxError, Service};

use crate::runtime::retry_after::RetryAfter;
use crate::runtime::{json_depth, json_times};

/// A write was not sent, because this process does not lead (any more). Found as the source of
/// [`kube::Error::Service`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not sent: this process does not lead")]
pub struct GateShut;

/// A client that waits when the API server asks for it, sends reads always, and everything else only while `may_write`
/// says so; otherwise the call fails with [`GateShut`]. `may_write` must not wait.
///
/// # Errors
/// If the client's configuration is unusable.
pub fn gated_client(
    mut config: kube::Config,
    may_write: impl Fn() -> bool + Send + Sync + 'static,
) -> kube::Result<Client> {
    config.default_retry = false;
    let may_write: MayWrite = Arc::new(may_write);
    let asks = tower::layer::layer_fn(move |inner| Gated::new(inner, Arc::clone(&may_write)));
    let reads = MapResponseLayer::new(|response| json_times::readable(json_depth::cut(response)));
    Ok(ClientBuilder::try_from(config)?
        .with_layer(&reads)
        .with_layer(&asks)
        .with_layer(&tower::layer::layer_fn(RetryAfter::new))
        .build())
}

type MayWrite = Arc<dyn Fn() -> bool + Send + Sync>;

pub(super) struct Gated<S> {
    inner: S,
    may_write: MayWrite,
}

impl<S> Gated<S> {
    pub(super) fn new(inner: S, may_write: MayWrite) -> Self {
        Self { inner, may_write }
    }
}

impl<S> Service<Request<Body>> for Gated<S>
where
    S: Service<Request<Body>, Error = BoxError>,
    S::Response: Send + 'static,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        if reads || (self.may_write)() {
            self.inner.call(request).boxed()
        } else {
            std::future::ready(Err(GateShut.into())).boxed()
        }
    }
}
