//! The life of a private endpoint: alias and id, approval, address, the end of the connection.

use armsim::Preset;
use serde_json::{Value, json};

use crate::network_support::{GUEST_NET, NET, Sim, pe, pls, seed};

pub(crate) fn path(name: &str) -> String {
    format!("{GUEST_NET}/privateEndpoints/{name}")
}

pub(crate) fn status(endpoint: &Value, list: &str) -> (String, String) {
    let state = &endpoint["properties"][list][0]["properties"]["privateLinkServiceConnectionState"];
    (
        state["status"].as_str().unwrap().to_owned(),
        state["description"].as_str().unwrap().to_owned(),
    )
}

/// Those of the service, as it lists them.
fn connections(sim: &mut Sim) -> Vec<Value> {
    let list = sim.get(&format!("{NET}/privateLinkServices/svc/privateEndpointConnections"));
    list.body["value"].as_array().unwrap().clone()
}

pub(crate) const MANUAL: &str = "manualPrivateLinkServiceConnections";

pub(crate) const AUTOMATIC: &str = "privateLinkServiceConnections";

/// An endpoint by id in the automatic list.
pub(crate) fn by_id() -> Value {
    let mut body = pe("");
    body["properties"][MANUAL] = json!([]);
    body["properties"][AUTOMATIC] =
        json!([{"name": "c", "properties": {"privateLinkServiceId": format!("{NET}/privateLinkServices/svc")}}]);
    body
}

#[test]
fn versions_tell_the_kind_of_address_each_in_its_words() {
    let mut sim = Sim::new();
    let alias = sim.link_service("svc");
    sim.endpoint("pe", &alias);
    for (version, word, flag) in [
        ("2023-11-01", false, false),
        ("2024-03-01", false, true),
        ("2025-03-01", true, false),
        ("2025-05-01", true, true),
    ] {
        let uri = format!("https://arm.test{}?api-version={version}", path("pe"));
        let properties = sim.raw("GET", &uri, "").body["properties"].clone();
        assert_eq!(properties.get("ipVersionType").is_some(), word, "{version}");
        assert_eq!(
            properties.get("isIPv6EnabledPrivateEndpoint").is_some(),
            flag,
            "{version}"
        );
    }
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
fn endpoint_of_a_gone_connection_is_disconnected_for_good() {
    let mut sim = Sim::new();
    let alias = sim.link_service("svc");
    sim.endpoint("pe", &alias);
    let connection = connections(&mut sim)[0]["id"].as_str().unwrap().to_owned();
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
        sim.azure
            .delete_resource(sim.now, &format!("{NET}/privateLinkServices/svc"))
            .unwrap()
    );
    assert_eq!(status(&sim.get(&path("pe")).body, MANUAL).0, "Disconnected");
    assert_eq!(
        sim.azure.resources(sim.now, &format!("{NET}/networkInterfaces")).len(),
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
    assert_eq!(connections(&mut sim).len(), 1);
    sim.wait(10.0);
    assert_eq!(sim.get(&path("pe")).status, 404);
    assert_eq!(connections(&mut sim), [] as [Value; 0]);
    assert_eq!(
        sim.azure
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

/// As the Azure CLI's `private-endpoint ip-config remove` and `add` were recorded.
#[test]
fn static_address_is_taken_off_and_put_on_again() {
    let mut sim = Sim::new();
    let alias = sim.link_service("svc");
    let mut body = pe(&alias);
    body["properties"]["ipConfigurations"] = json!([{"name": "ip", "properties": {"privateIPAddress": "10.1.0.9"}}]);
    sim.put(&path("pe"), body.clone());
    sim.wait(600.0);
    let shown = sim.get(&path("pe")).body;
    let item = &shown["properties"]["ipConfigurations"][0];
    assert_eq!(item["id"], json!(format!("{}/ipConfigurations/ip", path("pe"))));
    assert_eq!(item["etag"], shown["etag"]);
    assert_eq!(
        item["type"],
        json!("Microsoft.Network/privateEndpoints/ipConfigurations")
    );
    assert_eq!(
        item["properties"],
        json!({"privateIPAddress": "10.1.0.9", "provisioningState": "Succeeded"})
    );
    let mut without = body.clone();
    without["properties"]["ipConfigurations"] = json!([]);
    for given in [without, body] {
        let put = sim.put(&path("pe"), given.clone());
        assert_eq!(put.status, 200, "{}", put.body);
        sim.wait(600.0);
        let shown = sim.get(&path("pe")).body;
        assert_eq!(
            shown["properties"]["ipConfigurations"].as_array().unwrap().len(),
            given["properties"]["ipConfigurations"].as_array().unwrap().len()
        );
    }
}

#[test]
fn seeded_endpoint_is_whole() {
    let mut sim = Sim::new();
    let alias = sim.link_service("svc");
    let shown = sim.azure.put_resource(sim.now, &path("seeded"), pe(&alias)).unwrap();
    assert_eq!(shown["properties"]["provisioningState"], json!("Succeeded"));
    let got = sim.get(&format!("{}?$expand=networkInterfaces", path("seeded")));
    assert_eq!(
        got.body["properties"]["networkInterfaces"][0]["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"],
        json!("10.1.0.4")
    );
    assert_eq!(connections(&mut sim).len(), 1);
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
