//! What a fault rule does to the connection, as a client sees it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod http_support;

use std::time::{Duration, Instant};

use http_support::*;
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

#[tokio::test]
async fn dropped_before_nothing_is_applied() {
    let server = start().await;
    let token = server.token(ARM_SCOPE).await;
    server
        .fault(json!({"method": "PUT", "path": "/subnets/"}), json!({"drop": "before"}))
        .await;
    assert!(server.put_subnet("one", "10.0.1.0/24", &token).send().await.is_err());
    assert!(!server.has_subnet("one").await);
    assert_eq!(
        server
            .put_subnet("one", "10.0.1.0/24", &token)
            .send()
            .await
            .unwrap()
            .status(),
        201
    );
}

#[tokio::test]
async fn dropped_after_it_is_applied() {
    let server = start().await;
    let token = server.token(ARM_SCOPE).await;
    server
        .fault(json!({"method": "PUT", "path": "/subnets/"}), json!({"drop": "after"}))
        .await;
    assert!(server.put_subnet("one", "10.0.1.0/24", &token).send().await.is_err());
    assert!(server.has_subnet("one").await);
}

#[tokio::test]
async fn status_with_drop_after_is_applied_and_answered_with_it() {
    let server = start().await;
    let token = server.token(ARM_SCOPE).await;
    server
        .fault(
            json!({"method": "PUT"}),
            json!({"status": 504, "code": "GatewayTimeout", "drop": "after"}),
        )
        .await;
    let (status, body) = status_and_json(server.put_subnet("one", "10.0.1.0/24", &token).send().await.unwrap()).await;
    assert_eq!((status, &body["error"]["code"]), (504, &json!("GatewayTimeout")));
    assert!(server.has_subnet("one").await);
}

#[tokio::test]
async fn cut_body_arrives_up_to_the_cut() {
    let server = start().await;
    let token = server.token(ARM_SCOPE).await;
    server.fault(json!({}), json!({"cut_body_at": 7})).await;
    let raw = raw_get(&server, &token).await;
    let (head, body) = raw.split_once("\r\n\r\n").unwrap();
    assert_eq!(body.len(), 7, "{raw}");
    let promised: usize = header(head, "content-length").parse().unwrap();
    assert!(promised > 7, "{head}");
    server.fault(json!({}), json!({"cut_body_at": 7})).await;
    assert!(
        server.get_group(&token).await.bytes().await.is_err(),
        "a client notices"
    );
    assert_eq!(server.get_group(&token).await.status(), 200, "the next call is as ever");
}

#[tokio::test]
async fn wrong_content_length_is_sent_as_configured() {
    let server = start().await;
    let token = server.token(ARM_SCOPE).await;
    let whole = server.get_group(&token).await.bytes().await.unwrap();
    server.fault(json!({}), json!({"content_length": 9999})).await;
    let raw = raw_get(&server, &token).await;
    let (head, body) = raw.split_once("\r\n\r\n").unwrap();
    assert_eq!((header(head, "content-length"), body.len()), ("9999", whole.len()));
}

#[tokio::test]
async fn too_short_content_length_leaves_bytes_over() {
    let server = start().await;
    let token = server.token(ARM_SCOPE).await;
    let whole = server.get_group(&token).await.bytes().await.unwrap();
    server.fault(json!({}), json!({"content_length": 3})).await;
    let raw = raw_get(&server, &token).await;
    let (head, body) = raw.split_once("\r\n\r\n").unwrap();
    assert_eq!((header(head, "content-length"), body.as_bytes()), ("3", whole.as_ref()));
    server.fault(json!({}), json!({"content_length": 3})).await;
    let short = server.get_group(&token).await.bytes().await.unwrap();
    assert_eq!(short, whole.slice(..3), "a client believes it");
    assert_eq!(
        server.get_group(&token).await.status(),
        200,
        "what is over is not taken for an answer"
    );
}

#[tokio::test]
async fn cut_and_wrong_length_go_together() {
    let server = start().await;
    let token = server.token(ARM_SCOPE).await;
    server
        .fault(json!({}), json!({"cut_body_at": 5, "content_length": 7}))
        .await;
    let raw = raw_get(&server, &token).await;
    let (head, body) = raw.split_once("\r\n\r\n").unwrap();
    assert_eq!((header(head, "content-length"), body.len()), ("7", 5));
}

#[tokio::test]
async fn dropped_connection_shows_not_a_byte() {
    let server = start().await;
    let token = server.token(ARM_SCOPE).await;
    for when in ["before", "after"] {
        server.fault(json!({}), json!({"drop": when})).await;
        assert_eq!(raw_get(&server, &token).await, "", "{when}");
    }
}

