//! What is refused of a private endpoint: services that it may not reach, subnets and addresses that it cannot have,
//! changes of fixed fields.

use armsim::Preset;
use rstest::rstest;
use serde_json::{Value, json};

use crate::endpoint::{AUTOMATIC, MANUAL, by_id, path};
use crate::network_support::{CONSUMER, GUEST_NET, GUEST_SUB, NET, SUB, Sim, caller, pe, pls, seed};

#[test]
fn connection_by_id_needs_approval_rights_or_an_invitation() {
    let roles = |target: &[&str]| {
        let mut json = seed();
        let mut roles = json["roles"].as_array().unwrap().clone();
        roles.push(json!({"object_id": CONSUMER, "scope": format!("/subscriptions/{GUEST_SUB}"), "actions": ["*"]}));
        roles.push(json!({"object_id": CONSUMER, "scope": format!("/subscriptions/{SUB}"), "actions": target}));
        json["roles"] = json!(roles);
        json
    };
    let approval = "Microsoft.Network/privateLinkServices/privateEndpointConnectionsApproval/action";
    for (actions, invited, expected) in [(vec![], false, 403), (vec![approval], false, 201), (vec![], true, 201)] {
        let mut sim = Sim::seeded(roles(&actions), Preset::Recorded);
        let mut service = pls();
        if !invited {
            service["properties"]["autoApproval"] = json!({"subscriptions": []});
        }
        assert_eq!(sim.put(&format!("{NET}/privateLinkServices/svc"), service).status, 201);
        sim.wait(60.0);
        sim.caller = caller(CONSUMER);
        let put = sim.put(&path("pe"), by_id());
        assert_eq!(put.status, expected, "{}", put.body);
        if expected == 403 {
            assert_eq!(put.refusal(), (403, "LinkedAuthorizationFailed", "gateway"));
            assert!(put.message().contains(approval), "{}", put.message());
        }
    }
}

#[test]
fn alias_is_unusable_before_its_time() {
    let mut sim = Sim::with_switches(json!({"alias_lag_s": 20}));
    let put = sim.put(&format!("{NET}/privateLinkServices/svc"), pls());
    let alias = put.body["properties"]["alias"].as_str().unwrap().to_owned();
    assert_eq!(sim.put(&path("pe"), pe(&alias)).code(), "InvalidPrivateLinkServiceId");
    sim.wait(13.0);
    let refused = sim.put(&path("pe"), pe(&alias));
    assert_eq!(
        (refused.status, refused.message()),
        (400, "Invalid private link service id.")
    );
    sim.wait(20.0);
    assert_eq!(sim.put(&path("pe"), pe(&alias)).status, 201);
}

#[test]
fn alias_that_is_unknown_or_hidden_is_refused() {
    let mut sim = Sim::new();
    let mut service = pls();
    service["properties"]["visibility"] = json!({"subscriptions": [SUB]});
    service["properties"]["autoApproval"] = json!({"subscriptions": []});
    let put = sim.put(&format!("{NET}/privateLinkServices/svc"), service);
    let alias = put.body["properties"]["alias"].as_str().unwrap().to_owned();
    sim.wait(60.0);
    for alias in [
        alias.as_str(),
        "x.00000000-0000-0000-0000-000000000000.westus2.azure.privatelinkservice",
    ] {
        assert_eq!(
            sim.put(&path("pe"), pe(alias)).refusal(),
            (400, "InvalidPrivateLinkServiceId", "service")
        );
    }
    let mut automatic = pe(&alias);
    automatic["properties"][AUTOMATIC] = automatic["properties"][MANUAL].take();
    automatic["properties"][MANUAL] = json!([]);
    assert_eq!(
        sim.put(&path("pe"), automatic).code(),
        "PrivateEndpointAliasWithoutManualConnectionNotSupported"
    );
}

