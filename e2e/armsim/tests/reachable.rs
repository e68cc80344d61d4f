//! The walk from a name to a Service: the whole path, and each hop broken once.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod dns_support;

use armsim::{HopKind, Reachable};
use dns_support::{NETWORK, Sim, a, link_to, seed, vnet, zone};
use rstest::rstest;
use serde_json::{Value, json};

const NAME: &str = "api.mine.hypershift.local";
const ZONE: &str = "mine.hypershift.local";
/// The first address that the workers' subnet has to give.
const ADDRESS: &str = "10.0.0.4";

fn balancer() -> String {
    format!("{NETWORK}/loadBalancers/lb")
}

fn link_service() -> String {
    format!("{NETWORK}/privateLinkServices/pls")
}

fn endpoint(name: &str) -> String {
    format!("{NETWORK}/privateEndpoints/{name}")
}

fn subnet(vnet_name: &str) -> String {
    format!("{}/subnets/workers", vnet(vnet_name))
}

fn frontend() -> String {
    format!("{}/frontendIPConfigurations/f1", balancer())
}

fn link_service_body() -> Value {
    json!({
        "location": "westus2",
        "properties": {
            "loadBalancerFrontendIpConfigurations": [{"id": frontend()}],
            "ipConfigurations": [{"name": "nat", "properties": {"subnet": {"id": subnet("vnet2")}}}],
            "visibility": {"subscriptions": ["*"]},
            "autoApproval": {"subscriptions": []},
        },
    })
}

impl Sim {
    fn drift(&mut self, id: &str, body: Value) {
        let now = self.now;
        self.world.put_resource(now, id, body).unwrap();
    }

    fn drop(&mut self, id: &str) {
        let now = self.now;
        assert!(self.world.delete_resource(now, id).unwrap(), "{id}");
    }

    fn walk(&mut self, name: &str) -> Reachable {
        let now = self.now;
        self.world.reachable(now, &vnet("vnet1"), name)
    }

