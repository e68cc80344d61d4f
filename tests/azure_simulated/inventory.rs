//! Reads of ready resources come from lists that all clusters share. What a list shows differently is read before
//! anything is done.

use std::time::Duration;

use futures::future::join_all;
use hyperlink::azure::arm::ports::CallVerb;
use hyperlink::azure::cloud::Observed;
use hyperlink::engine::plan::ensure_present;
use hyperlink::engine::resource::Resource;
use hyperlink::engine::urgency::Urgency;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::fleet::{Fleet, internal, nat_subnet, record, service, zone};

/// The number of clusters from which on a list costs less than single reads.
const MANY: usize = 10;
/// The time in which every read is due once, except those of what is in zones.
const ROUND: Duration = Duration::from_secs(330);
/// The time in which reads of what is in zones are due once.
const SLOW_ROUND: Duration = Duration::from_secs(2_970);

const SHARED: [&str; 4] = [
    "/privateLinkServices",
    "/privateEndpoints",
    "/privateDnsZones",
    "/subnets",
];

async fn at_rest(clusters: usize) -> Fleet {
    at_rest_for(clusters, ROUND * 2).await
}

async fn at_rest_for(clusters: usize, span: Duration) -> Fleet {
    let mut fleet = Fleet::new(clusters).await;
    fleet.run(span).await;
    fleet.sim.forget_calls();
    fleet
}

/// The list comes from a front end that is ahead of the one that answers the read.
#[tokio::test(start_paused = true)]
async fn read_that_is_behind_the_list_hides_no_drift() {
    let mut fleet = at_rest(MANY).await;
    let desired = service(3);
    let id = &desired.owned.id;
    let before = fleet.sim.shown(id).unwrap();
    fleet
        .sim
        .drift(id, "/properties/visibility", json!({"subscriptions": ["*"]}));
    let once = json!({"method": "GET", "path": format!("{id}$"), "times": 1});
    fleet.sim.faults(&[(once, json!({"status": 200, "body": before}))]);
    fleet.run(ROUND * 2).await;
    assert_eq!(desired.differs(&fleet.sim.shown(id).unwrap()), []);
    assert_eq!(fleet.sim.writes(), 1);
}

/// The figure for 500 clusters in one subscription, from a measurement of few: each list with its pages counts once for
/// all.
#[tokio::test(start_paused = true)]
async fn cluster_at_rest_takes_a_third_of_a_call_in_five_minutes() {
    let mut fleet = at_rest_for(MANY, SLOW_ROUND * 2).await;
    let rounds = 36.0;
    fleet.run(Duration::from_secs(300) * 36).await;
    let shared: usize = SHARED.iter().map(|end| fleet.calls_to(end)).sum();
    let own = fleet.sim.azure.sent().len() - shared;
    let zones = fleet.calls_to("/privateDnsZones");
    // 1,000 zones take ten pages; a page of the other lists has 1,000 rows. The list of load balancers is one more.
    let of_500 = (shared + 9 * zones) as f64 / rounds + 1.2;
    let figure = own as f64 / MANY as f64 / rounds + of_500 / 500.0;
    assert!(
        (0.2..=0.3).contains(&figure),
        "{figure}: {own} calls of their own, {shared} shared"
    );
    assert_eq!(fleet.sim.writes(), 0);
    assert_eq!(fleet.single_reads("/privateLinkServices/"), 0);
}

#[tokio::test(start_paused = true)]
async fn few_clusters_are_read_one_by_one() {
    let mut fleet = at_rest(4).await;
    fleet.run(ROUND).await;
    let lists: usize = SHARED.iter().map(|end| fleet.calls_to(end)).sum();
    assert_eq!(lists, 0);
    assert!(fleet.single_reads("/privateLinkServices/") >= 4);
}

#[tokio::test(start_paused = true)]
async fn drift_that_a_list_shows_is_read_before_it_is_repaired() {
    let mut fleet = at_rest(MANY).await;
    let desired = service(3);
    fleet.sim.drift(
        &desired.owned.id,
        "/properties/visibility",
        json!({"subscriptions": ["*"]}),
    );
    fleet.run(ROUND).await;
    assert_eq!(desired.differs(&fleet.sim.shown(&desired.owned.id).unwrap()), []);
    let path = desired.owned.id.to_string();
    let sent = fleet.verbs_to(|called| called == path);
    assert_eq!(sent, "GET PUT GET");
    assert_eq!(fleet.sim.writes(), 1);
    assert_eq!(
        fleet.single_reads("/privateLinkServices/"),
        2,
        "the others are not read"
    );
    fleet.sim.forget_calls();
    fleet.run(ROUND * 2).await;
    assert_eq!(
        (fleet.sim.writes(), fleet.single_reads("/privateLinkServices/")),
        (0, 1),
        "once more, then from the list"
    );
}

