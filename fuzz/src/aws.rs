//! AWS's answers: any input is an error of bounded size, or an answer of bounded length.
//!
//! An input is text. Its first line is a call and a status, as in `endpoints 200`, and the rest is the body of the
//! answer to each request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use hyperlink::engine::client::{Reconcile, WriteError};
use hyperlink::engine::gate::Gate;
use hyperlink_aws::api::action::Action;
use hyperlink_aws::api::client::{Client, Connection};
use hyperlink_aws::api::error::AwsError;
use hyperlink_aws::api::ports::{Counters, ObservedCall};
use hyperlink_aws::api::transport::{Transport, TransportError};
use hyperlink_aws::client_token::ClientToken;
use hyperlink_aws::credentials::Session;
use hyperlink_aws::ec2::{Ec2, NewEndpoint, NewEndpointService, NewSecurityGroup, Selection, Tags, filter};
use hyperlink_aws::elbv2::LoadBalancing;
use hyperlink_aws::endpoints::{EndpointOverrides, Endpoints};
use hyperlink_aws::kinds::Kind;
use hyperlink_aws::region::Region;
use hyperlink_aws::route53::Route53;
use hyperlink_aws::sts::caller_account;

use super::credentials::{Keys, error_of_session};

/// A call and what answers it.
pub fn aws(data: &[u8]) {
    let at = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (first, body) = data.split_at(at);
    let first = String::from_utf8_lossy(first);
    let (call, status) = first.split_once(' ').unwrap_or((&first, "200"));
    let status = status.parse().unwrap_or(200);
    let answers = Arc::new(Answers::of(status, body.get(1..).unwrap_or_default()));
    let error = run(error_of(call, &connection(answers.clone())));
    assert!(answers.sent() <= 400, "pages without an end");
    if let Some(error) = error {
        is_bounded(&error);
    }
}

/// Runs a future to its end.
pub(super) fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.unwrap().block_on(future)
}

pub(super) fn connection(transport: Arc<Answers>) -> Connection {
    let region = Region::parse("us-east-1").unwrap();
    let endpoints = Endpoints::new(region, &EndpointOverrides::default()).unwrap();
    Connection::new(transport, endpoints, Arc::new(Uncounted))
}

/// The error of the call of this name, if it has one.
async fn error_of(call: &str, connection: &Connection) -> Option<AwsError> {
    let keys = Arc::new(Keys(Arc::new(Session::new("AKIA1", "secret".into(), None))));
    let client = Client::new(connection.clone(), keys.clone(), "123456789012", Arc::new(Open));
    let reconcile = Reconcile::begin();
    let ec2 = Ec2(client.clone());
    let all = Selection::Filters(vec![filter("vpc-id", "vpc-1")]);
    match call {
        "caller" => caller_account(connection, &*keys).await.err(),
        "role" | "web-identity" | "machine" => error_of_session(call, connection).await,
        "create-service" | "create-endpoint" | "create-group" => created(call, &ec2).await,
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

/// The error of a call that creates something.
async fn created(call: &str, ec2: &Ec2) -> Option<AwsError> {
    let (reconcile, text) = (Reconcile::begin(), String::new);
    let client_token = ClientToken::new("t").unwrap();
    let tags = Tags::from([("a".to_owned(), "b".to_owned())]);
    match call {
        "create-service" => {
            let new = NewEndpointService {
                load_balancer: text(),
                client_token,
                tags,
            };
            written(ec2.create_endpoint_service(reconcile, &new).await)
        }
        "create-endpoint" => {
            let new = NewEndpoint {
                service_name: text(),
                vpc_id: text(),
                subnet_ids: Vec::new(),
                group_ids: Vec::new(),
                client_token,
                tags,
            };
            written(ec2.create_endpoint(reconcile, &new).await)
        }
        _ => {
            let new = NewSecurityGroup {
                name: text(),
                description: text(),
                vpc_id: text(),
                tags,
            };
            written(ec2.create_security_group(reconcile, &new).await)
        }
    }
}

fn written<T>(result: Result<T, WriteError<AwsError>>) -> Option<AwsError> {
    match result {
        Ok(_) => None,
        Err(WriteError::Failed(error)) => Some(error),
        Err(WriteError::NotLeading) => panic!("the gate is open"),
    }
}

pub(super) fn is_bounded(error: &AwsError) {
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
pub(super) struct Answers {
    status: u16,
    body: Bytes,
    sent: AtomicUsize,
}

impl Answers {
    pub(super) fn of(status: u16, body: &[u8]) -> Self {
        Self {
            status,
            body: Bytes::copy_from_slice(body),
            sent: AtomicUsize::new(0),
        }
    }

    /// How many requests were sent.
    pub(super) fn sent(&self) -> usize {
        self.sent.load(Ordering::SeqCst)
    }
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
