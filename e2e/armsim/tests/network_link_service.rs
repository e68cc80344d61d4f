//! Private link services: their life, what may change, and what is refused.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod network_support;

use armsim::Preset;
use network_support::{GUEST_NET, NET, SUB, Sim, pe, pls, seed};
use rstest::rstest;
use serde_json::{Value, json};

fn path(name: &str) -> String {
    format!("{NET}/privateLinkServices/{name}")
}

#[test]
fn creation_is_asynchronous_and_shows_the_alias_at_once() {
    let mut sim = Sim::new();
    let put = sim.put(&path("Svc"), pls());
    assert_eq!((put.status, put.state()), (201, "Updating"));
    assert_eq!(put.header("retry-after"), "10");
    assert_eq!(put.header("azure-asyncnotification"), "Enabled");
    assert_eq!((put.header("location"), put.header("etag")), ("", ""));
    let status_url = put.header("azure-asyncoperation").to_owned();
    assert!(status_url.starts_with(&format!(
        "https://arm.test/subscriptions/{SUB}/providers/Microsoft.Network/locations/westus2/operations/"
    )));
    assert!(status_url.len() > 3000, "{}", status_url.len());
    assert!(status_url.contains(put.header("x-ms-request-id")));
    let properties = &put.body["properties"];
    let alias = properties["alias"].as_str().unwrap().to_owned();
    assert!(
        alias.starts_with("svc.") && alias.ends_with(".westus2.azure.privatelinkservice"),
        "{alias}"
    );
    assert_eq!(properties["ipConfigurations"][0]["properties"]["primary"], json!(true));
    assert!(properties["ipConfigurations"][0]["properties"]["privateIPAddress"].is_null());
    assert_eq!(properties["fqdns"], json!([]));
    assert_eq!(
        properties["loadBalancerFrontendIpConfigurations"][0]["id"],
        json!(format!("{NET}/loadBalancers/lb/frontendIPConfigurations/router"))
    );

    sim.wait(5.0);
    let poll = sim.poll(&status_url);
    assert_eq!((poll.status, &poll.body), (200, &json!({"status": "InProgress"})));
    assert_eq!(poll.header("retry-after"), "10");
    sim.wait(8.0);
    let poll = sim.poll(&status_url);
    assert_eq!((poll.status, &poll.body), (200, &json!({"status": "Succeeded"})));
    assert_eq!(poll.header("retry-after"), "");
    let got = sim.get(&path("svc"));
    assert_eq!((got.status, got.state()), (200, "Succeeded"));
    assert_eq!(got.body["name"], json!("Svc"));
    assert_eq!(got.header("etag"), got.body["etag"].as_str().unwrap());
    assert_ne!(got.body["etag"], put.body["etag"]);
    assert_eq!(got.body["properties"]["alias"], json!(alias));
}

