use serde_json::json;

use super::*;

fn pruned(object: &serde_json::Value) -> AzureCluster {
    let mut cluster: AzureCluster = serde_json::from_value(object.clone()).unwrap();
    cluster.prune();
    cluster
}

#[test]
fn records_of_the_management_cluster_stay_whole() {
    let text = "x".repeat(2 * LONGEST_RECORDS);
    let cluster = pruned(
        &json!({"metadata": {"annotations": {LEDGER: text, DROPPED_ENDPOINTS: text, "a": "b"}},
        "spec": {}}),
    );
    let kept = cluster.metadata.annotations.unwrap();
    assert_eq!(kept.values().map(String::len).collect::<Vec<_>>(), [text.len(); 2]);
}

#[test]
fn long_text_is_replaced_by_none_that_is_valid() {
    let long = "a".repeat(100_000);
    let cluster = pruned(
        &json!({"metadata": {}, "spec": {"location": long, "resourceGroup": long,
        "azureEnvironment": long, "subscriptionID": long, "identityRef": {"name": long, "namespace": long},
        "networkSpec": {
            "apiServerLB": {"type": long, "privateLinks": [{"name": long, "allowedSubscriptions": [long]}]},
            "subnets": [{"name": long, "role": long, "privateEndpoints": [{"name": long, "location": long,
                "privateLinkServiceConnections": [{"name": long, "privateLinkServiceID": long,
                    "requestMessage": long}]}]}]}}}),
    );
    let text = format!("{:?}", cluster.spec);
    assert!(!text.contains("aaaa"), "{text}");
    assert_eq!(text.matches(TOO_LONG).count(), 15, "{text}");
    assert!(!crate::capz::links::is_name(TOO_LONG));
}

#[test]
fn of_a_workload_cluster_only_what_is_read_is_kept() {
    let name = |number: usize| json!({"name": format!("e-{number}"), "location": "a".repeat(200)});
    let subnet = json!({"name": "n", "role": "node", "privateEndpoints": (0..5_000).map(name).collect::<Vec<_>>()});
    let subnets: Vec<_> = [subnet].into_iter().chain(vec![json!({"name": "n"}); 300]).collect();
    let annotations = json!({LEDGER: "x".repeat(100_000), DROPPED_ENDPOINTS: "x".repeat(100_000),
        API_SERVER_ADDRESS: "10.0.0.4", GATEWAY_ADDRESS: "x".repeat(100_000)});
    let mut cluster = pruned(&json!({"metadata": {"annotations": annotations,
        "finalizers": vec![FINALIZER; 10_000]}, "spec": {"networkSpec": {"subnets": subnets}}}));
    prune_workload(&mut cluster, |name| name.ends_with("000"));
    let subnets = &cluster.spec.network_spec.subnets;
    assert_eq!((subnets.len(), subnets.capacity()), (OF_WORKLOAD, OF_WORKLOAD));
    let entries = subnets.iter().flat_map(|subnet| subnet.entries());
    let names: Vec<_> = entries.map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["e-1000", "e-2000", "e-3000", "e-4000"]);
    let size = format!("{cluster:?}").len();
    assert!(size < 16 * 1024, "{size}");
    assert!(crate::capz::cluster::is_held(&cluster));
    assert_eq!(cluster.metadata.annotations.unwrap()[API_SERVER_ADDRESS], "10.0.0.4");
}

#[test]
fn subscriptions_that_can_be_none_are_not_kept() {
    let ids = |from: usize| (from..from + 100).map(|id| format!("00000000-0000-0000-0000-{id:012}"));
    let lists = |from| {
        ids(from)
            .chain([String::new(), "x".repeat(36), "*".to_owned()])
            .collect::<Vec<_>>()
    };
    let link = json!({"name": "a", "allowedSubscriptions": lists(0), "autoApprovedSubscriptions": lists(100)});
    let cluster = pruned(&json!({"spec": {"networkSpec": {"apiServerLB": {"privateLinks": [link, link]}}}}));
    let links = &cluster.spec.network_spec.api_server_lb.unwrap().private_links;
    assert_eq!(links[0].allowed_subscriptions, ids(0).collect::<Vec<_>>());
    let kept = links
        .iter()
        .map(|link| link.allowed_subscriptions.len() + link.auto_approved_subscriptions.len());
    assert_eq!(kept.sum::<usize>(), SUBSCRIPTIONS);
}

#[test]
fn texts_of_conditions_are_bounded() {
    let long = "a".repeat(100_000);
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": long, "message": long, "severity": long,
        "lastTransitionTime": long})
    };
    let kinds = [long.as_str(), CONDITION, CONDITION, "PrivateLinksReady"].map(condition);
    let unclear = json!({"type": "B", "status": long});
    let conditions: Vec<_> = kinds.into_iter().chain([unclear]).collect();
    let cluster = pruned(&json!({"status": {"conditions": conditions}}));
    let size = format!("{cluster:?}").len();
    assert!(size < 4 * 1024, "{size}");
    assert!(cluster.condition("PrivateLinksReady").unwrap().is_true());
    let own = cluster
        .conditions()
        .iter()
        .filter(|condition| condition.kind == CONDITION);
    let messages: Vec<_> = own.map(|condition| condition.message.len()).collect();
    assert_eq!(messages, [MESSAGE, 0], "both are there");
}

#[test]
fn of_the_owners_of_a_control_plane_its_cluster_is_kept() {
    let owner = |number: usize| {
        json!({"apiVersion": "v1", "kind": "Cluster", "name": format!("o-{number}"),
        "uid": "u", "controller": number == 700})
    };
    let owners: Vec<_> = (0..1_000).map(owner).collect();
    let object = json!({"metadata": {"name": "wc", "ownerReferences": owners}});
    let mut control_plane: KubeadmControlPlane = serde_json::from_value(object).unwrap();
    control_plane.prune();
    assert_eq!(crate::capz::gates::owner(&control_plane), Some("o-700"));
    assert_eq!(control_plane.metadata.owner_references.unwrap().len(), 1);
}

#[test]
fn lists_of_a_cluster_are_bounded() {
    let entries = vec![json!({"name": "e"}); 5_000];
    let subnet = json!({"name": "n", "privateEndpoints": entries});
    let conditions = vec![json!({"type": "A", "status": "True"}); 5_000];
    let cluster = pruned(
        &json!({"metadata": {}, "spec": {"networkSpec": {"subnets": [subnet, subnet]}},
        "status": {"conditions": conditions}}),
    );
    let kept: Vec<usize> = cluster
        .spec
        .network_spec
        .subnets
        .iter()
        .map(|one| one.entries().len())
        .collect();
    assert_eq!(kept, [ENTRIES, 0]);
    assert_eq!(cluster.conditions().len(), CONDITIONS);
}

#[test]
fn identity_with_a_long_selector_allows_nobody() {
    let values: Vec<String> = (0..1_000).map(|number| number.to_string()).collect();
    let spec = json!({"tenantID": "t".repeat(100_000), "allowedNamespaces": {"selector": {"matchExpressions":
        [{"key": "k", "operator": "In", "values": values}]}}});
    let mut identity: AzureClusterIdentity = serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap();
    identity.prune();
    assert_eq!(identity.spec.allowed_namespaces, None);
    assert_eq!(identity.spec.tenant_id.as_deref(), Some(TOO_LONG));
}
