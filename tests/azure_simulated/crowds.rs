//! Many clusters that are created at once: lists take the place of a read of each zone, before its create and after.

use std::time::Duration;

use hyperlink::azure::cloud::Observed;
use hyperlink::azure::plan::Outcome;
use hyperlink::engine::plan::{Verb, ensure_present};
use hyperlink::engine::urgency::Urgency;
use serde_json::json;
use tokio::time::Instant;

use crate::desired::GUEST_SUB;
use crate::fleet::{Fleet, Group, internal, nat_subnet, seed_for, service, zone, zone_with_content};
use crate::sim::Sim;

/// How many clusters are created.
const CROWD: usize = 60;
/// How many clusters are created with all that is in their zones.
const MANY: usize = 100;
/// The number of creates under way from which on a list costs less than a read of each.
const FEW: usize = 10;
/// The time in which all zones are ready.
const READY: Duration = Duration::from_secs(120);

/// The zones of a crowd, before anything is read. Each is the only resource of its cluster.
fn crowd() -> Fleet {
    let groups = (0..CROWD).map(|n| -> Group { vec![Box::new(zone(n, &internal(n)))] });
    Fleet {
        sim: Sim::seeded(&seed_for(CROWD)),
        groups: groups.collect(),
    }
}

/// Reconciles each cluster for the first time.
async fn begin(fleet: &mut Fleet, urgency: Urgency) {
    fleet.sim.urgency = urgency;
    for at in 0..fleet.groups.len() {
        for desired in &fleet.groups[at] {
            fleet.sim.reconcile(ensure_present, desired.as_ref()).await;
        }
    }
    fleet.sim.urgency = Urgency::Awaited;
}

fn missing(fleet: &Fleet) -> usize {
    let zones = (0..CROWD).map(|n| zone(n, &internal(n)));
    zones.filter(|zone| fleet.sim.shown(&zone.id).is_none()).count()
}

#[tokio::test(start_paused = true)]
async fn zones_of_a_crowd_are_read_in_lists_before_and_after() {
    let mut fleet = crowd();
    begin(&mut fleet, Urgency::New).await;
    assert_eq!(fleet.single_reads("/privateDnsZones/"), FEW);
    let lists = fleet.calls_to("/privateDnsZones");
    assert!((1..=3).contains(&lists), "{lists}");

    fleet.run(READY).await;
    assert_eq!(missing(&fleet), 0);
    assert_eq!(fleet.sim.writes(), CROWD, "each is put once");
    let singly = fleet.single_reads("/privateDnsZones/");
    assert!(singly <= 2 * FEW + CROWD / 10, "{singly}");
    let lists = fleet.calls_to("/privateDnsZones");
    assert!(lists <= 10, "{lists}");
}

/// Azure shows a service from its PUT on, in progress for longer than the first wait.
#[tokio::test(start_paused = true)]
async fn services_that_a_list_shows_in_progress_are_read_again_soon() {
    let mut sim = Sim::seeded(&seed_for(CROWD));
    for n in 0..CROWD {
        sim.until_present(&nat_subnet(n)).await;
    }
    let groups = (0..CROWD).map(|n| -> Group { vec![Box::new(service(n))] });
    let mut fleet = Fleet {
        groups: groups.collect(),
        sim,
    };
    fleet.sim.forget_calls();
    begin(&mut fleet, Urgency::New).await;
    fleet.run(Duration::from_secs(40)).await;
    let ready = (0..CROWD).filter(|n| {
        let known = fleet.sim.observations.fresh(&service(*n).owned.id, Instant::now());
        matches!(known, Some(Observed::Found(body)) if body["properties"]["provisioningState"] == "Succeeded")
    });
    assert_eq!(ready.count(), CROWD, "each is known to be ready");
    assert_eq!(fleet.sim.writes(), CROWD);
    let (lists, singly) = (
        fleet.calls_to("/privateLinkServices"),
        fleet.single_reads("/privateLinkServices/"),
    );
    assert!(
        singly <= CROWD + 2 * FEW && (1..=10).contains(&lists),
        "{singly} {lists}"
    );
}

#[tokio::test(start_paused = true)]
async fn absence_in_a_list_counts_for_nothing_that_was_recorded() {
    let mut fleet = crowd();
    begin(&mut fleet, Urgency::Awaited).await;
    assert_eq!(fleet.single_reads("/privateDnsZones/"), CROWD);
    assert_eq!(fleet.calls_to("/privateDnsZones"), 0);
}

