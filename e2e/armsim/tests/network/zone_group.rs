//! DNS zone groups of private endpoints: what they write, what is refused of them, what is deleted with them.

use armsim::Preset;
use serde_json::{Value, json};

use crate::network_support::{CONSUMER, GUEST_NET, GUEST_SUB, Sim, caller, seed};

const ZONE: &str = "privatelink.blob.core.windows.net";

fn zone(name: &str) -> String {
    format!("{GUEST_NET}/privateDnsZones/{name}")
}

fn endpoint() -> String {
    format!("{GUEST_NET}/privateEndpoints/pe")
}

fn group(name: &str) -> String {
    format!("{}/privateDnsZoneGroups/{name}", endpoint())
}

fn record() -> String {
    format!("{}/A/account", zone(ZONE))
}

fn zones(configs: &[(&str, &str)]) -> Value {
    let configs = configs
        .iter()
        .map(|(name, zone)| json!({"name": name, "properties": {"privateDnsZoneId": zone}}));
    json!({"properties": {"privateDnsZoneConfigs": configs.collect::<Vec<_>>()}})
}

fn account() -> String {
    GUEST_NET.replace("Microsoft.Network", "Microsoft.Storage/storageAccounts/account")
}

fn seed_with_zones() -> Value {
    let mut json = seed();
    let resources = json["resources"].as_array_mut().unwrap();
    resources.push(json!({"id": account(), "location": "westus2"}));
    for name in [ZONE, "blob.core.windows.net", "example.com"] {
        resources.push(json!({"id": zone(name)}));
    }
    json
}

/// An endpoint of a storage account and the zones for it.
fn with_endpoint() -> Sim {
    with(seed_with_zones())
}

fn with(json: Value) -> Sim {
    let mut sim = Sim::seeded(json, Preset::Recorded);
    let connection = json!({"name": "c", "properties": {"privateLinkServiceId": account(), "groupIds": ["blob"]}});
    let body = json!({"location": "westus2", "properties": {
        "subnet": {"id": format!("{GUEST_NET}/virtualNetworks/workers/subnets/pe")},
        "privateLinkServiceConnections": [connection],
    }});
    assert_eq!(sim.put(&endpoint(), body).status, 201);
    sim.wait(700.0);
    sim
}

impl Sim {
    /// Writes a group and waits until it is ready; returns its body.
    fn group(&mut self, name: &str, configs: &[(&str, &str)]) -> Value {
        let put = self.put(&group(name), zones(configs));
        assert!([200, 201].contains(&put.status), "{}", put.body);
        self.wait(30.0);
        self.get(&group(name)).body
    }
}

#[test]
fn a_group_writes_the_endpoints_name_into_its_zone() {
    let mut sim = with_endpoint();
    let before = sim.get(&endpoint()).body;
    let config = json!({"fqdn": "account.blob.core.windows.net", "ipAddresses": ["10.1.0.4"]});
    assert_eq!(before["properties"]["customDnsConfigs"], json!([config]));
    let put = sim.put(&group("default"), zones(&[("config", &zone(ZONE))]));
    assert_eq!(
        (put.status, put.state(), put.header("retry-after")),
        (201, "Updating", "10")
    );
    assert!(put.header("azure-asyncoperation").contains("/operations/") && put.header("location").is_empty());
    let set = |state: &str| {
        json!([{
            "recordType": "A", "recordSetName": "account", "fqdn": format!("account.{ZONE}"), "ttl": 10,
            "provisioningState": state, "ipAddresses": ["10.1.0.4"],
        }])
    };
    let config = &put.body["properties"]["privateDnsZoneConfigs"][0];
    assert_eq!(config["properties"]["recordSets"], set("Updating"));
    assert_eq!(sim.get(&record()).status, 404, "not before its time");
    sim.wait(30.0);
    let poll = sim.poll(put.header("azure-asyncoperation"));
    assert_eq!(poll.body, json!({"status": "Succeeded"}));
    let shown = sim.get(&group("default"));
    let etag = shown.header("etag").to_owned();
    let config = json!({
        "name": "config",
        "id": format!("{}/privateDnsZoneConfigs/config", group("default")),
        "etag": etag,
        "type": "Microsoft.Network/privateEndpoints/privateDnsZoneGroups/privateDnsZoneConfigs",
        "properties": {"provisioningState": "Succeeded", "privateDnsZoneId": zone(ZONE), "recordSets": set("Succeeded")},
    });
    assert_eq!(
        shown.body,
        json!({
            "name": "default", "id": group("default"), "etag": etag,
            "type": "Microsoft.Network/privateEndpoints/privateDnsZoneGroups",
            "properties": {"provisioningState": "Succeeded", "privateDnsZoneConfigs": [config]},
        })
    );
    let guid = before["properties"]["resourceGuid"].as_str().unwrap();
    let written = sim.get(&record()).body["properties"].clone();
    assert_eq!(
        written,
        json!({
            "metadata": {"creator": format!("created by private endpoint pe with resource guid {guid}")},
            "fqdn": format!("account.{ZONE}."), "ttl": 10, "isAutoRegistered": false,
            "aRecords": [{"ipv4Address": "10.1.0.4"}],
        })
    );
    assert_eq!(sim.get(&zone(ZONE)).body["properties"]["numberOfRecordSets"], 2);
    assert_eq!(sim.get(&endpoint()).body["properties"]["customDnsConfigs"], json!([]));
    let list = sim.get(&format!("{}/privateDnsZoneGroups", endpoint())).body;
    assert_eq!(list, json!({"value": [shown.body]}));
}

