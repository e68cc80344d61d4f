//! The Kubernetes objects around custom resources, from a fake API server that answers from a table: time is paused
//! here, which no real one supports. It keeps resource versions, finalizers and deletion timestamps.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response, StatusCode};
use hyperlink::aws::region::Region;
use kube::client::Body;
use serde_json::{Value, json};

use crate::desired::GUEST;

pub(crate) const UID: &str = "a1b2c3d4-e5f6-0718-293a-4b5c6d7e8f90";
pub(crate) const NAMESPACE: &str = "clusters-example";
pub(crate) const CR: &str = "clusters-example/awsendpointservices/private-router";
pub(crate) const PLANE: &str = "clusters-example/hostedcontrolplanes/example";
pub(crate) const HOSTED: &str = "clusters/hostedclusters/example";
pub(crate) const SERVICE: &str = "clusters-example/services/private-router";
pub(crate) const CLUSTER_ID: &str = "5f2c6c2e-8a3c-4a7e-9a0e-0d6b3c1f7a11";

/// Objects by namespace, kind and name.
#[derive(Default)]
pub(crate) struct Cluster {
    objects: Mutex<BTreeMap<String, Value>>,
    version: Mutex<u64>,
    requests: Mutex<Vec<String>>,
    events: Mutex<Vec<Reported>>,
    fuse: Mutex<Fuse>,
}

/// An Event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reported {
    /// `Normal` or `Warning`.
    pub(crate) kind: String,
    pub(crate) reason: String,
    /// The kind of the object that it is about.
    pub(crate) regarding: String,
    pub(crate) note: String,
}

impl Reported {
    fn of(event: &Value) -> Self {
        let text = |field: &Value| field.as_str().unwrap_or_default().to_owned();
        Self {
            kind: text(&event["type"]),
            reason: text(&event["reason"]),
            regarding: text(&event["regarding"]["kind"]),
            note: text(&event["note"]),
        }
    }
}

/// The write that gets no answer.
#[derive(Default)]
struct Fuse {
    /// How many writes come until then, itself included; none if 0.
    left: u64,
    is_carried_out: bool,
    has_blown: bool,
}

impl Cluster {
    /// The objects of one cluster in a region, whose load balancer has this host name.
    pub(crate) fn new(host_name: &str, region: &Region) -> Arc<Self> {
        let cluster = Arc::new(Self::default());
        for (key, object) in objects(host_name, region) {
            cluster.put(key, object);
        }
        cluster
    }

    pub(crate) fn put(&self, key: &str, mut object: Value) {
        let mut version = self.version.lock().unwrap();
        *version += 1;
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        let deleting = object["metadata"]["deletionTimestamp"].is_string();
        let held = object["metadata"]["finalizers"].as_array();
        let held = held.is_some_and(|all| !all.is_empty());
        let mut objects = self.objects.lock().unwrap();
        if deleting && !held {
            objects.remove(key);
        } else {
            objects.insert(key.to_owned(), object);
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<Value> {
        self.objects.lock().unwrap().get(key).cloned()
    }

    /// Merges this into an object, past the program.
    pub(crate) fn forge(&self, key: &str, patch: &Value) {
        let mut object = self.get(key).unwrap();
        merge(&mut object, patch);
        self.put(key, object);
    }

    pub(crate) fn remove(&self, key: &str) {
        self.objects.lock().unwrap().remove(key);
    }

    /// Deletes the object as `kubectl delete` does.
    pub(crate) fn delete_at(&self, key: &str, time: &str) {
        self.forge(key, &json!({"metadata": {"deletionTimestamp": time}}));
    }

    /// The requests since the last call.
    pub(crate) fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.requests.lock().unwrap())
    }

    /// The notes of the Events since the last call.
    pub(crate) fn take_events(&self) -> Vec<String> {
        self.take_reported().into_iter().map(|event| event.note).collect()
    }

    /// The Events since the last call, with what they are about.
    pub(crate) fn take_reported(&self) -> Vec<Reported> {
        std::mem::take(&mut self.events.lock().unwrap())
    }

    /// Leaves a write without an answer: the one of this number from now on, beginning with 1.
    pub(crate) fn hang_at(&self, number: u64, is_carried_out: bool) {
        *self.fuse.lock().unwrap() = Fuse {
            left: number,
            is_carried_out,
            has_blown: false,
        };
    }

