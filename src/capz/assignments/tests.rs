use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::api::hypershift::PUBLIC_CLOUD;
use crate::api::markers::capz::DROPPED_ENDPOINTS;
use crate::capz::entry::Field;
use crate::capz::samples::{MANAGEMENT_SUBSCRIPTION, Sample, WORKLOAD_SUBSCRIPTION, entry, management, workload};

mod apart;
mod hostile;

const NAME: &str = "wc-api-privatelink-privateendpoint";

/// What is decided for these clusters; of those in the ledger, these are known to be gone.
fn assigned_with(management: &Sample, workloads: &[Sample], gone: &[&str]) -> Assignments {
    let (management, workloads): (_, Vec<_>) = (management.cluster(), workloads.iter().map(Sample::cluster).collect());
    assign(&Snapshot {
        management: &management,
        workloads: &workloads.iter().collect::<Vec<_>>(),
        cloud: PUBLIC_CLOUD,
        only: None,
        gone: &gone.iter().map(|uid| (*uid).to_owned()).collect(),
        hidden: &BTreeSet::new(),
    })
}

fn assigned(management: &Sample, workloads: &[Sample]) -> Assignments {
    assigned_with(management, workloads, &[])
}

fn ledger(items: &[(&str, &str)]) -> String {
    let items = items.iter().map(|(entry, cluster)| {
        let holder = format!("org-giantswarm/{cluster}/uid-{cluster}");
        ((*entry).to_owned(), json!(holder))
    });
    Value::Object(items.collect()).to_string()
}

/// A management cluster that has the entry of `wc`, which the ledger has.
fn served() -> Sample {
    management()
        .entries(json!([entry("wc")]))
        .ledger(&ledger(&[(NAME, "wc")]))
}

/// What changes, in a word each.
fn changes(assignments: &Assignments) -> Vec<String> {
    let word = |change: &Change| match change {
        Change::Add { subnet, entry } => format!("add {} to {subnet}", entry.name),
        Change::Repair { at, entry, fields } => {
            let fields: Vec<_> = fields.iter().map(|field| field.as_str()).collect();
            format!(
                "repair {} at {}/{}: {}",
                entry.name,
                at.subnet,
                at.entry,
                fields.join(",")
            )
        }
        Change::Remove { at, name } => format!("remove {name} at {}/{}", at.subnet, at.entry),
    };
    assignments.changes.iter().map(word).collect()
}

/// The reasons why the desired entries of a cluster are not there.
fn reasons(assignments: &Assignments, cluster: &str) -> Vec<Option<Reason>> {
    let state = &assignments.of[&format!("uid-{cluster}")];
    state
        .entries
        .iter()
        .map(|state| state.problem.as_ref().map(|problem| problem.reason))
        .collect()
}

#[test]
fn link_that_is_ready_gets_an_entry_and_a_record() {
    let found = assigned(&management(), &[workload("wc")]);
    assert_eq!(changes(&found), [format!("add {NAME} to 0")]);
    assert_eq!(found.ledger.text(), ledger(&[(NAME, "wc")]));
    assert_eq!(reasons(&found, "wc"), [None]);
    assert!(found.writes(&management().cluster()));
}

#[test]
fn entry_that_is_as_desired_is_left_alone() {
    let found = assigned(&served(), &[workload("wc")]);
    assert!(!found.writes(&served().cluster()), "{found:?}");
    assert!(found.of["uid-wc"].entries[0].is_there);
}

#[test]
fn entry_of_the_reference_gets_a_record_and_nothing_else() {
    let names: Vec<String> = (10..30).map(|number| format!("wc-{number}")).collect();
    let before = management().entries(names.iter().map(|name| entry(name)).collect());
    let found = assigned(&before, &names.iter().map(|name| workload(name)).collect::<Vec<_>>());
    assert_eq!(found.changes, []);
    let entries = names
        .iter()
        .map(|name| format!("{name}-api-privatelink-privateendpoint"));
    let items: Vec<_> = entries.zip(&names).collect();
    let items: Vec<_> = items
        .iter()
        .map(|(entry, name)| (entry.as_str(), name.as_str()))
        .collect();
    assert_eq!(found.ledger.text(), ledger(&items));
    assert!(found.writes(&before.cluster()));
}

