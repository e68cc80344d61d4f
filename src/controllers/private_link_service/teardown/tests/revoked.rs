//! A subscription that is revoked while a service is deleted.

use super::*;

/// A service that lets in one who is revoked, while the HostedCluster exists.
fn open_to_one_revoked() -> (PrivateLinkServiceInputs, (String, Value)) {
    let mut hosted = HostedCluster::default();
    let azure = json!({"subnetID": guest("virtualNetworks/v/subnets/default")});
    hosted.spec.platform.azure = serde_json::from_value(azure).unwrap();
    let inputs = PrivateLinkServiceInputs {
        identity: Ok(cluster()),
        own: Some(cluster()),
        connecting: Connecting::of(&hosted),
        ..inputs()
    };
    let lists = json!({"subscriptions": [GUEST, "44444444-4444-4444-8444-444444444444"]});
    let body = json!({"id": management(SERVICE), "tags": tags(),
        "properties": {"provisioningState": "Succeeded", "visibility": lists, "autoApproval": lists}});
    (inputs, (management(SERVICE), body))
}

#[rstest]
#[case::recorded_where_it_may_not_be(|deleting: &mut AzurePrivateLinkService| {
    let elsewhere = management(SERVICE).replace("/mgmt/", "/other/");
    deleting.annotations_mut().insert(HO_INTENT.to_owned(), json!({"cluster": "c", "clusterID": "id", "infraID": "infra",
        "privateLinkServiceID": elsewhere}).to_string());
})]
#[case::the_guests_side_is_first(|deleting: &mut AzurePrivateLinkService| {
    deleting.finalizers_mut().push(CPO_FINALIZER.to_owned());
})]
fn revoked_subscription_is_removed_while_deletion_waits(#[case] waits: fn(&mut AzurePrivateLinkService)) {
    let (inputs, service) = open_to_one_revoked();
    let mut deleting = deleting(json!({}));
    waits(&mut deleting);
    let decision = run(&deleting, &inputs, std::slice::from_ref(&service), &settings());
    assert!(decision.problem.is_some());
    let [step] = &decision.steps[..] else {
        panic!("{:?}", decision.steps)
    };
    let Verb::Put(put) = &step.verb else { panic!("{step:?}") };
    assert_eq!(put["properties"]["visibility"]["subscriptions"], json!([GUEST]));
}

/// A refusal of that write blocks no other.
#[test]
fn revoked_subscription_is_removed_during_disconnection() {
    let (inputs, (at, mut body)) = open_to_one_revoked();
    let connection = management(&format!("{SERVICE}/privateEndpointConnections/theirs.guid"));
    let writes = |body: &Value| -> Vec<(Kind, bool)> {
        let decision = run(
            &deleting(json!({})),
            &inputs,
            &[(at.clone(), body.clone())],
            &settings(),
        );
        let writes = decision.steps.into_iter().filter(Step::writes);
        writes.map(|step| (step.kind, step.verb == Verb::Delete)).collect()
    };
    assert_eq!(
        writes(&body),
        [(Kind::PrivateLinkService, true)],
        "nobody connects to what goes"
    );
    body["properties"]["privateEndpointConnections"] = json!([{"id": connection, "properties": {}}]);
    assert_eq!(
        writes(&body),
        [
            (Kind::PrivateEndpointConnection, true),
            (Kind::PrivateLinkService, false)
        ]
    );
}
