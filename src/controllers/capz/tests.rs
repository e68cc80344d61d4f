//! The controllers before an API server that a test holds, with what they read of it and what they write to it.

use std::collections::BTreeMap;

use http::{Method, Request, Response};
use kube::Resource;
use kube::client::Body;
use kube::core::NamespaceResourceScope;
use kube::runtime::reflector;
use kube::runtime::watcher::Event;
use serde_json::{Value, json};
use tokio::sync::mpsc::unbounded_channel;

use super::*;
use crate::api::capi::AzureClusterIdentity;
use crate::api::hypershift::PUBLIC_CLOUD;
use crate::api::markers::capz::{DROPPED_ENDPOINTS, FINALIZER, LEDGER};
use crate::azure::arm::auth::AzureCloud;
use crate::azure::arm::https::HttpSettings;
use crate::capz::samples::{MANAGEMENT_SUBSCRIPTION, Sample, entry, management, workload};
use crate::controllers::context::sample;
use crate::engine::gate::NeverOpen;
use crate::metrics::ReconcileResult;

/// The time between two reconciles without an event.
pub(super) const RESYNC: Duration = Duration::from_secs(300);

/// An API server with some objects. Clones are the same server.
#[derive(Clone, Default)]
pub(super) struct Server(Arc<Mutex<Held>>);

#[derive(Default)]
struct Held {
    /// By path.
    objects: BTreeMap<String, Value>,
    /// Method and path of each request, but for those that create an Event.
    requests: Vec<String>,
    /// How many Events it was asked to create.
    events: usize,
    /// Whether every change is refused.
    refuses: bool,
}

impl Server {
    fn held<T>(&self, with: impl FnOnce(&mut Held) -> T) -> T {
        with(&mut self.0.lock().unwrap())
    }

    /// Has this object from now on.
    pub(super) fn put<K: Resource<DynamicType = ()>>(&self, object: &Value) {
        let metadata = &object["metadata"];
        let path = path::<K>(metadata["namespace"].as_str(), metadata["name"].as_str().unwrap());
        self.held(|held| held.objects.insert(path, object.clone()));
    }

    /// Lists these resources of a group's version from now on.
    pub(super) fn serve(&self, version: &str, resources: &[&str]) {
        let one = |name: &&str| json!({"name": name, "singularName": "", "namespaced": true, "kind": "K", "verbs": []});
        let all: Vec<Value> = resources.iter().map(one).collect();
        let list = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": all});
        self.held(|held| held.objects.insert(format!("/apis/{version}"), list));
    }

    /// Has an AzureCluster no more.
    fn remove(&self, name: &str) {
        self.held(|held| held.objects.remove(&azure_cluster(name)).unwrap());
    }

    /// Refuses every change from now on, or takes it.
    pub(super) fn refuse(&self, refuses: bool) {
        self.held(|held| held.refuses = refuses);
    }

    /// An object of the namespace of all tests.
    pub(super) fn get<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(&self, name: &str) -> Value {
        self.held(|held| held.objects[&path::<K>(Some(NAMESPACE), name)].clone())
    }

    /// The names of the objects that it was asked to change, in order.
    pub(super) fn changed(&self) -> Vec<String> {
        let last = |request: &String| request.rsplit('/').next().unwrap().to_owned();
        let is_change = |request: &&String| !request.starts_with("GET ");
        self.held(|held| held.requests.iter().filter(is_change).map(last).collect())
    }

    /// How often it was asked for an object of this name.
    pub(super) fn reads_of(&self, name: &str) -> usize {
        let is_read = |request: &&String| request.starts_with("GET ") && request.ends_with(&format!("/{name}"));
        self.held(|held| held.requests.iter().filter(is_read).count())
    }

    /// How many Events it was asked to create.
    pub(super) fn events(&self) -> usize {
        self.held(|held| held.events)
    }

