//! Private endpoints: alias and id, approval, address, the end of the connection, and what is refused.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod network_support;

use armsim::Preset;
use network_support::{CONSUMER, GUEST_NET, GUEST_SUB, NET, SUB, Sim, caller, pe, pls, seed};
use rstest::rstest;
use serde_json::{Value, json};

fn path(name: &str) -> String {
    format!("{GUEST_NET}/privateEndpoints/{name}")
}

fn status(endpoint: &Value, list: &str) -> (String, String) {
    let state = &endpoint["properties"][list][0]["properties"]["privateLinkServiceConnectionState"];
    (
        state["status"].as_str().unwrap().to_owned(),
        state["description"].as_str().unwrap().to_owned(),
    )
}

const MANUAL: &str = "manualPrivateLinkServiceConnections";
const AUTOMATIC: &str = "privateLinkServiceConnections";

/// An endpoint by id in the automatic list.
fn by_id() -> Value {
    let mut body = pe("");
    body["properties"][MANUAL] = json!([]);
    body["properties"][AUTOMATIC] =
        json!([{"name": "c", "properties": {"privateLinkServiceId": format!("{NET}/privateLinkServices/svc")}}]);
    body
}

#[test]
fn request_by_alias_is_approved_within_the_operation() {
    let mut sim = Sim::new();
    let alias = sim.link_service("svc");
    let put = sim.put(&path("pe"), pe(&alias));
    assert_eq!(
        (put.status, put.state(), put.header("retry-after")),
        (201, "Updating", "10")
    );
    assert_eq!(
        status(&put.body, MANUAL),
        ("Pending".into(), "Awaiting Approval".into())
    );
    assert_eq!(put.body["properties"][AUTOMATIC], json!([]));
    assert_eq!(put.body["properties"]["customDnsConfigs"], json!([]));
    let url = put.header("azure-asyncoperation").to_owned();
    sim.wait(9.0);
    assert_eq!(sim.poll(&url).header("retry-after"), "10");
    sim.wait(12.0);
    assert_eq!(sim.poll(&url).header("retry-after"), "20");
    sim.wait(600.0);
    assert_eq!(sim.poll(&url).body, json!({"status": "Succeeded"}));
    let got = sim.get(&path("pe"));
    assert_eq!(got.state(), "Succeeded");
    assert_eq!(status(&got.body, MANUAL), ("Approved".into(), "Approved".into()));
    let service = sim.get(&format!("{NET}/privateLinkServices/svc"));
    let connection = &service.body["properties"]["privateEndpointConnections"][0]["properties"];
    assert_eq!(
        connection["privateLinkServiceConnectionState"]["status"],
        json!("Approved")
    );
}

#[test]
fn address_is_read_by_expansion_or_by_the_interface() {
    let mut sim = Sim::new();
    let alias = sim.link_service("svc");
    let expanded = sim.endpoint("pe", &alias);
    let nic = &expanded["properties"]["networkInterfaces"][0];
    let configuration = &nic["properties"]["ipConfigurations"][0];
    assert_eq!(configuration["properties"]["privateIPAddress"], json!("10.1.0.4"));
    assert!(
        configuration["name"]
            .as_str()
            .unwrap()
            .starts_with("privateEndpointIpConfig.")
    );
    assert_eq!(nic["managedBy"], expanded["id"]);
    let plain = sim.get(&path("pe"));
    let slot = &plain.body["properties"]["networkInterfaces"][0];
    assert_eq!(slot.as_object().unwrap().len(), 1, "only the id unless expanded");
    let nic = sim.get(slot["id"].as_str().unwrap());
    assert_eq!(
        nic.body["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"],
        json!("10.1.0.4")
    );
    assert!(nic.body["name"].as_str().unwrap().starts_with("pe.nic."));
    assert_eq!(sim.delete(nic.body["id"].as_str().unwrap()).status, 400);
    let subnet = sim.get(&format!("{GUEST_NET}/virtualNetworks/workers/subnets/pe"));
    assert_eq!(
        subnet.body["properties"]["privateEndpoints"],
        json!([{"id": expanded["id"]}])
    );
}

