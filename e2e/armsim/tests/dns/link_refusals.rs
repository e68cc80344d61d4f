//! Links that are refused: overlapping namespaces, missing rights and parts, preconditions, quotas.

use serde_json::{Value, json};

use crate::dns_support::{Sim, link_to, seed, vnet, zone};
use crate::links::link;

#[test]
fn equal_names_on_one_vnet_are_refused_but_nested_are_not() {
    let mut seed = seed();
    let other = "/subscriptions/s1/resourceGroups/other";
    seed["resources"]
        .as_array_mut()
        .unwrap()
        .push(json!({"id": other, "location": "westus2"}));
    let mut sim = Sim::with(seed);
    sim.make_zone("example.com");
    sim.make_zone("apps.example.com");
    let twin = format!("{other}/providers/Microsoft.Network/privateDnsZones/example.com");
    sim.put_and_end(&twin, json!({"location": "global"}));
    assert_eq!(sim.link("example.com", "l", "vnet1")["status"], "Succeeded");
    assert_eq!(sim.link("apps.example.com", "l", "vnet1")["status"], "Succeeded");
    let overlap = json!({"status": "Failed", "error": {
        "code": "BadRequest",
        "message": "A virtual network cannot be linked to multiple zones with overlapping namespaces. You tried to link virtual \
                    network with 'example.com' and 'example.com' zones.",
    }});
    assert_eq!(
        sim.put_and_end(&format!("{twin}/virtualNetworkLinks/l"), link_to(&vnet("VNET1"))),
        overlap
    );
    assert_eq!(sim.get(&format!("{twin}/virtualNetworkLinks/l")).status, 404);
    let twice = sim.link("example.com", "second", "vnet1");
    let message = format!(
        "Private zone '{}' is already linked to the virtual network '{}'.",
        zone("example.com").replace("rg-Guest", "rg-guest"),
        vnet("vnet1")
    );
    assert_eq!(twice["error"], json!({"code": "Conflict", "message": message}));
    assert_eq!(sim.get(&link("example.com", "second")).status, 404);
    assert_eq!(sim.link("example.com", "second", "vnet2")["status"], "Succeeded");
    assert_eq!(
        sim.link("example.com", "l", "vnet1")["status"],
        "Succeeded",
        "the same link again"
    );
}

#[test]
fn a_vnet_registers_in_one_zone_only() {
    let mut sim = Sim::new();
    let mut registering = link_to(&vnet("vnet1"));
    registering["properties"]["registrationEnabled"] = json!(true);
    sim.make_zone("a.com");
    sim.make_zone("b.com");
    assert_eq!(
        sim.put_and_end(&link("a.com", "l"), registering.clone())["status"],
        "Succeeded"
    );
    assert_eq!(
        sim.get(&zone("a.com")).body["properties"]["numberOfVirtualNetworkLinksWithRegistration"],
        1
    );
    assert_eq!(
        sim.put_and_end(&link("b.com", "l"), registering)["error"]["code"],
        "Conflict"
    );
}

#[test]
fn what_a_link_refers_to_must_be_there() {
    let mut sim = Sim::new();
    let orphan = sim.put(&link("example.com", "l"), link_to(&vnet("vnet1")));
    assert_eq!((orphan.status, orphan.code()), (404, "ParentResourceNotFound"));
    assert_eq!(
        orphan.body["error"]["message"],
        "Can not perform requested operation on nested resource. Parent resource 'example.com' not found."
    );
    sim.make_zone("example.com");
    assert_eq!(sim.link("example.com", "l", "missing")["status"], "Failed");
    assert_eq!(sim.get(&link("example.com", "l")).status, 404);
    for id in [json!("vnet1"), json!(zone("example.com")), Value::Null] {
        let refused = sim.put(
            &link("example.com", "l"),
            json!({"location": "global", "properties": {"virtualNetwork": {"id": id}}}),
        );
        assert_eq!((refused.status, refused.code()), (400, "LinkedInvalidPropertyId"));
    }
}

#[test]
fn a_link_needs_the_right_to_join_its_vnet() {
    let mut seed = seed();
    seed["roles"] = json!([
        {"object_id": "o1", "scope": "/", "actions": ["Microsoft.Network/privateDnsZones/*", "Microsoft.Network/privateDns*/read"]},
        {"object_id": "o1", "scope": vnet("vnet2"), "actions": ["Microsoft.Network/virtualNetworks/join/action"]},
    ]);
    let mut sim = Sim::with(seed);
    sim.make_zone("example.com");
    let refused = sim.put(&link("example.com", "l"), link_to(&vnet("vnet1")));
    assert_eq!((refused.status, refused.code()), (403, "LinkedAuthorizationFailed"));
    let message = refused.body["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("Microsoft.Network/virtualNetworks/join/action"),
        "{message}"
    );
    assert_eq!(sim.link("example.com", "l", "vnet2")["status"], "Succeeded");
}

