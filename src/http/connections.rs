//! Limits how many connections one address has at once. Beyond that the connection that has been silent longest is
//! closed, or if none is silent, the new one. So strangers take neither the memory and file descriptors of the process
//! nor the connections of clients that send requests.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use axum_server::accept::Accept;
use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tower::Service;

/// The most connections at once. Kubelets and scrapers have one each, for a moment.
pub(super) const MOST: usize = 64;

/// Accepts connections as `inner` does, while there is a free slot or a silent connection to close.
#[derive(Clone)]
pub(super) struct Bounded<A> {
    inner: A,
    limit: ConnectionLimit,
}

impl<A> Bounded<A> {
    pub(super) fn new(inner: A) -> Self {
        let limit = ConnectionLimit {
            free: Arc::new(Semaphore::new(MOST)),
            silent: Arc::default(),
        };
        Self { inner, limit }
    }
}

impl<A, I, S> Accept<I, S> for Bounded<A>
where
    A: Accept<I, S>,
    A::Future: Send + 'static,
    A::Stream: Send + 'static,
    A::Service: Send + 'static,
{
    type Stream = Evictable<A::Stream>;
    type Service = WithSlot<A::Service>;
    type Future = BoxFuture<'static, io::Result<(Self::Stream, Self::Service)>>;

    fn accept(&self, stream: I, service: S) -> Self::Future {
        let accepted = self.inner.accept(stream, service);
        let limit = self.limit.clone();
        Box::pin(async move {
            let slot = limit.acquire().await?;
            let (stream, service) = tokio::select! {
                accepted = accepted => accepted?,
                () = slot.evicted.cancelled() => return Err(io::ErrorKind::QuotaExceeded.into()),
            };
            let stream = Evictable {
                stream,
                evicted: Box::pin(slot.evicted.clone().cancelled_owned()),
            };
            Ok((stream, WithSlot { service, slot }))
        })
    }
}

/// The connection slots of one address.
#[derive(Clone)]
struct ConnectionLimit {
    free: Arc<Semaphore>,
    silent: Silent,
}

/// The connections that have not sent a request yet, the oldest first.
type Silent = Arc<Mutex<VecDeque<Weak<ConnectionSlot>>>>;

/// The slot of one connection, which is free again when the connection ends.
struct ConnectionSlot {
    evicted: CancellationToken,
    silent: Silent,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionLimit {
    async fn acquire(self) -> io::Result<Arc<ConnectionSlot>> {
        let permit = match Arc::clone(&self.free).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) if self.evict() => self.free.acquire_owned().await.map_err(io::Error::other)?,
            Err(_) => {
                tracing::debug!("a connection too many");
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
        };
        let slot = Arc::new(ConnectionSlot {
            evicted: CancellationToken::new(),
            silent: Arc::clone(&self.silent),
            _permit: permit,
        });
        lock(&self.silent).push_back(Arc::downgrade(&slot));
        Ok(slot)
    }

    /// Closes the connection that has been silent longest. False if there is none.
    fn evict(&self) -> bool {
        let oldest = lock(&self.silent).pop_front();
        let Some(slot) = oldest.and_then(|slot| slot.upgrade()) else {
            return false;
        };
        slot.evicted.cancel();
        true
    }
}

impl ConnectionSlot {
    /// A request has arrived: from now on the connection is not evicted.
    fn mark_active(self: &Arc<Self>) {
        lock(&self.silent).retain(|other| other.as_ptr() != Arc::as_ptr(self));
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        lock(&self.silent).retain(|other| other.strong_count() > 0);
    }
}

fn lock(silent: &Silent) -> MutexGuard<'_, VecDeque<Weak<ConnectionSlot>>> {
    silent.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The stream of one connection, which ends with an error when the connection is evicted.
pub(super) struct Evictable<S> {
    stream: S,
    evicted: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl<S: Unpin> Evictable<S> {
    /// The stream, or an error if the connection was evicted.
    fn held(self: Pin<&mut Self>, context: &mut Context<'_>) -> io::Result<Pin<&mut S>> {
        let this = self.get_mut();
        match this.evicted.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::ConnectionAborted.into()),
            Poll::Pending => Ok(Pin::new(&mut this.stream)),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Evictable<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.held(context)?.poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Evictable<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.held(context)?.poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.held(context)?.poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.held(context)?.poll_shutdown(context)
    }
}

/// The service of one connection.
#[derive(Clone)]
pub(super) struct WithSlot<S> {
    service: S,
    slot: Arc<ConnectionSlot>,
}

impl<S: Service<R>, R> Service<R> for WithSlot<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: R) -> S::Future {
        self.slot.mark_active();
        self.service.call(request)
    }
}

#[cfg(test)]
mod tests {
    use axum_server::accept::DefaultAcceptor;
    use futures::FutureExt as _;
    use tokio::io::{AsyncReadExt as _, DuplexStream};

    use super::*;

    /// A connection whose requests are never answered.
    async fn connection(
        at: &Bounded<DefaultAcceptor>,
    ) -> io::Result<(Evictable<DuplexStream>, impl Service<()> + use<>)> {
        let (own, _) = tokio::io::duplex(1);
        at.accept(own, tower::service_fn(|()| std::future::pending::<io::Result<()>>()))
            .await
    }

    #[tokio::test]
    async fn connection_that_is_being_answered_is_not_evicted() {
        let at = Bounded::new(DefaultAcceptor);
        let mut asking = Vec::new();
        for _ in 1..MOST {
            let (stream, mut service) = connection(&at).await.unwrap();
            let answer = service.call(());
            asking.push((stream, service, answer));
        }
        let (silent, service) = connection(&at).await.unwrap();
        let one_is_evicted = async {
            let end = { silent }.read_u8().await.unwrap_err();
            drop(service);
            end.kind()
        };
        let (newcomer, end) = tokio::join!(connection(&at), one_is_evicted);
        assert_eq!(end, io::ErrorKind::ConnectionAborted);
        let (stream, mut service) = newcomer.unwrap();
        let answer = service.call(());
        asking.push((stream, service, answer));

        let beyond = connection(&at).now_or_never().expect("it is told at once");
        assert_eq!(beyond.err().unwrap().kind(), io::ErrorKind::QuotaExceeded);
        asking.pop();
        connection(&at).now_or_never().expect("there is a place").unwrap();
    }
}
