//! What is refused of a private link service, and of what it uses.

use armsim::Preset;
use rstest::rstest;
use serde_json::{Value, json};

use crate::link_service::path;
use crate::network_support::{GUEST_NET, NET, SUB, Sim, pe, pls, seed};

#[rstest]
#[case::frontend("/properties/loadBalancerFrontendIpConfigurations/0/id", json!(format!("{NET}/loadBalancers/lb/frontendIPConfigurations/none")), 400, "InvalidResourceReference")]
#[case::subnet("/properties/ipConfigurations/0/properties/subnet/id", json!(format!("{NET}/virtualNetworks/vnet/subnets/none")), 400, "InvalidResourceReference")]
#[case::policies("/properties/ipConfigurations/0/properties/subnet/id", json!(format!("{NET}/virtualNetworks/vnet/subnets/lb")), 400, "PrivateLinkServiceCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled")]
#[case::two_frontends("/properties/loadBalancerFrontendIpConfigurations", json!([{"id": format!("{NET}/loadBalancers/lb/frontendIPConfigurations/router")}, {"id": format!("{NET}/loadBalancers/lb/frontendIPConfigurations/router")}]), 400, "PrivateLinkServiceMultipleFrontendsNotSupported")]
#[case::no_frontend("/properties/loadBalancerFrontendIpConfigurations", json!([]), 400, "PrivateLinkServiceFrontendRequired")]
#[case::no_nat("/properties/ipConfigurations", json!([]), 400, "PrivateLinkServiceIpConfigurationRequired")]
#[case::approval_without_visibility("/properties/visibility/subscriptions", json!([SUB]), 400, "PrivateLinkServiceAutoApprovalWithoutVisibilityNotSupported")]
#[case::no_location("/location", json!(null), 400, "LocationRequired")]
#[case::elsewhere("/location", json!("eastus"), 400, "InvalidResourceReference")]
fn bad_service_is_refused(#[case] pointer: &str, #[case] value: Value, #[case] status: u16, #[case] code: &str) {
    let mut sim = Sim::new();
    let mut body = pls();
    *body.pointer_mut(pointer).unwrap() = value;
    let refused = sim.put(&path("svc"), body);
    assert_eq!((refused.status, refused.code()), (status, code), "{}", refused.body);
    assert_eq!(sim.get(&path("svc")).status, 404);
    let subnet = sim.get(&format!("{NET}/virtualNetworks/vnet/subnets/nat"));
    assert!(
        subnet.body["properties"]["ipConfigurations"].is_null(),
        "nothing is half applied"
    );
    if code == "InvalidResourceReference" {
        assert_eq!(refused.detail(), "NotFound");
    }
}

#[rstest]
#[case::frontend("/properties/loadBalancerFrontendIpConfigurations/0/id", json!(format!("{NET}/loadBalancers/lb/frontendIPConfigurations/second")), "PrivateLinkServiceFrontendCannotBeChanged")]
#[case::nat_name("/properties/ipConfigurations/0/name", json!("other"), "PrivateLinkServiceIpConfigurationCannotBeChanged")]
#[case::nat_subnet("/properties/ipConfigurations/0/properties/subnet/id", json!(format!("{NET}/virtualNetworks/vnet/subnets/nat2")), "PrivateLinkServiceIpConfigurationCannotBeChanged")]
#[case::location("/location", json!("eastus"), "InvalidResourceLocation")]
fn fixed_field_is_not_changed(#[case] pointer: &str, #[case] value: Value, #[case] code: &str) {
    let mut json = seed();
    let frontends = json
        .pointer_mut("/resources/4/properties/frontendIPConfigurations")
        .unwrap();
    frontends.as_array_mut().unwrap().push(
        json!({"name": "second", "properties": {"subnet": {"id": format!("{NET}/virtualNetworks/vnet/subnets/lb")}}}),
    );
    let subnets = json.pointer_mut("/resources/2/properties/subnets").unwrap();
    subnets.as_array_mut().unwrap().push(json!({"name": "nat2", "properties": {"addressPrefix": "10.0.2.0/24", "privateLinkServiceNetworkPolicies": "Disabled"}}));
    let mut sim = Sim::seeded(json, Preset::Recorded);
    sim.link_service("svc");
    let before = sim.get(&path("svc")).body;
    let mut body = pls();
    *body.pointer_mut(pointer).unwrap() = value;
    assert_eq!(sim.put(&path("svc"), body).code(), code);
    assert_eq!(sim.get(&path("svc")).body, before);
}

