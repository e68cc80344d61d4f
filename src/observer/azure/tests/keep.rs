//! Existing objects that are left, changed or deleted.

use rstest::rstest;

use super::*;

#[tokio::test]
async fn custom_resource_under_deletion_is_left_until_it_is_gone() {
    let (mut cluster, external) = at_rest();
    cluster.objects.get_mut("services/oauth-openshift").unwrap()["status"] =
        json!({"loadBalancer": {"ingress": [{"ip": "10.1.0.9"}]}});
    let custom = cluster.objects.get_mut(&format!("{CUSTOM}/oauth-openshift")).unwrap();
    custom["metadata"]["deletionTimestamp"] = json!("2026-08-22T10:00:00Z");
    let env = TestEnv::with(cluster, holding(&external));
    assert_eq!(env.reconcile().await, Action::AwaitChange);
    assert_eq!((env.written(), env.notes()), (vec![], vec![]));
}

#[tokio::test]
async fn foreign_custom_resource_is_left_and_reported() {
    let (mut cluster, external) = at_rest();
    let custom = cluster.objects.get_mut(&format!("{CUSTOM}/oauth-openshift")).unwrap();
    custom["metadata"]["ownerReferences"] = json!([]);
    let env = TestEnv::with(cluster, holding(&external));
    assert_eq!(env.reconcile().await, resync());
    let note = "oauth-openshift: the custom resource does not belong to the HostedControlPlane: delete it, and it is made anew";
    assert_eq!(env.notes(), [note]);
    assert_eq!(env.written(), [""; 0]);
}

#[tokio::test]
async fn complaints_are_reported_beside_what_is_kept() {
    let (mut cluster, external) = at_rest();
    let hcp = cluster.objects.get_mut("hostedcontrolplanes/example").unwrap();
    hcp["spec"]["pausedUntil"] = json!("tomorrow");
    let env = TestEnv::with(cluster, holding(&external));
    assert_eq!(env.reconcile().await, resync());
    let notes = env.notes();
    assert!(notes[0].contains("pausedUntil is neither"), "{notes:?}");
    assert_eq!(notes.len(), SERVICES.len());
}

#[tokio::test]
async fn host_name_is_withdrawn_only_as_it_was_read() {
    let (mut cluster, mut external) = at_rest();
    external["metadata"]["uid"] = json!("u");
    external["metadata"]["resourceVersion"] = json!("7");
    cluster.objects.insert(EXTERNAL.into(), external.clone());
    let hcp = cluster.objects.get_mut("hostedcontrolplanes/example").unwrap();
    hcp["spec"]["services"][0]["servicePublishingStrategy"]["route"] = json!({});
    let env = TestEnv::with(cluster, holding(&external));
    assert_eq!(env.reconcile().await, Action::AwaitChange);
    let written = std::mem::take(&mut env.cluster.lock().unwrap().written);
    let [(method, object, body)] = written.as_slice() else {
        panic!("{written:?}");
    };
    assert_eq!((method, object.as_str()), (&Method::DELETE, EXTERNAL));
    assert_eq!(body["preconditions"], json!({"uid": "u", "resourceVersion": "7"}));
}

/// A cluster whose control plane names a host that another cluster has, which role `ho` has reported.
fn claimed() -> (Cluster, Value) {
    let (mut cluster, external) = at_rest();
    cluster.objects.insert(EXTERNAL.into(), external.clone());
    let custom = cluster.objects.get_mut(&format!("{CUSTOM}/private-router")).unwrap();
    let conditions = custom["status"]["conditions"].as_array_mut().unwrap();
    conditions.push(
        json!({"type": "AzurePLSCreated", "status": "False", "reason": "HostNameClaimed", "message": "",
        "lastTransitionTime": "2026-08-22T10:00:00Z"}),
    );
    (cluster, external)
}

#[rstest]
#[case::before_the_guests_side_follows("True", json!(null))]
#[case::when_the_guests_side_has_followed("False", json!(null))]
#[case::of_a_cluster_that_was_paused_since("True", json!("true"))]
#[tokio::test]
async fn host_name_that_another_cluster_has_is_withdrawn(#[case] endpoint: &str, #[case] paused: Value) {
    let (mut cluster, external) = claimed();
    let custom = cluster.objects.get_mut(&format!("{CUSTOM}/private-router")).unwrap();
    custom["status"]["conditions"][0]["status"] = json!(endpoint);
    cluster.objects.get_mut("hostedcontrolplanes/example").unwrap()["spec"]["pausedUntil"] = paused;
    let env = TestEnv::with(cluster, holding(&external));
    env.reconcile().await;
    assert_eq!(env.written(), [format!("DELETE {EXTERNAL}")]);
}

#[tokio::test]
async fn host_name_stays_while_the_endpoint_is_briefly_unavailable() {
    let (mut cluster, external) = at_rest();
    cluster.objects.insert(EXTERNAL.into(), external.clone());
    let custom = cluster.objects.get_mut(&format!("{CUSTOM}/private-router")).unwrap();
    custom["status"]["conditions"][0]["status"] = json!("False");
    let env = TestEnv::with(cluster, holding(&external));
    env.reconcile().await;
    assert_eq!(env.written(), [""; 0]);
}
