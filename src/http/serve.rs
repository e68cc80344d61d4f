//! Answers the requests that come to one address, one for each connection.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::certificate::Certificate;
use super::connections::{ConnectionLimit, ConnectionSlot};

/// How long open connections for probes and metrics may delay a stopping process.
pub(super) const LINGER: Duration = Duration::from_secs(1);

/// How long the TLS handshake of somebody who asks for metrics may take, and then the head of the request.
pub(super) const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the head of a request may take where there is no TLS, as for probes. Kubelets are near, and send it at
/// once.
///
/// Rule: `docs/sizing.md`.
pub(super) const PROBE_HEAD: Duration = Duration::from_secs(2);

/// The most bytes in the head of a request. Tokens have a few thousand at most.
pub(super) const HEAD: usize = 16 << 10;

/// The wait after a connection could not be accepted: the process may have no file descriptor left.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Answers until `stop`, then gives open connections a second to end.
pub(super) async fn serve(
    listener: TcpListener,
    secure: Option<&Certificate>,
    router: Router,
    stop: &CancellationToken,
) {
    let limit = ConnectionLimit::default();
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let secure = secure.cloned();
        let router = router.clone();
        let limit = limit.clone();
                    open.spawn(async move { connection(stream, secure.as_ref(), router, &limit).await });
                }
                Err(error) => {
                    tracing::debug!(%error, "a connection was not accepted");
                    sleep(ACCEPT_AGAIN).await;
                }
            },
            Some(_) = open.join_next() => {}
            () = stop.cancelled() => break,
        }
    }
    drop(listener);
    let _ = timeout(LINGER, async { while open.join_next().await.is_some() {} }).await;
}

/// Answers one connection, unless it has to make room for others.
async fn connection(stream: TcpStream, secure: Option<&Certificate>, router: Router, limit: &ConnectionLimit) {
    let Some(slot) = limit.acquire().await else {
        return;
    };
    let answered = async {
        match secure {
            None => answer(stream, PROBE_HEAD, router, &slot).await,
            Some(certificate) => {
                if let Ok(Ok(stream)) = timeout(CLIENT_TIMEOUT, certificate.acceptor().accept(stream)).await {
                    answer(stream, CLIENT_TIMEOUT, router, &slot).await;
                }
            }
        }
    };
    tokio::select! {
        () = answered => {}
        () = slot.evicted.cancelled() => {}
    }
}

/// Answers one request, of which the head has to come within this time.
async fn answer<S>(stream: S, head: Duration, router: Router, slot: &Arc<ConnectionSlot>)
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let service = service_fn(|request| {
        let answered = router.clone().oneshot(request);
        async move {
            let answer = answered.await.unwrap_or_else(|never| match never {});
            // Not before: what the API server is asked about strangers takes time.
            slot.mark_answered();
            Ok::<_, Infallible>(answer)
        }
    });
    let answered = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head)
        .max_buf_size(HEAD)
        // One request each, so that nobody keeps a connection by sending requests without reading answers.
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = answered.await {
        tracing::debug!(%error, "a connection ended early");
    }
}
