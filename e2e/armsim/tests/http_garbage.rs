//! What no decent client sends: the server answers or closes, and keeps serving.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod http_support;

use std::time::Duration;

use http_support::*;
use reqwest::Method;
use rstest::rstest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

#[rstest]
#[case::not_http("\u{0}\u{1}garbage\r\n\r\n", "400")]
#[case::bad_version("GET / HTTP/7.0\r\n\r\n", "400")]
#[case::bad_host("GET / HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n", "400")]
#[case::no_host("GET /subscriptions HTTP/1.1\r\nConnection: close\r\n\r\n", "400")]
#[case::absolute_form(
    "GET http://elsewhere.example/subscriptions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    "401"
)]
#[case::bad_percent(
    "GET /subscriptions/%zz%ff HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    "401"
)]
#[case::asterisk("OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "401")]
#[case::unfinished_body("PUT /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc", "")]
#[tokio::test]
async fn garbage_is_answered_or_cut_off(#[case] sent: &str, #[case] status: &str) {
    let server = start().await;
    let mut stream = connect(&server).await;
    stream.write_all(sent.as_bytes()).await.unwrap();
    if sent.contains("Content-Length") {
        // Whoever waits for the rest of the body learns that there is none.
        stream.shutdown().await.unwrap();
    }
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    let _ = tokio::time::timeout(Duration::from_secs(5), read)
        .await
        .expect("the server closes");
    let answer = String::from_utf8_lossy(&answer);
    assert_eq!(answer.split(' ').nth(1).unwrap_or_default(), status, "{answer}");
    assert_eq!(server.get_group(&server.token(ARM_SCOPE).await).await.status(), 200);
}

#[tokio::test]
async fn garbage_with_a_good_token_is_refused_by_arm() {
    let server = start().await;
    let token = server.token(ARM_SCOPE).await;
    for (path, body) in [
        ("/", ""),
        ("/subscriptions/%zz%ff?api-version=2024-05-01", ""),
        ("/subscriptions//resourceGroups/?api-version=2024-05-01", ""),
        (&format!("{VNET}/subnets/x?api-version=2024-05-01"), "{"),
        (&format!("{VNET}/subnets/x?api-version=2024-05-01"), "[]"),
        (
            &format!("{VNET}/subnets/x?api-version=2024-05-01&api-version=2023-05-01"),
            "{}",
        ),
    ] {
        let response = server
            .arm(Method::PUT, path, &token)
            .body(body.to_owned())
            .send()
            .await
            .unwrap();
        let (status, answer) = status_and_json(response).await;
        assert!(
            (400..500).contains(&status) && answer["error"]["code"].is_string(),
            "{path} {body}: {status} {answer}"
        );
    }
    assert!(!server.has_subnet("x").await);
}
