//! Single answers that are wrong, or behind, about what is there.

use rstest::rstest;

use super::*;
use crate::strangers::live;

#[rstest]
#[case::endpoint("vpc-endpoint", "failed")]
#[case::rejected_endpoint("vpc-endpoint", "rejected")]
#[case::endpoint_service("vpc-endpoint-service", "failed")]
#[tokio::test(start_paused = true)]
async fn state_that_one_read_shows_replaces_nothing(#[case] kind: &str, #[case] state: &str) {
    let mut life = Life::new();
    life.until_available().await;
    life.aws.clear_journal();
    let before = live(&life.aws, kind).remove(0);
    life.put_into_state(kind, state);
    let reads = |life: &Life| life.aws.journal().len();
    life.restart(Role::Ho);
    life.restart(Role::Cpo);
    life.wake();
    while reads(&life) < 3 {
        life.reconcile_next().await;
    }
    life.aws.change(before, |_| {});
    life.run_for(Duration::from_secs(1_800)).await;
    assert_eq!(life.aws.writes(), Vec::<String>::new());
    assert!(life.is_available() && life.is_reachable());
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn endpoint_whose_tags_show_late_is_never_a_strangers(#[values(false, true)] is_deleted: bool) {
    let mut life = Life::with(|seed| seed["switches"] = json!({"tag_lag_s": 50.0}));
    let empty = life.remains();
    while life.calls_of("CreateVpcEndpoint").is_empty() {
        life.reconcile_next().await;
    }
    life.restart(Role::Cpo);
    if is_deleted {
        life.deleted().await;
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert_eq!(life.remains(), empty);
        return;
    }
    while !life.is_available() {
        life.reconcile_next().await;
        let (_, reason, message) = life.condition("AWSEndpointAvailable");
        assert_ne!(reason, "NotOurs", "{message}");
    }
    assert_eq!(life.calls_of("CreateVpcEndpoint").len(), 1);
}

/// Describe calls show a change of the endpoint three quarters of a minute later.
#[tokio::test(start_paused = true)]
async fn change_that_shows_late_is_sent_once() {
    let mut life = Life::new();
    life.until_available().await;
    life.run_for(Duration::from_secs(300)).await;
    life.aws.clear_journal();
    let before = live(&life.aws, "vpc-endpoint").remove(0);
    let mut pool = life.cluster.get("clusters/nodepools/a").unwrap();
    pool["metadata"]["name"] = json!("b");
    pool["metadata"]["uid"] = json!("pool-b");
    pool["spec"]["platform"]["aws"]["subnet"]["id"] = json!("subnet-00000002");
    life.cluster.put("clusters/nodepools/b", pool);
    life.wake();
    while life.calls_of("ModifyVpcEndpoint").is_empty() {
        life.reconcile_next().await;
    }
    let changed = live(&life.aws, "vpc-endpoint").remove(0);
    life.aws.change(before, |_| {});
    life.stays_available_for(Duration::from_secs(40)).await;
    life.aws.change(changed, |_| {});
    life.stays_available_for(Duration::from_secs(900)).await;
    assert_eq!(life.calls_of("ModifyVpcEndpoint").len(), 1);
}
