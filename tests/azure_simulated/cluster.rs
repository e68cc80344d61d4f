//! The Kubernetes objects around one custom resource, from a fake API server that answers from a table: time is paused
//! here, which no real one supports. It keeps resource versions, finalizers and deletion timestamps, and knows the
//! kinds and verbs that a reconcile uses.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use serde_json::{Value, json};

use crate::desired::{GUEST, GUEST_SUB};
use crate::sim::Valve;

const UID: &str = "6f1c8a52-8f0e-4b5e-9a3b-2f6f0d1c7e11";
pub(crate) const CR: &str = "azureprivatelinkservices/private-router";
pub(crate) const NAMESPACE: &str = "clusters-example";
/// The address of the Service's load balancer.
pub(crate) const ADDRESS: &str = "10.0.0.50";

/// The name of the Service's frontend.
pub(crate) fn frontend() -> String {
    hyperlink::hypershift::azure::names::load_balancer(UID)
}

/// Objects by kind and name.
pub(crate) struct Cluster {
    objects: Mutex<BTreeMap<String, Value>>,
    versions: Mutex<u64>,
    /// The object that is deleted right before the next patch of the custom resource's metadata.
    deleted_first: Mutex<Option<&'static str>>,
    /// The gate that writes to Kubernetes have to pass, as those to Azure do.
    valve: Arc<Valve>,
}

impl Cluster {
    pub(crate) fn new(valve: &Arc<Valve>) -> Arc<Self> {
        let cluster = Arc::new(Self {
            objects: Mutex::default(),
            versions: Mutex::new(1),
            deleted_first: Mutex::default(),
            valve: Arc::clone(valve),
        });
        for (key, object) in objects() {
            cluster.put(key, object);
        }
        cluster
    }

    fn put(&self, key: &str, mut object: Value) {
        let mut versions = self.versions.lock().unwrap();
        *versions += 1;
        object["metadata"]["resourceVersion"] = json!(versions.to_string());
        let deleting = object["metadata"]["deletionTimestamp"].is_string();
        let held = object["metadata"]["finalizers"]
            .as_array()
            .is_some_and(|all| !all.is_empty());
        let mut objects = self.objects.lock().unwrap();
        if deleting && !held {
            objects.remove(key);
        } else {
            objects.insert(key.to_owned(), object);
        }
    }

    /// How often anything was written.
    pub(crate) fn writes(&self) -> u64 {
        *self.versions.lock().unwrap()
    }

    pub(crate) fn get(&self, key: &str) -> Option<Value> {
        self.objects.lock().unwrap().get(key).cloned()
    }

    /// Lets somebody delete this object right before the next patch of the custom resource's metadata.
    pub(crate) fn deleted_before_the_next_patch(&self, key: &'static str) {
        *self.deleted_first.lock().unwrap() = Some(key);
    }

    /// Merges this into the status, past the program.
    pub(crate) fn forge(&self, key: &str, status: Value) {
        let mut object = self.get(key).unwrap();
        merge(&mut object["status"], &status);
        self.put(key, object);
    }

    /// Deletes the object as `kubectl delete` does, long ago.
    pub(crate) fn delete(&self, key: &str) {
        self.delete_at(key, "2026-01-05T12:00:00Z");
    }

    pub(crate) fn delete_at(&self, key: &str, time: &str) {
        let mut object = self.get(key).unwrap();
        object["metadata"]["deletionTimestamp"] = json!(time);
        self.put(key, object);
    }

    pub(crate) fn client(self: &Arc<Self>) -> kube::Client {
        let cluster = Arc::clone(self);
        let server = tower::service_fn(move |request: Request<Body>| {
            let cluster = Arc::clone(&cluster);
            async move {
                let (parts, body) = request.into_parts();
                let body = serde_json::from_slice(&body.collect_bytes().await?).unwrap_or_default();
                let (status, answer) = cluster.answer(&parts.method, parts.uri.path(), body);
                let mut response = Response::new(Body::from(answer.to_string().into_bytes()));
                *response.status_mut() = status;
                Ok::<_, tower::BoxError>(response)
            }
        });
        kube::Client::new(server, NAMESPACE)
    }

