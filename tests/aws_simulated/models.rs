//! The requests and the parsers of the AWS layer, held against AWS's own service models, which Python's botocore
//! carries, and against the answers that AWS documents.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use hyperlink::aws::api::client::{Client, Connection};
use hyperlink::aws::api::transport::{Transport, TransportError};
use hyperlink::aws::credentials::{CredentialError, Session, SessionSource};
use hyperlink::aws::endpoints::{EndpointOverrides, Endpoints};
use hyperlink::aws::region::Region;
use serde_json::{Value, json};

use crate::process::{Uncounted, Valve};
use crate::sim::shown;

mod documented;
mod every_request;
mod requests;

/// The clients of others that run beside the simulated AWS.
fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("e2e/clients/aws")
}

/// What a script of `e2e/clients/aws` prints about these lines, a line of JSON each; none without Python.
fn by_python(script: &str, lines: &[Value]) -> Option<Vec<Value>> {
    let python = simulator::python::python(&clients().join("requirements.txt"))?;
    let mut command = Command::new(python);
    command.arg(clients().join(script)).env("PYTHONDONTWRITEBYTECODE", "1");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let mut stdin = child.stdin.take().unwrap();
    let written = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{script} failed: see above");
    written.join().unwrap().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    Some(
        printed
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
    )
}

/// Answers requests by a function, and keeps them.
struct Answering<F> {
    region: Region,
    answer: F,
    sent: Mutex<Vec<Value>>,
}

#[async_trait]
impl<F: Fn(&Request<Bytes>) -> Response<Bytes> + Send + Sync> Transport for Answering<F> {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        self.sent.lock().unwrap().push(shown(self.region.name(), &request));
        Ok((self.answer)(&request))
    }
}

impl<F: Fn(&Request<Bytes>) -> Response<Bytes> + Send + Sync + 'static> Answering<F> {
    fn new(region: &str, answer: F) -> Arc<Self> {
        Arc::new(Self {
            region: Region::parse(region).unwrap(),
            answer,
            sent: Mutex::default(),
        })
    }

    fn connection(self: &Arc<Self>) -> Connection {
        let endpoints = Endpoints::new(self.region.clone(), &EndpointOverrides::default()).unwrap();
        Connection::new(self.clone(), endpoints, Arc::new(Uncounted))
    }

    /// A client of its own: one error holds no other call back.
    fn client(self: &Arc<Self>) -> Client {
        Client::new(
            self.connection(),
            Arc::new(Keys),
            "123456789012",
            Arc::new(Valve::default()),
        )
    }
}

/// Keys that do not change.
struct Keys;

#[async_trait]
impl SessionSource for Keys {
    async fn session(&self) -> Result<Arc<Session>, CredentialError> {
        Ok(Arc::new(Session::new("AKIA1", "secret".into(), Some("token".into()))))
    }

    fn invalidate(&self, _: &Arc<Session>) {}
}

fn answer(status: u16, body: &str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::copy_from_slice(body.as_bytes()));
    *response.status_mut() = status.try_into().unwrap();
    response
}