#[test]
fn a_group_is_deleted_with_its_own_records_only() {
    for by_endpoint in [false, true] {
        let mut sim = with_endpoint();
        sim.group("default", &[("a", &zone(ZONE)), ("b", &zone("blob.core.windows.net"))]);
        let other = format!("{}/A/account", zone("blob.core.windows.net"));
        let theirs = json!({"properties": {"ttl": 60, "aRecords": [{"ipv4Address": "10.9.9.9"}]}});
        assert_eq!(sim.put(&other, theirs).status, 200);
        let gone = sim.delete(&if by_endpoint { endpoint() } else { group("default") });
        assert_eq!((gone.status, gone.header("retry-after")), (202, "10"));
        assert!(!gone.header("location").is_empty());
        assert_eq!(sim.get(&record()).status, 200, "not before its time");
        sim.wait(30.0);
        assert_eq!(sim.get(&group("default")).status, 404);
        assert_eq!(sim.get(&record()).status, 404);
        assert_eq!(sim.get(&other).status, 200, "somebody has written it since");
        assert_eq!(
            sim.delete(&group("default")).status,
            if by_endpoint { 404 } else { 204 }
        );
    }
}

#[test]
fn a_zone_that_leaves_the_group_loses_the_record() {
    let mut sim = with_endpoint();
    sim.group("default", &[("a", &zone(ZONE))]);
    let changed = sim.group(
        "default",
        &[("b", &zone("blob.core.windows.net")), ("c", &zone("example.com"))],
    );
    assert_eq!(sim.get(&record()).status, 404);
    assert_eq!(
        sim.get(&format!("{}/A/account", zone("blob.core.windows.net"))).status,
        200
    );
    let none = &changed["properties"]["privateDnsZoneConfigs"][1]["properties"]["recordSets"];
    assert_eq!(*none, json!([]), "a zone that none of the names is in");
}

#[test]
fn a_group_of_a_link_services_endpoint_writes_only_by_switch() {
    for (switched, sets) in [(false, 1), (true, 2)] {
        let mut json = seed_with_zones();
        json["switches"] = json!({"zone_group_names_endpoint": switched});
        let mut sim = Sim::seeded(json, Preset::Recorded);
        let alias = sim.link_service("pls");
        let shown = sim.endpoint("pe", &alias);
        assert_eq!(shown["properties"]["customDnsConfigs"], json!([]));
        sim.group("default", &[("a", &zone("example.com"))]);
        assert_eq!(
            sim.get(&zone("example.com")).body["properties"]["numberOfRecordSets"],
            sets
        );
        let named = sim.get(&format!("{}/A/pe", zone("example.com")));
        assert_eq!(named.status, if switched { 200 } else { 404 });
    }
}

