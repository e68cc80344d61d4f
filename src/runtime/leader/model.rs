//! An API server's Lease endpoint in memory: versions, merge patches, conflicts; no watch. Can be made to hang.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::BoxError;

#[derive(Clone, Default)]
pub(super) struct Model(Arc<State>);

#[derive(Default)]
struct State {
    leases: Mutex<(u64, BTreeMap<String, Value>)>,
    hangs: AtomicBool,
    /// Before how many of the next patches somebody else writes.
    touched: AtomicUsize,
    writes: AtomicUsize,
}

impl Model {
    pub(super) fn client(&self) -> Client {
        let model = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let model = model.clone();
            async move { model.serve(request).await }
        });
        Client::new(service, "default")
    }

    /// Sets whether calls are accepted and never answered.
    pub(super) fn hang(&self, hangs: bool) {
        self.0.hangs.store(hangs, Ordering::SeqCst);
    }

    /// Before each of the next `patches`, somebody else writes the lease without a change that matters.
    pub(super) fn touch_before(&self, patches: usize) {
        self.0.touched.store(patches, Ordering::SeqCst);
    }

    pub(super) fn writes(&self) -> usize {
        self.0.writes.load(Ordering::SeqCst)
    }

    pub(super) fn spec(&self, name: &str) -> Value {
        self.0
            .leases
            .lock()
            .unwrap()
            .1
            .get(name)
            .map_or(Value::Null, |lease| lease["spec"].clone())
    }

    pub(super) fn put(&self, name: &str, spec: Value) {
        let mut leases = self.0.leases.lock().unwrap();
        store(
            &mut leases,
            name,
            json!({"metadata": {"name": name, "namespace": "default"}, "spec": spec}),
        );
    }

    pub(super) fn delete(&self, name: &str) {
        self.0.leases.lock().unwrap().1.remove(name);
    }

    async fn serve(&self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        if self.0.hangs.load(Ordering::SeqCst) {
            return std::future::pending().await;
        }
        let (parts, body) = request.into_parts();
        let body: Value = serde_json::from_slice(&body.collect_bytes().await?).unwrap_or_default();
        let (status, answer) = if parts.uri.query().is_some_and(|query| query.contains("watch=true")) {
            refuse(StatusCode::FORBIDDEN)
        } else {
            let name = parts.uri.path().rsplit('/').next().unwrap_or_default();
            self.apply(&parts.method, name, body)
        };
        Ok(Response::builder()
            .status(status)
            .body(Body::from(serde_json::to_vec(&answer)?))?)
    }

    fn apply(&self, method: &Method, name: &str, body: Value) -> (StatusCode, Value) {
        let mut leases = self.0.leases.lock().unwrap();
        match *method {
            Method::GET => match leases.1.get(name) {
                Some(lease) => (StatusCode::OK, lease.clone()),
                None => refuse(StatusCode::NOT_FOUND),
            },
            Method::POST => {
                let name = body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                if leases.1.contains_key(&name) {
                    return refuse(StatusCode::CONFLICT);
                }
                self.0.writes.fetch_add(1, Ordering::SeqCst);
                (StatusCode::CREATED, store(&mut leases, &name, body))
            }
            _ => {
                let Some(mut lease) = leases.1.get(name).cloned() else {
                    return refuse(StatusCode::NOT_FOUND);
                };
                let touch = |left: usize| left.checked_sub(1);
                if self
                    .0
                    .touched
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, touch)
                    .is_ok()
                {
                    lease = store(&mut leases, name, lease);
                }
                let asked = &body["metadata"]["resourceVersion"];
                if !asked.is_null() && *asked != lease["metadata"]["resourceVersion"] {
                    return refuse(StatusCode::CONFLICT);
                }
                merge(&mut lease, &body);
                self.0.writes.fetch_add(1, Ordering::SeqCst);
                (StatusCode::OK, store(&mut leases, name, lease))
            }
        }
    }
}

fn store(leases: &mut (u64, BTreeMap<String, Value>), name: &str, mut lease: Value) -> Value {
    leases.0 += 1;
    lease["apiVersion"] = "coordination.k8s.io/v1".into();
    lease["kind"] = "Lease".into();
    lease["metadata"]["resourceVersion"] = leases.0.to_string().into();
    leases.1.insert(name.to_owned(), lease.clone());
    lease
}

/// JSON merge patch, RFC 7386.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (key, value) in fields {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut target[key], value);
        }
    }
}

fn refuse(status: StatusCode) -> (StatusCode, Value) {
    let reason = status.canonical_reason().unwrap_or_default().replace(' ', "");
    let body =
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": status.as_u16()});
    (status, body)
}
