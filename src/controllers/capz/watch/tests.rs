//! Which AzureClusters an event concerns, and what the reconcile of each is.

use super::*;
use crate::api::markers::capz::FINALIZER;
use crate::capz::samples::{Sample, management, workload};
use crate::controllers::capz::tests::{Server, context};

fn concerned_by(cx: &Context, cluster: &Sample) -> Vec<String> {
    let all = concerned(cx, &cluster.cluster()).into_iter();
    all.map(|object| object.name).collect()
}

#[tokio::test]
async fn event_of_one_cluster_is_no_other_workload_clusters() {
    let (own, first, second) = (management(), workload("wc-1"), workload("wc-2"));
    let server = Server::default();
    let cx = context(&server, &[&own, &first, &second]);
    assert_eq!(concerned_by(&cx, &own), ["mc"]);
    assert_eq!(concerned_by(&cx, &first), ["mc", "wc-1"]);
    let mut all = concerned_by(&context(&server, &[&first, &second]), &own);
    all.sort();
    assert_eq!(all, ["wc-1", "wc-2"], "it is gone");
}

#[tokio::test]
async fn management_cluster_is_never_served_as_a_workload_cluster() {
    // It has all that a workload cluster would be held and served for.
    let mut own = workload("mc").with("/metadata/finalizers", serde_json::json!([]));
    own.0["spec"]["subscriptionID"] = management().0["spec"]["subscriptionID"].clone();
    let server = Server::default();
    server.put::<AzureCluster>(&own.0);
    let cx = Arc::new(context(&server, &[&own]));
    let limit = ConcurrencyLimit::new(Label::AzureCluster, 1);
    assert!(matches!(
        admitted(&cx, &own.cluster(), &limit).await,
        Action::Requeue(_)
    ));
    assert_eq!(server.get::<AzureCluster>("mc"), own.0);

    let held = workload("wc").with("/metadata/finalizers", serde_json::json!([FINALIZER]));
    server.put::<AzureCluster>(&held.0);
    let cx = Arc::new(context(&server, &[&own, &held]));
    admitted(&cx, &own.cluster(), &limit).await;
    let found = server.get::<AzureCluster>("mc");
    assert_eq!(found["metadata"]["finalizers"], own.0["metadata"]["finalizers"]);
    assert_eq!(found["status"], own.0["status"]);
    assert_eq!(server.changed(), ["mc"], "its entry alone");
}
