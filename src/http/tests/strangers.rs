//! Clients that are slow, too many or too loud do not keep others from being answered.

use std::io;

use axum::Router;
use axum::routing::get;
use rstest::rstest;

use super::*;
use crate::http::connections::MOST;
use crate::http::serve::serve;

/// What arrives until the server closes the connection, which it must do in time.
async fn read_to_close(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let end = tokio::time::timeout(CLIENT_TIMEOUT * 3, stream.read_to_end(&mut all)).await;
    // A server that closes with unread bytes resets the connection.
    let end = end.expect("nobody hangs up").map_err(|error| error.kind());
    assert!(matches!(end, Ok(_) | Err(io::ErrorKind::ConnectionReset)), "{end:?}");
    String::from_utf8(all).unwrap()
}

#[rstest]
#[case::nothing(None, "", PROBE_HEAD)]
#[case::half_a_request(None, "GET /livez HTTP/1.1\r\n", PROBE_HEAD)]
#[case::no_handshake(Some(Certificate::self_signed().unwrap()), "", CLIENT_TIMEOUT)]
#[tokio::test(start_paused = true)]
async fn slow_client_is_disconnected(#[case] secure: Option<Certificate>, #[case] sent: &str, #[case] time: Duration) {
    let (http_server, stop) = bind_with(false, secure).await;
    let address = http_server.metrics().unwrap();
    let server = tokio::spawn(http_server.serve(pages(), nowhere(), stop.clone()));
    let mut slow = TcpStream::connect(address).await.unwrap();
    slow.write_all(sent.as_bytes()).await.unwrap();
    let began = tokio::time::Instant::now();
    read_to_close(&mut slow).await;
    assert!(began.elapsed() <= time + LINGER, "{:?}", began.elapsed());
    stop.cancel();
    server.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_connection_is_for_one_request_with_a_short_head() {
    let (http_server, stop) = bind(false).await;
    let address = http_server.metrics().unwrap();
    let server = tokio::spawn(http_server.serve(pages(), nowhere(), stop.clone()));

    let mut loud = TcpStream::connect(address).await.unwrap();
    loud.write_all(&b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n".repeat(3))
        .await
        .unwrap();
    let answers = read_to_close(&mut loud).await;
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 1, "{answers}");

    for (length, status) in [(HEAD / 2, 200), (HEAD * 2, 431)] {
        let mut long = TcpStream::connect(address).await.unwrap();
        let token = "x".repeat(length);
        let head = format!("GET /livez HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n");
        // The server may close before all is sent.
        let _ = long.write_all(head.as_bytes()).await;
        let answer = read_to_close(&mut long).await;
        let expected = format!("HTTP/1.1 {status} ");
        assert!(
            answer.starts_with(&expected) || status == 431 && answer.is_empty(),
            "{answer}"
        );
    }
    stop.cancel();
    server.await.unwrap().unwrap();
}

#[rstest]
#[case::plain(None)]
#[case::half_a_handshake(Some(Certificate::self_signed().unwrap()))]
#[tokio::test]
async fn silent_connections_keep_nobody_waiting(#[case] secure: Option<Certificate>) {
    let (http_server, stop) = bind_with(true, secure).await;
    let (probes, metrics) = (http_server.probes().unwrap(), http_server.metrics().unwrap());
    let server = tokio::spawn(http_server.serve(pages(), nowhere(), stop.clone()));

    for address in [probes, metrics] {
        let mut crowd = Vec::new();
        for _ in 0..=MOST {
            crowd.push(TcpStream::connect(address).await.unwrap());
        }
        // The connection that was silent longest is closed before its time is over.
        let first = tokio::time::timeout(PROBE_HEAD / 2, read_to_close(&mut crowd[0]));
        assert_eq!(first.await.expect("nobody gives way"), "");
        let answer = tokio::time::timeout(PROBE_HEAD / 2, get_from(probes, "/livez"));
        let answer = answer.await.expect("the probe waits");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    stop.cancel();
    server.await.unwrap().unwrap();
}

/// The API server is asked about the tokens of strangers, and may take its time.
#[tokio::test]
async fn requests_without_an_answer_keep_nobody_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (arrived, mut arrivals) = tokio::sync::mpsc::unbounded_channel();
    let waits = move || {
        arrived.send(()).unwrap();
        std::future::pending::<()>()
    };
    let router = Router::new()
        .route("/waits", get(waits))
        .route("/livez", get(async || ()));
    let stop = CancellationToken::new();
    let until = stop.clone();
    let server = tokio::spawn(async move { serve(listener, None, router, &until).await });
    let mut crowd = Vec::new();
    for _ in 0..MOST {
        let mut one = TcpStream::connect(address).await.unwrap();
        one.write_all(b"GET /waits HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        arrivals.recv().await.unwrap();
        crowd.push(one);
    }
    let answer = get_from(address, "/livez").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    stop.cancel();
    server.await.unwrap();
}