    /// What a reconcile works with.
    pub(super) fn runtime(&self) -> Runtime {
        let server = self.clone();
        let answers = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await?;
                let (code, answer) = server.answer(&parts, &body);
                let answer = Body::from(serde_json::to_vec(&answer)?);
                Ok::<_, tower::BoxError>(Response::builder().status(code).body(answer)?)
            }
        });
        sample::context_with(kube::Client::new(answers, "default"), RESYNC).runtime
    }

    fn answer(&self, parts: &http::request::Parts, body: &[u8]) -> (u16, Value) {
        let path = parts.uri.path().trim_end_matches("/status");
        if path.ends_with("/events") {
            self.held(|held| held.events += 1);
            return (201, serde_json::from_slice(body).unwrap());
        }
        self.held(|held| {
            held.requests.push(format!("{} {path}", parts.method));
            if parts.method == Method::POST {
                return (201, serde_json::from_slice(body).unwrap());
            }
            if parts.method != Method::GET && held.refuses {
                return refusal(500, "InternalError");
            }
            let Some(object) = held.objects.get_mut(path) else {
                return refusal(404, "NotFound");
            };
            if parts.method == Method::PATCH && !apply(object, parts, body) {
                return refusal(409, "Conflict");
            }
            (200, object.clone())
        })
    }
}

/// Applies a patch; returns whether the object was as it says.
fn apply(object: &mut Value, parts: &http::request::Parts, body: &[u8]) -> bool {
    let mut patched = object.clone();
    if parts.headers["content-type"] == "application/json-patch+json" {
        let patch: json_patch::Patch = serde_json::from_slice(body).unwrap();
        if json_patch::patch(&mut patched, &patch).is_err() {
            return false;
        }
    } else {
        let patch: Value = serde_json::from_slice(body).unwrap();
        let version = &patch["metadata"]["resourceVersion"];
        if !version.is_null() && *version != object["metadata"]["resourceVersion"] {
            return false;
        }
        json_patch::merge(&mut patched, &patch);
    }
    let version: u64 = object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    patched["metadata"]["resourceVersion"] = json!((version + 1).to_string());
    *object = patched;
    true
}

fn refusal(code: u16, reason: &str) -> (u16, Value) {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code});
    (code, status)
}

/// The namespace of all clusters of these tests.
pub(super) const NAMESPACE: &str = "org-giantswarm";

fn path<K: Resource<DynamicType = ()>>(namespace: Option<&str>, name: &str) -> String {
    format!("{}/{name}", K::url_path(&(), namespace))
}

fn azure_cluster(name: &str) -> String {
    path::<AzureCluster>(Some(NAMESPACE), name)
}

/// What a watch of these objects has shown.
pub(super) fn store<K>(objects: impl IntoIterator<Item = K>) -> Store<K>
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    let (reader, mut writer) = reflector::store();
    writer.apply_watcher_event(&Event::Init);
    for object in objects {
        writer.apply_watcher_event(&Event::InitApply(object));
    }
    writer.apply_watcher_event(&Event::InitDone);
    reader
}

pub(super) fn identity_settings() -> IdentitySettings {
    IdentitySettings {
        cloud: AzureCloud::public(),
        http: HttpSettings::new("capz").client().unwrap(),
        gate: Arc::new(NeverOpen),
        federated_token_file: None,
    }
}

/// What the reconciles of AzureClusters work with, once the watch has shown these.
pub(super) fn context(server: &Server, clusters: &[&Sample]) -> Context {
    let identities = Identities::new(identity_settings(), store::<AzureClusterIdentity>([]));
    let settings = Settings {
        management: format!("{NAMESPACE}/mc").parse().unwrap(),
        cloud: PUBLIC_CLOUD,
        gates: Vec::new(),
        deletes_dropped: false,
    };
    let clusters = store(clusters.iter().map(|sample| sample.cluster()));
    let (wake, _) = unbounded_channel();
    let cx = Context::new(server.runtime(), settings, identities, clusters, None, wake);
    Context {
        reference: ReferenceLease::free(),
        ..cx
    }
}