    /// Whether that write has come.
    pub(crate) fn hangs(&self) -> bool {
        self.fuse.lock().unwrap().has_blown
    }

    /// Whether a request is carried out though it gets no answer; none if it gets one.
    fn unanswered(&self, method: &Method) -> Option<bool> {
        let mut fuse = self.fuse.lock().unwrap();
        if ![Method::PATCH, Method::DELETE].contains(method) || fuse.left == 0 {
            return None;
        }
        fuse.left -= 1;
        fuse.has_blown = fuse.left == 0;
        fuse.has_blown.then_some(fuse.is_carried_out)
    }

    pub(crate) fn client(self: &Arc<Self>) -> kube::Client {
        let cluster = Arc::clone(self);
        let server = tower::service_fn(move |request: Request<Body>| {
            let cluster = Arc::clone(&cluster);
            async move {
                let (parts, body) = request.into_parts();
                let body = serde_json::from_slice(&body.collect_bytes().await?).unwrap_or_default();
                let unanswered = cluster.unanswered(&parts.method);
                if unanswered == Some(false) {
                    return std::future::pending().await;
                }
                let (status, answer) = cluster.answer(&parts.method, parts.uri.path(), &body);
                if unanswered.is_some() {
                    return std::future::pending().await;
                }
                let mut response = Response::new(Body::from(answer.to_string().into_bytes()));
                *response.status_mut() = status;
                Ok::<_, tower::BoxError>(response)
            }
        });
        kube::Client::new(server, NAMESPACE)
    }

    fn answer(&self, method: &Method, path: &str, body: &Value) -> (StatusCode, Value) {
        self.requests.lock().unwrap().push(format!("{method} {path}"));
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let namespaced = parts.iter().position(|part| *part == "namespaces");
        let (namespace, rest) = match namespaced {
            Some(at) => (Some(parts[at + 1]), &parts[at + 2..]),
            None => (None, &parts[parts.len() - 1..]),
        };
        let key = |name: &str| format!("{}/{}/{name}", namespace.unwrap_or_default(), rest[0]);
        match (method, rest) {
            (&Method::GET, [kind]) => self.list(namespace, kind),
            (&Method::GET, [_, name]) => found(self.get(&key(name))),
            (&Method::PATCH, [_, name, ..]) if body.is_array() => self.patch_by_operations(&key(name), body),
            (&Method::PATCH, [_, name]) => self.patch(&key(name), body, &["metadata", "spec"]),
            (&Method::PATCH, [_, name, "status"]) => self.patch(&key(name), body, &["status"]),
            (&Method::DELETE, [_, name]) => {
                self.delete_at(&key(name), "2026-01-05T12:00:00Z");
                (StatusCode::OK, json!({"kind": "Status", "status": "Success"}))
            }
            // These create Events.
            (&Method::POST, _) => {
                self.events.lock().unwrap().push(Reported::of(body));
                (StatusCode::CREATED, body.clone())
            }
            _ => refuse(StatusCode::METHOD_NOT_ALLOWED),
        }
    }

    fn list(&self, namespace: Option<&str>, kind: &str) -> (StatusCode, Value) {
        let objects = self.objects.lock().unwrap();
        let fits = |key: &str| {
            let mut parts = key.split('/');
            namespace.is_none_or(|own| Some(own) == key.split('/').next()) && parts.nth(1) == Some(kind)
        };
        let items: Vec<&Value> = objects
            .iter()
            .filter(|(key, _)| fits(key))
            .map(|(_, object)| object)
            .collect();
        let list = json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items});
        (StatusCode::OK, list)
    }

    fn patch(&self, key: &str, body: &Value, parts: &[&str]) -> (StatusCode, Value) {
        let Some(mut object) = self.get(key) else {
            return refuse(StatusCode::NOT_FOUND);
        };
        let guard = &body["metadata"]["resourceVersion"];
        if !guard.is_null() && *guard != object["metadata"]["resourceVersion"] {
            return refuse(StatusCode::CONFLICT);
        }
        for part in parts.iter().filter(|part| body[**part].is_object()) {
            merge(&mut object[*part], &body[*part]);
        }
        self.put(key, object.clone());
        (StatusCode::OK, self.get(key).unwrap_or(object))
    }

    /// A JSON patch (RFC 6902), which is refused if it sets another resource version.
    fn patch_by_operations(&self, key: &str, body: &Value) -> (StatusCode, Value) {
        let Some(stored) = self.get(key) else {
            return refuse(StatusCode::NOT_FOUND);
        };
        let mut object = stored.clone();
        let operations: json_patch::Patch = serde_json::from_value(body.clone()).unwrap();
        if json_patch::patch(&mut object, &operations).is_err() {
            return refuse(StatusCode::UNPROCESSABLE_ENTITY);
        }
        if object["metadata"]["resourceVersion"] != stored["metadata"]["resourceVersion"] {
            return refuse(StatusCode::CONFLICT);
        }
        self.put(key, object.clone());
        (StatusCode::OK, self.get(key).unwrap_or(object))
    }
}

