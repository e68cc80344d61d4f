//! The whole path, and each hop broken once.

use armsim::HopKind;
use rstest::rstest;
use serde_json::{Value, json};

use crate::dns_support::{Sim, a, link_to, vnet, zone};
use crate::{ADDRESS, NAME, ZONE, balancer, endpoint, in_place, link_service, link_service_body, subnet};

#[test]
fn a_worker_reaches_the_service_by_every_name() {
    let mut sim = in_place();
    for name in [NAME, "API.Mine.hypershift.local.", "x.apps.mine.hypershift.local"] {
        let walk = sim.walk(name);
        assert_eq!((walk.ok, walk.why.as_deref()), (true, None));
        assert_eq!(walk.address.as_deref(), Some(ADDRESS));
        let hops: Vec<HopKind> = walk.path.iter().map(|hop| hop.hop).collect();
        assert_eq!(
            hops,
            [
                HopKind::Zone,
                HopKind::Link,
                HopKind::Record,
                HopKind::Endpoint,
                HopKind::Connection,
                HopKind::LinkService,
                HopKind::Frontend,
                HopKind::Service
            ]
        );
        assert_eq!(walk.path[7].id, "clusters-mine/private-router");
    }
}

#[test]
fn the_answer_has_the_fixed_form() {
    let mut sim = in_place();
    let walk = serde_json::to_value(sim.walk(NAME)).unwrap();
    let keys: Vec<&String> = walk.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["address", "ok", "path"]);
    assert_eq!(walk["path"][5]["hop"], "link_service");
    for hop in walk["path"].as_array().unwrap() {
        let keys: Vec<&String> = hop.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["detail", "hop", "id"]);
    }
    let failed = serde_json::to_value(sim.walk("elsewhere.example.com")).unwrap();
    assert_eq!(
        failed,
        json!({"ok": false, "path": [], "why": "zone: no private zone holds elsewhere.example.com"})
    );
}

type Break = fn(&mut Sim);

/// A CNAME in the place of the address.
fn alias(sim: &mut Sim, record: Value) {
    sim.drop(&format!("{}/A/api", zone(ZONE)));
    let mut body = json!({"properties": {"ttl": 1}});
    if !record.is_null() {
        body["properties"]["cnameRecord"] = record;
    }
    assert_eq!(sim.put(&format!("{}/CNAME/api", zone(ZONE)), body).status, 201);
}