#[tokio::test]
async fn html_with_200_is_sent_as_configured() {
    let server = start().await;
    let token = server.token(ARM_SCOPE).await;
    let html = "<html><body>Please sign in</body></html>";
    let action = json!({"status": 200, "headers": {"content-type": "text/html"}, "body": html});
    server.fault(json!({}), action).await;
    let raw = raw_get(&server, &token).await;
    let (head, body) = raw.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert_eq!((header(head, "content-type"), body), ("text/html", html));
}

#[tokio::test]
async fn status_comes_with_the_configured_code_headers_and_body() {
    let server = start().await;
    let token = server.token(ARM_SCOPE).await;
    let action = json!({"status": 429, "code": "TooManyRequests", "message": "later", "headers": {"retry-after": 7}});
    server.fault(json!({"from": 2}), action).await;
    assert!(
        raw_get(&server, &token).await.starts_with("HTTP/1.1 200 "),
        "the first is spared"
    );
    let raw = raw_get(&server, &token).await;
    let (head, body) = raw.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 429 "), "{head}");
    assert_eq!(header(head, "retry-after"), "7");
    assert_eq!(body, r#"{"error":{"code":"TooManyRequests","message":"later"}}"#);
    server
        .fault(json!({}), json!({"status": 500, "body": {"odd": [1]}}))
        .await;
    assert!(raw_get(&server, &token).await.ends_with("\r\n\r\n{\"odd\":[1]}"));
}

#[tokio::test]
async fn delayed_answer_comes_late_and_whole() {
    let server = start().await;
    let token = server.token(ARM_SCOPE).await;
    server.fault(json!({}), json!({"delay_ms": 300})).await;
    let start = Instant::now();
    let raw = raw_get(&server, &token).await;
    assert!(start.elapsed() >= Duration::from_millis(300));
    assert!(raw.starts_with("HTTP/1.1 200 ") && raw.ends_with('}'), "{raw}");
}

#[tokio::test]
async fn delayed_answer_does_not_hold_up_others() {
    let server = start().await;
    let token = server.token(ARM_SCOPE).await;
    server
        .fault(json!({"path": "resourceGroups/rg$"}), json!({"delay_ms": 1500}))
        .await;
    let start = Instant::now();
    let slow = async {
        assert_eq!(server.get_group(&token).await.status(), 200);
        start.elapsed()
    };
    let quick = async {
        while server.journal("").await.is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(server.get_group(&token).await.status(), 200);
        start.elapsed()
    };
    let (slow, quick) = tokio::join!(slow, quick);
    assert!(slow >= Duration::from_millis(1500), "{slow:?}");
    assert!(quick < slow, "{quick:?} {slow:?}");
}

#[tokio::test]
async fn oversize_body_is_refused_and_changes_nothing() {
    let server = start().await;
    let token = server.token(ARM_SCOPE).await;
    let path = format!("{VNET}/subnets/one?api-version=2024-05-01");
    let response = server
        .arm(Method::PUT, &path, &token)
        .body(vec![b' '; 5 * 1024 * 1024])
        .send()
        .await;
    if let Ok(response) = response {
        assert_eq!(response.status(), 413);
    }
    assert!(!server.has_subnet("one").await);
    assert_eq!(server.get_group(&token).await.status(), 200);
}

#[tokio::test]
async fn connection_is_kept_alive() {
    let server = start().await;
    let token = server.token(ARM_SCOPE).await;
    let mut stream = connect(&server).await;
    for _ in 0..3 {
        stream
            .write_all(request(&token, "keep-alive").as_bytes())
            .await
            .unwrap();
        let mut received = String::new();
        let mut buffer = [0; 4096];
        let length = loop {
            let read = stream.read(&mut buffer).await.unwrap();
            assert!(read > 0, "closed: {received}");
            received.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
            if let Some((head, body)) = received.split_once("\r\n\r\n") {
                let length: usize = header(head, "content-length").parse().unwrap();
                if body.len() == length {
                    break length;
                }
            }
        };
        assert!(length > 0 && received.starts_with("HTTP/1.1 200"), "{received}");
    }
}

fn request(token: &str, connection: &str) -> String {
    format!(
        "GET {GROUP}?api-version=2024-07-01 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nConnection: {connection}\r\n\r\n"
    )
}

fn header<'h>(head: &'h str, name: &str) -> &'h str {
    let line = head
        .lines()
        .find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")))
        .unwrap();
    line.split_once(':').unwrap().1.trim()
}

/// Everything that comes back on a connection of its own, until it ends.
async fn raw_get(server: &TestServer, token: &str) -> String {
    let mut stream = connect(server).await;
    stream.write_all(request(token, "close").as_bytes()).await.unwrap();
    let mut raw = Vec::new();
    let mut buffer = [0; 4096];
    // An unclean end is what these tests are about.
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        raw.extend_from_slice(&buffer[..read]);
    }
    String::from_utf8(raw).unwrap()
}
