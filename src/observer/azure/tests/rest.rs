//! A cluster at rest, and what others change of it.

use super::*;

#[tokio::test]
async fn nothing_is_written_at_rest() {
    let (cluster, external) = at_rest();
    let env = TestEnv::with(cluster, holding(&external));
    assert_eq!(env.reconcile().await, Action::AwaitChange);
    assert_eq!((env.written(), env.notes()), (vec![], vec![]));
}

#[tokio::test]
async fn external_service_is_judged_as_it_is_and_not_as_it_was() {
    let (mut cluster, external) = at_rest();
    // The cache does not show it yet.
    cluster.objects.insert(EXTERNAL.into(), external.clone());
    let env = TestEnv::new(cluster);
    assert_eq!(env.reconcile().await, Action::AwaitChange);
    assert_eq!(env.written(), [""; 0]);
    // The cache shows a deleted one, and somebody else's has come in its place.
    let (mut cluster, external) = at_rest();
    let mut wrong = external.clone();
    wrong["spec"]["externalName"] = json!("192.0.2.1");
    let mut theirs = wrong.clone();
    theirs["metadata"]["ownerReferences"] = json!([]);
    cluster.objects.insert(EXTERNAL.into(), theirs);
    let env = TestEnv::with(cluster, holding(&wrong));
    assert_eq!(env.reconcile().await, resync());
    assert_eq!(env.written(), [""; 0]);
}

#[tokio::test]
async fn refused_cluster_publishes_nothing() {
    let (mut cluster, _) = at_rest();
    let custom = cluster.objects.get_mut(&format!("{CUSTOM}/private-router")).unwrap();
    custom["status"]["conditions"][0]["status"] = json!("False");
    let env = TestEnv::new(cluster);
    assert_eq!(env.reconcile().await, Action::AwaitChange);
    assert_eq!(env.written(), [""; 0]);
}

#[tokio::test]
async fn paused_cluster_is_left_alone_until_the_pause_ends() {
    let (mut cluster, external) = at_rest();
    let hcp = cluster.objects.get_mut("hostedcontrolplanes/example").unwrap();
    hcp["spec"]["pausedUntil"] = json!("9999-12-31T23:59:59Z");
    hcp["spec"]["services"] = json!([]);
    cluster.objects.insert(EXTERNAL.into(), external.clone());
    let env = TestEnv::with(cluster, holding(&external));
    let action = env.reconcile().await;
    assert_eq!(env.written(), [""; 0]);
    // The end of the pause is waited for, by the clock.
    assert_ne!(action, Action::AwaitChange);
    assert_ne!(action, resync());
}