#[test]
fn full_subnet_is_refused() {
    let mut sim = Sim::new();
    let alias = sim.link_service("svc");
    // A /28 has sixteen addresses, five of which are Azure's.
    for at in 0..11 {
        assert_eq!(sim.put(&path(&format!("pe{at}")), pe(&alias)).status, 201, "{at}");
    }
    assert_eq!(
        sim.put(&path("pe11"), pe(&alias)).refusal(),
        (400, "SubnetIsFull", "service")
    );
}

#[rstest]
#[case::taken("10.1.0.4", 400, "PrivateIPAddressInUse")]
#[case::outside("10.2.0.4", 400, "PrivateIPAddressNotInSubnet")]
#[case::reserved("10.1.0.1", 400, "PrivateIPAddressInReservedRange")]
#[case::last("10.1.0.15", 400, "PrivateIPAddressInReservedRange")]
#[case::free("10.1.0.9", 201, "")]
fn static_address(#[case] address: &str, #[case] status: u16, #[case] code: &str) {
    let mut sim = Sim::new();
    let alias = sim.link_service("svc");
    sim.endpoint("first", &alias);
    let mut body = pe(&alias);
    body["properties"]["ipConfigurations"] = json!([{"name": "ip", "properties": {"privateIPAddress": address}}]);
    let put = sim.put(&path("pe"), body);
    assert_eq!((put.status, put.code()), (status, code));
}

#[rstest]
#[case::subnet("/properties/subnet/id", json!(format!("{GUEST_NET}/virtualNetworks/workers/subnets/other")), "PrivateEndpointSubnetCannotBeChanged")]
#[case::target("/properties/manualPrivateLinkServiceConnections/0/properties/privateLinkServiceId", json!("other"), "PrivateEndpointPrivateLinkServiceConnectionCannotBeChanged")]
#[case::name("/properties/manualPrivateLinkServiceConnections/0/name", json!("other"), "PrivateEndpointPrivateLinkServiceConnectionCannotBeChanged")]
#[case::location("/location", json!("eastus"), "InvalidResourceLocation")]
fn fixed_field_is_not_changed(#[case] pointer: &str, #[case] value: Value, #[case] code: &str) {
    let mut sim = Sim::new();
    let alias = sim.link_service("svc");
    sim.endpoint("pe", &alias);
    let before = sim.get(&path("pe")).body;
    let mut body = pe(&alias);
    *body.pointer_mut(pointer).unwrap() = value;
    assert_eq!(sim.put(&path("pe"), body).code(), code);
    assert_eq!(sim.get(&path("pe")).body, before);
}

#[rstest]
#[case::delegated(json!({"delegations": [{"name": "d", "properties": {"serviceName": "Microsoft.Web/serverFarms"}}]}), "PrivateEndpointCreationNotAllowedAsSubnetIsDelegated")]
#[case::policies(json!({"privateEndpointNetworkPolicies": "Enabled"}), "PrivateEndpointCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled")]
fn subnet_that_takes_no_endpoints(#[case] properties: Value, #[case] code: &str) {
    let mut json = seed();
    for (name, value) in properties.as_object().unwrap() {
        json["resources"][3]["properties"]["subnets"][0]["properties"][name] = value.clone();
    }
    let mut sim = Sim::seeded(json, Preset::Recorded);
    let alias = sim.link_service("svc");
    assert_eq!(sim.put(&path("pe"), pe(&alias)).refusal(), (400, code, "service"));
}

#[test]
fn one_connection_is_needed() {
    let mut sim = Sim::new();
    let alias = sim.link_service("svc");
    let mut none = pe(&alias);
    none["properties"][MANUAL] = json!([]);
    assert_eq!(sim.put(&path("pe"), none).code(), "PrivateEndpointConnectionRequired");
    let mut missing = by_id();
    missing["properties"][AUTOMATIC][0]["properties"]["privateLinkServiceId"] =
        json!(format!("{NET}/privateLinkServices/none"));
    assert_eq!(sim.put(&path("pe"), missing).code(), "InvalidResourceReference");
}