#[test]
fn link_that_is_not_ready_waits() {
    let waiting = workload("wc").with("/status/conditions", json!([]));
    let found = assigned(&management(), std::slice::from_ref(&waiting));
    assert!(!found.writes(&management().cluster()));
    assert_eq!(reasons(&found, "wc"), [Some(Reason::LinksNotReady)]);
    // One that was there stays, and comes back.
    assert_eq!(assigned(&served(), std::slice::from_ref(&waiting)).changes, []);
    let dropped = management().ledger(&ledger(&[(NAME, "wc")]));
    assert_eq!(changes(&assigned(&dropped, &[waiting])), [format!("add {NAME} to 0")]);
}

#[test]
fn entry_of_a_link_that_is_forbidden_later_is_removed() {
    let link = json!([{"name": "wc-api-privatelink", "allowedSubscriptions": ["other"]}]);
    let found = assigned(&served(), &[workload("wc").links(link)]);
    assert_eq!(changes(&found), [format!("remove {NAME} at 0/0")]);
    assert_eq!(found.ledger, Ledger::default());
}

#[test]
fn entry_of_a_cluster_that_is_deleting_is_removed() {
    let theirs = json!([{"name": "theirs"}, entry("wc"), entry("other")]);
    let items = [(NAME, "wc"), ("other-api-privatelink-privateendpoint", "other")];
    let before = management().entries(theirs).ledger(&ledger(&items));
    let found = assigned(&before, &[workload("wc").deleting(), workload("other")]);
    assert_eq!(changes(&found), [format!("remove {NAME} at 0/1")]);
    assert_eq!(found.ledger.text(), ledger(&items[1..]));
    // Also where only the connection tells whose it is.
    let before = management().entries(json!([entry("wc")]));
    let found = assigned(&before, &[workload("wc").deleting()]);
    assert_eq!(changes(&found), [format!("remove {NAME} at 0/0")]);
}

#[test]
fn entry_of_a_cluster_that_is_surely_gone_is_removed() {
    let found = assigned(&served(), &[]);
    assert!(!found.writes(&served().cluster()), "{found:?}");
    assert_eq!(
        found.unknown.iter().map(|one| one.uid.as_str()).collect::<Vec<_>>(),
        ["uid-wc"]
    );
    let found = assigned_with(&served(), &[], &["uid-wc"]);
    assert_eq!(changes(&found), [format!("remove {NAME} at 0/0")]);
    assert!(found.unknown.is_empty());
}

#[test]
fn recreated_cluster_takes_the_entry_of_its_predecessor_over() {
    let recreated = workload("wc").with("/metadata/uid", json!("uid-new"));
    let found = assigned(&served(), &[recreated]);
    assert_eq!(found.changes, []);
    assert_eq!(
        found.ledger.text(),
        ledger(&[(NAME, "wc")]).replace("uid-wc", "uid-new")
    );
    // Not that of another link.
    let other = workload("wc")
        .with("/metadata/uid", json!("uid-new"))
        .links(json!([{"name": "other",
        "allowedSubscriptions": [MANAGEMENT_SUBSCRIPTION], "autoApprovedSubscriptions": [MANAGEMENT_SUBSCRIPTION]}]));
    let found = assigned(&served(), &[other]);
    assert_eq!(
        changes(&found),
        [
            format!("remove {NAME} at 0/0"),
            "add other-privateendpoint to 0".to_owned()
        ]
    );
}

#[rstest]
#[case::other_cloud("/spec/azureEnvironment", json!("AzureChinaCloud"))]
#[case::unknown_type("/spec/networkSpec/apiServerLB/type", json!("SomethingNew"))]
#[case::without_the_finalizer("/metadata/finalizers", json!([]))]
fn undecided_cluster_keeps_what_it_has_and_gets_nothing(#[case] path: &str, #[case] value: Value) {
    let cluster = [workload("wc").with(path, value)];
    assert!(!assigned(&served(), &cluster).writes(&served().cluster()));
    assert!(!assigned(&management(), &cluster).writes(&management().cluster()));
    let adoptable = management().entries(json!([entry("wc")]));
    assert_eq!(assigned(&adoptable, &cluster).changes, []);
}