/// A server with these AzureClusters, which a watch has shown too.
pub(super) fn serving(clusters: &[&Sample]) -> (Server, Context) {
    let server = Server::default();
    for sample in clusters {
        server.put::<AzureCluster>(&sample.0);
    }
    let cx = context(&server, clusters);
    (server, cx)
}

/// A management cluster with the entry of `wc`, which its ledger has.
pub(super) fn served() -> Sample {
    let ledger = json!({"wc-api-privatelink-privateendpoint": format!("{NAMESPACE}/wc/uid-wc")});
    management().entries(json!([entry("wc")])).ledger(&ledger.to_string())
}

fn is_held_on(server: &Server) -> bool {
    server.get::<AzureCluster>("wc")["metadata"]["finalizers"] == json!([FINALIZER])
}

#[tokio::test]
async fn cluster_that_is_gone_is_not_written() {
    let new = workload("wc").with("/metadata/finalizers", json!([]));
    for gone in [new, workload("wc"), workload("wc").deleting()] {
        let (server, cx) = serving(&[&management(), &gone]);
        server.remove("wc");
        let ended = workload_cluster::reconcile(&cx, &gone.cluster()).await;
        assert!(ended.as_ref().err().is_none_or(ReconcileError::conflict), "{ended:?}");
        assert_eq!(server.changed(), <[&str; 0]>::default());
    }
}

#[tokio::test]
async fn cluster_of_the_same_name_is_not_the_one_that_is_gone() {
    let gone = workload("wc").deleting();
    let (server, cx) = serving(&[&management(), &gone]);
    server.put::<AzureCluster>(&workload("wc").with("/metadata/uid", json!("uid-new")).0);
    workload_cluster::reconcile(&cx, &gone.cluster()).await.unwrap();
    assert!(is_held_on(&server));
}

#[tokio::test]
async fn cluster_is_held_before_anything_is_made_for_it() {
    let new = workload("wc").with("/metadata/finalizers", json!(["theirs"]));
    let (server, cx) = serving(&[&management(), &new]);
    management_cluster::reconcile(&cx, &management().cluster())
        .await
        .unwrap();
    assert_eq!(server.changed(), <[&str; 0]>::default());
    workload_cluster::reconcile(&cx, &new.cluster()).await.unwrap();
    assert_eq!(server.changed(), ["wc"]);
    let found = server.get::<AzureCluster>("wc");
    assert_eq!(found["metadata"]["finalizers"], json!(["theirs", FINALIZER]));
    assert_eq!(found["spec"], new.0["spec"]);
}

#[tokio::test(start_paused = true)]
async fn cluster_is_held_until_its_entry_is_removed() {
    let deleting = workload("wc").deleting();
    let (server, cx) = serving(&[&served(), &deleting]);
    server.refuse(true);
    management_cluster::reconcile(&cx, &served().cluster())
        .await
        .unwrap_err();
    server.refuse(false);
    let (result, requeue) = workload_cluster::reconcile(&cx, &deleting.cluster()).await.unwrap();
    assert_eq!(result, ReconcileResult::Waiting);
    assert!(requeue.is_some() && is_held_on(&server));

    tokio::time::sleep(BETWEEN_WRITES).await;
    management_cluster::reconcile(&cx, &served().cluster()).await.unwrap();
    let found = server.get::<AzureCluster>("mc");
    assert_eq!(found["metadata"]["annotations"][LEDGER], "{}");
    assert_eq!(
        found["spec"]["networkSpec"]["subnets"][0]["privateEndpoints"],
        json!([])
    );
    workload_cluster::reconcile(&cx, &deleting.cluster()).await.unwrap();
    assert!(!is_held_on(&server));
}

