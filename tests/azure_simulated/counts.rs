//! What is in a zone is read when the zone's body counts more or less of it than before.

use std::time::Duration;

use hyperlink::azure::kinds::Kind;
use hyperlink::azure::kinds::private_dns_zone::PrivateDnsZone;
use hyperlink::engine::plan::ensure_present;
use rstest::rstest;
use serde_json::json;

use crate::desired::{self, GUEST, zone_link};
use crate::fleet::{Fleet, internal, record, zone};
use crate::sim::Sim;

/// The number of clusters from which on zones are read in a list.
const MANY: usize = 10;
/// The time in which every zone is read once.
const ROUND: Duration = Duration::from_secs(330);
/// The time in which what is in zones is read once, but for links that are as desired.
const SLOW_ROUND: Duration = Duration::from_secs(2_970);

async fn at_rest(clusters: usize) -> Fleet {
    let mut fleet = Fleet::new(clusters).await;
    fleet.run(SLOW_ROUND * 2).await;
    fleet.sim.forget_calls();
    fleet
}

#[rstest]
#[case::one_zone_is_read_by_itself(1)]
#[case::many_are_read_in_a_list(MANY)]
#[tokio::test(start_paused = true)]
async fn record_that_vanished_is_made_again_in_the_round_of_its_zone(#[case] clusters: usize) {
    let mut fleet = at_rest(clusters).await;
    let desired = record(0, &zone(0, &internal(0)), "api");
    fleet.sim.remove(&desired.id);
    fleet.run(ROUND * 3).await;
    assert!(fleet.sim.shown(&desired.id).is_some());
    assert_eq!(
        (fleet.sim.writes(), fleet.calls_to("/ALL") + fleet.calls_to("/A")),
        (1, 1)
    );
    let singles = fleet.single_reads("/A/");
    assert_eq!(singles, 3, "the missing one twice, and once after the write");
}

#[rstest]
#[case::one_zone_is_read_by_itself(1)]
#[case::many_are_read_in_a_list(MANY)]
#[tokio::test(start_paused = true)]
async fn link_that_vanished_or_registers_names_is_repaired_soon(#[case] clusters: usize) {
    let mut fleet = at_rest(clusters).await;
    let link = |zone: PrivateDnsZone| {
        let link = zone.id.child(Kind::VirtualNetworkLink, "private-router-vnet-link");
        link.unwrap()
    };
    let vanished = link(zone(0, &internal(0)));
    let registering = link(zone(0, "apps0.example.com"));
    fleet.sim.remove(&vanished);
    fleet
        .sim
        .drift(&registering, "/properties/registrationEnabled", json!(true));
    fleet.run(ROUND * 2).await;
    assert!(fleet.sim.shown(&vanished).is_some());
    let shown = fleet.sim.shown(&registering).unwrap();
    assert_eq!(shown["properties"]["registrationEnabled"], false);
    assert_eq!(fleet.sim.writes(), 2);
}

#[tokio::test(start_paused = true)]
async fn records_that_others_add_without_end_are_read_once_a_round() {
    let mut fleet = at_rest(1).await;
    let zone = zone(0, &internal(0));
    for n in 0..10 {
        let theirs = zone.id.child(Kind::RecordSet, &format!("theirs-{n}")).unwrap();
        fleet
            .sim
            .install(&theirs, json!({"properties": {"ttl": 60, "aRecords": []}}));
        fleet.run(ROUND).await;
    }
    let lists = fleet.calls_to("/ALL") + fleet.calls_to("/A");
    assert!((9..=14).contains(&lists), "{lists}");
    assert_eq!((fleet.sim.writes(), fleet.single_reads("/A/")), (0, 0));
}

/// Own records and links change what the zone counts too.
#[tokio::test(start_paused = true)]
async fn what_this_process_wrote_is_no_suspicion() {
    let mut fleet = Fleet::new(1).await;
    fleet.sim.let_operations_end().await;
    fleet.sim.forget_calls();
    fleet.run(ROUND * 2).await;
    assert_eq!(fleet.calls_to("/ALL") + fleet.calls_to("/A"), 0);
    assert_eq!(fleet.single_reads("/virtualNetworkLinks/"), 0);
}

/// Whoever gives a link of somebody else to the cluster changes its tags only, and waits for that to be found.
#[tokio::test(start_paused = true)]
async fn only_a_link_that_is_as_desired_is_read_seldom() {
    let mut sim = Sim::new();
    sim.until_present(&desired::zone()).await;
    sim.until_present(&zone_link()).await;
    assert!(sim.due_in(&zone_link()) > 5 * 2_430, "{}", sim.due_in(&zone_link()));

    let mut sim = Sim::new();
    sim.until_present(&desired::zone()).await;
    let theirs = json!({"properties": {"virtualNetwork": {"id": format!("{GUEST}/virtualNetworks/stranger")}}});
    sim.install(&zone_link().id, theirs);
    sim.reconcile(ensure_present, &zone_link()).await;
    assert!(sim.due_in(&zone_link()) <= 2_970, "{}", sim.due_in(&zone_link()));
}
