//! The HTTP server of the process: `/livez`, `/readyz` and `/metrics`. It reads state and changes none.
//!
//! Probes answer everybody, because kubelets send no token. Metrics are plain HTTP on loopback. Elsewhere they are
//! served over TLS, and only to those whom the API server lets read them.

mod access;
mod certificate;
mod connections;
mod readiness;
mod serve;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;
use access::{Access, AccessDecision};
pub use certificate::{Certificate, CertificateError};
pub use readiness::{Readiness, ReadinessItem};
use serve::serve;

/// Where and how pages are served.
#[derive(Debug, Clone)]
pub struct Serving {
    /// Where `/metrics` is.
    pub metrics: SocketAddr,
    /// Where `/livez` and `/readyz` are; `None`: beside `/metrics`.
    pub probes: Option<SocketAddr>,
    /// The certificate for metrics over TLS, which the API server decides who may read; `None`: plain HTTP, for
    /// everybody.
    pub secure: Option<Certificate>,
}

/// The state that the pages show.
#[derive(Clone)]
pub struct Pages {
    /// What `/readyz` shows.
    pub readiness: Readiness,
    /// What `/metrics` shows. `/livez` asks it whether the workers make progress.
    pub metrics: Arc<Metrics>,
}

/// A server that is bound to its addresses, and answers nobody yet.
pub struct HttpServer {
    metrics: TcpListener,
    probes: Option<TcpListener>,
    secure: Option<Certificate>,
}

impl HttpServer {
    /// Binds the addresses of `serving`.
    ///
    /// # Errors
    ///
    /// One of them cannot be listened on.
    pub async fn bind(serving: Serving) -> Result<Self, BindError> {
        Ok(Self {
            metrics: listener(serving.metrics).await?,
            probes: match serving.probes {
                Some(address) => Some(listener(address).await?),
                None => None,
            },
            secure: serving.secure,
        })
    }

    /// Where `/metrics` is.
    pub fn metrics(&self) -> io::Result<SocketAddr> {
        self.metrics.local_addr()
    }

    /// Where `/livez` and `/readyz` are.
    pub fn probes(&self) -> io::Result<SocketAddr> {
        self.probes.as_ref().unwrap_or(&self.metrics).local_addr()
    }

    /// Serves until `stop`, then gives open connections a second to end. `kube` leads to the API server that decides
    /// who may read metrics over TLS.
    ///
    /// # Errors
    ///
    /// No client can be made from `kube`.
    pub async fn serve(self, pages: Pages, kube: kube::Config, stop: CancellationToken) -> Result<(), ServeError> {
        let access = match self.secure {
            Some(_) => Some(Arc::new(Access::new(kube)?)),
            None => None,
        };
        let probes = probes(pages.readiness, Arc::clone(&pages.metrics));
        let metrics = metrics(pages.metrics, access);
        let served = async {
            match self.probes {
                None => serve(self.metrics, self.secure.as_ref(), probes.merge(metrics), &stop).await,
                Some(listener) => {
                    tokio::join!(
                        serve(listener, None, probes, &stop),
                        serve(self.metrics, self.secure.as_ref(), metrics, &stop)
                    );
                }
            }
        };
        match self.secure.clone() {
            None => served.await,
            Some(certificate) => tokio::select! {
                () = served => {}
                () = certificate.follow() => {}
            },
        }
        Ok(())
    }
}

/// An address cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}")]
pub struct BindError {
    address: SocketAddr,
    source: io::Error,
}

/// No client can be made from the configuration of Kubernetes.
#[derive(Debug, thiserror::Error)]
#[error("cannot ask who may read metrics")]
pub struct ServeError(#[from] kube::Error);

async fn listener(address: SocketAddr) -> Result<TcpListener, BindError> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|source| BindError { address, source })
}

fn probes(readiness: Readiness, metrics: Arc<Metrics>) -> Router {
    let livez = Router::new().route("/livez", get(livez)).with_state(metrics);
    let readyz = Router::new().route("/readyz", get(readyz)).with_state(readiness);
    livez.merge(readyz)
}

/// Fails only if a restart would help. Leadership, and services that do not answer, do not matter here.
async fn livez(State(metrics): State<Arc<Metrics>>) -> Response {
    let Some((worker, still)) = metrics.stalled() else {
        return "ok\n".into_response();
    };
    let why = format!("{worker}: work is due, and nothing has moved for {} s", still.as_secs());
    tracing::error!("{why}");
    (StatusCode::SERVICE_UNAVAILABLE, why + "\n").into_response()
}

async fn readyz(State(readiness): State<Readiness>) -> Response {
    let (ready, lines) = readiness.report();
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, lines).into_response()
}

fn metrics(metrics: Arc<Metrics>, access: Option<Arc<Access>>) -> Router {
    let page = async |State((metrics, access)): State<(Arc<Metrics>, Option<Arc<Access>>)>, headers: HeaderMap| {
        let verdict = match access {
            Some(access) => access.verdict(headers.get(header::AUTHORIZATION)).await,
            None => AccessDecision::Granted,
        };
        match verdict {
            AccessDecision::Granted => render(&metrics),
            refused => refused.into_response(),
        }
    };
    Router::new().route("/metrics", get(page)).with_state((metrics, access))
}

fn render(metrics: &Metrics) -> Response {
    match metrics.render() {
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
mod tests;
