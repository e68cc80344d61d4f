//! The life of a private link service and of the connections to it.

use serde_json::{Value, json};

use crate::network_support::{GUEST_NET, NET, SUB, Sim, pls};

pub(crate) fn path(name: &str) -> String {
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
fn dynamic_nat_address_is_made_a_static_one() {
    let mut sim = Sim::new();
    sim.link_service("svc");
    let address = |sim: &mut Sim| {
        let id = sim.get(&path("svc")).body["properties"]["networkInterfaces"][0]["id"].clone();
        let nic = sim.get(id.as_str().unwrap()).body;
        let all = nic["properties"]["ipConfigurations"].as_array().unwrap().clone();
        assert_eq!(all.len(), 1);
        let properties = &all[0]["properties"];
        let [address, method] = ["privateIPAddress", "privateIPAllocationMethod"].map(|name| &properties[name]);
        (
            address.as_str().unwrap().to_owned(),
            method.as_str().unwrap().to_owned(),
        )
    };
    assert_eq!(address(&mut sim), ("10.0.1.4".to_owned(), "Dynamic".to_owned()));
    for fixed in ["10.0.1.4", "10.0.1.9"] {
        let mut sim = Sim::new();
        sim.link_service("svc");
        let mut body = pls();
        body["properties"]["ipConfigurations"][0]["properties"]["privateIPAllocationMethod"] = json!("Static");
        body["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"] = json!(fixed);
        let put = sim.put(&path("svc"), body.clone());
        assert_eq!((put.status, put.state()), (200, "Updating"), "{}", put.body);
        sim.wait(10.0);
        assert_eq!(address(&mut sim), (fixed.to_owned(), "Static".to_owned()));
        assert_eq!(sim.put(&path("svc"), body).state(), "Succeeded");
        assert_eq!(
            sim.put(&path("svc"), pls()).code(),
            "PrivateLinkServiceIpConfigurationCannotBeChanged"
        );
    }
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
    assert!(!sim.azure.journal(0).iter().rev().nth(1).unwrap().changed);
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
fn deletion_is_reported_by_both_urls() {
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
    let end = sim.poll(&result);
    assert_eq!((end.status, end.header("retry-after")), (204, ""));
    assert_eq!(end.header("azure-asyncnotification"), "Enabled");
    assert_eq!(end.header("content-type"), "application/json; charset=utf-8");
    let path_of = |url: &str| url.split('?').next().unwrap().to_owned();
    assert_eq!(path_of(end.header("azure-asyncoperation")), path_of(&status));
    assert_eq!(path_of(end.header("location")), path_of(&result));
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
fn rejected_connections_do_not_block_deletion_by_switch() {
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
