//! HTTP as other clients speak it: old versions, odd heads, bodies in chunks, long URLs, many connections.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod http_support;

use std::time::Duration;

use http_support::*;
use rstest::rstest;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

const GROUP_URL: &str = "/subscriptions/33333333-3333-3333-3333-333333333333/resourceGroups/rg?api-version=2024-07-01";

/// Sends bytes with `TOKEN` in them replaced, and reads until the server closes.
async fn exchange(server: &TestServer, sent: &str) -> String {
    let token = server.token(ARM_SCOPE).await;
    let mut stream = connect(server).await;
    let sent = sent.replace("TOKEN", &token);
    stream.write_all(sent.as_bytes()).await.unwrap();
    until_closed(&mut stream).await
}

async fn until_closed(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut got = Vec::new();
    let read = stream.read_to_end(&mut got);
    // The end may be unclean: TLS is not closed where a fault breaks the connection.
    let _ = tokio::time::timeout(Duration::from_secs(10), read)
        .await
        .expect("the server closes");
    String::from_utf8(got).unwrap()
}

#[rstest]
#[case::plain(format!("GET {GROUP_URL} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer TOKEN\r\nConnection: close\r\n\r\n"), 200)]
#[case::shouting_headers(format!("GET {GROUP_URL} HTTP/1.1\r\nHOST: localhost\r\nAUTHORIZATION: bearer TOKEN\r\nCONNECTION: CLOSE\r\n\r\n"), 200)]
#[case::http_1_0(format!("GET {GROUP_URL} HTTP/1.0\r\nauthorization: Bearer TOKEN\r\n\r\n"), 200)]
#[case::absolute_form(format!("GET https://localhost:1{GROUP_URL} HTTP/1.1\r\nHost: other\r\nAuthorization: Bearer TOKEN\r\nConnection: close\r\n\r\n"), 200)]
#[case::no_host(format!("GET {GROUP_URL} HTTP/1.1\r\nAuthorization: Bearer TOKEN\r\nConnection: close\r\n\r\n"), 400)]
#[case::empty_host(format!("GET {GROUP_URL} HTTP/1.1\r\nHost:\r\nAuthorization: Bearer TOKEN\r\nConnection: close\r\n\r\n"), 400)]
#[case::too_long(format!("GET {GROUP_URL}&c={} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer TOKEN\r\nConnection: close\r\n\r\n", "x".repeat(17_000)), 414)]
#[case::far_too_long(format!("GET {GROUP_URL}&c={} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer TOKEN\r\nConnection: close\r\n\r\n", "x".repeat(70_000)), 414)]
#[tokio::test]
async fn unusual_request_heads_are_answered(#[case] sent: String, #[case] status: u16) {
    let server = start().await;
    let got = exchange(&server, &sent).await;
    assert_eq!(got.split(' ').nth(1), Some(status.to_string().as_str()), "{got}");
    if status == 200 {
        let body: Value = serde_json::from_str(got.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!(body["name"], "rg");
    }
}

#[tokio::test]
async fn polling_url_is_long_and_accepted() {
    let server = start().await;
    let token = server.token(ARM_SCOPE).await;
    let put = server.put_subnet("one", "10.0.1.0/24", &token).send().await.unwrap();
    let poll = put.headers()["azure-asyncoperation"].to_str().unwrap();
    assert!(poll.len() > 3000, "{poll}");
    let answer = server.client.get(poll).bearer_auth(&token).send().await.unwrap();
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn links_lead_to_the_host_of_an_absolute_request_line() {
    let server = start().await;
    let url = format!("{VNET}/subnets/one?api-version=2024-05-01");
    let body = r#"{"properties":{"addressPrefix":"10.0.1.0/24"}}"#;
    let sent = format!(
        "PUT https://elsewhere.example:77{url} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer TOKEN\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let got = exchange(&server, &sent).await;
    assert!(
        got.contains("azure-asyncoperation: https://elsewhere.example:77/subscriptions/"),
        "{got}"
    );
}

#[tokio::test]
async fn body_may_come_in_chunks_after_a_go_ahead() {
    let server = start().await;
    let token = server.token(ARM_SCOPE).await;
    let mut stream = connect(&server).await;
    let head = format!(
        "PUT {VNET}/subnets/one?api-version=2024-05-01 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\
         Content-Type: application/json; charset=utf-8\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut go_ahead = [0; 25];
    stream.read_exact(&mut go_ahead).await.unwrap();
    assert_eq!(&go_ahead, b"HTTP/1.1 100 Continue\r\n\r\n");
    for part in [r#"{"properties":{"addr"#, r#"essPrefix":"10.0.1.0/24"}}"#] {
        let chunk = format!("{:x}\r\n{part}\r\n", part.len());
        stream.write_all(chunk.as_bytes()).await.unwrap();
    }
    stream.write_all(b"0\r\n\r\n").await.unwrap();
    let got = until_closed(&mut stream).await;
    assert!(got.starts_with("HTTP/1.1 201 "), "{got}");
    assert!(server.has_subnet("one").await);
}

#[tokio::test]
async fn pipelined_calls_are_answered_in_order() {
    let server = start().await;
    let call = |path: &str, connection: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer TOKEN\r\nConnection: {connection}\r\n\r\n"
        )
    };
    let vnet = format!("{VNET}?api-version=2024-05-01");
    let sent = [
        call(GROUP_URL, "keep-alive"),
        call(&vnet, "keep-alive"),
        call(GROUP_URL, "close"),
    ]
    .concat();
    let got = exchange(&server, &sent).await;
    let names: Vec<&str> = got
        .split(r#""name":""#)
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
        .collect();
    assert_eq!(
        (got.matches("HTTP/1.1 200 OK").count(), names),
        (3, vec!["rg", "vnet", "rg"]),
        "{got}"
    );
}

#[tokio::test]
async fn head_has_the_headers_and_no_body() {
    let server = start().await;
    let sent = format!(
        "HEAD {GROUP_URL} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer TOKEN\r\nConnection: close\r\n\r\n"
    );
    let got = exchange(&server, &sent).await;
    let (head, body) = got.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("HTTP/1.1 204 ") && head.contains("x-ms-request-id: "),
        "{head}"
    );
    assert_eq!(body, "");
}

#[tokio::test]
async fn answers_are_not_packed_even_for_who_could_unpack_them() {
    let server = start().await;
    let sent = format!(
        "GET {GROUP_URL} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer TOKEN\r\nAccept-Encoding: gzip, deflate, br\r\nConnection: close\r\n\r\n"
    );
    let got = exchange(&server, &sent).await;
    assert!(
        !got.to_ascii_lowercase().contains("content-encoding") && got.contains(r#""name":"rg""#),
        "{got}"
    );
}

#[tokio::test]
async fn stop_does_not_wait_for_clients() {
    let mut server = start().await;
    let token = server.token(ARM_SCOPE).await;
    let mut idle = connect(&server).await;
    server
        .fault(serde_json::json!({}), serde_json::json!({"delay_ms": 60_000}))
        .await;
    let mut waiting = connect(&server).await;
    let call = format!("GET {GROUP_URL} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n");
    waiting.write_all(call.as_bytes()).await.unwrap();
    while server.journal("").await.is_empty() {
        tokio::task::yield_now().await;
    }
    let address = server.armsim.arm.replace("https://", "");
    let _shaking_hands = tokio::net::TcpStream::connect(address).await.unwrap();
    let another = armsim::Server::start(armsim::Options::default()).await.unwrap();
    let stopped = std::mem::replace(&mut server.armsim, another);
    tokio::time::timeout(Duration::from_secs(1), stopped.stop())
        .await
        .expect("within a second")
        .unwrap();
    assert_eq!(until_closed(&mut idle).await, "");
    assert_eq!(until_closed(&mut waiting).await, "");
}
