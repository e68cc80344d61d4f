//! A process that begins beside many clusters that are as desired: it reads in lists, and records and links in their
//! turn. What is not as it was is found all the same.

use std::time::Duration;

use futures::future::join_all;
use hyperlink::azure::cloud::{Arm, Observed};
use hyperlink::azure::kinds::Kind;
use hyperlink::azure::kinds::private_link_service::alias;
use hyperlink::azure::observations::ObservationCache;
use hyperlink::engine::client::Reconcile;
use hyperlink::engine::failure::Class;
use hyperlink::engine::resource::Resource;
use hyperlink::engine::urgency::Urgency;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::fleet::{Fleet, endpoint, internal, nat_subnet, record, seed_for, service, zone};

const CLUSTERS: usize = 12;
/// The time in which every resource but records and links is due once.
const ROUND: Duration = Duration::from_secs(330);
/// The time in which everything is due once, from the start.
const TURN: Duration = Duration::from_secs(2_970);
/// The shared lists.
const LISTS: [&str; 4] = [
    "/privateLinkServices",
    "/privateEndpoints",
    "/privateDnsZones",
    "/subnets",
];

async fn as_desired() -> Fleet {
    let fleet = Fleet::new(CLUSTERS).await;
    fleet.sim.forget_calls();
    fleet
}

#[tokio::test(start_paused = true)]
async fn ready_clusters_are_read_in_lists_and_only_there() {
    let mut fleet = as_desired().await;
    fleet.restart().await;
    assert_eq!(fleet.sim.azure.sent().len(), LISTS.len(), "{}", fleet.sim.calls());
    fleet.sim.forget_calls();
    fleet.run(ROUND).await;
    let of_lists: usize = LISTS.iter().map(|list| fleet.calls_to(list)).sum();
    assert!((3..=8).contains(&of_lists), "{of_lists}");
    let of_zones = fleet.sim.azure.sent().len() - of_lists;
    assert!(
        of_zones <= CLUSTERS,
        "{of_zones} reads of records and links in one round"
    );
    assert_eq!(fleet.sim.writes(), 0);
}

#[rstest]
#[case::services("/privateLinkServices", 1)]
#[case::endpoints_whose_address_no_list_shows("/privateEndpoints", 0)]
#[tokio::test(start_paused = true)]
async fn slow_list_is_left_to_its_reader_and_serves_all(#[case] list: &str, #[case] shown: usize) {
    let mut fleet = as_desired().await;
    fleet.sim.restart();
    fleet.sim.urgency = Urgency::Routine { served: CLUSTERS };
    fleet
        .sim
        .faults(&[(json!({"path": format!("{list}$")}), json!({"delay_ms": 15_000}))]);
    let of_list = |desired: &&dyn Resource<Arm>| desired.key().to_string().contains(list);
    let all: Vec<_> = fleet
        .groups
        .iter()
        .flatten()
        .map(AsRef::as_ref)
        .filter(of_list)
        .collect();
    let began = Instant::now();
    let first = all.iter().map(async |desired| {
        fleet.sim.read(*desired).await;
        began.elapsed().as_secs()
    });
    let mut first = join_all(first).await;
    first.sort_unstable();
    assert_eq!((first[0], first[CLUSTERS - 2], first[CLUSTERS - 1]), (2, 2, 15));
    let mut found = 0;
    for desired in &all[1..] {
        fleet.sim.wait_until_due(*desired).await;
        found += usize::from(fleet.sim.read(*desired).await.found().is_some());
    }
    assert_eq!((fleet.sim.calls().as_str(), found), ("GET", shown * (CLUSTERS - 1)));
    assert!(began.elapsed().as_secs() < 30, "nobody waits for more than one list");
}

#[tokio::test(start_paused = true)]
async fn records_and_links_are_read_once_in_their_turn() {
    let mut fleet = as_desired().await;
    fleet.restart().await;
    fleet.run(TURN).await;
    let lists = fleet.calls_to("/ALL") + fleet.calls_to("/A");
    assert!(
        (2 * CLUSTERS..=4 * CLUSTERS).contains(&lists),
        "{lists} lists of records"
    );
    let links = fleet.single_reads("/virtualNetworkLinks/");
    assert!((2 * CLUSTERS..=4 * CLUSTERS).contains(&links), "{links} reads of links");
    assert_eq!(fleet.single_reads("/A/"), 0);
    fleet.sim.forget_calls();
    fleet.run(TURN).await;
    let links = fleet.single_reads("/virtualNetworkLinks/");
    assert!(links <= 4, "{links} reads of links whose number stays the same");
    assert_eq!(fleet.sim.writes(), 0);
}

#[tokio::test(start_paused = true)]
async fn records_that_vanish_after_a_start_are_made_again_soon() {
    let mut fleet = as_desired().await;
    fleet.restart().await;
    let records = (0..CLUSTERS).map(|n| record(n, &zone(n, &internal(n)), "api").id);
    let records: Vec<_> = records.collect();
    for id in &records {
        fleet.sim.remove(id);
    }
    fleet.run(ROUND * 2).await;
    assert!(records.iter().all(|id| fleet.sim.shown(id).is_some()));
}

