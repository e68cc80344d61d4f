//! Objects around the custom resource that go, or come, or change at an odd moment.

use hyperlink::api::markers::aws::CPO_FINALIZER;
use rstest::rstest;

use super::cluster::{HOSTED, NAMESPACE, PLANE, SERVICE};
use super::*;

fn gone(cluster: &Cluster, key: &str) {
    cluster.remove(key);
}

/// A tenant makes a second one.
fn second_plane(cluster: &Cluster) {
    let mut plane = cluster.get(PLANE).unwrap();
    plane["metadata"]["name"] = json!("second");
    plane["metadata"]["uid"] = json!("second");
    cluster.put("clusters-example/hostedcontrolplanes/second", plane);
}

fn plane_deleted(cluster: &Cluster) {
    cluster.forge(PLANE, &json!({"metadata": {"finalizers": ["x"]}}));
    cluster.delete_at(PLANE, "2026-01-05T12:00:00Z");
}

fn public(cluster: &Cluster) {
    let access = json!({"spec": {"platform": {"aws": {"endpointAccess": "Public"}}}});
    cluster.forge(HOSTED, &access);
    cluster.forge(PLANE, &access);
}

pub(super) fn karpenter(cluster: &Cluster, list: &Value) {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "karpenter-subnets",
        "namespace": NAMESPACE, "uid": "map",
        "labels": {"hypershift.openshift.io/managed-by": "karpenter"}}, "data": {"subnetIDs": list.to_string()}});
    cluster.put("clusters-example/configmaps/karpenter-subnets", map);
}

/// Of what a change ends the path, that is so by itself; else the path holds. Then the custom resource is deleted.
#[rstest]
#[case::service(|cluster: &Cluster| gone(cluster, SERVICE), false)]
#[case::public(public, false)]
#[case::plane_deleted(plane_deleted, false)]
#[case::plane(|cluster: &Cluster| gone(cluster, PLANE), true)]
#[case::second_plane(second_plane, true)]
#[case::hosted(|cluster: &Cluster| gone(cluster, HOSTED), true)]
#[case::node_pools(|cluster: &Cluster| gone(cluster, "clusters/nodepools/a"), true)]
#[case::junk_of_karpenter(|cluster: &Cluster| karpenter(cluster, &json!(vec!["x"; 10_000])), true)]
#[case::no_list_of_karpenter(|cluster: &Cluster| karpenter(cluster, &json!({"a": 1})), true)]
#[case::many_of_karpenter(|cluster: &Cluster| karpenter(cluster, &json!((0..10_000)
    .map(|at| format!("subnet-{at:08x}")).collect::<Vec<_>>())), true)]
#[tokio::test(start_paused = true)]
async fn nothing_is_left_whatever_changes_first(
    #[case] change: fn(&Cluster),
    #[case] holds: bool,
    #[values(false, true)] deleted_at_once: bool,
) {
    let mut life = Life::new();
    let empty = life.remains();
    life.until_available().await;
    life.aws.clear_journal();
    change(&life.cluster);
    life.wake();
    if !deleted_at_once {
        life.run_for(Duration::from_secs(1_800)).await;
        assert_eq!(
            life.is_reachable(),
            holds,
            "{:#}",
            life.cluster.get(CR).unwrap_or_default()
        );
        assert!(holds || !life.is_available(), "what is not there is not available");
    }
    if life.cr().is_some() {
        life.deleted().await;
    }
    let calls = life.aws.journal().len();
    assert!(calls <= 140, "{calls} calls");
    assert_eq!(life.remains(), empty);
}

/// It is deleted at once, because the management side does not hold it, and the guest's side goes first all the same.
#[tokio::test(start_paused = true)]
async fn custom_resource_of_the_guests_side_alone_in_a_public_cluster() {
    let mut life = Life::new();
    life.until_available().await;
    life.cluster
        .forge(CR, &json!({"metadata": {"finalizers": [CPO_FINALIZER]}}));
    public(&life.cluster);
    life.wake();
    life.cluster.take_events();
    life.run_for(Duration::from_secs(1_800)).await;
    assert!(life.cr().is_none(), "{:#}", life.cluster.get(CR).unwrap());
    // What the management side made is left, as wherever somebody removes its finalizer.
    let is_of_guest = |id: &&String| !id.contains("/vpce-svc-");
    assert_eq!(life.remains().iter().find(is_of_guest), None);
    let events = life.cluster.take_events();
    let note = "private-router is deleted: the cluster is not private";
    let count = events.iter().filter(|event| *event == note).count();
    assert_eq!(count, 2, "of the custom resource and of its HostedCluster: {events:?}");
}
