//! Small servers on loopback: HTTPS with a test CA, plain HTTP, a CONNECT proxy. They count and store what reaches
//! them.

use std::convert::Infallible;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

pub(crate) type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Observed {
    pub(crate) method: http::Method,
    pub(crate) uri: http::Uri,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: String,
}

impl Observed {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// A field of a form body.
    pub(crate) fn field(&self, name: &str) -> String {
        url::form_urlencoded::parse(self.body.as_bytes())
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.into_owned())
            .unwrap_or_default()
    }
}

pub(crate) enum Reply {
    Answer(http::Response<Body>),
    Never,
}

pub(crate) fn answer(status: u16, body: impl Into<Bytes>) -> Reply {
    let body = Full::new(body.into()).map_err(|never: Infallible| match never {});
    let mut answer = http::Response::new(body.boxed_unsync());
    *answer.status_mut() = status.try_into().unwrap();
    Reply::Answer(answer)
}

pub(crate) fn redirect(to: &str) -> Reply {
    let Reply::Answer(mut redirect) = answer(307, "") else {
        unreachable!()
    };
    redirect.headers_mut().insert("location", to.parse().unwrap());
    Reply::Answer(redirect)
}

/// A certificate authority of the test's own.
pub(crate) struct Ca {
    issuer: CertifiedIssuer<'static, KeyPair>,
    pub(crate) file: tempfile::NamedTempFile,
}

impl Ca {
    pub(crate) fn new() -> Self {
        Self::named("test CA")
    }

    pub(crate) fn named(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(issuer.pem().as_bytes()).unwrap();
        Self { issuer, file }
    }

    fn acceptor(&self, names: &[&str]) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let names = names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let params = CertificateParams::new(names).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            )
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// One server; it ends with the test's runtime.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    scheme: &'static str,
    observed: Arc<Mutex<Vec<Observed>>>,
    connections: Arc<AtomicUsize>,
}

impl Server {
    pub(crate) async fn https<F>(ca: &Ca, reply: F) -> Self
    where
        F: Fn(&Observed) -> Reply + Send + Sync + 'static,
    {
        Self::start(Some(ca.acceptor(&["127.0.0.1", "localhost"])), reply).await
    }

    /// An HTTPS server with a certificate that is for another name.
    pub(crate) async fn https_named(ca: &Ca, name: &str) -> Self {
        Self::start(Some(ca.acceptor(&[name])), |_: &Observed| answer(200, "")).await
    }

    pub(crate) async fn http<F>(reply: F) -> Self
    where
        F: Fn(&Observed) -> Reply + Send + Sync + 'static,
    {
        Self::start(None, reply).await
    }

    async fn start<F>(tls: Option<TlsAcceptor>, reply: F) -> Self
    where
        F: Fn(&Observed) -> Reply + Send + Sync + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            scheme: if tls.is_some() { "https" } else { "http" },
            observed: Arc::default(),
            connections: Arc::default(),
        };
        let (reply, this) = (Arc::new(reply), server.clone());
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                this.connections.fetch_add(1, Ordering::SeqCst);
                let (this, reply, tls) = (this.clone(), reply.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => this.serve(stream, reply).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                this.serve(stream, reply).await;
                            }
                        }
                    }
                });
            }
        });
        server
    }

    async fn serve<S, F>(&self, stream: S, reply: Arc<F>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        F: Fn(&Observed) -> Reply + Send + Sync + 'static,
    {
        let service = service_fn(|request: http::Request<Incoming>| {
            let (observed, reply) = (self.observed.clone(), reply.clone());
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await.unwrap().to_bytes();
                let arrived = Observed {
                    method: parts.method,
                    uri: parts.uri,
                    headers: parts.headers,
                    body: String::from_utf8(body.into()).unwrap(),
                };
                observed.lock().unwrap().push(arrived.clone());
                match reply(&arrived) {
                    Reply::Answer(answer) => Ok::<_, Infallible>(answer),
                    Reply::Never => std::future::pending().await,
                }
            }
        });
        // Clients break connections off on purpose here.
        let _ = http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service)
            .await;
    }

    pub(crate) fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    pub(crate) fn observed(&self) -> Vec<Observed> {
        self.observed.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// A CONNECT proxy; counts the requested tunnels, and opens them or answers 403.
pub(crate) struct Tunnels {
    pub(crate) address: SocketAddr,
    asked: Arc<AtomicUsize>,
}

impl Tunnels {
    pub(crate) async fn start(open: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(tunnel(stream, open));
            }
        });
        Self { address, asked }
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

async fn tunnel(client: TcpStream, open: bool) -> std::io::Result<()> {
    let mut client = BufReader::new(client);
    let mut first = String::new();
    client.read_line(&mut first).await?;
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        client.read_line(&mut line).await?;
    }
    let target = first.split(' ').nth(1).unwrap_or_default();
    assert!(first.starts_with("CONNECT "), "{first}");
    if !open {
        return client
            .write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
            .await;
    }
    let mut server = TcpStream::connect(target).await?;
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    tokio::io::copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}