#[tokio::test(start_paused = true)]
async fn record_that_a_list_shows_with_another_address_is_repaired() {
    let mut fleet = at_rest_for(1, SLOW_ROUND * 2).await;
    let desired = record(0, &zone(0, &internal(0)), "api");
    fleet
        .sim
        .drift(&desired.id, "/properties/aRecords/0/ipv4Address", json!("6.6.6.6"));
    fleet.run(SLOW_ROUND).await;
    assert_eq!(desired.differs(&fleet.sim.shown(&desired.id).unwrap()), []);
    assert_eq!(
        (fleet.sim.writes(), fleet.calls_to("/A")),
        (1, 2),
        "a list of each zone"
    );
    assert_eq!(fleet.single_reads("/A/"), 2, "before the write, and a while after it");
}

/// What a list shows or does not show is only a suspicion.
#[rstest]
#[case::shows_none(json!({"value": []}))]
#[case::shows_others(json!({"value": [{"id": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/privateLinkServices/other"}]}))]
#[case::shows_rubbish(json!({"value": [1, null, {"id": 7}, {"id": "x"}]}))]
#[case::shows_all_otherwise(json!({"value": others()}))]
#[tokio::test(start_paused = true)]
async fn wrong_list_writes_nothing(#[case] body: Value) {
    let mut fleet = at_rest(MANY).await;
    fleet
        .sim
        .faults(&[(json!({"path": "/privateLinkServices$"}), json!({"body": body}))]);
    fleet.run(ROUND).await;
    assert_eq!(fleet.sim.writes(), 0);
    assert_eq!(fleet.single_reads("/privateLinkServices/"), MANY);
}

/// The cluster's services as somebody else's that forward elsewhere.
fn others() -> Vec<Value> {
    let other = |n| json!({"id": service(n).owned.id.to_string(), "properties": {"provisioningState": "Succeeded"}});
    (0..MANY).map(other).collect()
}

#[tokio::test(start_paused = true)]
async fn resource_that_vanished_from_the_list_is_recreated() {
    let mut fleet = at_rest(MANY).await;
    let desired = zone(5, &internal(5));
    fleet.sim.remove(&desired.id);
    fleet.run(ROUND).await;
    assert!(fleet.sim.shown(&desired.id).is_some());
    let path = desired.id.to_string();
    assert!(
        fleet.verbs_to(|called| called == path).starts_with("GET GET PUT"),
        "read twice, then written"
    );
}

#[tokio::test(start_paused = true)]
async fn denied_list_is_left_alone_for_an_hour_and_each_is_read() {
    let mut fleet = at_rest(MANY).await;
    let denied = json!({"status": 403, "code": "AuthorizationFailed", "message": "denied"});
    fleet
        .sim
        .faults(&[(json!({"path": "/privateEndpoints$", "times": 1_000}), denied)]);
    fleet.run(Duration::from_secs(3_300)).await;
    assert_eq!(fleet.calls_to("/privateEndpoints"), 1);
    let reads = fleet.single_reads("/privateEndpoints/");
    assert!((MANY * 10..=MANY * 15).contains(&reads), "{reads}");
    assert_eq!(fleet.single_reads("/privateLinkServices/"), 0, "other lists go on");
    fleet.sim.faults(&[]);
    fleet.run(Duration::from_secs(1_200)).await;
    fleet.sim.forget_calls();
    fleet.run(ROUND * 2).await;
    assert_eq!(fleet.single_reads("/privateEndpoints/"), 0, "allowed again");
}

#[tokio::test(start_paused = true)]
async fn failed_list_is_replaced_by_single_reads_until_it_is_answered() {
    let mut fleet = at_rest(MANY).await;
    let path = json!({"path": "/privateLinkServices$", "times": 2});
    fleet.sim.faults(&[(
        path,
        json!({"status": 500, "code": "InternalServerError", "message": "x"}),
    )]);
    fleet.run(ROUND).await;
    assert!(fleet.single_reads("/privateLinkServices/") >= 1);
    fleet.run(ROUND * 2).await;
    fleet.sim.forget_calls();
    fleet.run(ROUND * 2).await;
    assert_eq!(fleet.single_reads("/privateLinkServices/"), 0);
}

