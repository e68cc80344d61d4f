use rstest::rstest;
use serde_json::json;

use super::*;

const A: &str = "aaaaaaaa-0000-4000-8000-000000000000";
const B: &str = "bbbbbbbb-0000-4000-8000-000000000000";

fn file(entries: &str) -> String {
    format!("managementScopes:\n{entries}")
}

fn entry(subscription: &str, group: &str, rest: &str) -> String {
    format!("- {{subscription: {subscription}, resourceGroup: {group}, {rest}}}\n")
}

fn cluster(name: &str, labels: serde_json::Value) -> HostedCluster {
    let metadata = json!({"namespace": "clusters", "name": name, "labels": labels});
    serde_json::from_value(json!({"metadata": metadata, "spec": {}})).unwrap()
}

fn group_of(scopes: &ManagementScopes, cluster: &HostedCluster) -> Result<String, String> {
    let scope = scopes.of(cluster).map(|scope| scope.resource_group.clone());
    scope.map_err(|problem| problem.message)
}

#[test]
fn name_precedes_labels_and_these_precede_the_namespace() {
    let text = file(
        &(entry(A, "all", "hostedClusters: [{namespace: clusters}]")
            + &entry(A, "labelled", "hostedClusterLabels: {tier: gold, zone: one}")
            + &entry(B, "named", "hostedClusters: [{namespace: clusters, names: [a, b]}]")),
    );
    let scopes = ManagementScopes::parse(&text).unwrap();
    let gold = json!({"tier": "gold", "zone": "one", "more": "x"});
    let group = |name: &str, labels| group_of(&scopes, &cluster(name, labels)).unwrap();
    assert_eq!(group("a", gold.clone()), "named");
    assert_eq!(group("c", gold), "labelled");
    assert_eq!(group("c", json!({"tier": "gold"})), "all");
    assert_eq!(group("c", json!({})), "all");
}

#[test]
fn cluster_without_an_entry_is_in_the_default_or_refused() {
    let named = file(&entry(
        A,
        "named",
        "hostedClusters: [{namespace: clusters, names: [a]}]",
    ));
    let scopes = ManagementScopes::parse(&named).unwrap();
    let other = cluster("b", json!({}));
    let refused = "no management scope is for HostedCluster clusters/b";
    assert_eq!(group_of(&scopes, &other), Err(refused.into()));
    let default = ManagementScope {
        subscription: SubscriptionId::parse(B).unwrap(),
        resource_group: "usual".into(),
    };
    let scopes = scopes.with_default(default.clone());
    assert_eq!(group_of(&scopes, &other), Ok("usual".into()));
    assert_eq!(
        group_of(&ManagementScopes::default().with_default(default), &other),
        Ok("usual".into())
    );
}

#[test]
fn labels_that_fit_two_scopes_are_refused_and_name_both() {
    let text = |other: &str| {
        file(&(entry(A, "one", "hostedClusterLabels: {a: x}") + &entry(A, other, "hostedClusterLabels: {b: x}")))
    };
    let both = cluster("c", json!({"a": "x", "b": "x"}));
    let scopes = ManagementScopes::parse(&text("two")).unwrap();
    let problem = group_of(&scopes, &both).unwrap_err();
    assert!(problem.contains("resourceGroups/one and /subscriptions/"), "{problem}");
    let same = ManagementScopes::parse(&text("ONE")).unwrap();
    assert_eq!(group_of(&same, &both), Ok("one".into()));
}

#[test]
fn each_scope_is_listed_once_in_any_case_of_letters() {
    let text = file(
        &(entry(A, "one", "hostedClusterLabels: {a: x}")
            + &entry(A, "ONE", "hostedClusters: [{namespace: clusters, names: [a, b]}]")
            + &entry(B, "one", "hostedClusters: [{namespace: clusters}]")),
    );
    assert_eq!(ManagementScopes::parse(&text).unwrap().all().len(), 2);
}

#[rstest]
#[case::no_list("{}", "missing field")]
#[case::unknown_key("{managementScopes: [], more: 1}", "unknown field")]
#[case::no_uuid(
    "managementScopes: [{subscription: x, resourceGroup: g, hostedClusterLabels: {a: b}}]",
    "\"x\" is not the id of a subscription, a UUID"
)]
#[case::no_group(&file(&entry(A, "'a b'", "hostedClusterLabels: {a: b}")), "\"a b\" is not the name of a resource group")]
#[case::for_nobody(&file(&format!("- {{subscription: {A}, resourceGroup: g}}")), "name hostedClusters or")]
#[case::without_names(&file(&entry(A, "g", "hostedClusters: [{namespace: n, names: []}]")), "name hostedClusters or")]
#[case::empty_name(&file(&entry(A, "g", "hostedClusters: [{namespace: n, names: ['']}]")), "name hostedClusters or")]
#[case::empty_namespace(&file(&entry(A, "g", "hostedClusters: [{namespace: ''}]")), "name hostedClusters or")]
#[case::named_twice(
    &file(&(entry(A, "g", "hostedClusters: [{namespace: n, names: [a]}]") + &entry(B, "g", "hostedClusters: [{namespace: n, names: [a]}]"))),
    "two entries for the HostedCluster n/a"
)]
#[case::namespace_twice(
    &file(&entry(A, "g", "hostedClusters: [{namespace: n}, {namespace: n}]")),
    "two entries for the HostedClusters n/*"
)]
#[case::labels_twice(
    &file(&(entry(A, "g", "hostedClusterLabels: {a: b}") + &entry(B, "g", "hostedClusterLabels: {a: b}"))),
    "two entries for the labels"
)]
fn wrong_file_is_refused_with_what_is_wrong(#[case] text: &str, #[case] message: &str) {
    let error = ManagementScopes::parse(text).unwrap_err().to_string();
    assert!(error.contains(message), "{error}");
}
