//! Entries of several clusters and of people beside each other, and clusters that resemble each other.

use super::*;
use crate::capz::patch::patch;

/// An entry in the form of the reference for a link of this resource group.
fn entry_to(group: &str, link: &str) -> Value {
    let group = format!("/subscriptions/{WORKLOAD_SUBSCRIPTION}/resourceGroups/{group}");
    let id = format!("{group}/providers/Microsoft.Network/privateLinkServices/{link}");
    json!({"name": format!("{link}-privateendpoint"), "location": "westeurope", "manualApproval": false,
        "privateLinkServiceConnections": [{"name": format!("{link}-connection"), "privateLinkServiceID": id}]})
}

/// A cluster with one link in this resource group.
fn in_group(name: &str, group: &str, link: &str) -> Sample {
    let links = json!([{"name": link, "allowedSubscriptions": [MANAGEMENT_SUBSCRIPTION],
        "autoApprovedSubscriptions": [MANAGEMENT_SUBSCRIPTION]}]);
    workload(name).with("/spec/resourceGroup", json!(group)).links(links)
}

#[test]
fn entries_of_one_subnet_are_each_their_clusters() {
    let theirs = json!({"name": "theirs", "customNetworkInterfaceName": "nic", "unknown": {"a": [1, null]}});
    let leaked = entry_to("long-gone", "old");
    let all = json!([entry("a"), theirs, entry("b"), leaked, entry("c")]);
    let before = management()
        .entries(all)
        .ledger(&ledger(&[("a-api-privatelink-privateendpoint", "a")]));
    let found = assigned(&before, &[workload("a").deleting(), workload("b"), workload("c")]);
    assert_eq!(changes(&found), ["remove a-api-privatelink-privateendpoint at 0/0"]);
    let names = ["b", "c"].map(|name| format!("{name}-api-privatelink-privateendpoint"));
    assert_eq!(found.ledger.text(), ledger(&[(&names[0], "b"), (&names[1], "c")]));
    let unclaimed: Vec<&str> = found.unclaimed.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(unclaimed, ["old-privateendpoint"]);

    let mut object = before.0.clone();
    let written = patch(&before.cluster(), &found.changes, Some(&found.ledger), &[]);
    json_patch::patch(&mut object, &written).unwrap();
    let left = management().entries(json!([theirs, entry("b"), leaked, entry("c")]));
    assert_eq!(object, left.ledger(&found.ledger.text()).0, "all else byte for byte");
}

#[test]
fn groups_with_one_prefix_are_two_groups() {
    let both = [
        in_group("prod", "prod", "prod-link").deleting(),
        in_group("prod-2", "prod-2", "prod-2-link"),
    ];
    let before = management().entries(json!([
        entry_to("prod", "prod-link"),
        entry_to("prod-2", "prod-2-link")
    ]));
    assert_eq!(
        changes(&assigned(&before, &both)),
        ["remove prod-link-privateendpoint at 0/0"]
    );
    // Only the group tells whose the entry of a name is that both have.
    let both = [
        in_group("prod", "prod", "link").deleting(),
        in_group("prod-2", "prod-2", "link"),
    ];
    let before = management().entries(json!([entry_to("prod-2", "link")]));
    let found = assigned(&before, &both);
    assert_eq!(found.changes, []);
    assert_eq!(found.ledger.text(), ledger(&[("link-privateendpoint", "prod-2")]));
}

#[test]
fn group_in_other_letters_is_the_same_group() {
    let before = management().entries(json!([entry_to("PROD", "link")]));
    let found = assigned(&before, &[in_group("wc", "prod", "link")]);
    assert_eq!(found.changes, []);
    assert_eq!(found.ledger.text(), ledger(&[("link-privateendpoint", "wc")]));
}

#[test]
fn clusters_of_one_name_in_two_namespaces_share_no_entry() {
    let (first, second) = (
        workload("wc"),
        workload("wc").with("/metadata/namespace", json!("other")),
    );
    let second = second
        .with("/metadata/uid", json!("uid-second"))
        .with("/metadata/creationTimestamp", json!("2026-05-01T00:00:00Z"));
    let found = assigned(&served(), &[second.clone(), first.clone()]);
    assert!(!found.writes(&served().cluster()), "{found:?}");
    assert_eq!(reasons(&found, "second"), [Some(Reason::NameConflict)]);
    assert_eq!(
        assigned(&served(), &[second.clone().deleting(), first.clone()]).changes,
        []
    );
    // The entry ends with the cluster that had it, before the other one has its own.
    let found = assigned(&served(), &[second.clone(), first.clone().deleting()]);
    assert_eq!(changes(&found), [format!("remove {NAME} at 0/0")]);
    assert_eq!(found.ledger, Ledger::default());
    assert_eq!(
        changes(&assigned(&management(), &[second, first.deleting()])),
        [format!("add {NAME} to 0")]
    );
}

#[test]
fn entries_follow_the_links_of_a_cluster() {
    let link = |name: &str, subscription: &str| {
        json!({"name": name, "allowedSubscriptions": [subscription],
        "autoApprovedSubscriptions": [subscription]})
    };
    let entries = json!([entry_to("wc", "a"), entry_to("wc", "b")]);
    let recorded = ledger(&[("a-privateendpoint", "wc"), ("b-privateendpoint", "wc")]);
    let before = management().entries(entries).ledger(&recorded);
    let renamed = json!([link("a", MANAGEMENT_SUBSCRIPTION), link("c", MANAGEMENT_SUBSCRIPTION)]);
    let found = assigned(&before, &[workload("wc").links(renamed)]);
    assert_eq!(
        changes(&found),
        ["remove b-privateendpoint at 0/1", "add c-privateendpoint to 0"]
    );
    let forbidden = json!([link("a", "another"), link("b", "another")]);
    let found = assigned(&before, &[workload("wc").links(forbidden)]);
    assert_eq!(
        changes(&found),
        ["remove a-privateendpoint at 0/0", "remove b-privateendpoint at 0/1"]
    );
}