#[rstest]
#[case::at_rest(Urgency::Routine { served: MANY })]
#[case::somebody_waits_for_something_else(Urgency::Awaited)]
#[tokio::test(start_paused = true)]
async fn list_that_never_comes_holds_nobody_for_long(#[case] urgency: Urgency) {
    let mut fleet = at_rest(MANY).await;
    sleep(ROUND).await;
    fleet.sim.urgency = urgency;
    let path = json!({"path": "/privateLinkServices$", "times": 1_000});
    fleet.sim.faults(&[(path, json!({"delay_ms": 3_600_000}))]);
    let times = read_at_once(&fleet).await;
    assert_eq!(times.iter().filter(|time| time.as_secs() == 20).count(), 1, "{times:?}");
    assert_eq!(
        times.iter().filter(|time| time.as_secs() == 2).count(),
        MANY - 1,
        "{times:?}"
    );
    assert_eq!(fleet.sim.calls(), "GET GET", "the list, and one by its reader");
    let calls = fleet.sim.counted.calls.lock().unwrap();
    let given_up = calls
        .iter()
        .filter(|call| call.verb == CallVerb::List && call.status == 0);
    assert_eq!(
        given_up.map(|call| call.took.as_secs()).collect::<Vec<_>>(),
        [20],
        "it counts"
    );
}

/// How long each of the clusters' services took to be read, all at once. Each is observed as it is.
async fn read_at_once(fleet: &Fleet) -> Vec<Duration> {
    let all_desired: Vec<_> = (0..MANY).map(service).collect();
    let reads = all_desired.iter().map(async |desired| {
        let began = Instant::now();
        let observed = fleet.sim.read(desired).await;
        assert!(matches!(observed, Observed::Found(_)), "{observed:?}");
        began.elapsed()
    });
    join_all(reads).await
}

#[tokio::test(start_paused = true)]
async fn all_who_ask_at_once_share_one_list() {
    let fleet = at_rest(MANY).await;
    sleep(ROUND).await;
    fleet.sim.azure.set_latency(Duration::from_millis(300));
    let all_desired: Vec<_> = (0..MANY).map(service).collect();
    join_all(all_desired.iter().map(|desired| fleet.sim.read(desired))).await;
    assert_eq!(fleet.sim.calls(), "GET");
}

#[tokio::test(start_paused = true)]
async fn list_of_several_pages_serves_all() {
    let mut fleet = at_rest(MANY).await;
    for n in 0..120 {
        let other = zone(0, &format!("other{n}.example.net"));
        fleet.sim.install(&other.id, json!({"location": "global"}));
    }
    fleet.run(ROUND).await;
    let (pages, singles) = (
        fleet.calls_to("/privateDnsZones"),
        fleet.single_reads("/privateDnsZones/"),
    );
    assert!((2..=4).contains(&pages), "{pages}");
    assert_eq!(singles, 0);
}

#[tokio::test(start_paused = true)]
async fn list_with_more_of_others_than_it_is_worth_is_left_alone() {
    let mut fleet = at_rest(MANY).await;
    let row = json!({"id": nat_subnet(0).id.to_string()});
    let rows = vec![row; MANY * 100 + 1];
    fleet
        .sim
        .faults(&[(json!({"path": "/subnets$"}), json!({"body": {"value": rows}}))]);
    fleet.run(ROUND * 3).await;
    assert_eq!(fleet.calls_to("/subnets"), 1);
    assert!(fleet.single_reads("/subnets/") >= 2 * MANY);
}

#[tokio::test(start_paused = true)]
async fn what_is_to_be_written_is_never_taken_from_a_list() {
    let mut fleet = at_rest(MANY).await;
    sleep(ROUND).await;
    // From now on another state is desired. The list is read in this very reconcile, and still the resource itself is
    // read.
    let mut desired = service(2);
    desired.subscriptions.clear();
    fleet.sim.reconcile(ensure_present, &desired).await;
    assert_eq!(
        (fleet.sim.calls().as_str(), fleet.calls_to("/privateLinkServices")),
        ("GET GET PUT", 1)
    );
}