#[test]
fn wrong_groups_are_refused() {
    let mut sim = with_endpoint();
    let wrong = |sim: &mut Sim, configs: &[(&str, &str)]| {
        let got = sim.put(&group("default"), zones(configs));
        (
            got.status,
            got.code().to_owned(),
            got.detail().to_owned(),
            got.message().to_owned(),
        )
    };
    let (status, code, detail, _) = wrong(&mut sim, &[("a", &zone("missing.com"))]);
    assert_eq!(
        (status, code.as_str(), detail.as_str()),
        (400, "InvalidResourceReference", "NotFound")
    );
    let (status, code, detail, _) = wrong(&mut sim, &[("a", &zone(ZONE)), ("A", &zone("example.com"))]);
    assert_eq!(
        (status, code.as_str(), detail.as_str()),
        (400, "InvalidRequestFormat", "DuplicateResourceName")
    );
    let (status, code, _, _) = wrong(&mut sim, &[("a", &endpoint())]);
    assert_eq!((status, code.as_str()), (400, "InvalidRequestFormat"));
    let (status, code, _, _) = wrong(&mut sim, &[("a", &zone(ZONE)), ("b", &zone(ZONE))]);
    assert_eq!(
        (status, code.as_str()),
        (400, "PrivateDnsZoneGroupWithDuplicateZonesNotSupported")
    );
    let many: Vec<String> = (0..6).map(|n| n.to_string()).collect();
    let id = zone(ZONE);
    let many: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), id.as_str())).collect();
    let (status, code, _, message) = wrong(&mut sim, &many);
    assert_eq!(
        (status, code.as_str()),
        (400, "PrivateDnsZoneGroupZoneLimitReached"),
        "{message}"
    );
    let now = sim.now;
    assert!(sim.azure.resources(now, &format!("{}/", endpoint())).is_empty());
    sim.group("default", &[("a", &zone(ZONE))]);
    let second = sim.put(&group("second"), zones(&[("a", &zone("example.com"))]));
    assert_eq!((second.status, second.code()), (400, "PrivateDnsZoneGroupLimitReached"));
    assert!(
        second
            .message()
            .starts_with("Cannot create more than one private dns zone groups in the private endpoint ")
    );
}

#[test]
fn a_group_needs_its_endpoint_and_the_right_to_join_the_zones() {
    let mut json = seed_with_zones();
    let roles = json["roles"].as_array_mut().unwrap();
    roles.push(
        json!({"object_id": CONSUMER, "scope": format!("/subscriptions/{GUEST_SUB}"),
        "actions": ["Microsoft.Network/privateEndpoints/*"]}),
    );
    roles.push(json!({"object_id": CONSUMER, "scope": zone("example.com"), "actions": ["*/join/action"]}));
    let mut sim = with(json);
    let orphan = group("default").replace("privateEndpoints/pe/", "privateEndpoints/none/");
    let orphan = sim.put(&orphan, zones(&[]));
    assert_eq!((orphan.status, orphan.code()), (404, "ParentResourceNotFound"));
    sim.caller = caller(CONSUMER);
    let refused = sim.put(
        &group("default"),
        zones(&[("a", &zone("example.com")), ("b", &zone(ZONE))]),
    );
    assert_eq!((refused.status, refused.code()), (403, "LinkedAuthorizationFailed"));
    assert!(
        refused
            .message()
            .contains("Microsoft.Network/privateDnsZones/join/action")
    );
    sim.group("default", &[("a", &zone("example.com"))]);
}

#[test]
fn a_zone_deleted_meanwhile_fails_the_operation() {
    let mut sim = with_endpoint();
    let put = sim.put(&group("default"), zones(&[("a", &zone(ZONE))]));
    let now = sim.now;
    sim.azure.delete_resource(now, &zone(ZONE)).unwrap();
    sim.wait(30.0);
    let poll = sim.poll(put.header("azure-asyncoperation"));
    assert_eq!(poll.body["status"], "Failed");
    assert_eq!(poll.body["error"]["code"], "InvalidResourceReference");
    assert_eq!(sim.get(&group("default")).state(), "Failed");
}

#[test]
fn a_group_of_an_endpoint_still_being_made_is_retryable() {
    let mut sim = with_endpoint();
    let mut body = sim.get(&endpoint()).body;
    sim.delete(&endpoint());
    sim.wait(30.0);
    body["properties"]["ipConfigurations"] = json!([]);
    assert_eq!(sim.put(&endpoint(), body).status, 201);
    let early = sim.put(&group("default"), zones(&[("a", &zone(ZONE))]));
    assert_eq!(
        (early.status, early.code(), early.detail()),
        (429, "RetryableError", "ReferencedResourceNotProvisioned")
    );
}

#[test]
fn a_seeded_group_has_written_its_records() {
    let mut sim = with_endpoint();
    let now = sim.now;
    sim.azure
        .put_resource(now, &group("seeded"), zones(&[("a", &zone(ZONE))]))
        .unwrap();
    assert_eq!(sim.get(&record()).status, 200);
    assert_eq!(sim.get(&group("seeded")).state(), "Succeeded");
}
