//! The HTTP face of the process: `/livez`, `/readyz` and `/metrics`. Reads state, changes none.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::future::IntoFuture;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;

/// How long open connections may keep a stopping server.
const LINGER: Duration = Duration::from_secs(1);

/// What is said of an item is cut to this many characters.
const REASON_LENGTH: usize = 200;

/// What the process waits for, item by item. It is ready when every item is; without any item it is not.
#[derive(Clone, Default)]
pub struct Readiness(Arc<Mutex<Vec<Entry>>>);

struct Entry {
    name: Cow<'static, str>,
    state: Standing,
}

#[derive(PartialEq, Eq)]
enum Standing {
    /// In which way.
    Ready(String),
    /// For what.
    Waiting(String),
}

/// One thing that must be there before the process is ready. Clones speak of the same thing.
#[derive(Clone)]
pub struct ReadinessItem {
    all: Readiness,
    index: usize,
}

impl Readiness {
    /// Adds an item, waiting. Items are shown in the order in which they were added.
    pub fn item(&self, name: impl Into<Cow<'static, str>>) -> ReadinessItem {
        let mut entries = self.entries();
        entries.push(Entry {
            name: name.into(),
            state: Standing::Waiting("not tried yet".to_owned()),
        });
        ReadinessItem {
            all: self.clone(),
            index: entries.len() - 1,
        }
    }

    /// Whether every item is ready, and one line per item.
    pub(crate) fn report(&self) -> (bool, String) {
        let entries = self.entries();
        let mut lines = String::new();
        for Entry { name, state } in entries.iter() {
            // Writing to a String cannot fail.
            let _ = match state {
                Standing::Ready(how) => writeln!(lines, "[+] {name}: {how}"),
                Standing::Waiting(reason) => writeln!(lines, "[-] {name}: {reason}"),
            };
        }
        let ready = |entry: &Entry| matches!(entry.state, Standing::Ready(_));
        let ready = !entries.is_empty() && entries.iter().all(ready);
        (ready, lines)
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReadinessItem {
    /// It is there.
    pub fn ready(&self) {
        self.ready_as("ready");
    }

    /// Nothing is waited for, and how it stands: short, nothing secret.
    pub fn ready_as(&self, how: &str) {
        self.set(Standing::Ready(clean(how)));
    }

    /// It is not there, and why: short, stable, nothing secret.
    pub fn waiting(&self, reason: &str) {
        self.set(Standing::Waiting(clean(reason)));
    }

    fn set(&self, state: Standing) {
        let mut entries = self.all.entries();
        let Some(entry) = entries.get_mut(self.index) else {
            return;
        };
        if entry.state == state {
            return;
        }
        match &state {
            Standing::Ready(how) => tracing::info!("{}: {how}", entry.name),
            Standing::Waiting(reason) => tracing::warn!("waiting for {}: {reason}", entry.name),
        }
        entry.state = state;
    }
}

/// One line of limited length.
fn clean(text: &str) -> String {
    let line = text.chars().take(REASON_LENGTH);
    line.map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// What the pages are made from.
#[derive(Clone)]
pub struct Pages {
    /// For `/readyz`.
    pub readiness: Readiness,
    /// For `/metrics`.
    pub metrics: Arc<Metrics>,
}

/// Serves until `stop`, then gives open connections a second to end.
pub async fn serve(listener: TcpListener, pages: Pages, stop: CancellationToken) -> io::Result<()> {
    let server = axum::serve(listener, router(pages)).with_graceful_shutdown(stop.clone().cancelled_owned());
    let linger = async {
        stop.cancelled().await;
        tokio::time::sleep(LINGER).await;
    };
    tokio::select! {
        ended = server.into_future() => ended,
        () = linger => Ok(()),
    }
}

fn router(pages: Pages) -> Router {
    Router::new()
        // Answering is all that it takes to be alive: whether we lead is no matter here.
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(pages)
}

async fn readyz(State(pages): State<Pages>) -> Response {
    let (ready, lines) = pages.readiness.report();
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, lines).into_response()
}

async fn metrics(State(pages): State<Pages>) -> Response {
    match pages.metrics.render() {
        Ok(text) => {
            let format = "text/plain; version=0.0.4; charset=utf-8";
            ([(header::CONTENT_TYPE, format)], text).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "metrics cannot be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tower::ServiceExt;

    use super::*;

    fn pages() -> Pages {
        Pages {
            readiness: Readiness::default(),
            metrics: Arc::new(Metrics::new("1.2.3", "abc").unwrap()),
        }
    }

    async fn page(pages: &Pages, path: &str) -> (u16, String) {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let answer = router(pages.clone()).oneshot(request).await.unwrap();
        let status = answer.status().as_u16();
        let body = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn readiness_says_what_it_waits_for_until_all_is_there() {
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

    #[tokio::test]
    async fn a_process_that_has_not_said_what_it_needs_is_not_ready() {
        assert_eq!(page(&pages(), "/readyz").await, (503, String::new()));
    }

    #[tokio::test]
    async fn liveness_does_not_depend_on_readiness() {
        let pages = pages();
        pages.readiness.item("crd installed").waiting("not found");
        assert_eq!(page(&pages, "/livez").await, (200, "ok\n".into()));
    }

    #[tokio::test]
    async fn metrics_are_served_as_text() {
        let (status, text) = page(&pages(), "/metrics").await;
        assert_eq!(status, 200);
        assert!(text.contains("hyperlink_build_info"), "{text}");
    }

    #[tokio::test]
    async fn an_unknown_page_is_not_found() {
        assert_eq!(page(&pages(), "/").await.0, 404);
    }

    #[tokio::test]
    async fn a_half_open_request_does_not_hold_up_the_end() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let server = tokio::spawn(serve(listener, pages(), stop.clone()));

        let mut half = TcpStream::connect(address).await.unwrap();
        half.write_all(b"GET /livez HTTP/1.1\r\n").await.unwrap();
        // Connections are taken in order: when this one is answered, the other is being read.
        let mut whole = TcpStream::connect(address).await.unwrap();
        let request = b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        whole.write_all(request).await.unwrap();
        let mut answer = String::new();
        whole.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");

        stop.cancel();
        let ended = tokio::time::timeout(LINGER * 5, server).await;
        ended.expect("the server ends").unwrap().unwrap();
    }
}