#[test]
fn entries_are_removed_with_a_cluster_that_is_public_now() {
    let found = assigned(&served(), &[workload("wc").public()]);
    assert_eq!(changes(&found), [format!("remove {NAME} at 0/0")]);
}

#[test]
fn drift_is_repaired_field_by_field() {
    let mut drifted = entry("wc");
    drifted["location"] = json!("eastus");
    drifted["manualApproval"] = json!(true);
    drifted["privateLinkServiceConnections"][0]["privateLinkServiceID"] = json!("/x");
    let before = management().entries(json!([drifted])).ledger(&ledger(&[(NAME, "wc")]));
    let found = assigned(&before, &[workload("wc")]);
    let expected = [Field::Location, Field::ManualApproval, Field::Connections]
        .map(Field::as_str)
        .join(",");
    assert_eq!(changes(&found), [format!("repair {NAME} at 0/0: {expected}")]);
}

#[test]
fn somebody_elses_entry_of_the_name_is_not_touched() {
    let mut theirs = entry("wc");
    let id = &mut theirs["privateLinkServiceConnections"][0]["privateLinkServiceID"];
    *id = json!(id.as_str().unwrap().replace("/wc/", "/theirs/"));
    let before = management().entries(json!([theirs]));
    let found = assigned(&before, &[workload("wc")]);
    assert!(!found.writes(&before.cluster()), "{found:?}");
    assert_eq!(reasons(&found, "wc"), [Some(Reason::NotOurs)]);
    assert_eq!(found.unclaimed, [(Position { subnet: 0, entry: 0 }, NAME.to_owned())]);
    assert_eq!(assigned(&before, &[workload("wc").deleting()]).changes, []);
}

#[test]
fn removed_entry_that_an_old_write_brings_back_is_removed_again() {
    let brought_back = |records: &str| {
        let before = management().entries(json!([entry("gone")]));
        let found = assigned(
            &before.with("/metadata/annotations", json!({DROPPED_ENDPOINTS: records})),
            &[],
        );
        (changes(&found), found.unclaimed.len())
    };
    let name = "gone-api-privatelink-privateendpoint";
    let record = json!({name: "2026-01-05T00:00:00Z"}).to_string();
    assert_eq!(brought_back(&record), (vec![format!("remove {name} at 0/0")], 0));
    assert_eq!(brought_back("{}"), (vec![], 1));
}

#[test]
fn of_two_clusters_with_one_link_name_the_older_has_the_entry() {
    let second = workload("wc-2").links(workload("wc").0["spec"]["networkSpec"]["apiServerLB"]["privateLinks"].clone());
    let younger = second
        .clone()
        .with("/metadata/creationTimestamp", json!("2026-05-01T00:00:00Z"));
    let found = assigned(&management(), &[younger.clone(), workload("wc")]);
    assert_eq!(found.ledger.text(), ledger(&[(NAME, "wc")]));
    assert_eq!(
        (reasons(&found, "wc"), reasons(&found, "wc-2")),
        (vec![None], vec![Some(Reason::NameConflict)])
    );
    // The ledger counts more than the age.
    let held = management()
        .entries(json!([{"name": NAME}]))
        .ledger(&ledger(&[(NAME, "wc-2")]));
    let found = assigned(&held, &[younger.clone(), workload("wc")]);
    assert_eq!(reasons(&found, "wc"), [Some(Reason::NameConflict)]);
    assert_eq!(found.ledger.text(), ledger(&[(NAME, "wc-2")]));
    // The deletion of the one without it removes nothing.
    assert_eq!(assigned(&served(), &[younger.deleting(), workload("wc")]).changes, []);
}

#[test]
fn connection_tells_which_of_two_clusters_has_the_entry() {
    let older = workload("a").links(workload("wc").0["spec"]["networkSpec"]["apiServerLB"]["privateLinks"].clone());
    let older = older.with("/metadata/creationTimestamp", json!("2020-01-01T00:00:00Z"));
    let before = management().entries(json!([entry("wc")]));
    let found = assigned(&before, &[older, workload("wc")]);
    assert_eq!(found.changes, []);
    assert_eq!(found.ledger.text(), ledger(&[(NAME, "wc")]));
    assert_eq!(reasons(&found, "a"), [Some(Reason::NameConflict)]);
}

