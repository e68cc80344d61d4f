//! Which AzureClusters an event concerns, and what the reconcile of each is.

use futures::future;

use super::*;
use crate::api::markers::capz::FINALIZER;
use crate::capz::samples::{MANAGEMENT_SUBSCRIPTION, Sample, WORKLOAD_SUBSCRIPTION, entry, management, workload};
use crate::controllers::capz::tests::{Server, context, served, serving};

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

/// One permit for what reads Azure, and one for what does not.
fn limits() -> [ConcurrencyLimit; 2] {
    [(); 2].map(|()| ConcurrencyLimit::new(Label::AzureCluster, 1))
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_azure_holds_up_nothing_else() {
    let (own, deleting, held) = (served(), workload("gone").deleting(), workload("wc"));
    let new = workload("new").with("/metadata/finalizers", serde_json::json!([]));
    let (_, cx) = serving(&[&own, &deleting, &held, &new]);
    let (cx, [with_azure, without]) = (Arc::new(cx), limits());
    let waits = with_azure.take(&cx.runtime.metrics, Requester::of("other"), future::pending::<()>);
    let mut waits = std::pin::pin!(waits);
    assert!(futures::poll!(&mut waits).is_pending());
    let reconciled = async |cluster: &Sample| {
        let (cx, cluster) = (Arc::clone(&cx), cluster.cluster());
        let reconcile = admitted(&cx, &cluster, [&with_azure, &without]);
        tokio::time::timeout(std::time::Duration::from_secs(60), reconcile)
            .await
            .is_ok()
    };
    for cluster in [&own, &deleting, &new] {
        assert!(reconciled(cluster).await, "{:?}", cluster.0["metadata"]);
    }
    assert!(!reconciled(&held).await);
}

#[tokio::test]
async fn management_cluster_is_never_served_as_a_workload_cluster() {
    // It has all that a workload cluster would be held and served for.
    let mut own = workload("mc").with("/metadata/finalizers", serde_json::json!([]));
    own.0["spec"]["subscriptionID"] = management().0["spec"]["subscriptionID"].clone();
    let server = Server::default();
    server.put::<AzureCluster>(&own.0);
    let cx = Arc::new(context(&server, &[&own]));
    let [first, second] = limits();
    let limits = [&first, &second];
    assert!(matches!(
        admitted(&cx, &own.cluster(), limits).await,
        Action::Requeue(_)
    ));
    assert_eq!(server.get::<AzureCluster>("mc"), own.0);

    let held = workload("wc").with("/metadata/finalizers", serde_json::json!([FINALIZER]));
    server.put::<AzureCluster>(&held.0);
    let cx = Arc::new(context(&server, &[&own, &held]));
    admitted(&cx, &own.cluster(), limits).await;
    let found = server.get::<AzureCluster>("mc");
    assert_eq!(found["metadata"]["finalizers"], own.0["metadata"]["finalizers"]);
    assert_eq!(found["status"], own.0["status"]);
    assert_eq!(server.changed(), ["mc"], "its entry alone");
}

/// An entry of a workload cluster for the way to the gateway, as it was in another region.
fn way() -> serde_json::Value {
    let mut way = entry("mc");
    let connection = &mut way["privateLinkServiceConnections"][0];
    let id = connection["privateLinkServiceID"].as_str().unwrap();
    let id = id.replace(WORKLOAD_SUBSCRIPTION, MANAGEMENT_SUBSCRIPTION);
    connection["privateLinkServiceID"] = id.replace("mc-api-privatelink", "mc-gateway-privatelink").into();
    connection["name"] = "wc-to-mc-gateway-connection".into();
    way["name"] = "wc-to-mc-gateway-privateendpoint".into();
    way["location"] = "eastus".into();
    way
}

#[tokio::test]
async fn entry_that_is_not_kept_keeps_its_position_in_a_patch() {
    let theirs = serde_json::json!({"name": "theirs", "location": "eastus"});
    let whole = workload("wc").entries(serde_json::json!([theirs, way()]));
    let (own, mut kept) = (management().cluster(), whole.cluster());
    let mut unchanged = own.clone();
    keep_read(&mut kept, &reference(&own));
    keep_read(&mut unchanged, &reference(&own));
    assert_eq!(unchanged, own);
    let entries = |cluster: &AzureCluster| cluster.spec.network_spec.subnets[0].entries().to_vec();
    assert_eq!(entries(&kept), entries(&whole.cluster())[1..]);

    let (server, cx) = serving(&[&management(), &whole]);
    workload_cluster::reconcile(&cx, &kept).await.unwrap();
    let mut repaired = way();
    repaired["location"] = "westeurope".into();
    let found = &server.get::<AzureCluster>("wc")["spec"]["networkSpec"]["subnets"][0]["privateEndpoints"];
    assert_eq!(*found, serde_json::json!([theirs, repaired]));
}
