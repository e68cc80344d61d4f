//! Drift is repaired, and what is not owned is left alone.

use std::time::Duration;

use hyperlink::azure::cloud::Arm;
use hyperlink::azure::plan::{Outcome, Why};
use hyperlink::engine::plan::{Verb, ensure_present};
use hyperlink::engine::resource::Resource;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::desired::{GUEST, NET, endpoint, id, link_service, record, subnet, zone, zone_link};
use crate::sim::{Sim, ensure_absent};

/// Longer than the longest time between two reads, which is that of links.
const LATER: Duration = Duration::from_secs(18_000);

/// After longer than the longest time between two reads, the difference is observed, repaired with these calls, and
/// stays away.
async fn is_repaired(sim: &mut Sim, desired: &dyn Resource<Arm>, field: &'static str, calls: &str) {
    assert!(
        !desired.differs(&sim.shown(desired.key()).unwrap()).is_empty(),
        "no drift"
    );
    sleep(LATER).await;
    sim.forget_calls();
    let (step, _) = sim.reconcile(ensure_present, desired).await;
    match &step.why {
        Why::Differs(fields) | Why::Replace(fields) => assert_eq!(fields, &[field]),
        other => panic!("{other}"),
    }
    sim.until_present(desired).await;
    assert_eq!(sim.calls(), calls);
    assert_eq!(desired.differs(&sim.shown(desired.key()).unwrap()), []);
    sim.forget_calls();
    sleep(LATER).await;
    sim.until_present(desired).await;
    assert_eq!(sim.writes(), 0);
}

#[tokio::test(start_paused = true)]
async fn closed_subnet_is_opened_and_keeps_what_others_attached() {
    let mut sim = Sim::new();
    sim.until_present(&subnet()).await;
    let path = "/properties/privateLinkServiceNetworkPolicies";
    sim.drift(&subnet().id, path, json!("Enabled"));
    let table = json!({"id": format!("{NET}/routeTables/t")});
    sim.install(&id(&format!("{NET}/routeTables/t")), json!({"location": "westus2"}));
    let mut body = sim.shown(&subnet().id).unwrap();
    body["properties"]["routeTable"] = table.clone();
    sim.install(&subnet().id, body);
    is_repaired(&mut sim, &subnet(), "privateLinkServiceNetworkPolicies", "GET PUT GET").await;
    assert_eq!(sim.shown(&subnet().id).unwrap()["properties"]["routeTable"], table);
}

#[rstest]
#[case::visible_to_others("visibility", json!({"subscriptions": ["*"]}))]
#[case::approves_nobody("autoApproval", json!({"subscriptions": []}))]
#[case::speaks_the_proxy_protocol("enableProxyProtocol", json!(true))]
#[tokio::test(start_paused = true)]
async fn link_service_is_changed_back(#[case] field: &'static str, #[case] value: Value) {
    let mut sim = Sim::new();
    sim.until_present(&link_service()).await;
    sim.drift(&link_service().owned.id, &format!("/properties/{field}"), value);
    is_repaired(&mut sim, &link_service(), field, "GET PUT GET").await;
}

#[rstest]
#[case::leads_to_another_frontend("loadBalancerFrontendIpConfigurations", "/properties/loadBalancerFrontendIpConfigurations/0/id",
    format!("{NET}/loadBalancers/lb/frontendIPConfigurations/stranger"))]
#[case::has_another_nat_subnet("ipConfigurations", "/properties/ipConfigurations/0/properties/subnet/id",
    format!("{NET}/virtualNetworks/hub/subnets/x-pls-nat"))]
#[tokio::test(start_paused = true)]
async fn link_service_is_recreated(#[case] field: &'static str, #[case] path: &str, #[case] value: String) {
    let mut sim = Sim::new();
    sim.until_present(&subnet()).await;
    let old = sim.alias().await;
    sim.drift(&link_service().owned.id, path, json!(value));
    is_repaired(&mut sim, &link_service(), field, "GET DELETE GET PUT GET GET").await;
    assert_ne!(sim.alias().await, old);
}