#[test]
fn names_that_differ_in_case_alone_are_one() {
    let shouting = workload("WC-2")
        .links(json!([{"name": "WC-API-privatelink", "allowedSubscriptions": [MANAGEMENT_SUBSCRIPTION]}]));
    let shouting = shouting.with("/metadata/creationTimestamp", json!("2026-05-01T00:00:00Z"));
    let found = assigned(&served(), &[shouting, workload("wc")]);
    assert_eq!(found.changes, []);
    assert_eq!(reasons(&found, "WC-2"), [Some(Reason::NameConflict)]);
}

#[test]
fn entry_stays_in_its_subnet_and_a_second_is_removed() {
    let subnets = json!([{"name": "new", "role": "node", "privateEndpoints": [{"name": "theirs"}]},
        {"name": "old", "role": "cluster", "privateEndpoints": [entry("wc")]},
        {"name": "third", "role": "cluster", "privateEndpoints": [entry("wc")]}]);
    let before = management()
        .with("/spec/networkSpec/subnets", subnets)
        .ledger(&ledger(&[(NAME, "wc")]));
    let found = assigned(&before, &[workload("wc")]);
    assert_eq!(changes(&found), [format!("remove {NAME} at 2/0")]);
}

#[test]
fn management_cluster_without_a_subnet_gets_no_entry() {
    let before = management().with("/spec/networkSpec/subnets", json!(null));
    let found = assigned(&before, &[workload("wc")]);
    assert!(!found.writes(&before.cluster()));
    assert_eq!(reasons(&found, "wc"), [Some(Reason::SubnetsNotSet)]);
}

#[test]
fn full_ledger_takes_no_further_entry() {
    let long = "x".repeat(200);
    let items: serde_json::Map<_, _> = (0..1_100)
        .map(|number| (format!("{long}-{number}"), json!("other/elsewhere/uid-elsewhere")))
        .collect();
    let before = management().ledger(&Value::Object(items).to_string());
    let found = assigned(&before, &[workload("wc")]);
    assert_eq!(reasons(&found, "wc"), [Some(Reason::TooManyEndpoints)]);
    assert!(!found.writes(&before.cluster()));
    // One that is there already is the cluster's, and cannot be recorded.
    let before = before.entries(json!([entry("wc")]));
    let found = assigned(&before, &[workload("wc")]);
    assert_eq!(reasons(&found, "wc"), [Some(Reason::TooManyEndpoints)]);
    assert!(!found.writes(&before.cluster()));
}

#[test]
fn record_without_an_entry_ends_with_its_cluster() {
    let before = management().ledger(&ledger(&[(NAME, "wc"), ("old-privateendpoint", "wc")]));
    let found = assigned(&before, &[workload("wc")]);
    assert_eq!(found.ledger.text(), ledger(&[(NAME, "wc")]));
    assert_eq!(
        assigned(&before, &[workload("wc").deleting()]).ledger,
        Ledger::default()
    );
}

#[test]
fn management_cluster_is_free_when_spec_and_ledger_are() {
    let free = |management: &Sample| {
        let (management, deleting) = (management.cluster(), workload("wc").deleting().cluster());
        let snapshot = Snapshot {
            management: &management,
            workloads: &[&deleting],
            cloud: PUBLIC_CLOUD,
            only: None,
            gone: &BTreeSet::new(),
            hidden: &BTreeSet::new(),
        };
        Assignments::is_free_of(&snapshot, "uid-wc")
    };
    assert!(!free(&served()) && !free(&management().entries(json!([entry("wc")]))));
    assert!(!free(&management().ledger(&ledger(&[(NAME, "wc")]))));
    assert!(free(&management().entries(json!([entry("other")]))));
}

#[test]
fn eight_links_and_a_ninth_are_all_served() {
    for count in [8, 9] {
        let link = |number: usize| json!({"name": format!("link-{number}"), "allowedSubscriptions": [MANAGEMENT_SUBSCRIPTION]});
        let links: Vec<_> = (0..count).map(link).collect();
        let found = assigned(&management(), &[workload("wc").links(json!(links))]);
        assert_eq!(found.changes.len(), count);
    }
}
