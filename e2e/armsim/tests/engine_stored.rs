//! A simulated Azure as a whole: its seed, its saved state, changes past ARM, the same calls again.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod network_support;

use armsim::{Preset, Seed, SimulatedAzure};
use network_support::{GUEST_NET, NET, SUB, Sim, pe, pls, seed};
use serde_json::json;

/// Makes a fixed sequence of calls; returns all answers as text.
fn life(sim: &mut Sim) -> String {
    let mut all = String::new();
    let mut note =
        |got: network_support::Got| all.push_str(&format!("{} {:?} {}\n", got.status, got.headers, got.body));
    let put = sim.put(&format!("{NET}/privateLinkServices/svc"), pls());
    let alias = put.body["properties"]["alias"].as_str().unwrap().to_owned();
    note(put);
    sim.wait(60.0);
    note(sim.put(&format!("{GUEST_NET}/privateEndpoints/pe"), pe(&alias)));
    sim.wait(700.0);
    note(sim.get(&format!("{GUEST_NET}/privateEndpoints/pe?$expand=networkInterfaces")));
    note(sim.delete(&format!("{NET}/privateLinkServices/svc")));
    all
}

#[test]
fn equal_seeds_and_calls_give_equal_answers() {
    assert_eq!(life(&mut Sim::new()), life(&mut Sim::new()));
    let mut other = Sim::new();
    other.azure = SimulatedAzure::new(Preset::Recorded, 2);
    network_support::spec_support::check(&mut other.azure);
    other
        .azure
        .seed(other.now, Seed::parse(seed().to_string().as_bytes()).unwrap())
        .unwrap();
    assert_ne!(life(&mut other), life(&mut Sim::new()));
}

#[test]
fn saved_azure_continues_where_it_was() {
    let mut sim = Sim::new();
    let put = sim.put(&format!("{NET}/privateLinkServices/svc"), pls());
    sim.faults(json!([{"match": {"method": "GET", "from": 2}, "do": {"status": 500}}]));
    let saved = serde_json::to_string(&sim.azure).unwrap();
    let mut loaded = Sim::new();
    loaded.azure = serde_json::from_str(&saved).unwrap();
    network_support::spec_support::check(&mut loaded.azure);
    assert_eq!(serde_json::to_string(&loaded.azure).unwrap(), saved);
    loaded.wait(13.0);
    assert_eq!(
        loaded.poll(put.header("azure-asyncoperation")).body,
        json!({"status": "Succeeded"})
    );
    assert_eq!(loaded.poll(put.header("azure-asyncoperation")).status, 500);
    assert_eq!(loaded.azure.journal(0).len(), 3);
}

#[test]
fn refused_seed_changes_nothing() {
    let mut sim = Sim::new();
    for (resource, word) in [
        (json!({"id": "x"}), "not an ARM id"),
        (json!({"location": "westus2"}), "not an ARM id"),
        (
            json!({"id": "/subscriptions/none/resourceGroups/rg"}),
            "subscription 'none' is unknown",
        ),
        (
            json!({"id": format!("/subscriptions/{SUB}/resourceGroups/no/providers/Microsoft.Network/virtualNetworks/v")}),
            "resource group 'no' is missing",
        ),
        (
            json!({"id": format!("{NET}/virtualNetworks/none/subnets/s")}),
            "is missing",
        ),
    ] {
        let mut json = seed();
        json["resources"].as_array_mut().unwrap().push(resource);
        let error = sim
            .azure
            .seed(sim.now, Seed::parse(json.to_string().as_bytes()).unwrap())
            .unwrap_err()
            .to_string();
        assert!(error.contains(word), "{error}");
    }
    assert_eq!(sim.get(&format!("{NET}/virtualNetworks/vnet")).status, 200);
}

#[test]
fn seed_replaces_everything() {
    let mut sim = Sim::new();
    sim.link_service("svc");
    sim.faults(json!([{"match": {}, "do": {"status": 500}}]));
    sim.azure
        .seed(sim.now, Seed::parse(seed().to_string().as_bytes()).unwrap())
        .unwrap();
    assert!(sim.azure.journal(0).is_empty());
    assert_eq!(sim.get(&format!("{NET}/privateLinkServices/svc")).status, 404);
}

#[test]
fn drift_is_shown_to_every_caller() {
    let mut sim = Sim::new();
    let path = format!("{NET}/virtualNetworks/vnet/subnets/lb");
    let before = sim.get(&path).header("etag").to_owned();
    let body = json!({"properties": {"addressPrefix": "10.0.0.0/25"}});
    let shown = sim.azure.put_resource(sim.now, &path, body).unwrap();
    assert_eq!(shown["properties"]["provisioningState"], json!("Succeeded"));
    let got = sim.get(&path);
    assert_eq!(got.body["properties"]["addressPrefix"], json!("10.0.0.0/25"));
    assert_ne!(got.header("etag"), before);
    assert!(sim.azure.delete_resource(sim.now, &path).unwrap());
    assert!(!sim.azure.delete_resource(sim.now, &path).unwrap());
    assert_eq!(sim.get(&path).status, 404);
    assert!(sim.azure.delete_resource(sim.now, "nonsense").is_err());
    assert_eq!(sim.azure.journal(0).len(), 3, "control calls are not in the journal");
}

#[test]
fn types_that_nobody_simulates_can_be_seeded() {
    let mut sim = Sim::new();
    let id = format!("/subscriptions/{SUB}/resourceGroups/rg/providers/Microsoft.Storage/storageAccounts/acc");
    let shown = sim
        .azure
        .put_resource(sim.now, &id, json!({"location": "westus2", "kind": "x"}))
        .unwrap();
    assert_eq!(
        (&shown["id"], &shown["type"], &shown["kind"]),
        (&json!(id), &json!("Microsoft.Storage/storageAccounts"), &json!("x"))
    );
}
