use std::time::Duration;

use kube::runtime::watcher::Event;
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::whom::{concerned, in_its_namespace};
use super::*;
use crate::api::Role;
use crate::api::markers::CLUSTER_ANNOTATION;
use crate::controllers::azure::access::Context;
use crate::controllers::context::sample::{self, Script};
use crate::controllers::custom_resource::store::CustomResourceStore;
use crate::controllers::samples;
use crate::metrics::Controller as Label;
use crate::runtime::call::ReconcileError;
use crate::runtime::pace::{Cause, Fingerprint};
use crate::runtime::reconcile::ReconcileOutcome;
use crate::runtime::watch::{changes, stored};
use crate::runtime::watch_health::WatchHealth;
use crate::runtime::work_queue::{Action, WorkQueue};

struct Idle;

impl Script for Idle {
    async fn play(
        &self,
        _: &Context,
        cr: AzurePrivateLinkService,
    ) -> Result<ReconcileOutcome<AzurePrivateLinkService>, ReconcileError> {
        Ok(ReconcileOutcome::released(cr))
    }
}

fn object(uid: &str) -> AzurePrivateLinkService {
    let mut cr = samples::cr(json!({}), json!({}));
    cr.metadata.uid = Some(uid.to_owned());
    cr
}

/// The objects of a, b and c of which something is still kept after these events.
fn left_after(events: impl IntoIterator<Item = Event<AzurePrivateLinkService>>) -> Vec<&'static str> {
    let nobody = tower::service_fn(|_: http::Request<kube::client::Body>| {
        std::future::pending::<Result<http::Response<kube::client::Body>, tower::BoxError>>()
    });
    let cx = Arc::new(sample::context(kube::Client::new(nobody, "default")));
    let runner = Arc::new(Runner::new(Idle, cx, Label::PrivateEndpoint));
    let now = Instant::now();
    let all = ["a", "b", "c"];
    let mut handle = forget_gone(&runner);
    for event in [
        Event::Init,
        Event::InitApply(object("a")),
        Event::InitApply(object("b")),
    ] {
        handle(&event);
    }
    for event in [Event::InitDone, Event::Apply(object("c"))] {
        handle(&event);
    }
    for uid in all {
        assert_eq!(
            runner.pacer.begin(("n", "c"), uid, Fingerprint::default(), now),
            Ok(Cause::Change)
        );
        runner
            .pacer
            .finish(uid, Fingerprint::default(), Duration::from_secs(300), now);
    }
    events.into_iter().for_each(|event| handle(&event));
    let is_kept = |uid: &&str| runner.pacer.early(uid, Fingerprint::default(), now).is_some();
    all.into_iter().filter(is_kept).collect()
}

#[tokio::test]
async fn nothing_is_kept_of_what_the_watch_shows_as_gone() {
    assert_eq!(left_after([Event::Delete(object("b"))]), ["a", "c"]);
}

#[tokio::test]
async fn nothing_is_kept_of_what_went_while_the_watch_was_broken() {
    let listed = [
        Event::Init,
        Event::InitApply(object("b")),
        Event::InitApply(object("d")),
        Event::InitDone,
    ];
    assert_eq!(left_after(listed), ["b"]);
    // A list that breaks off shows nothing.
    assert_eq!(
        left_after([Event::Init, Event::InitApply(object("b"))]),
        ["a", "b", "c"]
    );
}

fn control_plane(name: &str) -> HostedControlPlane {
    let metadata = json!({"name": name, "namespace": "n", "uid": name, "generation": 1});
    serde_json::from_value(json!({"metadata": metadata, "spec": {}})).unwrap()
}

