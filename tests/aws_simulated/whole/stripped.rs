//! HyperShift takes the finalizer of role `cpo` away: the guest's side goes all the same, or what stays is named.

use hyperlink::api::markers::aws::{CPO_FINALIZER, HO_FINALIZER};
use rstest::rstest;

use super::cluster::{HOSTED, PLANE};
use super::*;
use crate::sim::fault;
use crate::strangers::live;

/// S21: HyperShift takes the finalizer away while the endpoint is being deleted.
#[tokio::test(start_paused = true)]
async fn stripped_finalizer_leaves_neither_group_nor_records() {
    let mut life = Life::new();
    let empty = life.remains();
    life.until_available().await;
    life.cluster.delete_at(CR, &Timestamp::now().to_string());
    while live(&life.aws, "vpc-endpoint").len() == 1 {
        life.reconcile_next().await;
    }
    assert!(life.remains().len() > empty.len());
    let mut held = life.cr().unwrap().metadata.finalizers.unwrap_or_default();
    held.retain(|one| one != CPO_FINALIZER);
    life.cluster.forge(CR, &json!({"metadata": {"finalizers": held}}));
    let began = life.aws.elapsed();
    life.run_for(Duration::from_secs(3_600)).await;
    assert!(life.cr().is_none());
    assert_eq!(life.remains(), empty);
    assert!(life.aws.elapsed() - began < 400, "{} s", life.aws.elapsed() - began);
}

/// The same where nothing but role `cpo` knows whose the path is: its endpoint service stays, as nothing proves more.
#[tokio::test(start_paused = true)]
async fn guests_side_is_deleted_though_nothing_names_it() {
    let mut life = Life::new();
    life.until_available().await;
    life.cluster.remove(HOSTED);
    life.cluster.remove(PLANE);
    life.wake();
    let unnamed = json!({"metadata": {"finalizers": [HO_FINALIZER],
        "annotations": {"hyperlink.hypershift.openshift.io/ho-intent": null}}});
    life.cluster.forge(CR, &unnamed);
    life.cluster.delete_at(CR, &Timestamp::now().to_string());
    let group = life.cr().unwrap().status.unwrap().security_group_id.unwrap();
    life.run_for(Duration::from_secs(3_600)).await;
    assert!(life.cr().is_none());
    assert_eq!(live(&life.aws, "vpc-endpoint"), Vec::<Value>::new());
    assert!(
        !life.remains().iter().any(|id| id.contains(&group)),
        "{:?}",
        life.remains()
    );
}

/// S21, S22: role `cpo` may not delete the security group, or runs no more.
#[rstest]
#[case::group_is_denied(true)]
#[case::guests_side_runs_no_more(false)]
#[tokio::test(start_paused = true)]
async fn what_stays_without_a_finalizer_is_named_by_its_id(#[case] runs: bool) {
    let mut life = Life::new();
    life.until_available().await;
    let denied = json!({"status": 403, "code": "UnauthorizedOperation"});
    life.aws.set_faults(&fault("/DeleteSecurityGroup$", 1_000, &denied));
    let group = life.cr().unwrap().status.unwrap().security_group_id.unwrap();
    let long_ago = Timestamp::now() - jiff::SignedDuration::from_mins(11);
    life.cluster.delete_at(CR, &long_ago.to_string());
    let mut held = life.cr().unwrap().metadata.finalizers.unwrap_or_default();
    held.retain(|one| one != CPO_FINALIZER);
    life.cluster.forge(CR, &json!({"metadata": {"finalizers": held}}));
    life.cluster.take_events();
    if !runs {
        life.without(Role::Cpo);
    }
    life.run_for(Duration::from_secs(3_600)).await;
    assert!(life.cr().is_none(), "{:#}", life.cluster.get(CR).unwrap());
    let events = life.cluster.take_events();
    let named = events
        .iter()
        .filter(|note| note.contains("guest's side may be left") && note.contains(&group));
    assert_eq!(
        named.count(),
        2,
        "on the custom resource and on the HostedCluster: {events:?}"
    );
    assert!(
        !events.iter().any(|note| note.contains("nothing of ours is left")),
        "{events:?}"
    );
}