#[test]
fn failed_preconditions_are_reported_by_the_operation() {
    let mut sim = Sim::new();
    sim.make_zone("example.com");
    sim.link("example.com", "l", "vnet1");
    let before = sim.get(&link("example.com", "l")).body;
    let modified =
        "The Virtual Network link 'l' for the Private DNS zone 'example.com' has been modified (etag mismatch).";
    let exists = "The Virtual Network link l for the Private DNS zone example.com exists already and hence cannot be created again.";
    for (method, header, message) in [
        ("PUT", ("if-none-match", "*"), exists),
        ("PUT", ("if-match", "\"other\""), modified),
        ("PATCH", ("if-match", "\"other\""), modified),
        ("DELETE", ("if-match", "\"other\""), modified),
    ] {
        let body = if method == "DELETE" {
            Value::Null
        } else {
            link_to(&vnet("vnet1"))
        };
        let accepted = sim.call(method, &link("example.com", "l"), body, &[header]);
        assert_eq!(
            sim.end(&accepted)["error"],
            json!({"code": "PreconditionFailed", "message": message})
        );
        assert_eq!(sim.get(&link("example.com", "l")).body, before);
    }
    let accepted = sim.call("DELETE", &link("example.com", "l"), Value::Null, &[("if-match", "")]);
    assert_eq!(
        sim.end(&accepted),
        json!({"status": "Succeeded"}),
        "an empty If-Match asks for nothing"
    );
    assert_eq!(sim.get(&link("example.com", "l")).status, 404);
}

#[test]
fn the_quota_of_links_holds() {
    let mut seed = seed();
    seed["subscriptions"][0]["quotas"] = json!({"links_per_zone": 1});
    let mut sim = Sim::with(seed);
    sim.make_zone("example.com");
    assert_eq!(
        sim.get(&zone("example.com")).body["properties"]["maxNumberOfVirtualNetworkLinks"],
        1
    );
    assert_eq!(sim.link("example.com", "l1", "vnet1")["status"], "Succeeded");
    assert_eq!(sim.link("example.com", "l2", "vnet2")["status"], "Failed");
}

#[test]
fn the_quotas_of_registration_and_of_a_vnets_zones_hold() {
    let mut seed = seed();
    seed["subscriptions"][0]["quotas"] =
        json!({"registration_links_per_zone": 1, "registration_zones_per_vnet": 2, "zones_per_vnet": 2});
    let mut sim = Sim::with(seed);
    let registering = |name: &str| {
        let mut body = link_to(&vnet(name));
        body["properties"]["registrationEnabled"] = json!(true);
        body
    };
    for name in ["a.com", "b.com", "c.com"] {
        sim.make_zone(name);
    }
    let shown = sim.get(&zone("a.com")).body;
    assert_eq!(shown["properties"]["maxNumberOfVirtualNetworkLinksWithRegistration"], 1);
    assert_eq!(
        sim.put_and_end(&link("a.com", "l"), registering("vnet1"))["status"],
        "Succeeded"
    );
    assert_eq!(sim.link("a.com", "second", "vnet2")["status"], "Succeeded");
    let begins = sim.put_and_end(&link("a.com", "second"), registering("vnet2"));
    assert_eq!(
        begins["error"]["code"], "QuotaExceeded",
        "a zone's links with registration"
    );
    assert_eq!(
        sim.put_and_end(&link("b.com", "l"), registering("vnet1"))["status"],
        "Succeeded"
    );
    assert_eq!(
        sim.link("c.com", "l", "vnet1")["error"]["code"],
        "QuotaExceeded",
        "a VNet's zones"
    );
    let gone = sim.delete(&link("b.com", "l"));
    sim.end(&gone);
    assert_eq!(sim.link("c.com", "l", "vnet1")["status"], "Succeeded");
}

#[test]
fn a_vnet_of_another_tenant_cannot_be_linked() {
    let mut seed = seed();
    let there = "/subscriptions/s2/resourceGroups/theirs";
    seed["tenants"] = json!([{"id": "t1"}, {"id": "t2"}]);
    seed["subscriptions"] = json!([{"id": "s1", "tenant": "t1"}, {"id": "s2", "tenant": "t2"}]);
    let theirs = format!("{there}/providers/Microsoft.Network/virtualNetworks/v");
    let resources = seed["resources"].as_array_mut().unwrap();
    resources.push(json!({"id": there, "location": "westus2"}));
    resources.push(json!({"id": theirs, "location": "westus2", "properties": {"addressSpace": {"addressPrefixes": ["10.9.0.0/16"]}}}));
    let mut sim = Sim::with(seed);
    sim.make_zone("example.com");
    let refused = sim.put(&link("example.com", "l"), link_to(&theirs));
    assert_eq!((refused.status, refused.code()), (403, "LinkedAuthorizationFailed"));
    let message = refused.body["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("the current tenant 't1' is not authorized to access linked subscription 's2'"),
        "{message}"
    );
}
