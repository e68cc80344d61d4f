//! An API server that answers from a table, for reconciles of a control plane.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use k8s_openapi::api::core::v1::Service;
use kube::client::Body;
use kube::runtime::reflector::{Store, store};
use kube::runtime::watcher::Event as Watched;
use serde_json::{Value, json};

use super::rules::PlatformRules;
use super::{Observer, reconcile};
use crate::api::HostedControlPlane;
use crate::controllers::context::Context;
use crate::runtime::prune::Prune;
use crate::runtime::work_queue::Action;

pub(super) const EXTERNAL: &str = "services/kube-apiserver-private-external";
pub(super) const PLANE: &str = "hostedcontrolplanes/example";
const PLANES: &str = "hostedcontrolplanes";

/// The objects by kind and name, what is refused, and every write so far.
#[derive(Default)]
pub(super) struct Cluster {
    pub(super) objects: HashMap<String, Value>,
    pub(super) refused: HashMap<String, StatusCode>,
    pub(super) written: Vec<(Method, String, Value)>,
    /// How many requests there were.
    pub(super) requests: usize,
}

impl Cluster {
    fn answer(&mut self, method: &Method, path: &str, body: Value) -> (StatusCode, Value) {
        self.requests += 1;
        let mut parts = path.rsplit('/');
        let last = parts.next().unwrap();
        let object = if *method == Method::POST {
            format!("{last}/{}", body["metadata"]["name"].as_str().unwrap_or_default())
        } else {
            format!("{}/{last}", parts.next().unwrap())
        };
        if *method != Method::GET {
            self.written.push((method.clone(), object.clone(), body.clone()));
        }
        let refusal = self.refused.get(&format!("{method} {object}")).copied();
        match (refusal, self.objects.get(&object)) {
            (Some(status), _) => (
                status,
                json!({"kind": "Status", "code": status.as_u16(), "reason": "x"}),
            ),
            (None, _) if *method == Method::POST => (StatusCode::CREATED, body),
            (None, _) if last == PLANES => (StatusCode::OK, self.planes()),
            (None, Some(found)) => (StatusCode::OK, found.clone()),
            (None, None) => (
                StatusCode::NOT_FOUND,
                json!({"kind": "Status", "code": 404, "reason": "NotFound"}),
            ),
        }
    }

    /// The list of all control planes.
    fn planes(&self) -> Value {
        let all = self.objects.iter().filter(|(name, _)| name.starts_with(PLANES));
        let items: Vec<&Value> = all.map(|(_, found)| found).collect();
        json!({"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "List", "metadata": {}, "items": items})
    }
}

/// An observer before this API server.
pub(super) struct TestEnv<P: PlatformRules> {
    pub(super) cluster: Arc<Mutex<Cluster>>,
    pub(super) observer: Arc<Observer<P>>,
}

impl<P: PlatformRules> TestEnv<P> {
    pub(super) fn of(
        cluster: Cluster,
        external: Store<Service>,
        rules: P,
        context: impl FnOnce(kube::Client) -> Context<P::Resource>,
    ) -> Self {
        let cluster = Arc::new(Mutex::new(cluster));
        let answering = Arc::clone(&cluster);
        let answers = tower::service_fn(move |request: Request<Body>| {
            let cluster = Arc::clone(&answering);
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await?;
                let body = serde_json::from_slice(&body).unwrap_or_default();
                let (status, answer) = cluster.lock().unwrap().answer(&parts.method, parts.uri.path(), body);
                let mut response = Response::new(Body::from(answer.to_string().into_bytes()));
                *response.status_mut() = status;
                Ok::<_, tower::BoxError>(response)
            }
        });
        let cx = Arc::new(context(kube::Client::new(answers, "default")));
        let observer = Arc::new(Observer::new(cx, rules, external));
        Self { cluster, observer }
    }

    pub(super) async fn reconcile(&self) -> Action {
        let stored = self.cluster.lock().unwrap().objects[PLANE].clone();
        let mut cached: HostedControlPlane = serde_json::from_value(stored).unwrap();
        cached.prune();
        reconcile(Arc::new(cached), Arc::clone(&self.observer)).await
    }

    /// What has been written since the last time, Events apart.
    pub(super) fn written(&self) -> Vec<String> {
        let written = std::mem::take(&mut self.cluster.lock().unwrap().written);
        let all = written
            .into_iter()
            .filter(|(_, object, _)| !object.starts_with("events/"));
        all.map(|(method, object, _)| format!("{method} {object}")).collect()
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let cluster = self.cluster.lock().unwrap();
        let events = cluster
            .written
            .iter()
            .filter(|(_, object, _)| object.starts_with("events/"));
        events
            .map(|(_, _, event)| event["note"].as_str().unwrap().to_owned())
            .collect()
    }
}

pub(super) fn resync() -> Action {
    Action::Requeue(Duration::from_secs(60))
}

/// A watch that has shown no Service.
pub(super) fn empty() -> Store<Service> {
    watched([Watched::Init, Watched::InitDone])
}

/// A watch that has shown this Service.
pub(super) fn holding(service: &Value) -> Store<Service> {
    let service: Service = serde_json::from_value(service.clone()).unwrap();
    watched([Watched::Init, Watched::InitApply(service), Watched::InitDone])
}

fn watched<const N: usize>(events: [Watched<Service>; N]) -> Store<Service> {
    let (reader, mut writer) = store();
    for event in events {
        writer.apply_watcher_event(&event);
    }
    reader
}