fn found(object: Option<Value>) -> (StatusCode, Value) {
    object.map_or_else(|| refuse(StatusCode::NOT_FOUND), |found| (StatusCode::OK, found))
}

fn refuse(status: StatusCode) -> (StatusCode, Value) {
    let code = status.as_u16();
    let reason = if code == 404 { "NotFound" } else { "x" };
    let body = json!({"kind": "Status", "status": "Failure", "code": code, "message": "x", "reason": reason});
    (status, body)
}

/// A merge patch (RFC 7396), except that conditions are merged by their type, as in an apply.
fn merge(target: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in fields {
        if name == "conditions" {
            let mut all = target[name].as_array().cloned().unwrap_or_default();
            for condition in value.as_array().into_iter().flatten() {
                all.retain(|old| old["type"] != condition["type"]);
                all.push(condition.clone());
            }
            target[name] = json!(all);
        } else if value.is_null() {
            target.as_object_mut().unwrap().remove(name);
        } else {
            merge(&mut target[name], value);
        }
    }
}

fn objects(host_name: &str, region: &Region) -> [(&'static str, Value); 5] {
    let iam = format!("arn:{}:iam::{GUEST}", region.partition().name());
    let aws = json!({"region": region.name(), "endpointAccess": "Private",
        "cloudProviderConfig": {"vpc": "vpc-00000002"},
        "additionalAllowedPrincipals": [format!("{iam}:user/cpo")],
        "rolesRef": {"controlPlaneOperatorARN": format!("{iam}:role/cpo")}});
    let published = json!([{"service": "APIServer", "servicePublishingStrategy": {"type": "Route"}}]);
    let spec = json!({"clusterID": CLUSTER_ID, "infraID": "example-x7k2p", "services": published,
        "networking": {"machineNetwork": [{"cidr": "10.0.0.0/16"}]}, "platform": {"type": "AWS", "aws": aws}});
    let hypershift = "hypershift.openshift.io/v1beta1";
    let owner = json!([{"apiVersion": hypershift, "kind": "HostedControlPlane", "name": "example", "uid": "hcp"}]);
    let cluster = json!({"hypershift.openshift.io/cluster": "clusters/example"});
    let created = "2026-01-01T00:00:00Z";
    let object = |kind: &str, name: &str, namespace: &str, uid: &str, spec: Value| {
        json!({"apiVersion": hypershift, "kind": kind, "spec": spec, "metadata": {"name": name, "uid": uid,
            "namespace": namespace, "generation": 1, "creationTimestamp": created, "annotations": cluster}})
    };
    let subnet = json!({"type": "AWS", "aws": {"subnet": {"id": "subnet-00000001"}}});
    let pool = json!({"clusterName": "example", "platform": subnet});
    let balancer = json!({"networkLoadBalancerName": hyperlink::hypershift::names::load_balancer(UID)});
    [
        (
            HOSTED,
            object("HostedCluster", "example", "clusters", "hc", spec.clone()),
        ),
        (PLANE, object("HostedControlPlane", "example", NAMESPACE, "hcp", spec)),
        (
            "clusters/nodepools/a",
            object("NodePool", "a", "clusters", "pool", pool),
        ),
        (
            SERVICE,
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "private-router",
                "namespace": NAMESPACE, "uid": UID, "ownerReferences": owner},
                "status": {"loadBalancer": {"ingress": [{"hostname": host_name}]}}}),
        ),
        (
            CR,
            object("AWSEndpointService", "private-router", NAMESPACE, "cr", balancer),
        ),
    ]
}