#[test]
fn basic_load_balancer_is_refused() {
    let mut json = seed();
    json["resources"][4]["sku"]["name"] = json!("Basic");
    let mut sim = Sim::seeded(json, Preset::Recorded);
    assert_eq!(
        sim.put(&path("svc"), pls()).code(),
        "PrivateLinkServiceBasicLoadBalancerNotSupported"
    );
}

#[test]
fn ninth_service_on_a_load_balancer_is_refused() {
    let mut sim = Sim::new();
    for at in 0..8 {
        assert_eq!(sim.put(&path(&format!("svc{at}")), pls()).status, 201);
    }
    assert_eq!(
        sim.put(&path("svc8"), pls()).code(),
        "PrivateLinkServicePerLoadBalancerLimitReached"
    );
    // Changing one that is there is no new one.
    assert_eq!(sim.put(&path("svc7"), pls()).status, 200);
}

#[test]
fn seeded_quotas_hold() {
    let mut json = seed();
    json["subscriptions"][0]["quotas"] = json!({"pls": 1, "endpoints_per_pls": 1});
    let mut sim = Sim::seeded(json, Preset::Recorded);
    let alias = sim.link_service("svc");
    assert_eq!(sim.put(&path("svc2"), pls()).code(), "PrivateLinkServiceLimitReached");
    sim.endpoint("pe", &alias);
    let refused = sim.put(&format!("{GUEST_NET}/privateEndpoints/pe2"), pe(&alias));
    assert_eq!(refused.code(), "PrivateEndpointLimitReached");
}

#[test]
fn subnet_on_its_way_is_waited_for() {
    let mut sim = Sim::new();
    let subnet = format!("{NET}/virtualNetworks/vnet/subnets/fresh");
    let body = json!({"properties": {"addressPrefix": "10.0.7.0/24", "privateLinkServiceNetworkPolicies": "Disabled"}});
    assert_eq!(sim.put(&subnet, body).status, 201);
    let mut service = pls();
    service["properties"]["ipConfigurations"][0]["properties"]["subnet"]["id"] = json!(subnet);
    let refused = sim.put(&path("svc"), service.clone());
    assert_eq!(refused.refusal(), (429, "RetryableError", "service"));
    assert_eq!(
        (refused.detail(), refused.header("retry-after")),
        ("ReferencedResourceNotProvisioned", "")
    );
    assert_eq!(
        refused.body["error"]["details"][0]["message"],
        json!(format!(
            "Cannot proceed with operation because resource {subnet} used by resource {} is not in Succeeded state. Resource is \
             in Updating state and the last operation that updated/is updating the resource is PutSubnetOperation.",
            path("svc")
        ))
    );
    sim.wait(3.0);
    assert_eq!(sim.put(&path("svc"), service).status, 201);
}

#[test]
fn load_balancer_and_frontend_in_use_stay() {
    let mut sim = Sim::new();
    sim.link_service("svc");
    let balancer = format!("{NET}/loadBalancers/lb");
    assert_eq!(
        sim.delete(&balancer).refusal(),
        (400, "CannotDeleteLoadBalancerWithPrivateLinkService", "service")
    );
    let mut body = sim.get(&balancer).body;
    body["properties"]["frontendIPConfigurations"] = json!([]);
    assert_eq!(
        sim.put(&balancer, body).code(),
        "FrontendIPConfigurationInUseByPrivateLinkService"
    );
}

#[test]
fn etag_of_another_version_is_refused() {
    let mut sim = Sim::new();
    sim.link_service("svc");
    let etag = sim.get(&path("svc")).header("etag").to_owned();
    let mut body = pls();
    body["tags"] = json!({"a": "b"});
    assert_eq!(
        sim.call("PUT", &path("svc"), &[("if-match", &etag)], Some(body)).status,
        200
    );
    let stale = sim.call("PUT", &path("svc"), &[("if-match", &etag)], Some(pls()));
    assert_eq!(stale.refusal(), (412, "PreconditionFailed", "service"));
    assert_eq!(stale.detail(), "PreconditionFailedEtagMismatch");
    assert_eq!(
        sim.call("DELETE", &path("svc"), &[("if-match", &etag)], None).status,
        412
    );
    assert_eq!(
        sim.call("PUT", &path("svc"), &[("if-match", "*")], Some(pls())).status,
        200
    );
    assert_eq!(
        sim.call("PUT", &path("svc"), &[("if-match", "")], Some(pls())).status,
        200
    );
    assert_eq!(
        sim.call("PUT", &path("new"), &[("if-match", "*")], Some(pls())).status,
        412
    );
}
