//! Links of private DNS zones to VNets: asynchronous writes, overlapping namespaces, permissions, lags, quotas.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod dns_support;

use dns_support::{Sim, link_to, seed, vnet, zone};
use serde_json::{Value, json};

fn link(zone_name: &str, name: &str) -> String {
    format!("{}/virtualNetworkLinks/{name}", zone(zone_name))
}

#[test]
fn a_new_link_is_accepted_and_completed_when_its_operation_has_ended() {
    let mut sim = Sim::new();
    sim.make_zone("example.com");
    let accepted = sim.put(&link("example.com", "My-Link"), link_to(&vnet("vnet1")));
    assert_eq!(
        (accepted.status, &accepted.body, accepted.header("retry-after")),
        (202, &json!({}), Some("30"))
    );
    assert_eq!(sim.get(&link("example.com", "my-link")).status, 404);
    assert_eq!(sim.end(&accepted), json!({"status": "Succeeded"}));
    let shown = sim.get(&link("example.com", "MY-link"));
    let etag = shown.body["etag"].as_str().unwrap().to_owned();
    assert_eq!(shown.header("etag"), Some(etag.as_str()));
    assert!(
        etag.starts_with('"') && etag.ends_with("0000\"") && etag.len() == 38,
        "{etag}"
    );
    assert_eq!(
        shown.body,
        json!({
            "id": "/subscriptions/s1/resourceGroups/rg-guest/providers/Microsoft.Network/privateDnsZones/example.com/virtualNetworkLinks/my-link",
            "name": "my-link",
            "type": "Microsoft.Network/privateDnsZones/virtualNetworkLinks",
            "etag": etag,
            "location": "global",
            "properties": {
                "provisioningState": "Succeeded",
                "registrationEnabled": false,
                "virtualNetwork": {"id": vnet("vnet1")},
                "virtualNetworkLinkState": "Completed",
            },
        })
    );
    assert_eq!(
        sim.get(&zone("example.com")).body["properties"]["numberOfVirtualNetworkLinks"],
        1
    );
}

#[test]
fn an_update_is_in_progress_until_it_has_ended() {
    let mut sim = Sim::new();
    sim.make_zone("example.com");
    sim.link("example.com", "l", "vnet1");
    let mut body = link_to(&vnet("vnet1"));
    body["tags"] = json!({"a": "b"});
    let accepted = sim.put(&link("example.com", "l"), body);
    let during = sim.get(&link("example.com", "l")).body;
    assert_eq!(during["properties"]["virtualNetworkLinkState"], "InProgress");
    assert_eq!(during.get("tags"), None);
    sim.end(&accepted);
    let after = sim.get(&link("example.com", "l")).body;
    assert_eq!(
        (&after["properties"]["virtualNetworkLinkState"], &after["tags"]),
        (&json!("Completed"), &json!({"a": "b"}))
    );
}

#[test]
fn a_link_can_stay_in_progress_after_its_operation() {
    let mut seed = seed();
    seed["switches"] = json!({"link_complete_lag_s": 20});
    let mut sim = Sim::with(seed);
    sim.make_zone("example.com");
    sim.link("example.com", "l", "vnet1");
    assert_eq!(
        sim.get(&link("example.com", "l")).body["properties"]["virtualNetworkLinkState"],
        "InProgress"
    );
    sim.wait(20);
    assert_eq!(
        sim.get(&link("example.com", "l")).body["properties"]["virtualNetworkLinkState"],
        "Completed"
    );
}