    fn answer(&self, method: &Method, path: &str, body: Value) -> (StatusCode, Value) {
        let refuse = |status: StatusCode| {
            let code = status.as_u16();
            let reason = if code == 404 { "NotFound" } else { "x" };
            let body = json!({"kind": "Status", "status": "Failure", "code": code, "message": "x", "reason": reason});
            (status, body)
        };
        let parts: Vec<&str> = path
            .split('/')
            .skip_while(|part| *part != "namespaces")
            .skip(2)
            .collect();
        let all: Vec<&str> = path.split('/').collect();
        let key = parts.get(..2).map(|key| key.join("/"));
        match (method, key) {
            (&Method::GET, None) => {
                let kind = all.last().copied().unwrap_or_default();
                let objects = self.objects.lock().unwrap();
                let items: Vec<&Value> = objects
                    .iter()
                    .filter(|(key, _)| key.split('/').next() == Some(kind))
                    .map(|(_, object)| object)
                    .collect();
                (
                    StatusCode::OK,
                    json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items}),
                )
            }
            (&Method::GET, Some(key)) => self
                .get(&key)
                .map_or_else(|| refuse(StatusCode::NOT_FOUND), |found| (StatusCode::OK, found)),
            (&Method::PATCH, Some(key)) => {
                let Some(mut object) = self.get(&key) else {
                    return refuse(StatusCode::NOT_FOUND);
                };
                let guard = &body["metadata"]["resourceVersion"];
                if !guard.is_null() && *guard != object["metadata"]["resourceVersion"] {
                    return refuse(StatusCode::CONFLICT);
                }
                if key == CR
                    && parts.len() == 2
                    && let Some(gone) = self.deleted_first.lock().unwrap().take()
                {
                    self.objects.lock().unwrap().remove(gone);
                }
                if !hyperlink::engine::gate::Gate::open(self.valve.as_ref()) {
                    return refuse(StatusCode::SERVICE_UNAVAILABLE);
                }
                let is_status = parts.get(2) == Some(&"status");
                if !patch(&mut object, &body, if is_status { "status" } else { "metadata" }) {
                    return refuse(StatusCode::UNPROCESSABLE_ENTITY);
                }
                self.put(&key, object.clone());
                (StatusCode::OK, self.get(&key).unwrap_or(object))
            }
            // These create Events.
            (&Method::POST, None) => (StatusCode::CREATED, body),
            _ => refuse(StatusCode::METHOD_NOT_ALLOWED),
        }
    }
}

/// A JSON patch (RFC 6902), or a merge patch of one part; returns whether it fits the object.
fn patch(object: &mut Value, body: &Value, part: &str) -> bool {
    match serde_json::from_value::<json_patch::Patch>(body.clone()) {
        Ok(operations) => json_patch::patch(object, &operations).is_ok(),
        Err(_) => {
            merge(&mut object[part], &body[part]);
            true
        }
    }
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

fn objects() -> [(&'static str, Value); 4] {
    let vnet = format!("{GUEST}/virtualNetworks/workers");
    let subnet = format!("{vnet}/subnets/guest");
    let azure = json!({"cloud": "AzurePublicCloud", "location": "westus2", "resourceGroup": "guest", "subscriptionID": GUEST_SUB,
        "vnetID": vnet, "subnetID": subnet, "topology": "Private", "private": {"type": "PrivateLink"}});
    let spec = json!({"clusterID": "x-id", "infraID": "x", "dns": {"baseDomain": "example.com"}, "platform": {"type": "Azure", "azure": azure}});
    let hypershift = "hypershift.openshift.io/v1beta1";
    let owner = json!([{"apiVersion": hypershift, "kind": "HostedControlPlane", "name": "example", "uid": "hcp", "controller": true}]);
    let annotations = json!({"hypershift.openshift.io/cluster": "clusters/example"});
    [
        (
            "hostedclusters/example",
            json!({"apiVersion": hypershift, "kind": "HostedCluster",
            "metadata": {"name": "example", "namespace": "clusters", "uid": "hc"}, "spec": spec}),
        ),
        (
            "hostedcontrolplanes/example",
            json!({"apiVersion": hypershift, "kind": "HostedControlPlane",
            "metadata": {"name": "example", "namespace": NAMESPACE, "uid": "hcp", "annotations": annotations}, "spec": spec}),
        ),
        (
            "services/private-router",
            json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "private-router", "namespace": NAMESPACE, "uid": UID, "ownerReferences": owner},
            "status": {"loadBalancer": {"ingress": [{"ip": ADDRESS}]}}}),
        ),
        (
            CR,
            json!({"apiVersion": hypershift, "kind": "AzurePrivateLinkService",
            "metadata": {"name": "private-router", "namespace": NAMESPACE, "uid": "cr", "generation": 1,
                "annotations": annotations, "ownerReferences": owner},
            "spec": {"subscriptionID": GUEST_SUB, "resourceGroupName": "guest", "location": "westus2", "loadBalancerIP": ADDRESS,
                "guestSubnetID": subnet, "guestVNetID": vnet, "baseDomain": "apps.example.com"}}),
        ),
    ]
}
