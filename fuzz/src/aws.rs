//! AWS's answers and credentials files: any input is an error of bounded size, or an answer of bounded length.
//!
//! An input is text. After `file` comes a credentials file. Else its first line is a call and a status, as in
//! `endpoints 200`, and the rest is the body of the answer to each request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures::executor::block_on;
use http::{Request, Response};
use hyperlink::engine::client::{Reconcile, WriteError};
use hyperlink::engine::gate::Gate;
use hyperlink_aws::api::action::Action;
use hyperlink_aws::api::client::{Client, Connection};
use hyperlink_aws::api::error::AwsError;
use hyperlink_aws::api::ports::{Counters, ObservedCall};
use hyperlink_aws::api::transport::{Transport, TransportError};
use hyperlink_aws::credentials::{CredentialError, Profile, Session, SessionSource};
use hyperlink_aws::ec2::{Ec2, Selection, filter};
use hyperlink_aws::elbv2::LoadBalancing;
use hyperlink_aws::endpoints::{EndpointOverrides, Endpoints};
use hyperlink_aws::kinds::Kind;
use hyperlink_aws::region::Region;
use hyperlink_aws::route53::Route53;
use hyperlink_aws::sts::caller_account;

/// A credentials file, or a call and what answers it.
pub fn aws(data: &[u8]) {
    if let Some(text) = data.strip_prefix(b"file\n") {
        return file(&String::from_utf8_lossy(text));
    }
    let at = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (first, body) = data.split_at(at);
    let first = String::from_utf8_lossy(first);
    let (call, status) = first.split_once(' ').unwrap_or((&first, "200"));
    let answers = Arc::new(Answers {
        status: status.parse().unwrap_or(200),
        body: Bytes::copy_from_slice(body.get(1..).unwrap_or_default()),
        sent: AtomicUsize::new(0),
    });
    let error = block_on(error_of(call, &connection(answers.clone())));
    assert!(answers.sent.load(Ordering::SeqCst) <= 400, "pages without an end");
    if let Some(error) = error {
        is_bounded(&error);
    }
}

fn file(text: &str) {
    if let Err(why) = Profile::parse(text) {
        assert!(why.len() < 200 && !why.contains(char::is_control), "{why}");
    }
}

fn connection(transport: Arc<Answers>) -> Connection {
    let region = Region::parse("us-east-1").unwrap();
    let endpoints = Endpoints::new(region, &EndpointOverrides::default()).unwrap();
    Connection::new(transport, endpoints, Arc::new(Uncounted))
}

/// The error of the call of this name, if it has one.
async fn error_of(call: &str, connection: &Connection) -> Option<AwsError> {
    let client = Client::new(connection.clone(), Arc::new(Keys), "123456789012", Arc::new(Open));
    let reconcile = Reconcile::begin();
    let ec2 = Ec2(client.clone());
    let all = Selection::Filters(vec![filter("vpc-id", "vpc-1")]);
    match call {
        "caller" => caller_account(connection, &Keys).await.err(),
        "services" => ec2.endpoint_services(reconcile, &all).await.err(),
        "principals" => ec2.principals(reconcile, "vpce-svc-1").await.err(),
        "connections" => ec2.connections(reconcile, "vpce-svc-1").await.err(),
        "subnets" => ec2.subnets(reconcile, &all).await.err(),
        "groups" => ec2.security_groups(reconcile, &all).await.err(),
        "delete" => written(ec2.delete_endpoint(reconcile, "vpce-1").await),
        "reject" => written(
            ec2.reject_connections(reconcile, "vpce-svc-1", &["vpce-1".into()])
                .await,
        ),
        "balancers" => LoadBalancing(client).all(reconcile).await.err(),
        "zones" => Route53(client).hosted_zones(reconcile).await.err(),
        "records" => Route53(client).records(reconcile, "Z1").await.err(),
        "named" => {
            let names = ["*.apps.x", "api.x"];
            Route53(client).records_named(reconcile, "Z1", &names).await.err()
        }
        "change" => written(Route53(client).change_records(reconcile, "Z1", &[]).await),
        _ => ec2.endpoints(reconcile, &all).await.err(),
    }
}

fn written<T>(result: Result<T, WriteError<AwsError>>) -> Option<AwsError> {
    match result {
        Ok(_) => None,
        Err(WriteError::Failed(error)) => Some(error),
        Err(WriteError::NotLeading) => panic!("the gate is open"),
    }
}

fn is_bounded(error: &AwsError) {
    assert!(
        !error.code.trim().is_empty() && error.code.chars().count() <= 80,
        "{error:?}"
    );
    assert!(error.text.chars().count() <= 300, "{error:?}");
    assert!(
        !format!("{error}{}", error.text).contains(char::is_control),
        "{error:?}"
    );
}

/// Answers each request alike, and counts them.
struct Answers {
    status: u16,
    body: Bytes,
    sent: AtomicUsize,
}

#[async_trait]
impl Transport for Answers {
    async fn send(&self, _: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        self.sent.fetch_add(1, Ordering::SeqCst);
        let mut response = Response::new(self.body.clone());
        *response.status_mut() = self.status.try_into().unwrap_or_default();
        Ok(response)
    }
}

struct Keys;

#[async_trait]
impl SessionSource for Keys {
    async fn session(&self) -> Result<Arc<Session>, CredentialError> {
        Ok(Arc::new(Session::new("AKIA1", "secret".into(), None)))
    }

    fn invalidate(&self, _: &Arc<Session>) {}
}

struct Open;

impl Gate for Open {
    fn open(&self) -> bool {
        true
    }
}

struct Uncounted;

impl Counters for Uncounted {
    fn call(&self, _: ObservedCall) {}
    fn held_back(&self, _: Action) {}
    fn call_budget_exhausted(&self, kind: Kind) {
        panic!("{kind:?} was called too often");
    }
}