#[tokio::test]
async fn cluster_ends_with_nothing_left_but_itself() {
    let bare = json!({"networkSpec": {"apiServerLB": {"type": "SomethingNew"}}, "azureEnvironment": "AzureChinaCloud"});
    let deleting = workload("wc").deleting().with("/spec", bare);
    let (server, cx) = serving(&[&deleting]);
    workload_cluster::reconcile(&cx, &deleting.cluster()).await.unwrap();
    assert!(!is_held_on(&server));
}

#[tokio::test]
async fn other_operator_that_leads_is_left_to_write() {
    let (new, deleting) = (
        workload("new").with("/metadata/finalizers", json!([])),
        workload("wc").deleting(),
    );
    let ready = workload("ready");
    let (server, mut cx) = serving(&[&management(), &new, &deleting, &ready]);
    cx.reference = ReferenceLease::default();
    for sample in [&new, &deleting, &ready] {
        workload_cluster::reconcile(&cx, &sample.cluster()).await.unwrap();
    }
    management_cluster::reconcile(&cx, &management().cluster())
        .await
        .unwrap();
    assert_eq!(server.changed(), <[&str; 0]>::default());
}

#[tokio::test(start_paused = true)]
async fn clusters_that_come_together_take_two_writes() {
    let all: Vec<Sample> = (0..60).map(|number| workload(&format!("wc-{number}"))).collect();
    let management = management();
    let (server, mut cx) = serving(&[&management]);
    for count in 1..=all.len() {
        // Each is an event of the management cluster too.
        let shown = [&management].into_iter().chain(all.iter().take(count));
        cx.clusters = store(shown.map(Sample::cluster));
        let (_, requeue) = management_cluster::reconcile(&cx, &management.cluster()).await.unwrap();
        let due = requeue.map(|requeue| requeue.after);
        assert_eq!(due, Some(if count == 1 { RESYNC } else { BETWEEN_WRITES }));
    }
    tokio::time::sleep(BETWEEN_WRITES).await;
    management_cluster::reconcile(&cx, &management.cluster()).await.unwrap();
    assert_eq!(server.changed(), ["mc", "mc"]);
    let found = server.get::<AzureCluster>("mc");
    let entries = found["spec"]["networkSpec"]["subnets"][0]["privateEndpoints"].as_array();
    assert_eq!(entries.map(Vec::len), Some(all.len()));
}

pub(super) fn entries_of(server: &Server) -> Value {
    server.get::<AzureCluster>("mc")["spec"]["networkSpec"]["subnets"][0]["privateEndpoints"].clone()
}

#[tokio::test]
async fn entry_of_a_vanished_cluster_is_removed() {
    let (server, cx) = serving(&[&served()]);
    management_cluster::reconcile(&cx, &served().cluster()).await.unwrap();
    assert_eq!(entries_of(&server), json!([]));
    let annotations = &server.get::<AzureCluster>("mc")["metadata"]["annotations"];
    assert_eq!(annotations[LEDGER], "{}");
    let dropped = annotations[DROPPED_ENDPOINTS].as_str().unwrap();
    assert!(dropped.contains("wc-api-privatelink-privateendpoint"), "{dropped}");
}

#[tokio::test]
async fn cluster_of_a_full_namespace_shows_that() {
    let many = |cluster: usize| {
        let link = |number: usize| {
            json!({"name": format!("link-{cluster}-{number}"),
            "allowedSubscriptions": [MANAGEMENT_SUBSCRIPTION]})
        };
        workload(&format!("wc-{cluster}")).links((0..16).map(link).collect())
    };
    let all: Vec<Sample> = [management()].into_iter().chain((10..43).map(many)).collect();
    let (server, cx) = serving(&all.iter().collect::<Vec<_>>());
    management_cluster::reconcile(&cx, &management().cluster())
        .await
        .unwrap();
    assert_eq!(entries_of(&server).as_array().map(Vec::len), Some(512));
    workload_cluster::reconcile(&cx, &all[33].cluster()).await.unwrap();
    let conditions = &server.get::<AzureCluster>("wc-42")["status"]["conditions"];
    assert_eq!(conditions[1]["reason"], "TooManyEndpoints");
}
