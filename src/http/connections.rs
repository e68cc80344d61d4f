//! How many connections one address has at once. Whoever comes beyond is hung up on, so that a crowd of strangers can take neither
//! the memory nor the file descriptors of the process.

use std::future::ready;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum_server::accept::Accept;
use futures::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::Service;

/// Connections at once. Kubelets and scrapers have one each, for a moment.
pub(super) const MOST: usize = 64;

/// Takes connections as `inner` does, while there is a place.
#[derive(Clone)]
pub(super) struct Bounded<A> {
    inner: A,
    places: Arc<Semaphore>,
}

impl<A> Bounded<A> {
    pub(super) fn new(inner: A) -> Self {
        Self {
            inner,
            places: Arc::new(Semaphore::new(MOST)),
        }
    }
}

impl<A, I, S> Accept<I, S> for Bounded<A>
where
    A: Accept<I, S>,
    A::Future: Send + 'static,
    A::Stream: Send + 'static,
    A::Service: Send + 'static,
{
    type Stream = A::Stream;
    type Service = Placed<A::Service>;
    type Future = BoxFuture<'static, io::Result<(Self::Stream, Self::Service)>>;

    fn accept(&self, stream: I, service: S) -> Self::Future {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            tracing::debug!("a connection too many");
            return Box::pin(ready(Err(io::ErrorKind::QuotaExceeded.into())));
        };
        let accepted = self.inner.accept(stream, service);
        Box::pin(async move {
            let (stream, service) = accepted.await?;
            let _place = Arc::new(place);
            Ok((stream, Placed { service, _place }))
        })
    }
}

/// The service of one connection. Its place is free when the last clone goes, which is when the connection ends.
#[derive(Clone)]
pub(super) struct Placed<S> {
    service: S,
    _place: Arc<OwnedSemaphorePermit>,
}

impl<S: Service<R>, R> Service<R> for Placed<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: R) -> S::Future {
        self.service.call(request)
    }
}
