//! Objects that come and go in every order, and a namespace that is deleted at any moment.

use rstest::rstest;

use super::cluster::{HOSTED, PLANE, SERVICE};
use super::*;

const PAUSE: Duration = Duration::from_secs(300);

/// The custom resource was made by hand, before everything else.
#[rstest]
#[case::cluster_first([HOSTED, PLANE, SERVICE])]
#[case::cluster_and_service_first([HOSTED, SERVICE, PLANE])]
#[case::control_plane_first([PLANE, HOSTED, SERVICE])]
#[case::cluster_last([PLANE, SERVICE, HOSTED])]
#[case::service_first([SERVICE, HOSTED, PLANE])]
#[case::service_first_and_cluster_last([SERVICE, PLANE, HOSTED])]
#[tokio::test(start_paused = true)]
async fn path_is_made_and_deleted_in_any_order_of_its_objects(#[case] order: [&str; 3]) {
    let mut life = Life::new();
    let empty = life.remains();
    let objects = order.map(|key| (key, life.cluster.get(key).unwrap()));
    order.iter().for_each(|key| life.cluster.remove(key));
    for (key, object) in objects {
        life.run_for(PAUSE).await;
        assert!(!life.is_available());
        life.cluster.put(key, object);
        life.wake();
    }
    life.until_available().await;
    assert!(life.is_reachable());
    // They go in the order in which they came, and the custom resource last, unless the Service takes it along.
    for key in order {
        life.cluster.remove(key);
        life.wake();
        life.run_for(PAUSE).await;
    }
    if life.cr().is_some() {
        life.deleted().await;
    }
    assert_eq!(life.remains(), empty);
}

/// S22: all in it is deleted at once, after any number of reconciles.
#[rstest]
#[tokio::test(start_paused = true)]
async fn namespace_deleted_at_any_moment_leaves_nothing(#[values(false, true)] is_cluster_gone: bool) {
    for moment in 0.. {
        let mut life = Life::new();
        let empty = life.remains();
        for _ in 0..moment {
            life.reconcile_next().await;
        }
        let is_available = life.is_available();
        let gone = if is_cluster_gone {
            vec![PLANE, SERVICE, HOSTED]
        } else {
            vec![PLANE, SERVICE]
        };
        gone.iter().for_each(|key| life.cluster.remove(key));
        life.deleted().await;
        // What was hidden shows.
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert_eq!(life.remains(), empty, "after {moment} reconciles");
        if is_available {
            assert!(moment > 5, "available after {moment} reconciles");
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn cluster_with_the_id_of_an_older_one_waits_for_its_end() {
    let mut life = Life::new();
    let mut older = life.cluster.get(HOSTED).unwrap();
    older["metadata"]["name"] = json!("older");
    older["metadata"]["uid"] = json!("older");
    older["metadata"]["creationTimestamp"] = json!("2025-01-01T00:00:00Z");
    life.cluster.put("clusters/hostedclusters/older", older);
    life.run_for(PAUSE * 12).await;
    let (status, reason, _) = life.condition("AWSEndpointServiceAvailable");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "DuplicateIdentity"));
    assert!(life.aws.resources("vpc-endpoint-service").is_empty());
    life.cluster.remove("clusters/hostedclusters/older");
    life.wake();
    life.until_available().await;
    assert!(life.is_reachable());
}