#[test]
fn equal_names_on_one_vnet_are_refused_by_the_operation_and_nested_names_are_not() {
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
    assert_eq!(
        sim.link("example.com", "second", "vnet1"),
        overlap,
        "a second link of the same zone"
    );
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
fn a_patch_keeps_what_it_does_not_name() {
    let mut sim = Sim::new();
    sim.make_zone("example.com");
    sim.link("example.com", "l", "vnet1");
    let accepted = sim.call(
        "PATCH",
        &link("example.com", "l"),
        json!({"properties": {"registrationEnabled": true}}),
        &[],
    );
    assert_eq!(sim.end(&accepted), json!({"status": "Succeeded"}));
    let shown = sim.get(&link("example.com", "l")).body["properties"].clone();
    assert_eq!(
        (&shown["registrationEnabled"], &shown["virtualNetwork"]["id"]),
        (&json!(true), &json!(vnet("vnet1")))
    );
    let moved = sim.link("example.com", "l", "vnet2");
    assert_eq!(moved["status"], "Failed", "a link's VNet cannot be changed");
}

#[test]
fn only_private_link_zones_have_a_resolution_policy() {
    let mut sim = Sim::new();
    sim.make_zone("example.com");
    sim.make_zone("x.privatelink.westus2.azmk8s.io");
    sim.link("x.privatelink.westus2.azmk8s.io", "l", "vnet1");
    assert_eq!(
        sim.get(&link("x.privatelink.westus2.azmk8s.io", "l")).body["properties"]["resolutionPolicy"],
        "Default"
    );
    let mut body = link_to(&vnet("vnet1"));
    body["properties"]["resolutionPolicy"] = json!("NxDomainRedirect");
    assert_eq!(sim.put(&link("example.com", "l"), body.clone()).status, 400);
    assert_eq!(
        sim.put_and_end(&link("x.privatelink.westus2.azmk8s.io", "l"), body)["status"],
        "Succeeded"
    );
}

#[test]
fn deleting_what_is_not_there_is_204_without_its_zone_too() {
    let mut sim = Sim::new();
    assert_eq!(sim.delete(&link("example.com", "l")).status, 204);
    sim.make_zone("example.com");
    assert_eq!(sim.delete(&link("example.com", "l")).status, 204);
}

#[test]
fn a_deleted_link_can_be_shown_for_a_while() {
    let mut seed = seed();
    seed["switches"] = json!({"link_delete_lag_s": 60});
    let mut sim = Sim::with(seed);
    sim.make_zone("example.com");
    sim.make_zone("other.com");
    for name in ["l1", "l2"] {
        let vnet = if name == "l1" { "vnet1" } else { "vnet2" };
        sim.link("example.com", name, vnet);
        let accepted = sim.delete(&link("example.com", name));
        sim.end(&accepted);
    }
    assert_eq!(sim.get(&link("example.com", "l2")).status, 200, "still shown");
    assert_eq!(sim.delete(&link("example.com", "l2")).status, 204, "but gone");
    assert_eq!(sim.link("example.com", "l2", "vnet2")["status"], "Succeeded");
    sim.wait(60);
    assert_eq!(sim.get(&link("example.com", "l1")).status, 404);
    assert_eq!(sim.get(&link("example.com", "l2")).status, 200, "made again meanwhile");
    let now = sim.now;
    assert_eq!(sim.world.resources(now, &link("example.com", "")).len(), 1);
}

#[test]
fn a_link_that_is_only_still_shown_is_in_nobodys_way() {
    let mut seed = seed();
    seed["switches"] = json!({"link_delete_lag_s": 600});
    let mut sim = Sim::with(seed);
    sim.make_zone("example.com");
    sim.link("example.com", "l1", "vnet1");
    let accepted = sim.delete(&link("example.com", "l1"));
    sim.end(&accepted);
    assert_eq!(sim.link("example.com", "other", "vnet1")["status"], "Succeeded");
    assert_eq!(sim.get(&link("example.com", "l1")).status, 200);
    assert_eq!(
        sim.get(&zone("example.com")).body["properties"]["numberOfVirtualNetworkLinks"],
        1
    );
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

#[test]
fn the_links_to_a_vnet_go_with_it() {
    let mut sim = Sim::new();
    for name in ["a.com", "b.com"] {
        sim.make_zone(name);
        sim.link(name, "l", "vnet1");
    }
    sim.link("a.com", "other", "vnet2");
    let gone = sim.delete(&vnet("vnet1"));
    assert_eq!(gone.status, 202, "{}", gone.body);
    assert_eq!(sim.get(&link("a.com", "l")).status, 200, "not before its time");
    sim.wait(60);
    assert_eq!(sim.get(&vnet("vnet1")).status, 404);
    for (name, left) in [("a.com", 1), ("b.com", 0)] {
        assert_eq!(sim.get(&link(name, "l")).status, 404);
        let shown = sim.get(&zone(name)).body;
        assert_eq!(shown["properties"]["numberOfVirtualNetworkLinks"], left);
    }
}

#[test]
fn an_empty_patch_is_an_operation_that_changes_nothing_but_the_etag() {
    let mut sim = Sim::new();
    sim.make_zone("example.com");
    sim.link("example.com", "l", "vnet1");
    let mut before = sim.get(&link("example.com", "l")).body;
    sim.wait(60);
    let accepted = sim.call("PATCH", &link("example.com", "l"), json!({}), &[]);
    assert_eq!((accepted.status, &accepted.body), (202, &json!({})));
    assert_eq!(sim.end(&accepted), json!({"status": "Succeeded"}));
    let after = sim.get(&link("example.com", "l")).body;
    assert_ne!(after["etag"], before["etag"]);
    before["etag"] = after["etag"].clone();
    assert_eq!(after, before);
}

#[test]
fn a_registration_that_a_put_omits_is_off() {
    let mut sim = Sim::new();
    sim.make_zone("example.com");
    let mut body = link_to(&vnet("vnet1"));
    body["properties"]["registrationEnabled"] = json!(true);
    sim.put_and_end(&link("example.com", "l"), body);
    let bare = json!({"location": "global", "properties": {"virtualNetwork": {"id": vnet("vnet1")}}});
    assert_eq!(sim.put_and_end(&link("example.com", "l"), bare)["status"], "Succeeded");
    let shown = sim.get(&link("example.com", "l")).body;
    assert_eq!(shown["properties"]["registrationEnabled"], false);
    let counted = sim.get(&zone("example.com")).body;
    assert_eq!(counted["properties"]["numberOfVirtualNetworkLinksWithRegistration"], 0);
}

#[test]
fn of_two_writes_that_overlap_the_later_one_remains() {
    let mut sim = Sim::new();
    sim.make_zone("example.com");
    sim.link("example.com", "l", "vnet1");
    // The draw of durations makes some of these end out of order.
    for round in 0..200 {
        let mut old = link_to(&vnet("vnet1"));
        old["tags"] = json!({"round": format!("{round}-old")});
        let mut new = old.clone();
        new["tags"] = json!({"round": format!("{round}-new")});
        let old = sim.put(&link("example.com", "l"), old);
        let new = sim.put(&link("example.com", "l"), new);
        assert_eq!(
            (&sim.end(&new)["status"], &sim.end(&old)["status"]),
            (&json!("Succeeded"), &json!("Succeeded"))
        );
        let shown = sim.get(&link("example.com", "l")).body;
        assert_eq!(shown["tags"]["round"], format!("{round}-new"));
        assert_eq!(shown["properties"]["provisioningState"], "Succeeded");
    }
}
