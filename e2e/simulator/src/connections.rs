//! Accepting connections and ending them: handshake, HTTP/1.1, what a slow client gets, what a stop leaves. What is answered is the caller's decision.

use std::{
    future::Future,
    sync::{Arc, PoisonError},
    time::Duration,
};

use http::{Request, Response};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::wire::{Dropped, Excess, WireBody, WireStream};

/// What a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// What running calls get to end in when the server stops.
const GRACE: Duration = Duration::from_millis(500);

/// How connections are served.
#[derive(Clone)]
pub struct Serving {
    /// Without it, plain HTTP.
    pub tls: Option<TlsAcceptor>,
    /// What a client may take from one request's end to the end of the next one's head. The clouds' front ends close idle connections too.
    pub head: Duration,
    /// Ends the server.
    pub stop: CancellationToken,
}

/// Serves connections until `stop` is cancelled; then running calls get a moment to end in.
pub async fn serve<A, F>(listener: TcpListener, serving: Serving, answer: A)
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Result<Response<WireBody>, Dropped>> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = serving.stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => {
                    connections.spawn(connection(socket, serving.clone(), answer.clone()));
                }
                Err(error) => {
                    // Out of file descriptors, most likely: a busy loop would not free any.
                    tracing::warn!(%error, "accept failed");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
    drop(listener);
    // What is left is aborted.
    let _ = timeout(GRACE, async { while connections.join_next().await.is_some() {} }).await;
}

async fn connection<A, F>(socket: TcpStream, serving: Serving, answer: A)
where
    A: Fn(Request<Incoming>) -> F,
    F: Future<Output = Result<Response<WireBody>, Dropped>>,
{
    let _ = socket.set_nodelay(true);
    match &serving.tls {
        None => speak(socket, &serving, answer).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = timeout(HANDSHAKE, tls.accept(socket)).await {
                speak(stream, &serving, answer).await;
            }
        }
    }
}

async fn speak<S, A, F>(stream: S, serving: &Serving, answer: A)
where
    S: AsyncRead + AsyncWrite + Unpin,
    A: Fn(Request<Incoming>) -> F,
    F: Future<Output = Result<Response<WireBody>, Dropped>>,
{
    let (stream, follows) = WireStream::new(stream);
    let service = service_fn(move |request| {
        let answered = answer(request);
        let follows = Arc::clone(&follows);
        async move {
            let mut response = answered.await?;
            if let Some(Excess(bytes)) = response.extensions_mut().remove() {
                *follows.lock().unwrap_or_else(PoisonError::into_inner) = bytes;
            }
            Ok::<_, Dropped>(response)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(serving.head)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = serving.stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// A server of one word, its address and what stops it.
    async fn serving(head: Duration) -> (std::net::SocketAddr, CancellationToken) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let serving = Serving {
            tls: None,
            head,
            stop: stop.clone(),
        };
        let answer = |_| async { Ok(Response::new(WireBody::whole(Bytes::from_static(b"here")))) };
        tokio::spawn(serve(listener, serving, answer));
        (address, stop)
    }

    async fn until_closed(client: &mut TcpStream) -> String {
        let mut got = String::new();
        let read = client.read_to_string(&mut got);
        timeout(Duration::from_secs(30), read)
            .await
            .expect("the server closes")
            .unwrap();
        got
    }

    /// What a client gets that sends this and then nothing.
    async fn sent_and_silent(bytes: &[u8]) -> String {
        let (address, _stop) = serving(Duration::from_millis(50)).await;
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(bytes).await.unwrap();
        until_closed(&mut client).await
    }

    #[tokio::test]
    async fn thousand_open_connections_are_answered_and_closed_by_a_stop() {
        let (address, stop) = serving(Duration::from_secs(240)).await;
        let mut clients = Vec::new();
        for _ in 0..1000 {
            clients.push(TcpStream::connect(address).await.unwrap());
        }
        for client in &mut clients {
            client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        }
        for client in &mut clients {
            let mut start = [0; 15];
            client.read_exact(&mut start).await.unwrap();
            assert_eq!(&start, b"HTTP/1.1 200 OK");
        }
        stop.cancel();
        for client in &mut clients {
            assert!(until_closed(client).await.ends_with("here"));
        }
    }

    #[tokio::test]
    async fn client_that_never_ends_its_head_is_cut_off() {
        let got = sent_and_silent(b"GET / HTTP/1.1\r\nHost: x\r\n").await;
        assert!(!got.contains("here"), "{got}");
    }

    #[tokio::test]
    async fn idle_connection_is_closed_after_its_answer() {
        let got = sent_and_silent(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert!(got.ends_with("here"), "{got}");
    }
}