/// A zone's body counts what is in it.
#[tokio::test(start_paused = true)]
async fn zone_that_counts_nothing_is_filled_again_at_the_start() {
    let mut fleet = as_desired().await;
    let zone = zone(3, &internal(3));
    let link = zone
        .id
        .child(Kind::VirtualNetworkLink, "private-router-vnet-link")
        .unwrap();
    let records = ["api", "*.apps"].map(|name| record(3, &zone, name).id);
    for id in records.iter().chain([&link]) {
        fleet.sim.remove(id);
    }
    fleet.restart().await;
    fleet.sim.let_operations_end().await;
    for id in records.iter().chain([&link]) {
        assert!(fleet.sim.shown(id).is_some(), "{id}");
    }
    assert_eq!(fleet.sim.writes(), 3);
}

#[tokio::test(start_paused = true)]
async fn endpoints_whose_address_no_list_shows_are_read_in_their_turn() {
    let mut fleet = as_desired().await;
    fleet.restart().await;
    fleet.run(TURN).await;
    assert_eq!(fleet.single_reads("/privateEndpoints/"), CLUSTERS);
}

#[tokio::test(start_paused = true)]
async fn rejected_endpoint_is_replaced_at_the_start() {
    let mut fleet = as_desired().await;
    let alias = alias(&fleet.sim.shown(&service(3).owned.id).unwrap())
        .unwrap()
        .to_owned();
    let rejected = endpoint(3, &alias).id;
    let state = "/properties/manualPrivateLinkServiceConnections/0/properties/privateLinkServiceConnectionState/status";
    let shown = fleet.sim.shown(&rejected).unwrap();
    let state = if shown.pointer(state).is_some() {
        state.to_owned()
    } else {
        state.replace("manualPrivate", "private")
    };
    fleet.sim.drift(&rejected, &state, json!("Rejected"));
    fleet.restart().await;
    let path = rejected.to_string();
    assert_eq!(fleet.verbs_to(|called| called == path), "GET DELETE");
    assert_eq!(fleet.single_reads("/privateEndpoints/"), 1);
}