#[rstest]
#[case::leads_elsewhere("privateLinkServiceId", "/properties/manualPrivateLinkServiceConnections/0/properties/privateLinkServiceId",
    json!("other.guid.westus2.azure.privatelinkservice"))]
#[case::is_in_another_subnet("subnet", "/properties/subnet/id", json!(format!("{GUEST}/virtualNetworks/workers/subnets/elsewhere")))]
#[tokio::test(start_paused = true)]
async fn endpoint_is_recreated(#[case] field: &'static str, #[case] path: &str, #[case] value: Value) {
    let mut sim = Sim::new();
    let desired = endpoint(&sim.alias().await);
    sim.until_present(&desired).await;
    sim.drift(&desired.id, path, value);
    let calls = "GET DELETE GET PUT GET GET GET";
    is_repaired(&mut sim, &desired, field, calls).await;
}

#[rstest]
// The simulator draws one of the rare long operations here.
#[case::rejected(Some("Rejected"), "GET DELETE GET PUT GET GET GET GET GET GET GET GET")]
#[case::removed(None, "GET DELETE GET PUT GET GET GET")]
#[tokio::test(start_paused = true)]
async fn endpoint_whose_connection_is_dead_is_recreated(#[case] decision: Option<&str>, #[case] calls: &str) {
    let mut sim = Sim::new();
    let desired = endpoint(&sim.alias().await);
    sim.until_present(&desired).await;
    let service = sim.shown(&link_service().owned.id).unwrap();
    let connection = id(service["properties"]["privateEndpointConnections"][0]["id"]
        .as_str()
        .unwrap());
    match decision {
        Some(word) => {
            let path = "/properties/privateLinkServiceConnectionState/status";
            sim.drift(&connection, path, json!(word));
        }
        None => sim.remove(&connection),
    }
    let field = "privateLinkServiceConnectionState";
    is_repaired(&mut sim, &desired, field, calls).await;
}

#[tokio::test(start_paused = true)]
async fn link_that_registers_names_is_changed_back() {
    let mut sim = Sim::new();
    sim.until_present(&zone()).await;
    sim.until_present(&zone_link()).await;
    sim.drift(&zone_link().id, "/properties/registrationEnabled", json!(true));
    is_repaired(&mut sim, &zone_link(), "registrationEnabled", "GET PUT GET").await;
}

#[tokio::test(start_paused = true)]
async fn link_to_another_network_is_recreated() {
    let mut sim = Sim::new();
    sim.until_present(&zone()).await;
    sim.until_present(&zone_link()).await;
    let elsewhere = json!(format!("{GUEST}/virtualNetworks/stranger"));
    sim.drift(&zone_link().id, "/properties/virtualNetwork/id", elsewhere);
    is_repaired(&mut sim, &zone_link(), "virtualNetwork", "GET DELETE GET PUT GET").await;
}

#[rstest]
#[case::another_address("aRecords", json!([{"ipv4Address": "10.9.9.9"}]))]
#[case::one_address_more("aRecords", json!([{"ipv4Address": "10.1.0.4"}, {"ipv4Address": "10.9.9.9"}]))]
#[case::another_ttl("ttl", json!(5))]
#[tokio::test(start_paused = true)]
async fn record_is_changed_back(#[case] field: &'static str, #[case] value: Value) {
    let mut sim = Sim::new();
    sim.until_present(&zone()).await;
    sim.until_present(&record("api")).await;
    sim.drift(&record("api").id, &format!("/properties/{field}"), value);
    is_repaired(&mut sim, &record("api"), field, "GET PUT").await;
}

