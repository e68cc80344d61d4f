use std::sync::Mutex;

use http::{Request, Response};
use kube::client::Body;
use serde_json::json;
use tower::BoxError;

use super::reports::guest_lock;
use super::waits::slow_down;
use super::*;
use crate::api::Reason;
use crate::controllers::context::sample;
use crate::controllers::samples;
use crate::hypershift::problem::Problem;

#[tokio::test]
async fn guest_lock_is_reported_once_on_the_hosted_cluster() {
    let paths = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&paths);
    let server = tower::service_fn(move |request: Request<Body>| {
        recorded.lock().unwrap().push(request.uri().path().to_owned());
        async { Ok::<_, BoxError>(Response::builder().status(201).body(Body::from(b"{}".to_vec()))?) }
    });
    let cx = sample::context(kube::Client::new(server, "default"));
    let condition = json!({"type": "AzurePrivateDNSAvailable", "status": "False", "reason": "ScopeLocked", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let mut cr = samples::cr(json!({"conditions": [condition]}), json!({}));
    let hosted = ObjectReference {
        namespace: Some("clusters".to_owned()),
        name: Some("example".to_owned()),
        ..ObjectReference::default()
    };
    guest_lock(&cx, &cr, Some(&hosted)).await;
    assert_eq!(*paths.lock().unwrap(), [""; 0], "it is not deleted");
    cr.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    for _ in 0..3 {
        guest_lock(&cx, &cr, Some(&hosted)).await;
    }
    assert_eq!(
        *paths.lock().unwrap(),
        ["/apis/events.k8s.io/v1/namespaces/clusters/events"]
    );
}

#[test]
fn endpoint_is_missed_by_two_reads_some_seconds_apart() {
    let (remembered, now) = (Remembered::default(), Instant::now());
    let reports = |seconds: u64, reason| {
        let mut decision = Decision::stuck(Problem::new(reason, "x"));
        remembered.confirm_missing("u", &mut decision, now + Duration::from_secs(seconds));
        decision.problem.is_some()
    };
    let missing = Reason::EndpointNotConnected;
    assert!(!reports(0, missing) && !reports(4, missing) && reports(5, missing));
    assert!(reports(6, Reason::NotOurs));
    assert!(!reports(7, missing), "it was connected between");
}

#[tokio::test(start_paused = true)]
async fn frontend_that_does_not_come_is_asked_for_ever_less_often() {
    let nobody = tower::service_fn(|_: Request<Body>| std::future::pending::<Result<Response<Body>, BoxError>>());
    let cx = sample::context(kube::Client::new(nobody, "default"));
    let again = |reason| {
        let problem = Problem::new(reason, "x").requeue_after(Duration::from_secs(10));
        let mut decision = Decision::stuck(problem);
        cx.polls.change("u");
        slow_down(&cx, "u", "10.0.0.4", &mut decision);
        decision.requeue.map(|requeue| requeue.after).unwrap()
    };
    let mut waits = Vec::new();
    for _ in 0..7 {
        let wait = again(Reason::WaitingForLoadBalancer);
        waits.push(wait.as_secs());
        tokio::time::sleep(wait).await;
    }
    assert_eq!(waits, [10, 10, 20, 40, 80, 160, 300]);
    assert_eq!(
        again(Reason::ILBLookupFailed).as_secs(),
        10,
        "Azure's refusals have their own waits"
    );
    assert_eq!(again(Reason::AmbiguousLoadBalancer).as_secs(), 10, "it begins anew");
}

#[tokio::test]
async fn forged_locks_fill_no_other_namespace() {
    let count = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&count);
    let server = tower::service_fn(move |_: Request<Body>| {
        *counted.lock().unwrap() += 1;
        async { Ok::<_, BoxError>(Response::builder().status(201).body(Body::from(b"{}".to_vec()))?) }
    });
    let cx = sample::context(kube::Client::new(server, "default"));
    let condition = |reason: &str| {
        json!({"type": "AzurePrivateDNSAvailable", "status": "False", "reason": reason, "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let hosted = ObjectReference {
        namespace: Some("clusters".to_owned()),
        name: Some("example".to_owned()),
        ..ObjectReference::default()
    };
    for _ in 0..100 {
        for reason in ["ScopeLocked", "Deleting"] {
            let mut cr = samples::cr(json!({"conditions": [condition(reason)]}), json!({}));
            cr.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
            guest_lock(&cx, &cr, Some(&hosted)).await;
        }
    }
    let written = *count.lock().unwrap();
    assert!(
        written <= 25,
        "{written} Events on the HostedCluster by one custom resource"
    );
}
