//! The life of a link from a private DNS zone to a VNet: asynchronous writes, lags, patches, the end.

use serde_json::json;

use crate::dns_support::{Sim, link_to, seed, vnet, zone};

pub(crate) fn link(zone_name: &str, name: &str) -> String {
    format!("{}/virtualNetworkLinks/{name}", zone(zone_name))
}

#[test]
fn a_new_link_is_completed_when_its_operation_has_ended() {
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
    assert_eq!(sim.azure.resources(now, &link("example.com", "")).len(), 1);
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
fn an_empty_patch_changes_nothing_but_the_etag() {
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