#[rstest]
#[case::zone_gone("zone: no private zone holds", |sim: &mut Sim| {
    sim.drop(&format!("{}/virtualNetworkLinks/l", zone(ZONE)));
    sim.drop(&zone(ZONE));
})]
#[case::vnet_with_its_own_dns("zone: the virtual network asks its own DNS servers (10.9.9.9)", |sim: &mut Sim| {
    sim.drift(&vnet("vnet1"), json!({"location": "westus2", "properties": {
        "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}, "dhcpOptions": {"dnsServers": ["10.9.9.9"]},
    }}));
})]
#[case::not_linked("link: mine.hypershift.local is not linked", |sim: &mut Sim| {
    sim.drop(&format!("{}/virtualNetworkLinks/l", zone(ZONE)));
})]
#[case::linked_elsewhere("link: mine.hypershift.local is not linked", |sim: &mut Sim| {
    sim.drift(&format!("{}/virtualNetworkLinks/l", zone(ZONE)), link_to(&vnet("vnet2")));
})]
#[case::no_record("record: mine.hypershift.local has no record", |sim: &mut Sim| {
    sim.drop(&format!("{}/A/api", zone(ZONE)));
})]
#[case::record_of_another_type("record: mine.hypershift.local has no A record", |sim: &mut Sim| {
    sim.drop(&format!("{}/A/api", zone(ZONE)));
    sim.drift(&format!("{}/TXT/api", zone(ZONE)), json!({"properties": {"txtRecords": [{"value": ["x"]}]}}));
})]
#[case::empty_record("record: ", |sim: &mut Sim| sim.drift(&format!("{}/A/api", zone(ZONE)), a(&[])))]
#[case::shadowed_by_a_longer_zone("record: api.mine.hypershift.local has no A record", |sim: &mut Sim| {
    sim.make_zone(NAME);
    sim.link(NAME, "l", "vnet1");
})]
#[case::alias_to_a_public_name(
    "zone: no private zone holds www.example.org, the target of the CNAME api.mine.hypershift.local; public DNS is not simulated",
    |sim: &mut Sim| alias(sim, json!({"cname": "www.example.org."}))
)]
#[case::alias_into_a_zone_that_is_not_linked(
    "link: example.org is not linked to the virtual network, the target of the CNAME api.mine.hypershift.local",
    |sim: &mut Sim| {
        sim.make_zone("example.org");
        alias(sim, json!({"cname": "www.example.org"}));
    }
)]
#[case::alias_without_a_target("record: ", |sim: &mut Sim| alias(sim, Value::Null))]
#[case::circle_of_aliases("record: more than 8 CNAMEs", |sim: &mut Sim| {
    sim.drop(&format!("{}/A/api", zone(ZONE)));
    sim.drift(&format!("{}/CNAME/api", zone(ZONE)), json!({"properties": {"cnameRecord": {"cname": NAME}}}));
})]
#[case::nobody_has_the_address("endpoint: nothing in the virtual network has 10.0.0.99", |sim: &mut Sim| {
    sim.drift(&format!("{}/A/api", zone(ZONE)), a(&["10.0.0.99"]));
})]
#[case::endpoint_in_another_vnet("endpoint: nothing in the virtual network has 10.1.0.6; /subscriptions/s1/", |sim: &mut Sim| {
    let address = sim.add_endpoint("pe2", "vnet2");
    sim.decide("pe2", "Approved");
    sim.point(&[&address]);
})]
#[case::one_of_two_values_is_stale("endpoint: nothing in the virtual network has 10.0.0.99 (10.0.0.99 is one of 2 values)", |sim: &mut Sim| {
    sim.point(&[ADDRESS, "10.0.0.99"]);
})]
#[case::endpoint_still_being_made("endpoint: ", |sim: &mut Sim| {
    let mut body = sim.get(&endpoint("pe1")).body;
    body["tags"] = json!({"a": "b"});
    body["properties"].as_object_mut().unwrap().remove("ipConfigurations");
    sim.drop(&endpoint("pe1"));
    assert_eq!(sim.put(&endpoint("pe1"), body).status, 201);
    let shown = sim.get(&format!("{}?$expand=networkInterfaces", endpoint("pe1"))).body;
    let nic = &shown["properties"]["networkInterfaces"][0]["properties"];
    let address = nic["ipConfigurations"][0]["properties"]["privateIPAddress"].as_str().unwrap().to_owned();
    sim.point(&[&address]);
})]
#[case::address_of_something_else("endpoint: ", |sim: &mut Sim| {
    let nic = sim.get(&link_service()).body["properties"]["networkInterfaces"][0]["id"].as_str().unwrap().to_owned();
    let mut body = sim.get(&nic).body;
    body["properties"]["ipConfigurations"][0]["properties"]["subnet"]["id"] = json!(subnet("vnet1"));
    body["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"] = json!("10.0.0.77");
    sim.drift(&nic, body);
    sim.point(&["10.0.0.77"]);
})]
#[case::pending("connection: ", |sim: &mut Sim| {
    let address = sim.add_endpoint("pe2", "vnet1");
    sim.point(&[&address]);
})]
#[case::rejected("connection: ", |sim: &mut Sim| sim.decide("pe1", "Rejected"))]
#[case::connection_removed("connection: ", |sim: &mut Sim| {
    let connection = sim.connection("pe1");
    assert_eq!(sim.delete(&connection).status, 202);
    sim.wait(60);
})]
#[case::link_service_gone("connection: ", |sim: &mut Sim| sim.drop(&link_service()))]
#[case::link_service_made_again("connection: ", |sim: &mut Sim| {
    sim.drop(&link_service());
    assert_eq!(sim.put(&link_service(), link_service_body()).status, 201);
    sim.wait(60);
})]
#[case::link_service_is_updating("link_service: ", |sim: &mut Sim| {
    let mut body = link_service_body();
    body["properties"]["enableProxyProtocol"] = json!(true);
    assert_eq!(sim.put(&link_service(), body).status, 200);
})]
#[case::frontend_gone("frontend: ", |sim: &mut Sim| {
    sim.drift(&balancer(), json!({"location": "westus2", "sku": {"name": "Standard"}, "properties": {"frontendIPConfigurations": []}}));
})]
#[case::balancer_gone("frontend: ", |sim: &mut Sim| sim.drop(&balancer()))]
#[case::nothing_behind("service: nothing stands behind", |sim: &mut Sim| sim.azure.delete_service(&balancer(), "f1"))]
fn a_broken_hop_is_named(#[case] why: &str, #[case] breaking: Break) {
    let mut sim = in_place();
    breaking(&mut sim);
    let walk = sim.walk(NAME);
    assert!(!walk.ok);
    let got = walk.why.unwrap();
    assert!(got.starts_with(why), "{got}");
    // A hop that fails is not on the path; only aliases are records that hold and lead nowhere.
    let last = walk.path.last().map(|hop| serde_json::to_value(hop.hop).unwrap());
    assert!(
        last != why.split(':').next().map(Value::from) || got.contains("CNAMEs"),
        "{last:?}"
    );
}

#[test]
fn two_vnets_see_what_they_are_linked_to() {
    let mut sim = in_place();
    let now = sim.now;
    let there = sim.azure.reachable(now, &vnet("vnet2"), NAME);
    assert_eq!(
        there.why.unwrap(),
        "link: mine.hypershift.local is not linked to the virtual network"
    );
    let address = sim.add_endpoint("pe2", "vnet2");
    sim.decide("pe2", "Approved");
    let twin = zone(ZONE).replace("rg-Guest", "other");
    let group = "/subscriptions/s1/resourceGroups/other";
    sim.drift(group, json!({"location": "westus2"}));
    sim.drift(&twin, json!({}));
    sim.drift(&format!("{twin}/virtualNetworkLinks/l"), link_to(&vnet("vnet2")));
    sim.drift(&format!("{twin}/A/api"), a(&[&address]));
    let now = sim.now;
    let there = sim.azure.reachable(now, &vnet("vnet2"), NAME);
    assert_eq!((there.ok, there.address), (true, Some(address)), "{:?}", there.why);
    assert_eq!(sim.walk(NAME).address.as_deref(), Some(ADDRESS));
}

#[test]
fn several_values_must_lead_to_one_service() {
    let mut sim = in_place();
    let second = sim.add_endpoint("pe2", "vnet1");
    sim.decide("pe2", "Approved");
    sim.point(&[ADDRESS, &second]);
    let walk = sim.walk(NAME);
    assert!(walk.ok, "{:?}", walk.why);
    assert_eq!((walk.address.as_deref(), walk.path.len()), (Some(ADDRESS), 13));
}

#[test]
fn an_unknown_vnet_sees_nothing() {
    let mut sim = in_place();
    let now = sim.now;
    let walk = sim.azure.reachable(now, &vnet("other"), NAME);
    assert!(!walk.ok && walk.why.unwrap().contains("does not exist"));
}
