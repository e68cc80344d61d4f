//! Looks at an API server that answers from a table.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;
use crate::leader::LeaseTimes;
use crate::leader::tests::within;

type Told = Option<BTreeSet<String>>;

fn lease(namespace: &str, name: &str) -> Value {
    json!({"metadata": {"namespace": namespace, "name": name}, "spec": {"holderIdentity": "other",
        "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}})
}

/// One lease in a namespace of its own, and one beside that of all namespaces.
fn answer(path: &str, query: &str) -> Value {
    let items = match path.strip_prefix("/apis/coordination.k8s.io/v1/") {
        Some("leases") if query.contains("metadata.name%3Dhyperlink-cpo") => {
            vec![lease("clusters-one", "hyperlink-cpo")]
        }
        Some("namespaces/hyperlink/leases") => vec![lease("hyperlink", "hyperlink-cpo-clusters-two")],
        _ => vec![],
    };
    json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items})
}

/// What is told, while the API server answers.
fn told(answers: &Arc<AtomicBool>) -> UnboundedReceiver<Told> {
    let answers = Arc::clone(answers);
    let server = tower::service_fn(move |request: Request<Body>| {
        let body = answer(request.uri().path(), request.uri().query().unwrap_or_default());
        let status = if answers.load(Ordering::SeqCst) {
            StatusCode::OK
        } else {
            StatusCode::INTERNAL_SERVER_ERROR
        };
        let response = Response::builder()
            .status(status)
            .body(Body::from(body.to_string().into_bytes()));
        async move { Ok::<_, tower::BoxError>(response?) }
    });
    let settings = LeaseSettings {
        name: "hyperlink-cpo".into(),
        namespace: "hyperlink".into(),
        identity: "me".into(),
        times: LeaseTimes {
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(1),
            retry: Duration::from_millis(50),
        },
    };
    let (sender, receiver) = unbounded_channel();
    let client = Client::new(server, "hyperlink");
    tokio::spawn(survey(client, settings, move |told| drop(sender.send(told))));
    receiver
}

fn both() -> Told {
    Some(["clusters-one", "clusters-two"].map(str::to_owned).into())
}

#[tokio::test]
async fn leases_are_found_in_their_namespaces_and_beside_that_of_all() {
    let mut told = told(&Arc::new(AtomicBool::new(true)));
    assert_eq!(within(30, told.recv()).await, Some(both()));
}

#[tokio::test]
async fn leases_that_cannot_be_listed_any_more_are_soon_unknown_and_never_absent() {
    let answers = Arc::new(AtomicBool::new(true));
    let mut told = told(&answers);
    assert_eq!(within(30, told.recv()).await, Some(both()));
    answers.store(false, Ordering::SeqCst);
    let unknown = async {
        while let Some(known) = told.recv().await.unwrap() {
            assert_eq!(Some(known), both());
        }
    };
    within(30, unknown).await;
}
