//! Which zone answers for a name: linked or not, longer or shorter, of others, on its way; and where aliases lead.

use serde_json::json;

use crate::dns_support::{Sim, a, link_to, seed, vnet, zone};
use crate::{ADDRESS, NAME, ZONE, in_place};

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
fn a_longer_zone_answers_only_when_its_link_is_completed() {
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
fn a_link_that_is_written_again_keeps_resolving() {
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
