//! What is in a zone is read when the zone's body counts more or less of it than before.

use std::time::Duration;

use hyperlink::azure::cloud::Arm;
use hyperlink::azure::kinds::Kind;
use hyperlink::azure::kinds::private_dns_zone::PrivateDnsZone;
use hyperlink::azure::kinds::virtual_network_link::VirtualNetworkLink;
use hyperlink::azure::owner_tags::OwnerTags;
use hyperlink::engine::plan::ensure_present;
use hyperlink::engine::resource::Resource;
use rstest::rstest;
use serde_json::json;

use crate::desired::{self, GUEST, NET, id, zone_link};
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
    assert_eq!(
        singles, 4,
        "the missing one twice and after its write, the other one when no read is behind any more"
    );
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
async fn records_that_others_add_without_end_are_read_twice_a_round() {
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
    assert!((18..=24).contains(&lists), "{lists}");
    assert_eq!((fleet.sim.writes(), fleet.single_reads("/A/")), (0, 0));
}

/// Own records and links change what the zone counts too.
#[tokio::test(start_paused = true)]
async fn what_this_process_wrote_is_no_suspicion() {
    let mut fleet = Fleet::new(1).await;
    fleet.sim.forget_calls();
    fleet.run(ROUND * 2).await;
    assert_eq!(
        (fleet.calls_to("/A"), fleet.single_reads("/virtualNetworkLinks/")),
        (0, 0)
    );
    assert_eq!(fleet.single_reads("/A/"), 4, "each once after its write");
}

/// Whoever gives a link of somebody else to the cluster changes its tags only, and waits for that to be found.
#[tokio::test(start_paused = true)]
async fn only_a_counted_link_that_is_as_desired_is_read_seldom() {
    let mut sim = Sim::new();
    let (zone, link) = (desired::zone(), zone_link());
    for desired in [&zone as &dyn Resource<Arm>, &link] {
        sim.until_present(desired).await;
    }
    assert!(
        sim.due_in(&link) <= 2_970,
        "its number is not known: {}",
        sim.due_in(&link)
    );
    for desired in [&zone as &dyn Resource<Arm>, &link] {
        sim.wait_until_due(desired).await;
        sim.reconcile(ensure_present, desired).await;
    }
    assert!(sim.due_in(&link) > 5 * 2_430, "{}", sim.due_in(&link));

    let mut sim = Sim::new();
    sim.until_present(&zone).await;
    let theirs = json!({"properties": {"virtualNetwork": {"id": format!("{GUEST}/virtualNetworks/stranger")}}});
    sim.install(&link.id, theirs);
    for _ in 0..2 {
        sim.wait_until_due(&zone).await;
        sim.reconcile(ensure_present, &zone).await;
        sim.reconcile(ensure_present, &link).await;
        assert!(sim.due_in(&link) <= 2_970, "{}", sim.due_in(&link));
    }
}

/// Azure may show a link for a while that it has deleted.
#[tokio::test(start_paused = true)]
async fn link_that_is_shown_after_its_deletion_is_made_again_all_the_same() {
    let mut fleet = at_rest(1).await;
    let zone = zone(0, &internal(0)).id;
    let link = zone
        .child(Kind::VirtualNetworkLink, "private-router-vnet-link")
        .unwrap();
    let still = fleet.sim.shown(&link).unwrap();
    let theirs = zone.child(Kind::VirtualNetworkLink, "theirs").unwrap();
    let elsewhere = json!({"properties": {"virtualNetwork": {"id": format!("{NET}/virtualNetworks/hub")}}});
    fleet.sim.install(&theirs, elsewhere);
    fleet.run(SLOW_ROUND).await;
    fleet.sim.remove(&link);
    let shows = json!({"method": "GET", "path": "/virtualNetworkLinks/private-router-vnet-link$", "times": 1});
    fleet.sim.faults(&[(shows, json!({"status": 200, "body": still}))]);
    fleet.run(ROUND * 2).await;
    assert!(fleet.sim.shown(&link).is_some());
    assert_eq!(fleet.sim.writes(), 1);
}

#[tokio::test(start_paused = true)]
async fn link_that_vanishes_while_another_one_is_made_is_made_again() {
    let mut fleet = at_rest(1).await;
    let zone = zone(0, &internal(0)).id;
    let link = |name: &str| zone.child(Kind::VirtualNetworkLink, name).unwrap();
    let vanished = link("private-router-vnet-link");
    let another = VirtualNetworkLink {
        id: link("another"),
        owner_tags: OwnerTags {
            owner: ("cluster".into(), "0".into()),
            ..OwnerTags::default()
        },
        virtual_network: id(&format!("{NET}/virtualNetworks/hub")),
        proven: true,
    };
    fleet.sim.remove(&vanished);
    fleet.sim.until_present(&another).await;
    fleet.run(ROUND * 2).await;
    assert!(fleet.sim.shown(&vanished).is_some());
}

#[tokio::test(start_paused = true)]
async fn link_that_vanishes_before_its_zone_was_read_again_is_made_again() {
    let mut fleet = Fleet::new(1).await;
    fleet.sim.let_operations_end().await;
    let zone = zone(0, &internal(0)).id;
    let link = zone
        .child(Kind::VirtualNetworkLink, "private-router-vnet-link")
        .unwrap();
    fleet.sim.remove(&link);
    fleet.run(ROUND * 2).await;
    assert!(fleet.sim.shown(&link).is_some());
}