#[test]
fn connection_by_id_is_approved_at_once() {
    let mut sim = Sim::new();
    sim.link_service("svc");
    let put = sim.put(&path("pe"), by_id());
    assert_eq!(
        (put.status, status(&put.body, AUTOMATIC)),
        (201, ("Approved".into(), "Auto Approved".into()))
    );
}

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
    for (actions, invited, want) in [(vec![], false, 403), (vec![approval], false, 201), (vec![], true, 201)] {
        let mut sim = Sim::seeded(roles(&actions), Preset::Recorded);
        let mut service = pls();
        if !invited {
            service["properties"]["autoApproval"] = json!({"subscriptions": []});
        }
        assert_eq!(sim.put(&format!("{NET}/privateLinkServices/svc"), service).status, 201);
        sim.wait(60.0);
        sim.caller = caller(CONSUMER);
        let put = sim.put(&path("pe"), by_id());
        assert_eq!(put.status, want, "{}", put.body);
        if want == 403 {
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
fn endpoint_of_a_gone_connection_is_disconnected_for_good() {
    let mut sim = Sim::new();
    let alias = sim.link_service("svc");
    sim.endpoint("pe", &alias);
    let list = sim.get(&format!("{NET}/privateLinkServices/svc/privateEndpointConnections"));
    let connection = list.body["value"][0]["id"].as_str().unwrap().to_owned();
    let gone = sim.delete(&connection);
    assert_eq!(gone.status, 202);
    assert!(!gone.header("location").is_empty());
    assert_eq!(status(&sim.get(&path("pe")).body, MANUAL).0, "Approved");
    sim.wait(10.0);
    let got = sim.get(&path("pe"));
    assert_eq!(
        (got.state(), status(&got.body, MANUAL).0.as_str()),
        ("Succeeded", "Disconnected")
    );
    assert_eq!(got.body["properties"]["networkInterfaces"].as_array().unwrap().len(), 1);
    // Neither a new service of the same name nor a PUT brings it back.
    assert_eq!(sim.delete(&format!("{NET}/privateLinkServices/svc")).status, 202);
    sim.wait(11.0);
    let new = sim.link_service("svc");
    assert_ne!(new, alias);
    assert_eq!(status(&sim.get(&path("pe")).body, MANUAL).0, "Disconnected");
    assert_eq!(
        sim.put(&path("pe"), pe(&alias)).code(),
        "PrivateEndpointDisconnectedUpdateNotSupported"
    );
    assert_eq!(sim.delete(&path("pe")).status, 202);
}

#[test]
fn service_removed_behind_everybodys_back_disconnects() {
    let mut sim = Sim::new();
    let alias = sim.link_service("svc");
    sim.endpoint("pe", &alias);
    assert!(
        sim.world
            .delete_resource(sim.now, &format!("{NET}/privateLinkServices/svc"))
            .unwrap()
    );
    assert_eq!(status(&sim.get(&path("pe")).body, MANUAL).0, "Disconnected");
    assert_eq!(
        sim.world.resources(sim.now, &format!("{NET}/networkInterfaces")).len(),
        0
    );
}

#[test]
fn deletion_takes_interface_address_and_connection_along() {
    let mut sim = Sim::new();
    let alias = sim.link_service("svc");
    sim.endpoint("pe", &alias);
    let gone = sim.delete(&path("pe"));
    assert_eq!((gone.status, gone.header("retry-after")), (202, "10"));
    assert_eq!(
        sim.delete(&path("pe")).header("x-ms-request-id"),
        gone.header("x-ms-request-id")
    );
    assert_eq!(
        sim.get(&format!("{NET}/privateLinkServices/svc/privateEndpointConnections"))
            .body["value"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    sim.wait(10.0);
    assert_eq!(sim.get(&path("pe")).status, 404);
    assert_eq!(
        sim.get(&format!("{NET}/privateLinkServices/svc/privateEndpointConnections"))
            .body["value"],
        json!([])
    );
    assert_eq!(
        sim.world
            .resources(sim.now, &format!("{GUEST_NET}/networkInterfaces"))
            .len(),
        0
    );
    assert_eq!(
        sim.endpoint("again", &alias)["properties"]["networkInterfaces"][0]["properties"]["ipConfigurations"][0]["properties"]
            ["privateIPAddress"],
        json!("10.1.0.4")
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
fn static_address(#[case] address: &str, #[case] want: u16, #[case] code: &str) {
    let mut sim = Sim::new();
    let alias = sim.link_service("svc");
    sim.endpoint("first", &alias);
    let mut body = pe(&alias);
    body["properties"]["ipConfigurations"] = json!([{"name": "ip", "properties": {"privateIPAddress": address}}]);
    let put = sim.put(&path("pe"), body);
    assert_eq!((put.status, put.code()), (want, code));
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

#[test]
fn no_change_is_over_at_once_and_a_message_is_not() {
    let mut sim = Sim::new();
    let alias = sim.link_service("svc");
    sim.endpoint("pe", &alias);
    let same = sim.put(&path("pe"), pe(&alias));
    assert_eq!(
        (same.status, same.state(), same.header("retry-after")),
        (200, "Succeeded", "")
    );
    assert_eq!(status(&same.body, MANUAL).0, "Approved");
    let mut body = pe(&alias);
    body["properties"][MANUAL][0]["properties"]["requestMessage"] = json!("please");
    let put = sim.put(&path("pe"), body);
    assert_eq!((put.status, put.state()), (200, "Updating"));
    sim.wait(31.0);
    assert_eq!(sim.get(&path("pe")).state(), "Updating");
    sim.wait(2.0);
    assert_eq!(sim.get(&path("pe")).state(), "Succeeded");
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

#[test]
fn seeded_endpoint_is_whole() {
    let mut sim = Sim::new();
    let alias = sim.link_service("svc");
    let shown = sim.world.put_resource(sim.now, &path("seeded"), pe(&alias)).unwrap();
    assert_eq!(shown["properties"]["provisioningState"], json!("Succeeded"));
    let got = sim.get(&format!("{}?$expand=networkInterfaces", path("seeded")));
    assert_eq!(
        got.body["properties"]["networkInterfaces"][0]["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"],
        json!("10.1.0.4")
    );
    assert_eq!(
        sim.get(&format!("{NET}/privateLinkServices/svc/privateEndpointConnections"))
            .body["value"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn read_only_fields_are_ignored() {
    let mut sim = Sim::new();
    let alias = sim.link_service("svc");
    let mut body = pe(&alias);
    body["properties"]["resourceGuid"] = json!("mine");
    body["properties"]["provisioningState"] = json!("Failed");
    body["properties"]["networkInterfaces"] = json!([{"id": "mine"}]);
    body["properties"][MANUAL][0]["properties"]["privateLinkServiceConnectionState"] = json!({"status": "Approved"});
    let put = sim.put(&path("pe"), body);
    assert_eq!((put.status, put.state()), (201, "Updating"), "{}", put.body);
    assert_ne!(put.body["properties"]["resourceGuid"], json!("mine"));
    assert_ne!(put.body["properties"]["networkInterfaces"][0]["id"], json!("mine"));
    assert_eq!(status(&put.body, MANUAL).0, "Pending");
}

#[test]
fn seed_may_say_what_the_server_makes() {
    let mut service = pls();
    service["id"] = json!(format!("{NET}/privateLinkServices/svc"));
    service["properties"]["alias"] = json!("svc.known.westus2.azure.privatelinkservice");
    let mut json = seed();
    json["resources"].as_array_mut().unwrap().push(service);
    let mut sim = Sim::seeded(json, Preset::Recorded);
    let put = sim.put(&path("pe"), pe("svc.known.westus2.azure.privatelinkservice"));
    assert_eq!(put.status, 201, "{}", put.body);
}
