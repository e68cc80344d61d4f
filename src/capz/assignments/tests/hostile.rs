//! Clusters that lie, or ask for too much.

use super::*;
use crate::api::markers::capz::LONGEST_LEDGER;

#[test]
fn entry_of_a_gone_cluster_is_no_other_clusters() {
    let liar = workload("liar").links(workload("wc").0["spec"]["networkSpec"]["apiServerLB"]["privateLinks"].clone());
    let liar = liar.with("/spec/resourceGroup", json!("wc"));
    let found = assigned_with(&served(), &[liar], &["uid-wc"]);
    assert_eq!(changes(&found), [format!("remove {NAME} at 0/0")]);
}

#[test]
fn records_stay_while_the_management_cluster_has_no_subnet() {
    let before = served().with("/spec/networkSpec/subnets", json!([]));
    let found = assigned(&before, &[workload("wc")]);
    assert!(!found.writes(&before.cluster()), "{found:?}");
    assert!(found.of["uid-wc"].entries[0].was_there && !found.of["uid-wc"].entries[0].is_there);
}

#[test]
fn entry_that_was_dropped_is_kept_from_other_clusters() {
    let unknown = workload("wc").with("/spec/azureEnvironment", json!("AzureChinaCloud"));
    let other = workload("wc-2").links(workload("wc").0["spec"]["networkSpec"]["apiServerLB"]["privateLinks"].clone());
    let before = management().ledger(&ledger(&[(NAME, "wc")]));
    let found = assigned(&before, &[unknown, other]);
    assert!(!found.writes(&before.cluster()), "{found:?}");
    assert_eq!(reasons(&found, "wc-2"), [Some(Reason::NameConflict)]);
}

#[test]
fn one_cluster_cannot_fill_the_management_cluster() {
    let link =
        |number: usize| json!({"name": format!("link-{number}"), "allowedSubscriptions": [MANAGEMENT_SUBSCRIPTION]});
    let many = workload("wc").links((0..2_000).map(link).collect());
    assert_eq!(assigned(&management(), std::slice::from_ref(&many)).changes.len(), 16);
    let entries: Vec<_> = (0..1_600)
        .map(|number| json!({"name": format!("theirs-{number}")}))
        .collect();
    let full = management().entries(json!(entries));
    let found = assigned(&full, &[workload("wc")]);
    assert!(!found.writes(&full.cluster()));
    assert_eq!(reasons(&found, "wc"), [Some(Reason::TooManyEndpoints)]);
}

/// A cluster with as many links as are served, whose names have this form.
fn greedy(name: &str, link: impl Fn(usize) -> String) -> Sample {
    let links = (0..16).map(|number| json!({"name": link(number), "allowedSubscriptions": [MANAGEMENT_SUBSCRIPTION]}));
    workload(name)
        .with("/spec/resourceGroup", json!("greedy"))
        .links(links.collect())
}

fn of_another_namespace() -> Sample {
    workload("other").with("/metadata/namespace", json!("neighbour"))
}

#[test]
fn one_namespace_leaves_room_for_others() {
    let many = |cluster: usize| greedy(&format!("greedy-{cluster:02}"), |link| format!("link-{cluster}-{link}"));
    let all: Vec<Sample> = (0..40).map(many).chain([of_another_namespace()]).collect();
    let found = assigned(&management(), &all);
    assert_eq!(found.changes.len(), 512 + 1);
    assert_eq!(reasons(&found, "other"), [None]);
    // Nothing is kept of what is beyond, but that it is.
    let (served, refused) = (&found.of["uid-greedy-31"], &found.of["uid-greedy-32"]);
    assert_eq!((served.entries.len(), served.refused), (16, 0));
    assert_eq!((refused.entries.len(), refused.refused), (0, 16));
    let problem = refused.problem("org-giantswarm").unwrap();
    assert_eq!(problem.reason, Reason::TooManyEndpoints);
}

#[test]
fn younger_clusters_of_a_full_namespace_keep_what_they_have() {
    let many = |cluster: usize| greedy(&format!("greedy-{cluster:02}"), |link| format!("link-{cluster}-{link}"));
    let all: Vec<Sample> = (0..40).map(many).collect();
    let younger = ["recorded", "adopted"]
        .map(|name| workload(name).with("/metadata/creationTimestamp", json!("2026-05-01T00:00:00Z")));
    let liar = greedy("liar", |_| "adopted-api-privatelink".to_owned())
        .with("/spec/resourceGroup", json!("adopted"))
        .with("/metadata/creationTimestamp", json!("2026-06-01T00:00:00Z"));
    let all: Vec<Sample> = all.into_iter().chain(younger).chain([liar]).collect();
    let before = management()
        .entries(json!([entry("recorded"), entry("adopted")]))
        .ledger(&ledger(&[("recorded-api-privatelink-privateendpoint", "recorded")]));
    let found = assigned(&before, &all);
    assert_eq!(
        (reasons(&found, "recorded"), reasons(&found, "adopted")),
        (vec![None], vec![None])
    );
    assert!(found.changes.iter().all(|change| matches!(change, Change::Add { .. })));
    assert_eq!(found.ledger.count_of("org-giantswarm"), 512);
    assert_eq!(found.of["uid-liar"].refused, 1);
}

#[test]
fn long_records_of_one_namespace_leave_room_for_others() {
    let many = |cluster: usize| {
        let name = format!("{}-{cluster:02}", "x".repeat(240));
        greedy(&name, |link| format!("{cluster:02}-{link:02}-{}", "y".repeat(58)))
    };
    let all: Vec<Sample> = (0..30).map(many).chain([of_another_namespace()]).collect();
    let found = assigned(&management(), &all);
    assert_eq!(reasons(&found, "other"), [None]);
    assert!(found.ledger.text().len() < LONGEST_LEDGER / 2 + 100);
    let last = &found.of[&format!("uid-{}-29", "x".repeat(240))].entries[0];
    assert_eq!(last.problem.as_ref().unwrap().reason, Reason::TooManyEndpoints);
}

#[test]
fn clusters_of_other_namespaces_are_left_as_they_are() {
    let (management, workload) = (served().cluster(), workload("wc").deleting().cluster());
    let snapshot = Snapshot {
        management: &management,
        workloads: &[&workload],
        cloud: PUBLIC_CLOUD,
        only: Some("another"),
        gone: &BTreeSet::new(),
        hidden: &BTreeSet::new(),
    };
    assert!(!assign(&snapshot).writes(&management));
}

#[test]
fn names_that_are_one_object_of_the_service_operator_are_one() {
    let dotted = workload("wc-2")
        .links(json!([{"name": "wc.api_privatelink", "allowedSubscriptions": [MANAGEMENT_SUBSCRIPTION]}]));
    let dotted = dotted.with("/metadata/creationTimestamp", json!("2026-05-01T00:00:00Z"));
    let found = assigned(&served(), &[dotted, workload("wc")]);
    assert_eq!(found.changes, []);
    assert_eq!(reasons(&found, "wc-2"), [Some(Reason::NameConflict)]);
}
