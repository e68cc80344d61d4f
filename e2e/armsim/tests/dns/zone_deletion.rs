//! The deletion of a private DNS zone: what is deleted with it, and what prevents it or comes too late.

use serde_json::{Value, json};

use crate::dns_support::{GROUP, Sim, a, link_to, vnet, zone};

#[test]
fn a_zone_is_not_deleted_before_its_last_link_is_gone() {
    let mut sim = Sim::new();
    sim.make_zone("example.com");
    sim.link("example.com", "Link-1", "vnet1");
    let refused = sim.delete(&zone("example.com"));
    assert_eq!((refused.status, refused.code()), (409, "CannotDeleteResource"));
    assert_eq!(refused.header("x-ms-failure-cause"), Some("gateway"));
    assert_eq!(
        refused.body["error"]["message"],
        "Cannot delete resource while nested resources exist. Some existing nested resource IDs include: \
         'Microsoft.Network/privateDnsZones/example.com/virtualNetworkLinks/link-1'. Please delete all nested resources \
         before deleting this resource."
    );
    let deleting = sim.delete(&format!("{}/virtualNetworkLinks/link-1", zone("example.com")));
    assert_eq!(
        sim.delete(&zone("example.com")).status,
        409,
        "the link's operation has not ended"
    );
    sim.end(&deleting);
    let accepted = sim.delete(&zone("example.com"));
    assert_eq!(sim.end(&accepted), json!({"status": "Succeeded"}));
    assert_eq!(sim.get(&zone("example.com")).status, 404);
}

#[test]
fn a_zone_is_deleted_with_its_record_sets() {
    let mut sim = Sim::new();
    sim.make_zone("example.com");
    assert_eq!(
        sim.put(&format!("{}/A/api", zone("example.com")), a(&["10.0.0.5"]))
            .status,
        201
    );
    assert_eq!(
        sim.get(&zone("example.com")).body["properties"]["numberOfRecordSets"],
        2
    );
    let accepted = sim.delete(&zone("example.com"));
    sim.end(&accepted);
    let now = sim.now;
    assert!(sim.azure.resources(now, &zone("example.com")).is_empty());
}

#[test]
fn deleting_what_is_not_there_is_204_and_a_missing_group_is_404() {
    let mut sim = Sim::new();
    let none = sim.delete(&zone("example.com"));
    assert_eq!((none.status, &none.body), (204, &Value::Null));
    // ARM knows that there is none and does not ask the service, but counts the call.
    assert_eq!(none.header("cache-control"), Some("no-cache"));
    assert_eq!(none.header("x-aspnet-version"), None);
    assert!(
        none.header("x-ms-ratelimit-remaining-subscription-resource-requests")
            .is_some()
    );
    let group = sim.delete(&zone("example.com").replace("rg-Guest", "other"));
    assert_eq!((group.status, group.code()), (404, "ResourceGroupNotFound"));
}

#[test]
fn a_link_fails_when_its_zone_is_deleted_meanwhile() {
    let mut sim = Sim::new();
    sim.make_zone("example.com");
    let link = sim.put(
        &format!("{}/virtualNetworkLinks/l", zone("example.com")),
        link_to(&vnet("vnet1")),
    );
    let deleted = sim.delete(&zone("example.com"));
    let (deleted, link) = (sim.end(&deleted), sim.end(&link));
    assert_eq!(deleted["status"], "Succeeded");
    assert_eq!(
        (&link["status"], &link["error"]["code"]),
        (&json!("Failed"), &json!("ParentResourceNotFound"))
    );
    let now = sim.now;
    assert!(sim.azure.resources(now, &zone("example.com")).is_empty());
}

#[test]
fn a_link_completed_before_its_zones_deletion_keeps_the_zone() {
    let mut sim = Sim::new();
    sim.make_zone("example.com");
    let link = sim.put(
        &format!("{}/virtualNetworkLinks/l", zone("example.com")),
        link_to(&vnet("vnet1")),
    );
    sim.wait(15);
    let deleted = sim.delete(&zone("example.com"));
    let (deleted, link) = (sim.end(&deleted), sim.end(&link));
    assert_eq!(
        (&deleted["status"], &deleted["error"]["code"]),
        (&json!("Failed"), &json!("CannotDeleteResource"))
    );
    assert_eq!(link["status"], "Succeeded");
    assert_eq!(
        sim.get(&zone("example.com")).body["properties"]["numberOfVirtualNetworkLinks"],
        1
    );
}

#[test]
fn a_zone_accepted_before_its_group_went_does_not_come_back() {
    let mut sim = Sim::new();
    let accepted = sim.put(&zone("example.com"), json!({"location": "global"}));
    let now = sim.now;
    sim.azure.delete_resource(now, GROUP).unwrap();
    sim.wait(60);
    sim.azure
        .put_resource(sim.now, GROUP, json!({"location": "westus2"}))
        .unwrap();
    assert_eq!(sim.end(&accepted)["error"]["code"], "ResourceGroupNotFound");
    assert_eq!(sim.get(&zone("example.com")).status, 404);
}
