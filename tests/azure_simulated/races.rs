//! Somebody else is quicker: between the read of a reconcile and its write.

use std::time::Duration;

use hyperlink::azure::arm::id::ResourceId;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::desired::GUEST;
use crate::whole::Life;

/// What was sent to paths with these ends, in order: verb and end of the path, and the body.
fn sent(life: &Life, ends: &[&str]) -> Vec<(String, Value)> {
    let sent = life.sim.azure.sent();
    let about = sent.iter().filter_map(|call| {
        let path = call.request.uri().path();
        let end = ends
            .iter()
            .find(|end| path.to_lowercase().ends_with(&end.to_lowercase()))?;
        let body = serde_json::from_slice(call.request.body()).unwrap_or_default();
        Some((format!("{} {end}", call.verb()), body))
    });
    about.collect()
}

#[tokio::test(start_paused = true)]
async fn another_prefix_is_chosen_at_once_in_the_network_as_it_is() {
    let life = Life::new();
    let overlap = json!({"status": 400, "code": "NetcfgSubnetRangesOverlap"});
    life.sim
        .faults(&[(json!({"method": "PUT", "path": "/subnets/x-pls-nat"}), overlap)]);
    assert_eq!(life.reconcile_management().await, Duration::ZERO);
    life.reconcile_management().await;
    let mut calls = sent(&life, &["x-pls-nat", "virtualNetworks/hub"]);
    let first = calls.iter().position(|(what, _)| what == "PUT x-pls-nat").unwrap();
    calls.drain(..first);
    let (last, between) = calls[1..].split_last().unwrap();
    assert_eq!(last.0, "PUT x-pls-nat");
    assert!(
        between.iter().any(|(what, _)| what == "GET virtualNetworks/hub"),
        "{calls:?}"
    );
    let prefix = |(_, body): &(String, Value)| body["properties"]["addressPrefix"].clone();
    assert_ne!(prefix(&calls[0]), prefix(last));
}

#[rstest]
#[case::once(1, 300)]
#[case::again_and_again(2, 1)]
#[tokio::test(start_paused = true)]
async fn resource_changed_since_the_read_is_read_once_more_at_once(#[case] times: u32, #[case] ttl: u32) {
    let mut life = Life::new();
    life.until_available().await;
    sleep(Duration::from_secs(7_200)).await;
    let zone = format!("{GUEST}/privateDnsZones/example.hypershift.local");
    let record = ResourceId::parse(&format!("{zone}/A/api")).unwrap();
    life.sim.drift(&record, "/properties/ttl", json!(1));
    let old = json!({"status": 412, "code": "PreconditionFailed"});
    life.sim
        .faults(&[(json!({"method": "PUT", "path": "/A/api$", "times": times}), old)]);
    life.sim.forget_calls();
    life.reconcile_guest().await;
    let calls = sent(&life, &["hypershift.local/A/api"]);
    let verbs: Vec<&str> = calls.iter().filter_map(|(what, _)| what.split(' ').next()).collect();
    assert_eq!(verbs, ["GET", "PUT", "GET", "PUT"]);
    assert_eq!(life.sim.shown(&record).unwrap()["properties"]["ttl"], json!(ttl));
}

/// The zone is the customer's, without owner tags and without this cluster's link. The custom resource is made by hand,
/// and its status names the zone and the address in the zone's record.
#[tokio::test(start_paused = true)]
async fn forged_status_gets_no_foreign_zone_written_or_deleted() {
    let mut life = Life::new();
    let zone = ResourceId::parse(&format!("{GUEST}/privateDnsZones/apps.example.com")).unwrap();
    let record = ResourceId::parse(&format!("{zone}/A/api-example")).unwrap();
    life.sim.install(&zone, json!({"location": "global"}));
    let foreign = json!({"properties": {"ttl": 60, "aRecords": [{"ipv4Address": "10.9.9.9"}]}});
    life.sim.install(&record, foreign);
    let before = [&zone, &record].map(|id| life.sim.shown(id));
    life.forge_status(
        json!({"baseDomainDNSZoneID": zone.to_string(), "privateEndpointIP": "10.9.9.9",
        "privateEndpointID": format!("{GUEST}/privateEndpoints/private-router-pe")}),
    );
    life.run_for(Duration::from_secs(1_800)).await;
    life.delete_now();
    life.run_for(Duration::from_secs(1_800)).await;
    assert!(!life.exists(), "{:#}", life.conditions());
    assert_eq!([&zone, &record].map(|id| life.sim.shown(id)), before);
    let written = sent(&life, &["apps.example.com", "A/api-example", "basedomain-vnet-link"]);
    assert!(written.iter().all(|(what, _)| what.starts_with("GET")), "{written:?}");
}
