use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::endpoints::EndpointOverrides;
use crate::region::Region;

/// A server on loopback that answers each connection with these bytes, and how many connections it got.
async fn server(answer: Vec<u8>) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = connections.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut read = [0; 4_096];
            let _ = stream.read(&mut read).await;
            // The client may close the connection before it has read everything.
            let _ = stream.write_all(&answer).await;
            let _ = stream.shutdown().await;
        }
    });
    (origin, connections)
}

fn transport(origin: &str) -> HttpsTransport {
    let overrides = EndpointOverrides {
        ec2: Some(origin.to_owned()),
        ..EndpointOverrides::default()
    };
    let endpoints = Endpoints::new(Region::parse("us-east-1").unwrap(), &overrides).unwrap();
    HttpsTransport::new(reqwest::Client::builder().no_proxy(), endpoints).unwrap()
}

fn request(url: &str) -> http::Request<Bytes> {
    http::Request::builder()
        .uri(url)
        .header("x-amz-security-token", "secret")
        .body(Bytes::new())
        .unwrap()
}

#[tokio::test]
async fn redirect_is_an_answer_and_not_followed() {
    let (elsewhere, followed) = server(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec()).await;
    let head = format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: {elsewhere}/\r\ncontent-length: 0\r\n\r\n");
    let (origin, _) = server(head.into_bytes()).await;
    let answer = transport(&origin).send(request(&origin)).await.unwrap();
    assert_eq!(answer.status(), 307);
    assert_eq!(followed.load(Ordering::SeqCst), 0, "the token went nowhere else");
}

#[tokio::test]
async fn other_host_gets_no_request() {
    let (other, connections) = server(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec()).await;
    let transport = transport("http://127.0.0.1:1");
    let refused = transport.send(request(&other)).await.unwrap_err();
    assert_eq!(refused, TransportError::ForeignHost(other));
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn body_without_an_announced_length_is_read_up_to_the_limit() {
    let mut answer = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    answer.resize(answer.len() + ANSWER_LIMIT + 1, b' ');
    let (origin, _) = server(answer).await;
    let error = transport(&origin).send(request(&origin)).await.unwrap_err();
    assert_eq!(error, TransportError::TooLarge(ANSWER_LIMIT));
}

#[tokio::test]
async fn announced_length_beyond_the_limit_is_not_read() {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", u64::MAX);
    let (origin, _) = server(head.into_bytes()).await;
    let error = transport(&origin).send(request(&origin)).await.unwrap_err();
    assert!(
        matches!(error, TransportError::TooLarge(_) | TransportError::Connection(_)),
        "{error}"
    );
}

#[tokio::test]
async fn cut_body_is_a_failed_connection() {
    let (origin, _) = server(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n<A>".to_vec()).await;
    let error = transport(&origin).send(request(&origin)).await.unwrap_err();
    assert_eq!(error, TransportError::Connection("the connection broke".into()));
}

#[tokio::test]
async fn closed_port_is_reported_without_its_address() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = transport(&origin).send(request(&origin)).await.unwrap_err();
    assert_eq!(error.to_string(), "connection failed: could not connect");
}