    /// An endpoint in the VNet, asking for the service by its alias; its address.
    fn add_endpoint(&mut self, name: &str, vnet_name: &str) -> String {
        let alias = self.get(&link_service()).body["properties"]["alias"].clone();
        let connection =
            json!({"name": name, "properties": {"privateLinkServiceId": alias, "requestMessage": "please"}});
        let body = json!({"location": "westus2", "properties": {
            "subnet": {"id": subnet(vnet_name)}, "manualPrivateLinkServiceConnections": [connection],
        }});
        let created = self.put(&endpoint(name), body);
        assert_eq!(created.status, 201, "{}", created.body);
        self.wait(700);
        let shown = self.get(&format!("{}?$expand=networkInterfaces", endpoint(name))).body;
        assert_eq!(shown["properties"]["provisioningState"], "Succeeded");
        let nic = &shown["properties"]["networkInterfaces"][0]["properties"];
        nic["ipConfigurations"][0]["properties"]["privateIPAddress"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// The id of the endpoint's connection on the service.
    fn connection(&mut self, name: &str) -> String {
        let shown = self.get(&link_service()).body;
        let all = shown["properties"]["privateEndpointConnections"].as_array().unwrap();
        let made = all
            .iter()
            .find(|made| made["properties"]["privateEndpoint"]["id"] == endpoint(name))
            .unwrap();
        made["id"].as_str().unwrap().to_owned()
    }

    /// The provider's decision.
    fn decide(&mut self, name: &str, status: &str) {
        let connection = self.connection(name);
        let state = json!({"status": status, "description": "decided"});
        let decided = self.put(
            &connection,
            json!({"properties": {"privateLinkServiceConnectionState": state}}),
        );
        assert_eq!(decided.status, 200, "{}", decided.body);
        self.wait(60);
    }

    fn point(&mut self, addresses: &[&str]) {
        for name in ["api", "*.apps"] {
            let written = self.put(&format!("{}/A/{name}", zone(ZONE)), a(addresses));
            assert!(written.status < 300, "{}", written.body);
        }
    }
}

/// Everything in place: zone, completed link, records, endpoint in vnet1, approved connection, PLS, frontend, Service.
fn in_place() -> Sim {
    let mut seed = seed();
    let mut resources = seed["resources"].as_array().unwrap().clone();
    for (name, prefix) in [("vnet1", "10.0.0.0/24"), ("vnet2", "10.1.0.0/24")] {
        let policies = json!({"addressPrefix": prefix, "privateLinkServiceNetworkPolicies": "Disabled"});
        resources.push(json!({"id": subnet(name), "properties": policies}));
    }
    resources.push(json!({
        "id": balancer(), "location": "westus2", "sku": {"name": "Standard"},
        "properties": {"frontendIPConfigurations": [
            {"name": "f1", "properties": {"privateIPAddress": "10.1.0.4", "subnet": {"id": subnet("vnet2")}}},
        ]},
    }));
    seed["resources"] = json!(resources);
    seed["services"] = json!([{"load_balancer": balancer(), "frontend": "f1", "name": "clusters-mine/private-router"}]);
    let mut sim = Sim::with(seed);
    let created = sim.put(&link_service(), link_service_body());
    assert_eq!(created.status, 201, "{}", created.body);
    sim.wait(60);
    assert_eq!(sim.add_endpoint("pe1", "vnet1"), ADDRESS);
    sim.decide("pe1", "Approved");
    sim.make_zone(ZONE);
    sim.link(ZONE, "l", "vnet1");
    sim.point(&[ADDRESS]);
    sim
}

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
#[case::nothing_behind("service: nothing stands behind", |sim: &mut Sim| sim.world.delete_service(&balancer(), "f1"))]
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
fn azures_resolver_among_the_vnets_servers_sees_private_zones() {
    let mut sim = in_place();
    sim.drift(
        &vnet("vnet1"),
        json!({"location": "westus2", "properties": {
            "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}, "dhcpOptions": {"dnsServers": ["168.63.129.16"]},
        }}),
    );
    assert!(sim.walk(NAME).ok);
}

#[test]
fn a_longer_zone_that_is_not_linked_shadows_nothing() {
    let mut sim = in_place();
    sim.make_zone(NAME);
    assert!(sim.walk(NAME).ok);
}

#[test]
fn the_longer_of_two_linked_zones_answers_even_with_nothing() {
    let mut sim = in_place();
    sim.make_zone("apps.mine.hypershift.local");
    sim.link("apps.mine.hypershift.local", "l", "vnet1");
    let walk = sim.walk("x.apps.mine.hypershift.local");
    assert_eq!(
        walk.why.unwrap(),
        "record: apps.mine.hypershift.local has no record for x.apps.mine.hypershift.local; mine.hypershift.local, which has \
         one, is not asked"
    );
    assert!(sim.walk(NAME).ok, "names outside it are as before");
    // The other horizon: vnet2 sees only the longer zone.
    sim.put(&format!("{}/A/x", zone("apps.mine.hypershift.local")), a(&[ADDRESS]));
    assert!(sim.walk("x.apps.mine.hypershift.local").ok);
}

#[test]
fn a_longer_zone_whose_link_is_on_its_way_leaves_the_answer_to_the_shorter() {
    let mut sim = in_place();
    sim.make_zone(NAME);
    sim.put(
        &format!("{}/virtualNetworkLinks/l", zone(NAME)),
        link_to(&vnet("vnet1")),
    );
    assert!(sim.walk(NAME).ok);
    sim.wait(60);
    assert!(!sim.walk(NAME).ok, "from now on it answers");
}

#[test]
fn two_vnets_see_what_they_are_linked_to() {
    let mut sim = in_place();
    let now = sim.now;
    let there = sim.world.reachable(now, &vnet("vnet2"), NAME);
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
    let there = sim.world.reachable(now, &vnet("vnet2"), NAME);
    assert_eq!((there.ok, there.address), (true, Some(address)), "{:?}", there.why);
    assert_eq!(sim.walk(NAME).address.as_deref(), Some(ADDRESS));
}

#[test]
fn somebody_elses_zone_shadows_a_public_name() {
    let mut sim = in_place();
    sim.make_zone("example.com");
    sim.link("example.com", "theirs", "vnet1");
    assert_eq!(
        sim.walk("api.clusters.example.com").why.unwrap(),
        "record: example.com has no record for api.clusters.example.com, and nobody else is asked"
    );
}

#[test]
fn a_link_may_send_unknown_names_on_to_public_dns() {
    let mut sim = in_place();
    let name = "privatelink.example.com";
    sim.make_zone(name);
    let mut body = link_to(&vnet("vnet1"));
    body["properties"]["resolutionPolicy"] = json!("NxDomainRedirect");
    sim.put_and_end(&format!("{}/virtualNetworkLinks/l", zone(name)), body);
    sim.put(&format!("{}/A/a.b", zone(name)), a(&[ADDRESS]));
    let mut why = |of: &str| sim.walk(&format!("{of}.{name}")).why.unwrap();
    assert!(why("other").ends_with("sends the question on to public DNS, which is not simulated"));
    // A name that exists without records is no NXDOMAIN.
    assert!(why("b").ends_with("nobody else is asked"));
}

#[test]
fn an_alias_is_followed_into_another_zone() {
    let mut sim = in_place();
    sim.make_zone("example.com");
    sim.link("example.com", "l", "vnet1");
    let alias = json!({"properties": {"ttl": 1, "cnameRecord": {"cname": NAME}}});
    assert_eq!(
        sim.put(&format!("{}/CNAME/api-mine", zone("example.com")), alias)
            .status,
        201
    );
    let walk = sim.walk("api-mine.example.com");
    assert!(walk.ok, "{:?}", walk.why);
    assert_eq!(walk.path.len(), 11);
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
    let walk = sim.world.reachable(now, &vnet("other"), NAME);
    assert!(!walk.ok && walk.why.unwrap().contains("does not exist"));
}

#[test]
fn a_link_that_is_written_again_goes_on_resolving() {
    let mut sim = in_place();
    let id = format!("{}/virtualNetworkLinks/l", zone(ZONE));
    let again = sim.put(&id, link_to(&vnet("vnet1")));
    assert_eq!(again.status, 202);
    assert_eq!(sim.get(&id).body["properties"]["virtualNetworkLinkState"], "InProgress");
    assert!(sim.walk(NAME).ok);
    sim.end(&again);
    assert!(sim.walk(NAME).ok);
}

#[test]
fn a_new_link_resolves_only_when_it_is_completed() {
    let mut seed = seed();
    seed["switches"] = json!({"link_complete_lag_s": 20});
    let mut sim = Sim::with(seed);
    sim.make_zone(ZONE);
    sim.link(ZONE, "l", "vnet1");
    let mut why = || sim.walk(NAME).why.unwrap();
    assert!(why().ends_with("is not completed yet"), "{}", why());
    sim.wait(20);
    assert!(!sim.walk(NAME).why.unwrap().contains("completed"));
}