#[test]
fn change_around_many_that_are_not_served_wakes_those_that_are() {
    let known = CustomResourceStore::<AzurePrivateLinkService>::new(Role::Cpo);
    known.heard(&Event::Init);
    for number in 0..1_500 {
        let mut cr = object(&number.to_string());
        cr.metadata.name = Some(format!("c{number:04}"));
        cr.metadata.namespace = Some("clusters-example".to_owned());
        let annotation = [(CLUSTER_ANNOTATION.to_owned(), "clusters/example".to_owned())];
        cr.metadata.annotations = Some(annotation.into());
        known.heard(&Event::InitApply(cr));
    }
    known.heard(&Event::InitDone);
    let names = |all: Vec<Arc<AzurePrivateLinkService>>| {
        let mut names: Vec<String> = all.iter().map(|cr| cr.name_any()).collect();
        names.sort();
        names
    };
    let eight: Vec<String> = (0..8).map(|number| format!("c{number:04}")).collect();
    let mut control_plane = control_plane("example");
    control_plane.metadata.namespace = Some("clusters-example".to_owned());
    assert_eq!(names(in_its_namespace(&known, &control_plane)), eight);
    let metadata = json!({"name": "example", "namespace": "clusters"});
    let cluster: HostedCluster = serde_json::from_value(json!({"metadata": metadata, "spec": {}})).unwrap();
    assert_eq!(names(concerned(&known, &ClusterIndex::default(), &cluster)), eight);
}

#[test]
fn cluster_that_changes_wakes_those_that_another_one_had_refused() {
    let known = CustomResourceStore::<AzurePrivateLinkService>::new(Role::Cpo);
    known.heard(&Event::Init);
    known.heard(&Event::InitDone);
    let refused = |reason: &str| {
        let mut cr = object("a");
        let condition = json!({"type": "AzurePLSCreated", "status": "False", "reason": reason, "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        cr.status = serde_json::from_value(json!({"conditions": [condition]})).unwrap();
        cr
    };
    let metadata = json!({"name": "another", "namespace": "clusters"});
    let cluster: HostedCluster = serde_json::from_value(json!({"metadata": metadata, "spec": {}})).unwrap();
    let woken = || concerned(&known, &ClusterIndex::default(), &cluster).len();
    known.heard(&Event::Apply(refused("HostNameClaimed")));
    assert_eq!(woken(), 1);
    known.heard(&Event::Apply(refused("AzureSuccess")));
    assert_eq!(woken(), 0, "it is refused no more");
    known.heard(&Event::Apply(refused("DuplicateIdentity")));
    known.heard(&Event::Delete(refused("DuplicateIdentity")));
    assert_eq!(woken(), 0, "it is gone");
}

#[tokio::test(start_paused = true)]
async fn object_added_while_unwatched_is_reconciled_after_the_list() {
    let (feed, events) = futures::channel::mpsc::unbounded();
    let (reconciles, mut reconciled) = futures::channel::mpsc::unbounded();
    let health = Arc::new(WatchHealth::new(Arc::new(
        crate::metrics::Metrics::new("1", "c").unwrap(),
    )));
    let (_again, again) = tokio::sync::watch::channel(());
    let (reader, planes) = stored(health.observe(Watched::HostedControlPlane, events));
    let scope = Scope {
        namespace: None,
        concurrency: 1,
        stop: CancellationToken::new(),
        again,
        health,
    };
    let queue = WorkQueue::new(changes(planes), reader).reconcile_all_on(scope.changes());
    let reconcile = move |control_plane: Arc<HostedControlPlane>| {
        reconciles.unbounded_send(control_plane.name_any()).unwrap();
        std::future::ready(Action::AwaitChange)
    };
    tokio::spawn(queue.run(scope.stop, reconcile));
    let send = |events: Vec<Event<HostedControlPlane>>| {
        events
            .into_iter()
            .for_each(|event| feed.unbounded_send(Ok(event)).unwrap());
        // In simulated time: everything that can be done has been done by then.
        tokio::time::sleep(Duration::from_secs(10))
    };
    send(vec![
        Event::Init,
        Event::InitApply(control_plane("old")),
        Event::InitDone,
    ])
    .await;
    assert_eq!(reconciled.try_recv().unwrap(), "old");
    send(vec![Event::Init, Event::InitApply(control_plane("new"))]).await;
    assert!(reconciled.try_recv().is_err(), "it is in no store yet");
    send(vec![Event::InitApply(control_plane("old")), Event::InitDone]).await;
    let mut names: Vec<String> = std::iter::from_fn(|| reconciled.try_recv().ok()).collect();
    names.sort();
    assert_eq!(names, ["new", "old"]);
}
