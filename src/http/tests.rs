//! What is served, to whom and how, and that the server stops.

mod strangers;
mod tls;

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::Request;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tower::ServiceExt;

use super::serve::{CLIENT_TIMEOUT, HEAD, LINGER, PROBE_HEAD};
use super::*;
use crate::metrics::Controller;
use crate::runtime::concurrency_limit::{ConcurrencyLimit, Requester};

fn pages() -> Pages {
    Pages {
        readiness: Readiness::default(),
        metrics: Arc::new(Metrics::new("1.2.3", "abc").unwrap()),
    }
}

async fn page(pages: &Pages, path: &str) -> (u16, String) {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let metrics = metrics(Arc::clone(&pages.metrics), None);
    let router = probes(pages.readiness.clone(), Arc::clone(&pages.metrics)).merge(metrics);
    let answer = router.oneshot(request).await.unwrap();
    let status = answer.status().as_u16();
    let body = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn readiness_names_what_it_waits_for_until_all_is_there() {
    let pages = pages();
    let api = pages.readiness.item("kubernetes api");
    let lease = pages.readiness.item(format!("lease answered ({})", "ho"));
    api.ready();
    lease.waiting("the API server\nsays 403");
    assert_eq!(
        page(&pages, "/readyz").await,
        (
            503,
            "[+] kubernetes api: ready\n[-] lease answered (ho): the API server says 403\n".into()
        )
    );
    lease.ready_as("standing by, a leads");
    assert_eq!(
        page(&pages, "/readyz").await,
        (
            200,
            "[+] kubernetes api: ready\n[+] lease answered (ho): standing by, a leads\n".into()
        )
    );
    api.waiting("connection refused");
    assert_eq!(page(&pages, "/readyz").await.0, 503);
}

#[test]
fn what_was_not_tried_is_not_reported_and_reasons_are_cut() {
    let readiness = Readiness::default();
    let (api, _) = (readiness.item("api"), readiness.item("crd"));
    assert_eq!(readiness.waits(), Vec::<String>::new());
    api.waiting(&"x".repeat(10_000));
    assert_eq!(readiness.waits(), [format!("api: {}", "x".repeat(200))]);
    api.ready();
    assert_eq!(readiness.waits(), Vec::<String>::new());
}

#[tokio::test]
async fn process_that_has_not_named_its_needs_is_not_ready() {
    assert_eq!(page(&pages(), "/readyz").await, (503, String::new()));
}

#[tokio::test]
async fn liveness_does_not_depend_on_readiness() {
    let pages = pages();
    pages.readiness.item("crd installed").waiting("not found");
    assert_eq!(page(&pages, "/livez").await, (200, "ok\n".into()));
}

#[tokio::test(start_paused = true)]
async fn liveness_ends_when_due_work_does_not_move_for_5_minutes() {
    let pages = pages();
    let limit = Arc::new(ConcurrencyLimit::new(Controller::PrivateEndpoint, 1));
    let requester = Requester {
        namespace: "n",
        target: None,
    };
    let start = |work: BoxFuture<'static, ()>| {
        let (limit, metrics) = (Arc::clone(&limit), Arc::clone(&pages.metrics));
        tokio::spawn(async move { limit.take(&metrics, requester, || work).await })
    };
    let hangs = start(std::future::pending().boxed());
    tokio::time::sleep(Duration::from_secs(299)).await;
    assert_eq!(page(&pages, "/livez").await, (200, "ok\n".into()));
    // A reconcile that waits behind it is no progress.
    let waits = start(std::future::ready(()).boxed());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let why = "private_endpoint: work is due, and nothing has moved for 300 s\n";
    assert_eq!(page(&pages, "/livez").await, (503, why.into()));

    hangs.abort();
    waits.await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(page(&pages, "/livez").await, (200, "ok\n".into()));
}

#[tokio::test]
async fn metrics_are_served_as_text() {
    let request = Request::get("/metrics").body(Body::empty()).unwrap();
    let answer = metrics(pages().metrics, None).oneshot(request).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(
        answer.headers()[header::CONTENT_TYPE],
        "text/plain; version=0.0.4; charset=utf-8"
    );
    let body = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    assert!(body.windows(20).any(|part| part == b"hyperlink_build_info"));
}

#[tokio::test]
async fn an_unknown_page_is_not_found() {
    assert_eq!(page(&pages(), "/").await.0, 404);
}

async fn bind(probes: bool) -> (HttpServer, CancellationToken) {
    bind_with(probes, None).await
}

/// A server on loopback, not yet serving, and the token that stops it.
async fn bind_with(probes: bool, secure: Option<Certificate>) -> (HttpServer, CancellationToken) {
    let loopback = "127.0.0.1:0".parse().unwrap();
    let serving = Serving {
        metrics: loopback,
        probes: probes.then_some(loopback),
        secure,
    };
    (HttpServer::bind(serving).await.unwrap(), CancellationToken::new())
}

fn nowhere() -> kube::Config {
    kube::Config::new("http://127.0.0.1:1".parse().unwrap())
}

async fn get_from(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_half_open_request_does_not_hold_up_the_end() {
    let (http_server, stop) = bind(false).await;
    let address = http_server.probes().unwrap();
    let server = tokio::spawn(http_server.serve(pages(), nowhere(), stop.clone()));

    let mut half = TcpStream::connect(address).await.unwrap();
    half.write_all(b"GET /livez HTTP/1.1\r\n").await.unwrap();
    // Connections are accepted in order: when this one is answered, the other is being read.
    let answer = get_from(address, "/livez").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");

    stop.cancel();
    let result = tokio::time::timeout(LINGER * 5, server).await;
    result.expect("the server ends").unwrap().unwrap();
}

#[tokio::test]
async fn an_address_for_probes_has_no_metrics_and_the_other_no_probes() {
    let (http_server, stop) = bind(true).await;
    let (probes, metrics) = (http_server.probes().unwrap(), http_server.metrics().unwrap());
    let server = tokio::spawn(http_server.serve(pages(), nowhere(), stop.clone()));
    for (address, path, status) in [
        (probes, "/livez", 200),
        (probes, "/readyz", 503),
        (probes, "/metrics", 404),
        (metrics, "/metrics", 200),
        (metrics, "/livez", 404),
    ] {
        let answer = get_from(address, path).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {answer}");
    }
    stop.cancel();
    server.await.unwrap().unwrap();
}