/// Links and lists of records of 12 clusters are 48 reads in the first turn of 45 minutes: more than half of ten in five
/// minutes.
#[tokio::test(start_paused = true)]
async fn verification_leaves_half_of_a_small_budget() {
    let mut seed = seed_for(CLUSTERS);
    seed["throttle"] = json!({"dns_reads_5min": 10});
    let mut fleet = Fleet::in_a_world(&seed, CLUSTERS).await;
    fleet.sim.let_operations_end().await;
    fleet.restart().await;
    fleet.sim.counted.calls.lock().unwrap().clear();
    fleet.sim.forget_calls();
    fleet.run(TURN * 2).await;
    let calls = fleet.sim.counted.calls.lock().unwrap();
    let refused = calls.iter().filter(|call| call.status == 429).count();
    assert_eq!(refused, 0);
    let reads = calls
        .iter()
        .filter(|call| matches!(call.kind, Kind::RecordSet | Kind::VirtualNetworkLink));
    let reads = reads.count();
    assert!((40..=100).contains(&reads), "{reads}");
    assert_eq!(fleet.sim.writes(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_went_while_no_process_ran_is_made_again_at_once() {
    let mut fleet = as_desired().await;
    fleet.sim.remove(&service(3).owned.id);
    fleet.restart().await;
    let path = service(3).owned.id.to_string();
    assert_eq!(fleet.verbs_to(|called| called == path), "GET PUT");
    assert_eq!(
        fleet.single_reads("/privateLinkServices/"),
        1,
        "the others are not read"
    );
}

#[tokio::test(start_paused = true)]
async fn what_changed_while_no_process_ran_is_read_and_repaired() {
    let mut fleet = as_desired().await;
    let desired = service(3);
    fleet.sim.drift(
        &desired.owned.id,
        "/properties/visibility",
        json!({"subscriptions": ["*"]}),
    );
    fleet.restart().await;
    let path = desired.owned.id.to_string();
    assert_eq!(
        fleet.verbs_to(|called| called == path),
        "GET PUT",
        "read before the write"
    );
    assert_eq!(fleet.sim.writes(), 1);
}

#[tokio::test(start_paused = true)]
async fn record_that_changed_while_no_process_ran_is_repaired_in_its_turn() {
    let mut fleet = as_desired().await;
    let desired = record(3, &zone(3, &internal(3)), "api");
    fleet
        .sim
        .drift(&desired.id, "/properties/aRecords/0/ipv4Address", json!("6.6.6.6"));
    fleet.restart().await;
    fleet.run(TURN).await;
    assert_eq!(desired.differs(&fleet.sim.shown(&desired.id).unwrap()), []);
    assert_eq!(fleet.sim.writes(), 1);
}

#[tokio::test(start_paused = true)]
async fn deferred_record_is_read_at_once_when_somebody_waits() {
    let mut fleet = as_desired().await;
    fleet.restart().await;
    let desired = record(3, &zone(3, &internal(3)), "api");
    let Observed::ReadFailed(deferred) = fleet.sim.read(&desired).await else {
        panic!("it was read");
    };
    assert_eq!((deferred.class, deferred.lasting), (Class::Throttled, false));
    fleet.sim.urgency = Urgency::Awaited;
    assert!(fleet.sim.read(&desired).await.found().is_some());
    fleet.sim.urgency = Urgency::Routine { served: CLUSTERS };
    assert!(fleet.sim.read(&desired).await.found().is_some(), "it stays known");
}

#[rstest]
#[case::denied(json!({"status": 403, "code": "AuthorizationFailed"}))]
#[case::without_rows(json!({"body": {"value": []}}))]
#[case::rubbish(json!({"body": {"value": [1, null, {"id": 7}, {"id": "x"}]}}))]
#[case::another_resource_of_the_name(json!({"body": {"value": others()}}))]
#[tokio::test(start_paused = true)]
async fn list_that_shows_nothing_of_use_costs_single_reads(#[case] answer: Value) {
    let mut fleet = as_desired().await;
    fleet.sim.faults(&[(json!({"path": "/privateLinkServices$"}), answer)]);
    fleet.restart().await;
    assert_eq!(fleet.single_reads("/privateLinkServices/"), CLUSTERS);
    assert_eq!(
        fleet.calls_to("/privateLinkServices"),
        1,
        "the list is not tried for each"
    );
    assert_eq!(fleet.sim.writes(), 0);
}

/// The clusters' services, in a state in which a list shows too little.
fn others() -> Vec<Value> {
    let other = |n| json!({"id": service(n).owned.id.to_string(), "properties": {"provisioningState": "Updating"}});
    (0..CLUSTERS).map(other).collect()
}

#[tokio::test(start_paused = true)]
async fn write_into_a_network_makes_no_other_subnet_be_read() {
    let mut fleet = as_desired().await;
    fleet.restart().await;
    fleet.run(ROUND).await;
    let network = nat_subnet(0).id.parent().unwrap();
    fleet.sim.drift(&network, "/etag", json!("W/\"other\""));
    fleet.sim.forget_calls();
    fleet.run(ROUND * 2).await;
    assert_eq!(fleet.single_reads("/subnets/"), 0);
}

const LEFT: &str = "x-ms-ratelimit-remaining-subscription-reads";

/// A process that begins, to which Azure says with each list of this path that nothing is left of its budget.
async fn without_a_budget(path: &str) -> Fleet {
    let mut fleet = as_desired().await;
    fleet.sim.restart();
    let empty = json!({"body": {"value": []}, "headers": {LEFT: "0"}});
    fleet.sim.faults(&[(json!({"path": path}), empty)]);
    fleet.sim.urgency = Urgency::Routine { served: CLUSTERS };
    fleet
}

#[tokio::test(start_paused = true)]
async fn what_verification_could_not_read_is_read_for_a_deletion() {
    let mut fleet = without_a_budget("/privateDnsZones$").await;
    for n in 0..CLUSTERS {
        fleet.sim.read(&zone(n, &internal(n))).await;
    }
    let last = zone(CLUSTERS - 1, &internal(CLUSTERS - 1));
    let Observed::ReadFailed(refused) = fleet.sim.read(&last).await else {
        panic!("it was read");
    };
    assert_eq!(refused.code, "WaitingForBudget");
    fleet.sim.urgency = Urgency::Awaited;
    assert!(fleet.sim.read(&last).await.found().is_some());
}

#[tokio::test(start_paused = true)]
async fn list_that_verification_could_not_read_is_read_for_a_new_cluster() {
    let fleet = without_a_budget("/privateLinkServices$").await;
    for n in 0..CLUSTERS {
        fleet.sim.read(&service(n)).await;
    }
    let management = service(0).owned.id.subscription().clone();
    let list = async |urgency| {
        let reconcile = Reconcile {
            urgency,
            ..Reconcile::begin()
        };
        let age = Duration::from_secs(1);
        fleet
            .sim
            .frontends
            .list(&fleet.sim.client, reconcile, &management, None, age)
            .await
            .1
    };
    assert!(list(fleet.sim.urgency).await.is_err());
    assert!(list(Urgency::Awaited).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn records_that_are_due_more_often_than_all_else_make_no_loop() {
    let mut fleet = as_desired().await;
    fleet.restart().await;
    fleet.sim.observations = ObservationCache::new(Duration::from_secs(300), Duration::from_secs(60));
    let zone = zone(3, &internal(3));
    let records = ["api", "*.apps"].map(|name| record(3, &zone, name));
    fleet.sim.urgency = Urgency::Awaited;
    fleet.sim.read(&zone).await;
    let (mut reads, end) = (0, Instant::now() + Duration::from_secs(3_600));
    while Instant::now() < end && reads < 1_000 {
        for record in &records {
            fleet.sim.read(record).await;
        }
        reads += 1;
        fleet.sim.wait_until_due(&records[0]).await;
    }
    assert!((40..=140).contains(&reads), "{reads} in an hour");
}