#[tokio::test(start_paused = true)]
async fn foreign_zone_that_the_list_does_not_show_is_not_written() {
    let mut fleet = crowd();
    let theirs = zone(CROWD - 1, &internal(CROWD - 1)).id;
    let body = json!({"location": "global", "tags": {"owner": "somebody else"}});
    fleet.sim.install(&theirs, body);
    let before = fleet.sim.shown(&theirs).unwrap();
    let lists = json!({"method": "GET", "path": format!("^/subscriptions/{GUEST_SUB}/providers.*/privateDnsZones$"), "times": 1_000});
    fleet
        .sim
        .faults(&[(lists, json!({"status": 200, "body": {"value": []}}))]);
    begin(&mut fleet, Urgency::New).await;
    fleet.run(READY).await;
    assert_eq!(missing(&fleet), 0);
    assert_eq!(fleet.sim.shown(&theirs).unwrap(), before);
    let path = theirs.to_string();
    let sent = fleet.verbs_to(|called| called == path);
    assert_eq!(sent, "PUT GET", "refused, then read, then left alone");
}

#[tokio::test(start_paused = true)]
async fn create_that_fails_is_noticed_beside_a_list() {
    let mut fleet = crowd();
    let failed = zone(CROWD - 1, &internal(CROWD - 1));
    let once = json!({"method": "PUT", "path": format!("{}$", failed.id), "times": 1});
    let fails = json!({"operation": "fail", "operation_error": {"code": "InternalServerError", "message": "m"}});
    fleet.sim.faults(&[(once, fails)]);
    begin(&mut fleet, Urgency::New).await;
    fleet.run(READY * 2).await;
    assert_eq!(missing(&fleet), 0, "it is put again");
    assert_eq!(fleet.sim.writes(), CROWD + 1);
}

/// One pass over a cluster's two zones with what is in them: a zone that is not ready holds up what is in it. Whether all
/// is as desired.
async fn is_up(fleet: &mut Fleet, at: usize) -> bool {
    let mut all = true;
    for zone in fleet.groups[at].chunks(4) {
        for (nth, desired) in zone.iter().enumerate() {
            let (step, outcome) = fleet.sim.reconcile(ensure_present, desired.as_ref()).await;
            let is_there = step.verb == Verb::Keep || outcome == Outcome::Ready;
            all &= is_there;
            if nth == 0 && !is_there {
                break;
            }
        }
    }
    all
}

/// Azure allows as many reads of private DNS in five minutes as there are clusters, as for 500 of one subscription.
/// Whoever waits for the budget must not spend it on what is known to be ready.
#[tokio::test(start_paused = true)]
async fn crowd_beyond_the_budget_of_reads_verifies_later() {
    let mut seed = seed_for(MANY);
    seed["throttle"] = json!({"dns_reads_5min": 100});
    let groups = (0..MANY).map(|n| -> Group {
        let mut group = zone_with_content(n, &internal(n), ["api", "*.apps"]);
        let (api, oauth) = (format!("api-c{n}"), format!("oauth-c{n}"));
        group.extend(zone_with_content(n, &format!("apps{n}.example.com"), [&api, &oauth]));
        group
    });
    let mut fleet = Fleet {
        sim: Sim::seeded(&seed),
        groups: groups.collect(),
    };
    let began = Instant::now();
    let mut up = vec![None; MANY];
    fleet.sim.urgency = Urgency::New;
    for (at, up) in up.iter_mut().enumerate() {
        *up = is_up(&mut fleet, at).await.then(|| began.elapsed());
    }
    while up.iter().any(Option::is_none) && began.elapsed() < Duration::from_secs(7_200) {
        tokio::time::sleep(Duration::from_secs(1)).await;
        for (at, up) in up.iter_mut().enumerate() {
            let keys = fleet.groups[at].iter().map(|desired| desired.key());
            let due = fleet.sim.observations.next_read(keys);
            if due.is_some_and(|due| due > Instant::now()) {
                continue;
            }
            fleet.sim.urgency = match up {
                Some(_) => Urgency::Routine { served: MANY },
                None => Urgency::Awaited,
            };
            let is_up = is_up(&mut fleet, at).await;
            *up = up.or(is_up.then(|| began.elapsed()));
        }
    }
    let last = up.iter().flatten().max().unwrap();
    assert!(
        up.iter().all(Option::is_some) && *last < Duration::from_secs(2_700),
        "{up:?}"
    );
    let reads = fleet.verbs_to(|path| path.contains("privateDnsZones"));
    let reads = reads.matches("GET").count();
    assert!(reads <= 9 * MANY, "{reads}");
    assert_eq!(fleet.sim.writes(), 8 * MANY + 1);
}
