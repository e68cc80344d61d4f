use std::collections::BTreeSet;

use super::*;
use crate::api::hypershift::PUBLIC_CLOUD;
use crate::capz::assignments::{Snapshot, assign};
use crate::capz::reason::Reason;
use crate::capz::samples::{Sample, entry, management, workload};
use crate::capz::status::{Endpoint, Side, published};

const NAME: &str = "wc-api-privatelink-privateendpoint";

/// What the management cluster would have for these clusters, as the plan of one of them shows it, or its own plan.
fn preview(management: &Sample, workloads: &[Sample], of: Option<&Sample>) -> ClusterPreview {
    let (management, clusters): (_, Vec<_>) = (management.cluster(), workloads.iter().map(Sample::cluster).collect());
    let assigned = assign(&Snapshot {
        management: &management,
        workloads: &clusters.iter().collect::<Vec<_>>(),
        cloud: PUBLIC_CLOUD,
        only: None,
        gone: &BTreeSet::new(),
        hidden: &BTreeSet::new(),
    });
    let mut preview = ClusterPreview::new(Lifecycle::Build);
    preview.add_assignments(&management, &assigned, of.map(Sample::cluster).as_ref());
    preview.add_unclaimed(&assigned);
    preview
}

fn verbs(preview: &ClusterPreview) -> Vec<(&str, &str)> {
    preview
        .entries
        .iter()
        .map(|entry| (entry.verb, entry.name.as_str()))
        .collect()
}

fn ledger(name: &str) -> String {
    format!(r#"{{"{name}-api-privatelink-privateendpoint":"org-giantswarm/{name}/uid-{name}"}}"#)
}

#[test]
fn lost_entry_is_added_and_recorded() {
    let found = preview(&management(), &[workload("wc")], Some(&workload("wc")));
    assert_eq!(verbs(&found), [("add", NAME)]);
    let recorded = FieldChange {
        field: NAME.to_owned(),
        is: Value::Null,
        would_be: json!("org-giantswarm/wc/uid-wc"),
    };
    assert_eq!(found.ledger, [recorded]);
    assert!(found.pending);
}

#[test]
fn entry_as_desired_needs_nothing() {
    let before = management().entries(json!([entry("wc")])).ledger(&ledger("wc"));
    let found = preview(&before, &[workload("wc")], Some(&workload("wc")));
    assert_eq!((found.entries, found.ledger, found.pending), (vec![], vec![], false));
}

#[test]
fn other_clusters_changes_are_in_their_own_plans() {
    let all = [workload("wc"), workload("other")];
    let found = preview(&management(), &all, Some(&all[0]));
    assert_eq!(verbs(&found), [("add", NAME)]);
    assert_eq!(found.ledger.len(), 1);
    assert_eq!(preview(&management(), &all, None).entries.len(), 2);
}

#[test]
fn entry_without_a_record_is_removed_with_its_link() {
    let mut shrunk = workload("wc");
    shrunk.0["spec"]["networkSpec"]["apiServerLB"]["privateLinks"][0]["allowedSubscriptions"] = json!([]);
    let before = management().entries(json!([entry("wc")]));
    let found = preview(&before, std::slice::from_ref(&shrunk), Some(&shrunk));
    assert_eq!(verbs(&found), [("remove", NAME)]);
}

#[test]
fn unclaimed_entries_can_be_removed_one_by_one() {
    let theirs = json!({"name": "theirs"});
    let sample = management().entries(json!([entry("a"), theirs, entry("b")]));
    let found = preview(&sample, &[], None);
    assert!(found.entries.is_empty() && !found.pending, "{found:?}");
    let mut object = sample.0.clone();
    for unclaimed in &found.unclaimed {
        json_patch::patch(&mut object, &unclaimed.removal).unwrap();
    }
    let left = &object["spec"]["networkSpec"]["subnets"][0]["privateEndpoints"];
    assert_eq!(*left, json!([theirs]));
    let mut moved = management().entries(json!([theirs, entry("b"), entry("a")])).0;
    assert!(json_patch::patch(&mut moved, &found.unclaimed[0].removal).is_err());
}

fn side(address: crate::capz::address::Address) -> Side {
    let endpoint = Endpoint {
        name: NAME.to_owned(),
        was_there: true,
        address,
    };
    Side::Desired(vec![endpoint], None)
}

#[test]
fn address_and_condition_are_shown_before_and_after() {
    use crate::capz::address::Address;
    let (cluster, known) = (
        workload("wc").cluster(),
        side(Address::Known("10.0.0.4".parse().unwrap())),
    );
    let mut found = ClusterPreview::new(Lifecycle::Build);
    found.add_published(&cluster, &published(&cluster, &known, &Side::NotDesired));
    assert_eq!(found.annotations[0].would_be, json!("10.0.0.4"));
    let [condition] = &found.conditions[..] else {
        panic!("{found:?}");
    };
    assert_eq!(condition.is, None);
    assert_eq!(condition.would_be.as_ref().unwrap().status, "True");
    assert!(found.pending);

    let ready = workload("wc")
        .with(
            "/metadata/annotations",
            json!({crate::api::markers::capz::API_SERVER_ADDRESS: "10.0.0.4"}),
        )
        .with(
            "/status/conditions",
            json!([{"type": CONDITION, "status": "True",
            "message": condition.would_be.as_ref().unwrap().message}]),
        )
        .cluster();
    let unread = side(Address::Unread(Problem::new(Reason::AzureThrottled, "later")));
    for (side, pending) in [(known, false), (unread, true)] {
        let mut found = ClusterPreview::new(Lifecycle::Build);
        found.add_published(&ready, &published(&ready, &side, &Side::NotDesired));
        assert_eq!(found.conditions[0].is, found.conditions[0].would_be);
        assert_eq!(found.pending, pending);
    }
}

#[test]
fn condition_that_no_longer_applies_is_removed() {
    let ready = workload("wc")
        .public()
        .with("/status/conditions", json!([{"type": CONDITION, "status": "True"}]))
        .cluster();
    let mut found = ClusterPreview::new(Lifecycle::Build);
    found.add_published(&ready, &published(&ready, &Side::NotDesired, &Side::NotDesired));
    assert_eq!(found.conditions[0].would_be, None);
    assert!(found.pending);
}
