//! One kept-alive TLS connection that makes one call after the other, as cheaply as a client can. It measures nothing.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// The server to call, and the identity to call it with.
#[derive(Clone)]
pub(super) struct Target {
    /// The server's address, as `127.0.0.1:PORT`.
    pub(super) address: String,
    pub(super) connector: TlsConnector,
    /// The value of the `Authorization` header; empty until the token is known.
    pub(super) authorization: String,
}

impl Target {
    /// A target whose CA is in a PEM file; `base` is `https://ADDRESS`.
    pub(super) fn new(base: &str, ca: &Path) -> Result<Self> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(ca)?)?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            address: base.strip_prefix("https://").context("an https address")?.to_owned(),
            connector: TlsConnector::from(Arc::new(config)),
            authorization: String::new(),
        })
    }
}

/// An open connection. Dropping it closes it.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    target: Arc<Target>,
}

impl Connection {
    pub(super) async fn open(target: Arc<Target>) -> Result<Self> {
        let socket = TcpStream::connect(&target.address).await?;
        socket.set_nodelay(true)?;
        let stream = target
            .connector
            .connect(ServerName::try_from("localhost")?, socket)
            .await?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        // Ends when the sender is dropped.
        tokio::spawn(connection);
        Ok(Self { sender, target })
    }

    /// Makes one call; returns the answer's status and whole body.
    pub(super) async fn call(&mut self, method: &str, path: &str, body: Bytes) -> Result<(StatusCode, Bytes)> {
        let form = method == "POST";
        let content_type = if form {
            "application/x-www-form-urlencoded"
        } else {
            "application/json"
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, &self.target.address)
            .header(header::AUTHORIZATION, &self.target.authorization)
            .header(header::CONTENT_TYPE, content_type)
            .body(Full::new(body))?;
        self.send(request).await
    }

    /// Sends one request as it is; returns the answer's status and whole body.
    pub(super) async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<(StatusCode, Bytes)> {
        self.sender.ready().await?;
        let answer = self.sender.send_request(request).await?;
        let status = answer.status();
        Ok((status, answer.into_body().collect().await?.to_bytes()))
    }

    /// Makes one call and returns the answer's body; fails unless the call succeeds.
    pub(super) async fn good(&mut self, method: &str, path: &str, body: Bytes) -> Result<Bytes> {
        let (status, answer) = self.call(method, path, body).await?;
        let text = || String::from_utf8_lossy(&answer).into_owned();
        ensure!(status.is_success(), "{method} {path}: {status}: {}", text());
        Ok(answer)
    }
}