#[test]
fn nat_address_is_on_the_interface_only() {
    let mut sim = Sim::new();
    sim.link_service("svc");
    let got = sim.get(&path("svc"));
    let nic = got.body["properties"]["networkInterfaces"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let nic = sim.get(&nic);
    assert_eq!(
        nic.body["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"],
        json!("10.0.1.4")
    );
    let subnet = sim.get(&format!("{NET}/virtualNetworks/vnet/subnets/nat"));
    assert_eq!(
        subnet.body["properties"]["ipConfigurations"].as_array().unwrap().len(),
        2,
        "the interface's and the service's"
    );
}

#[test]
fn tags_and_no_change_are_over_at_once() {
    let mut sim = Sim::new();
    sim.link_service("svc");
    let before = sim.get(&path("svc")).body["etag"].clone();
    let same = sim.put(&path("svc"), pls());
    assert_eq!(
        (same.status, same.state(), same.header("retry-after")),
        (200, "Succeeded", "")
    );
    assert_eq!(same.body["etag"], before);
    assert_eq!(
        sim.poll(same.header("azure-asyncoperation")).body,
        json!({"status": "Succeeded"})
    );
    assert!(!sim.world.journal(0).iter().rev().nth(1).unwrap().changed);
    let mut tagged = pls();
    tagged["tags"] = json!({"a": "b"});
    let tagged = sim.put(&path("svc"), tagged);
    assert_eq!(
        (tagged.status, tagged.state(), tagged.header("retry-after")),
        (200, "Succeeded", "")
    );
    assert_ne!(tagged.body["etag"], before);
    assert!(sim.put(&path("svc"), pls()).body["tags"].is_null());
}

#[test]
fn real_update_takes_its_time_and_drops_what_it_omits() {
    let mut sim = Sim::new();
    sim.link_service("svc");
    let mut body = pls();
    body["properties"]["enableProxyProtocol"] = json!(true);
    body["properties"].as_object_mut().unwrap().remove("visibility");
    body["properties"].as_object_mut().unwrap().remove("autoApproval");
    body["properties"]["alias"] = json!("mine");
    let put = sim.put(&path("svc"), body);
    assert_eq!((put.status, put.state()), (200, "Updating"));
    assert!(put.body["properties"]["visibility"].is_null());
    assert_ne!(put.body["properties"]["alias"], json!("mine"));
    sim.wait(11.0);
    assert_eq!(sim.get(&path("svc")).state(), "Succeeded");
}

#[test]
fn newer_put_cancels_the_older_operation() {
    let mut sim = Sim::new();
    let first = sim.put(&path("svc"), pls());
    sim.wait(2.0);
    let mut body = pls();
    body["properties"]["enableProxyProtocol"] = json!(true);
    let second = sim.put(&path("svc"), body);
    assert_eq!((second.status, second.state()), (200, "Updating"));
    let old = sim.poll(first.header("azure-asyncoperation"));
    assert_eq!((old.status, &old.body["status"]), (200, &json!("Canceled")));
    assert_eq!(
        (old.code(), old.detail()),
        ("Canceled", "CanceledAndSupersededDueToAnotherOperation")
    );
    sim.wait(60.0);
    assert_eq!(sim.get(&path("svc")).state(), "Succeeded");
}

#[test]
fn deletion_goes_through_both_urls() {
    let mut sim = Sim::new();
    sim.link_service("svc");
    let gone = sim.delete(&path("svc"));
    assert_eq!(
        (gone.status, &gone.body, gone.header("retry-after")),
        (202, &Value::Null, "10")
    );
    let (status, result) = (
        gone.header("azure-asyncoperation").to_owned(),
        gone.header("location").to_owned(),
    );
    assert!(result.contains("/operationResults/"));
    assert_eq!(sim.get(&path("svc")).state(), "Deleting");
    let put = sim.put(&path("svc"), pls());
    assert_eq!(put.refusal(), (409, "AnotherOperationInProgress", "service"));
    assert_eq!(sim.poll(&result).status, 202);
    sim.wait(10.0);
    assert_eq!(sim.poll(&status).body, json!({"status": "Succeeded"}));
    assert_eq!(sim.poll(&result).status, 204);
    assert_eq!(sim.get(&path("svc")).refusal(), (404, "ResourceNotFound", "gateway"));
    assert_eq!(sim.delete(&path("svc")).status, 204);
    let subnet = sim.get(&format!("{NET}/virtualNetworks/vnet/subnets/nat"));
    assert!(subnet.body["properties"]["ipConfigurations"].is_null());
    // A new one of the same name has another alias.
    let again = sim.put(&path("svc"), pls());
    assert_eq!(again.status, 201);
}

#[test]
fn service_with_connections_is_not_deleted() {
    let mut sim = Sim::new();
    let alias = sim.link_service("svc");
    sim.endpoint("pe", &alias);
    let refused = sim.delete(&path("svc"));
    assert_eq!(
        refused.refusal(),
        (
            400,
            "PrivateLinkServiceWithPrivateEndpointConnectionsCannotBeDeleted",
            "service"
        )
    );
    let list = sim.get(&format!("{}/privateEndpointConnections", path("svc")));
    let connection = list.body["value"][0]["id"].as_str().unwrap().to_owned();
    let reject =
        json!({"properties": {"privateLinkServiceConnectionState": {"status": "Rejected", "description": "no"}}});
    assert_eq!(sim.put(&connection, reject).status, 200);
    sim.wait(11.0);
    assert_eq!(sim.delete(&path("svc")).status, 400);
    let gone = sim.delete(&connection);
    assert_eq!(gone.status, 202);
    assert_eq!(sim.delete(&path("svc")).status, 400);
    sim.wait(11.0);
    assert_eq!(sim.delete(&path("svc")).status, 202);
}

#[test]
fn rejected_connections_do_not_block_where_the_switch_says_so() {
    let mut sim = Sim::with_switches(json!({"rejected_connections_block_delete": false}));
    let alias = sim.link_service("svc");
    sim.endpoint("pe", &alias);
    assert_eq!(sim.delete(&path("svc")).status, 400);
    let list = sim.get(&format!("{}/privateEndpointConnections", path("svc")));
    let connection = list.body["value"][0]["id"].as_str().unwrap().to_owned();
    sim.put(
        &connection,
        json!({"properties": {"privateLinkServiceConnectionState": {"status": "Rejected"}}}),
    );
    sim.wait(11.0);
    assert_eq!(sim.delete(&path("svc")).status, 202);
    sim.wait(11.0);
    let endpoint = sim.get(&format!("{GUEST_NET}/privateEndpoints/pe"));
    let state = &endpoint.body["properties"]["manualPrivateLinkServiceConnections"][0]["properties"];
    assert_eq!(
        state["privateLinkServiceConnectionState"]["status"],
        json!("Disconnected")
    );
}

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

#[test]
fn connections_are_decided_asynchronously() {
    let mut sim = Sim::new();
    let mut body = pls();
    body["properties"]["autoApproval"] = json!({"subscriptions": []});
    let alias = sim.put(&path("svc"), body).body["properties"]["alias"]
        .as_str()
        .unwrap()
        .to_owned();
    sim.wait(60.0);
    let endpoint = sim.endpoint("pe", &alias);
    let connection_of = |endpoint: &Value| {
        endpoint["properties"]["manualPrivateLinkServiceConnections"][0]["properties"]["privateLinkServiceConnectionState"]["status"].clone()
    };
    assert_eq!(
        (&endpoint["properties"]["provisioningState"], connection_of(&endpoint)),
        (&json!("Succeeded"), json!("Pending"))
    );
    let shown = sim.get(&path("svc")).body["properties"]["privateEndpointConnections"][0].clone();
    let guid = endpoint["properties"]["resourceGuid"].as_str().unwrap();
    assert_eq!(shown["name"], json!(format!("pe.{guid}")));
    assert_eq!(shown["properties"]["privateEndpoint"]["id"], endpoint["id"]);
    assert!(
        shown["properties"]["linkIdentifier"]
            .as_str()
            .unwrap()
            .parse::<u32>()
            .is_ok()
    );
    let connection = shown["id"].as_str().unwrap().to_owned();
    let to = |status: &str| json!({"properties": {"privateLinkServiceConnectionState": {"status": status, "description": "d"}}});
    let put = sim.put(&connection, to("Approved"));
    assert_eq!((put.status, put.state()), (200, "Updating"));
    assert!(!put.header("azure-asyncoperation").is_empty());
    let path = endpoint["id"].as_str().unwrap().to_owned();
    assert_eq!(connection_of(&sim.get(&path).body), json!("Pending"));
    sim.wait(10.0);
    assert_eq!(sim.get(&connection).state(), "Succeeded");
    assert_eq!(connection_of(&sim.get(&path).body), json!("Approved"));
    assert_eq!(sim.put(&connection, to("Rejected")).status, 200);
    sim.wait(10.0);
    assert_eq!(connection_of(&sim.get(&path).body), json!("Rejected"));
    assert_eq!(
        sim.put(&connection, to("Approved")).refusal(),
        (400, "OperationNotAllowed", "service")
    );
    assert_eq!(sim.put(&connection, to("Maybe")).status, 400);
    let unknown = connection.replace("/pe.", "/none.");
    assert_eq!(sim.get(&unknown).refusal(), (404, "NotFound", "service"));
    assert_eq!(sim.put(&unknown, to("Approved")).status, 404);
    assert_eq!(sim.delete(&unknown).status, 204);
}