#[tokio::test(start_paused = true)]
async fn each_kind_that_was_removed_is_made_again() {
    let mut sim = Sim::new();
    let alias = sim.alias().await;
    let endpoint = endpoint(&alias);
    let all: [&dyn Resource<Arm>; 5] = [&subnet(), &endpoint, &zone(), &zone_link(), &record("api")];
    for desired in all {
        sim.until_present(desired).await;
    }
    for desired in all.into_iter().rev() {
        sim.remove(desired.key());
        sleep(LATER).await;
        sim.until_present(desired).await;
        assert_eq!(desired.differs(&sim.shown(desired.key()).unwrap()), []);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_in_a_removed_zone_is_made_again_with_it() {
    let mut sim = Sim::new();
    let all: [&dyn Resource<Arm>; 3] = [&zone(), &zone_link(), &record("api")];
    for desired in all {
        sim.until_present(desired).await;
    }
    // Later than the next read of the zone, long before the next read of links and records.
    sim.remove(&zone().id);
    sleep(Duration::from_secs(400)).await;
    for desired in all {
        sim.until_present(desired).await;
        assert!(sim.shown(desired.key()).is_some(), "{desired:?}");
    }
}

/// Neither brought to what is desired nor deleted.
async fn is_refused(sim: &mut Sim, desired: &dyn Resource<Arm>, body: Value) {
    sim.install(desired.key(), body);
    let before = sim.shown(desired.key()).unwrap();
    for rule in [ensure_present, ensure_absent] {
        let (step, outcome) = sim.reconcile(rule, desired).await;
        assert_eq!(
            (step.verb, step.why, outcome),
            (Verb::Refuse, Why::NotOurs, Outcome::Nothing)
        );
        sleep(LATER).await;
    }
    assert_eq!(sim.writes(), 0);
    assert_eq!(sim.shown(desired.key()).unwrap(), before);
}

#[tokio::test(start_paused = true)]
async fn foreign_link_service_is_refused() {
    let desired = link_service();
    let mut foreign = desired.body(None);
    foreign["tags"] = json!({"cluster": "another"});
    let stranger = format!("{NET}/loadBalancers/lb/frontendIPConfigurations/stranger");
    foreign["properties"]["loadBalancerFrontendIpConfigurations"][0]["id"] = json!(stranger);
    is_refused(&mut Sim::new(), &desired, foreign).await;
}

#[tokio::test(start_paused = true)]
async fn foreign_endpoint_is_refused() {
    let mut sim = Sim::new();
    let alias = sim.alias().await;
    sim.forget_calls();
    let mut foreign = endpoint(&alias).body(None);
    foreign["tags"] = json!({});
    let elsewhere = format!("{GUEST}/virtualNetworks/workers/subnets/elsewhere");
    foreign["properties"]["subnet"]["id"] = json!(elsewhere);
    is_refused(&mut sim, &endpoint(&alias), foreign).await;
}

#[tokio::test(start_paused = true)]
async fn foreign_zone_is_refused() {
    is_refused(&mut Sim::new(), &zone(), json!({"location": "global"})).await;
}

#[tokio::test(start_paused = true)]
async fn foreign_link_is_refused() {
    let mut sim = Sim::new();
    sim.install(&zone().id, json!({"location": "global"}));
    let desired = hyperlink::azure::kinds::virtual_network_link::VirtualNetworkLink {
        proven: false,
        ..zone_link()
    };
    let mut foreign = desired.body(None);
    foreign["tags"] = json!({});
    is_refused(&mut sim, &desired, foreign).await;
}

#[tokio::test(start_paused = true)]
async fn foreign_record_is_refused() {
    let mut sim = Sim::new();
    sim.install(&zone().id, json!({"location": "global"}));
    let desired = record("api");
    let mut foreign = desired.body(None);
    foreign["properties"]["aRecords"] = json!([{"ipv4Address": "10.9.9.9"}]);
    foreign["properties"]["metadata"][&desired.owner_tags.owner.0] = json!("another");
    is_refused(&mut sim, &desired, foreign).await;
}
