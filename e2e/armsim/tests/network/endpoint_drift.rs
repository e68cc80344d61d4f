//! Endpoints as a client may find them: failed, without an interface, without an address, with a connection that was
//! decided on behind its back. Each by a fault rule or by a control call.

use serde_json::{Value, json};

use crate::endpoint::{AUTOMATIC, MANUAL, by_id, path, status};
use crate::network_support::{NET, Sim, pe};

/// A ready endpoint to a ready service.
fn connected() -> Sim {
    let mut sim = Sim::new();
    let alias = sim.link_service("svc");
    sim.endpoint("pe", &alias);
    sim
}

fn drift(sim: &mut Sim, id: &str, body: Value) {
    sim.azure.put_resource(sim.now, id, body).unwrap();
}

/// The endpoint as it is read for its address.
fn expanded(sim: &mut Sim) -> Value {
    let got = sim.get(&format!("{}?$expand=networkInterfaces", path("pe")));
    assert_eq!(got.status, 200, "{}", got.body);
    got.body["properties"].clone()
}

fn interface_id(sim: &mut Sim) -> String {
    expanded(sim)["networkInterfaces"][0]["id"].as_str().unwrap().to_owned()
}

fn address(sim: &mut Sim) -> Value {
    let configuration = &expanded(sim)["networkInterfaces"][0]["properties"]["ipConfigurations"][0];
    configuration["properties"]["privateIPAddress"].clone()
}

/// The address that a free-standing interface in the same subnet is given.
fn next_free(sim: &mut Sim) -> Value {
    let subnet = sim.get(&path("pe")).body["properties"]["subnet"].clone();
    let body = json!({"location": "westus2", "properties": {
        "ipConfigurations": [{"name": "ip", "properties": {"subnet": subnet}}]}});
    let put = sim.put(
        &path("pe").replace("privateEndpoints/pe", "networkInterfaces/probe"),
        body,
    );
    put.body["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"].clone()
}

#[test]
fn endpoint_whose_operation_fails_is_failed_and_not_approved() {
    let mut sim = Sim::new();
    let alias = sim.link_service("svc");
    sim.faults(json!([{"match": {"method": "PUT", "path": "/privateEndpoints/"}, "do": {"operation": "fail"}}]));
    let url = sim
        .put(&path("pe"), pe(&alias))
        .header("azure-asyncoperation")
        .to_owned();
    sim.wait(700.0);
    assert_eq!(sim.poll(&url).body["status"], json!("Failed"));
    let failed = sim.get(&path("pe"));
    assert_eq!(
        (failed.state(), status(&failed.body, MANUAL).0.as_str()),
        ("Failed", "Pending")
    );
    let again = sim.put(&path("pe"), pe(&alias));
    assert_eq!((again.status, again.state()), (200, "Updating"), "{}", again.body);
    sim.wait(700.0);
    let ready = sim.get(&path("pe"));
    assert_eq!(
        (ready.state(), status(&ready.body, MANUAL).0.as_str()),
        ("Succeeded", "Approved")
    );
}

#[test]
fn drift_can_make_an_endpoint_failed() {
    let mut sim = Sim::new();
    sim.link_service("svc");
    sim.make(&path("pe"), by_id());
    let mut body = by_id();
    body["properties"]["provisioningState"] = json!("Failed");
    drift(&mut sim, &path("pe"), body);
    let failed = sim.get(&path("pe"));
    assert_eq!(
        (failed.state(), status(&failed.body, AUTOMATIC).0.as_str()),
        ("Failed", "Approved")
    );
    let list = sim.get(&path("pe").replace("/pe", "")).body;
    assert_eq!(list["value"][0]["properties"]["provisioningState"], json!("Failed"));
    assert_eq!(sim.put(&path("pe"), by_id()).state(), "Updating");
    sim.wait(60.0);
    assert_eq!(sim.get(&path("pe")).state(), "Succeeded");
}

#[test]
fn drift_can_take_the_interface_away() {
    let mut sim = connected();
    let nic = interface_id(&mut sim);
    let guid = expanded(&mut sim)["resourceGuid"].clone();
    let mut body = sim.get(&path("pe")).body;
    body["properties"]["networkInterfaces"] = json!([]);
    drift(&mut sim, &path("pe"), body.clone());
    let bare = expanded(&mut sim);
    assert_eq!(bare["networkInterfaces"], json!([]));
    assert_eq!(
        (&bare["resourceGuid"], &bare["provisioningState"]),
        (&guid, &json!("Succeeded"))
    );
    assert_eq!(status(&sim.get(&path("pe")).body, MANUAL).0, "Approved");
    assert_eq!(sim.get(&nic).refusal(), (404, "ResourceNotFound", "gateway"));
    // A PUT of its owner's does not bring it back; another drift does.
    let mut tagged = body.clone();
    tagged["tags"] = json!({"a": "b"});
    assert_eq!(sim.put(&path("pe"), tagged).status, 200);
    assert_eq!(expanded(&mut sim)["networkInterfaces"], json!([]));
    body["properties"].as_object_mut().unwrap().remove("networkInterfaces");
    drift(&mut sim, &path("pe"), body);
    assert_eq!(address(&mut sim), json!("10.1.0.4"));
    assert_eq!(sim.delete(&path("pe")).status, 202);
}

#[test]
fn drift_can_leave_an_interface_without_an_address() {
    let mut sim = connected();
    let nic = interface_id(&mut sim);
    let mut body = sim.get(&nic).body;
    let given = "/properties/ipConfigurations/0/properties/privateIPAddress";
    *body.pointer_mut(given).unwrap() = json!("");
    drift(&mut sim, &nic, body.clone());
    assert_eq!(address(&mut sim), Value::Null);
    assert_eq!(
        expanded(&mut sim)["networkInterfaces"][0]["managedBy"],
        json!(path("pe"))
    );
    assert_eq!(next_free(&mut sim), json!("10.1.0.4"));
    *body.pointer_mut(given).unwrap() = json!("10.1.0.9");
    drift(&mut sim, &nic, body.clone());
    assert_eq!(address(&mut sim), json!("10.1.0.9"));
    body["properties"]["ipConfigurations"] = json!([]);
    drift(&mut sim, &nic, body);
    assert_eq!(
        expanded(&mut sim)["networkInterfaces"][0]["properties"]["ipConfigurations"],
        json!([])
    );
}

#[test]
fn interface_that_is_gone_is_not_expanded() {
    let mut sim = connected();
    let nic = interface_id(&mut sim);
    assert!(sim.azure.delete_resource(sim.now, &nic).unwrap());
    assert_eq!(expanded(&mut sim)["networkInterfaces"], json!([{"id": nic}]));
}

#[test]
fn drift_of_a_connection_shows_on_both_sides() {
    let mut sim = connected();
    let list = sim.get(&format!("{NET}/privateLinkServices/svc/privateEndpointConnections"));
    let connection = list.body["value"][0].clone();
    let id = connection["id"].as_str().unwrap().to_owned();
    for decision in ["Rejected", "Approved", "Pending"] {
        let mut body = connection.clone();
        body["properties"]["privateLinkServiceConnectionState"]["status"] = json!(decision);
        drift(&mut sim, &id, body);
        assert_eq!(status(&sim.get(&path("pe")).body, MANUAL).0, decision);
        let shown = sim.get(&id).body["properties"]["privateLinkServiceConnectionState"]["status"].clone();
        assert_eq!(shown, json!(decision));
    }
}
