//! A wall clock that runs ahead or behind, for one candidate.
//!
//! The clock of a process cannot be set for it alone. But a candidate meets other clocks only in the times of the
//! Lease. So a proxy adds the difference to every time that the candidate writes, and subtracts it from every time that
//! it reads: for the candidate this equals such a clock.

use std::sync::Arc;

use anyhow::{Context, Result};
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::io::AsyncBufReadExt;
use futures::{StreamExt, TryStreamExt};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub(crate) struct SkewedClock {
    config: kube::Config,
    serving: JoinHandle<()>,
}

struct Proxy {
    upstream: kube::Client,
    ahead: SignedDuration,
}

impl SkewedClock {
    /// A clock that shows `ahead` seconds more than this machine's (fewer, if negative).
    pub(crate) async fn start(upstream: kube::Client, ahead: i64) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let config = kube::Config::new(format!("http://{}", listener.local_addr()?).parse()?);
        let proxy = Arc::new(Proxy {
            upstream,
            ahead: SignedDuration::from_secs(ahead),
        });
        let app = axum::Router::new().fallback(forward).with_state(proxy);
        let serving = tokio::spawn(async move {
            let _ = axum::serve(listener, app).await;
        });
        Ok(Self { config, serving })
    }

    /// The API server as somebody with this clock sees it.
    pub(crate) fn config(&self) -> kube::Config {
        self.config.clone()
    }
}

impl Drop for SkewedClock {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn forward(State(proxy): State<Arc<Proxy>>, request: Request) -> Response {
    proxy
        .answer(request)
        .await
        .unwrap_or_else(|error| (StatusCode::BAD_GATEWAY, format!("{error:#}")).into_response())
}

impl Proxy {
    async fn answer(&self, request: Request) -> Result<Response> {
        let (parts, body) = request.into_parts();
        let body = to_bytes(body, usize::MAX).await?;
        let target = parts.uri.path_and_query().context("a path")?.as_str();
        let mut forwarded = http::Request::builder().method(parts.method).uri(target);
        for name in [header::ACCEPT, header::CONTENT_TYPE] {
            if let Some(value) = parts.headers.get(&name) {
                forwarded = forwarded.header(name, value);
            }
        }
        let forwarded = forwarded.body(shifted(&body, self.ahead)?)?;
        if target.contains("watch=true") {
            let lines = self.upstream.request_stream(forwarded).await?.lines();
            let back = -self.ahead;
            let events = lines.map_err(anyhow::Error::from).and_then(move |line| async move {
                let mut event = shifted(line.as_bytes(), back)?;
                event.push(b'\n');
                Ok(event)
            });
            return Ok(Body::from_stream(events.boxed()).into_response());
        }
        let answer = self.upstream.send(forwarded.map(kube::client::Body::from)).await?;
        let status = answer.status();
        let body = answer.into_body().collect_bytes().await?;
        Ok((
            status,
            [(header::CONTENT_TYPE, "application/json")],
            shifted(&body, -self.ahead)?,
        )
            .into_response())
    }
}

/// The JSON text with the times of its Leases moved by `by`.
fn shifted(text: &[u8], by: SignedDuration) -> Result<Vec<u8>> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let mut value: Value = serde_json::from_slice(text)?;
    shift(&mut value, by)?;
    Ok(serde_json::to_vec(&value)?)
}

fn shift(value: &mut Value, by: SignedDuration) -> Result<()> {
    match value {
        Value::Array(items) => items.iter_mut().try_for_each(|item| shift(item, by)),
        Value::Object(fields) => fields
            .iter_mut()
            .try_for_each(|(key, field)| match (key.as_str(), field) {
                ("renewTime" | "acquireTime", Value::String(time)) => {
                    *time = format!("{:.6}", time.parse::<Timestamp>()?.checked_add(by)?);
                    Ok(())
                }
                (_, field) => shift(field, by),
            }),
        _ => Ok(()),
    }
}
