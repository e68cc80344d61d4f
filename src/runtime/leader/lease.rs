//! The calls on the Lease, each with a time limit of its own.
//!
//! `kube-leader-election` reads the lease again before it writes, trusts wall clocks, and writes without a
//! precondition. So it never talks to the API server directly: its reads are answered with exactly what was judged, and
//! its patch carries the judged `resourceVersion`. The API server then refuses a write that lost a race (409), and no
//! clock matters.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use http::{Method, Request, Response, StatusCode};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{WatchEvent, WatchParams};
use kube::client::Body;
use kube::{Api, Client};
use kube_leader_election::{LeaseLock, LeaseLockParams, LeaseLockResult};
use serde_json::{Value, json};
use tower::BoxError;

use super::guard::holder;
use super::{LeaderError, LeaseSettings};

/// How long the API server keeps one watch of the lease open. The client drops a silent one a little later.
pub(super) const WATCH: Duration = Duration::from_secs(60);

/// The calls on the one Lease of this candidate, through a client of its own that does not retry.
#[derive(Clone)]
pub(super) struct LeaseCalls {
    client: Client,
    settings: Arc<LeaseSettings>,
}

impl LeaseCalls {
    pub(super) fn new(client: Client, settings: Arc<LeaseSettings>) -> Self {
        Self { client, settings }
    }

    /// Reads the lease; `None` if there is no such object.
    pub(super) async fn read(&self) -> Result<Option<Lease>, LeaderError> {
        let api = self.api();
        self.in_time(async { Ok(api.get_opt(&self.settings.name).await?) })
            .await
    }

    /// Renews, acquires or creates the lease, provided that it is still as in `judged`.
    pub(super) async fn claim(&self, judged: Option<Lease>) -> Result<Lease, LeaderError> {
        let me = &self.settings.identity;
        let judged = judged.map(|lease| if names(&lease, me) { lease } else { as_expired(lease) });
        let lock = self.lock(judged);
        let lease = self
            .in_time(async {
                match lock.try_acquire_or_renew().await? {
                    LeaseLockResult::Acquired(lease) => Ok(lease),
                    LeaseLockResult::NotAcquired(_) => Err(LeaderError::Conflict),
                }
            })
            .await?;
        if names(&lease, me) {
            Ok(lease)
        } else {
            Err(LeaderError::Conflict)
        }
    }

    /// Releases the lease, provided that it is still as in `held`, which names this process.
    pub(super) async fn release(&self, held: Lease) -> Result<(), LeaderError> {
        let lock = self.lock(Some(held));
        self.in_time(async { Ok(lock.step_down().await?) }).await
    }

    /// The changes of the lease from now on, beginning with its present state. Only a hint to read the lease: it may
    /// fall silent.
    pub(super) async fn changes(&self) -> Result<BoxStream<'static, kube::Result<WatchEvent<Lease>>>, LeaderError> {
        let own_lease = WatchParams::default()
            .fields(&format!("metadata.name={}", self.settings.name))
            .timeout(u32::try_from(WATCH.as_secs()).unwrap_or(u32::MAX));
        let api = self.api();
        let stream = self.in_time(async { Ok(api.watch(&own_lease, "0").await?) }).await?;
        Ok(stream.into_stream().boxed())
    }

    fn api(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), &self.settings.namespace)
    }

    fn lock(&self, judged: Option<Lease>) -> LeaseLock {
        let params = LeaseLockParams {
            lease_name: self.settings.name.clone(),
            holder_id: self.settings.identity.clone(),
            lease_ttl: self.settings.times.duration,
        };
        LeaseLock::new(
            judged_client(self.client.clone(), judged),
            &self.settings.namespace,
            params,
        )
    }

    async fn in_time<T>(&self, call: impl Future<Output = Result<T, LeaderError>>) -> Result<T, LeaderError> {
        tokio::time::timeout(self.settings.times.call_timeout(), call)
            .await
            .map_err(|_| LeaderError::TimedOut)?
    }
}

/// Whether the lease names `identity` as its holder.
pub(super) fn names(lease: &Lease, identity: &str) -> bool {
    lease
        .spec
        .as_ref()
        .and_then(holder)
        .is_some_and(|holder| holder == identity)
}

/// The judged lease in a form that the election crate acquires by any clock, with the fields that the crate requires.
fn as_expired(lease: Lease) -> Lease {
    let transitions = lease.spec.and_then(|spec| spec.lease_transitions).unwrap_or(0);
    let spec = LeaseSpec {
        holder_identity: Some(String::new()),
        renew_time: Some(MicroTime(Timestamp::UNIX_EPOCH)),
        lease_duration_seconds: Some(1),
        // The crate adds one.
        lease_transitions: Some(transitions.min(i32::MAX - 1)),
        ..LeaseSpec::default()
    };
    Lease {
        spec: Some(spec),
        ..lease
    }
}

/// A client over `inner` that shows the judged lease and makes each write depend on it.
fn judged_client(inner: Client, judged: Option<Lease>) -> Client {
    let namespace = inner.default_namespace().to_owned();
    let judged = Arc::new(judged);
    let service = tower::service_fn(move |request: Request<Body>| {
        let inner = inner.clone();
        let judged = Arc::clone(&judged);
        async move { forward(&inner, (*judged).as_ref(), request).await }
    });
    Client::new(service, namespace)
}

async fn forward(inner: &Client, judged: Option<&Lease>, request: Request<Body>) -> Result<Response<Body>, BoxError> {
    match (request.method(), judged) {
        (&Method::GET, Some(lease)) => answer(StatusCode::OK, serde_json::to_vec(lease)?),
        (&Method::GET, None) => {
            let absent =
                json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404});
            answer(StatusCode::NOT_FOUND, serde_json::to_vec(&absent)?)
        }
        // Creating is conditional by itself: an existing lease makes it a 409.
        (&Method::POST, None) => Ok(inner.send(request).await?),
        (&Method::PATCH, Some(lease)) => Ok(inner.send(conditional(request, lease).await?).await?),
        (method, _) => Err(format!("{method} on the lease does not fit what was judged").into()),
    }
}

fn answer(status: StatusCode, body: Vec<u8>) -> Result<Response<Body>, BoxError> {
    Ok(Response::builder().status(status).body(Body::from(body))?)
}

/// The patch, refused by the API server with 409 unless the lease still has the judged version.
async fn conditional(request: Request<Body>, judged: &Lease) -> Result<Request<Body>, BoxError> {
    let version = judged
        .metadata
        .resource_version
        .as_deref()
        .ok_or("the lease was read without a resourceVersion")?;
    let (parts, body) = request.into_parts();
    let mut patch: Value = serde_json::from_slice(&body.collect_bytes().await?)?;
    patch["metadata"]["resourceVersion"] = version.into();
    Ok(Request::from_parts(parts, Body::from(serde_json::to_vec(&patch)?)))
}
