//! Every switch, in its default position and in another one: what a caller sees of it differs, and nothing else was
//! done differently.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod network_support;

use std::collections::BTreeSet;

use armsim::{Preset, Seed, SimulatedAzure, Switches};
use network_support::{CONSUMER, GUEST_NET, Got, NET, SUB, Sim, caller, pe, pls, seed};
use serde_json::{Value, json};

/// A switch, its default and another position, and what a caller observes of it in each.
struct Switch {
    name: &'static str,
    positions: [Value; 2],
    observed: [&'static str; 2],
    observe: fn(&mut Sim) -> String,
}

fn switch(
    name: &'static str,
    positions: [Value; 2],
    observed: [&'static str; 2],
    observe: fn(&mut Sim) -> String,
) -> Switch {
    Switch {
        name,
        positions,
        observed,
        observe,
    }
}

fn on(name: &'static str, observed: [&'static str; 2], observe: fn(&mut Sim) -> String) -> Switch {
    switch(name, [json!(true), json!(false)], observed, observe)
}

fn off(name: &'static str, observed: [&'static str; 2], observe: fn(&mut Sim) -> String) -> Switch {
    switch(name, [json!(false), json!(true)], observed, observe)
}

fn lag(name: &'static str, observed: [&'static str; 2], observe: fn(&mut Sim) -> String) -> Switch {
    switch(name, [json!(0.0), json!(1e6)], observed, observe)
}

fn all() -> Vec<Switch> {
    [of_writes(), of_times(), of_rights()].into_iter().flatten().collect()
}

fn of_writes() -> Vec<Switch> {
    let busy = ["409 AnotherOperationInProgress", "429 RetryableError"];
    let connected = "400 PrivateLinkServiceWithPrivateEndpointConnectionsCannotBeDeleted";
    let enabled = "400 PrivateEndpointCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled";
    vec![
        switch("vnet_busy", [json!("409"), json!("429")], busy, second_write_to_a_vnet),
        on(
            "rejected_connections_block_delete",
            [connected, "202"],
            deletion_of_a_service_with_a_rejected_connection,
        ),
        off(
            "rejected_can_be_approved",
            ["400 OperationNotAllowed", "200"],
            approval_after_rejection,
        ),
        on(
            "endpoint_needs_policies_disabled",
            [enabled, "201"],
            endpoint_in_a_subnet_with_policies,
        ),
        switch(
            "request_message_limit",
            [json!(140), json!(0)],
            ["400 RequestMessageTooLong", "201"],
            endpoint_with_a_long_message,
        ),
        switch(
            "network_page_rows",
            [json!(1000), json!(1)],
            ["2 rows", "1 rows"],
            rows_of_a_page,
        ),
        off(
            "prefix_in_use_can_grow",
            ["400 InUsePrefixCannotBeDeleted", "200"],
            larger_prefix_in_use,
        ),
        off(
            "network_if_none_match",
            ["200", "412 PreconditionFailed"],
            put_of_what_must_not_be_there,
        ),
        off(
            "zone_group_names_endpoint",
            ["404 NotFound", "200"],
            record_of_an_endpoint,
        ),
    ]
}

fn of_times() -> Vec<Switch> {
    vec![
        lag(
            "alias_lag_s",
            ["201", "400 InvalidPrivateLinkServiceId"],
            use_of_an_alias,
        ),
        lag(
            "link_delete_lag_s",
            ["404 ResourceNotFound", "200"],
            link_after_its_deletion,
        ),
        on(
            "rare_durations",
            ["some take longer", "all have settled"],
            endpoints_after_a_minute,
        ),
        lag("link_complete_lag_s", ["Completed", "InProgress"], state_of_a_link),
        lag("subnet_lag_s", ["Succeeded", "Updating"], state_of_a_subnet),
    ]
}

fn of_rights() -> Vec<Switch> {
    let forbidden = "403 AuthorizationFailed";
    vec![
        on(
            "pls_needs_frontend_join",
            ["403 LinkedAuthorizationFailed", "201"],
            service_without_the_right_to_join_a_frontend,
        ),
        off("network_poll_needs_role", ["200", forbidden], poll_of_a_service),
        on("dns_poll_needs_role", [forbidden, "202"], poll_of_a_zone),
        on(
            "changed_signature_is_refused",
            [forbidden, "200"],
            poll_with_a_changed_signature,
        ),
        on("permissions_need_role", [forbidden, "200"], own_permissions),
    ]
}

fn short(got: &Got) -> String {
    let code = got.body["error"]["code"].as_str().or(got.body["code"].as_str());
    format!("{} {}", got.status, code.unwrap_or_default())
        .trim_end()
        .to_owned()
}

fn service() -> String {
    format!("{NET}/privateLinkServices/svc")
}

fn subnet(name: &str) -> String {
    format!("{NET}/virtualNetworks/vnet/subnets/{name}")
}

fn pe_subnet() -> String {
    format!("{GUEST_NET}/virtualNetworks/workers/subnets/pe")
}

fn zone() -> String {
    format!("{GUEST_NET}/privateDnsZones/z.example")
}

fn prefix(prefix: &str) -> Value {
    json!({"properties": {"addressPrefix": prefix}})
}

fn second_write_to_a_vnet(sim: &mut Sim) -> String {
    sim.put(&subnet("a"), prefix("10.0.8.0/24"));
    short(&sim.put(&subnet("b"), prefix("10.0.9.0/24")))
}

/// Decides on the only connection of the service, and waits until it is ready.
fn decide(sim: &mut Sim, status: &str) -> Got {
    let list = sim.get(&format!("{}/privateEndpointConnections", service()));
    let connection = list.body["value"][0]["id"].as_str().unwrap().to_owned();
    let state = json!({"status": status, "description": "x"});
    let put = sim.put(
        &connection,
        json!({"properties": {"privateLinkServiceConnectionState": state}}),
    );
    sim.wait(60.0);
    put
}

fn connect(sim: &mut Sim) {
    let alias = sim.link_service("svc");
    sim.endpoint("pe", &alias);
}

fn deletion_of_a_service_with_a_rejected_connection(sim: &mut Sim) -> String {
    connect(sim);
    decide(sim, "Rejected");
    short(&sim.delete(&service()))
}

fn approval_after_rejection(sim: &mut Sim) -> String {
    connect(sim);
    decide(sim, "Rejected");
    short(&decide(sim, "Approved"))
}

fn use_of_an_alias(sim: &mut Sim) -> String {
    let alias = sim.link_service("svc");
    short(&sim.put(&format!("{GUEST_NET}/privateEndpoints/pe"), pe(&alias)))
}

fn endpoints_after_a_minute(sim: &mut Sim) -> String {
    let alias = sim.link_service("svc");
    let path = format!("{GUEST_NET}/privateEndpoints/pe");
    for _ in 0..80 {
        assert_eq!(sim.put(&path, pe(&alias)).status, 201);
        sim.wait(60.0);
        if sim.get(&path).state() != "Succeeded" {
            return "some take longer".to_owned();
        }
        assert_eq!(sim.delete(&path).status, 202);
        sim.wait(60.0);
    }
    "all have settled".to_owned()
}

/// Creates a zone and a link to it, and waits until both are ready; returns the link's path.
fn linked_zone(sim: &mut Sim) -> String {
    sim.put(&zone(), json!({"location": "global"}));
    sim.wait(1000.0);
    let link = format!("{}/virtualNetworkLinks/l", zone());
    let body = json!({"location": "global", "properties": {
        "registrationEnabled": false, "virtualNetwork": {"id": format!("{GUEST_NET}/virtualNetworks/workers")}}});
    assert_eq!(sim.put(&link, body).status, 202);
    sim.wait(1000.0);
    link
}

fn link_after_its_deletion(sim: &mut Sim) -> String {
    let link = linked_zone(sim);
    assert_eq!(sim.delete(&link).status, 202);
    sim.wait(1000.0);
    short(&sim.get(&link))
}

fn state_of_a_link(sim: &mut Sim) -> String {
    let link = linked_zone(sim);
    let shown = sim.get(&link).body;
    shown["properties"]["virtualNetworkLinkState"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn state_of_a_subnet(sim: &mut Sim) -> String {
    sim.put(&subnet("a"), prefix("10.0.8.0/24"));
    sim.wait(60.0);
    sim.get(&subnet("a")).state().to_owned()
}

fn service_without_the_right_to_join_a_frontend(sim: &mut Sim) -> String {
    sim.caller = caller(CONSUMER);
    short(&sim.put(&service(), pls()))
}

fn endpoint_in_a_subnet_with_policies(sim: &mut Sim) -> String {
    let alias = sim.link_service("svc");
    let body = json!({"properties": {"addressPrefix": "10.1.0.0/28", "privateEndpointNetworkPolicies": "Enabled"}});
    sim.make(&pe_subnet(), body);
    short(&sim.put(&format!("{GUEST_NET}/privateEndpoints/pe"), pe(&alias)))
}

fn endpoint_with_a_long_message(sim: &mut Sim) -> String {
    let mut body = pe(&sim.link_service("svc"));
    let connection = &mut body["properties"]["manualPrivateLinkServiceConnections"][0];
    connection["properties"]["requestMessage"] = json!("x".repeat(141));
    short(&sim.put(&format!("{GUEST_NET}/privateEndpoints/pe"), body))
}

fn rows_of_a_page(sim: &mut Sim) -> String {
    let subnets = sim.get(&format!("{NET}/virtualNetworks/vnet/subnets")).body;
    format!("{} rows", subnets["value"].as_array().unwrap().len())
}

fn larger_prefix_in_use(sim: &mut Sim) -> String {
    connect(sim);
    short(&sim.put(&pe_subnet(), prefix("10.1.0.0/27")))
}

/// The polling URL of a write of the provider's, who is not the caller any more.
fn handed_over(sim: &mut Sim, path: &str, body: Value) -> String {
    let url = sim.put(path, body).header("azure-asyncoperation").to_owned();
    sim.caller = caller(CONSUMER);
    url
}

fn poll_of_a_service(sim: &mut Sim) -> String {
    let url = handed_over(sim, &service(), pls());
    short(&sim.poll(&url))
}

fn poll_of_a_zone(sim: &mut Sim) -> String {
    let url = handed_over(sim, &zone(), json!({"location": "global"}));
    short(&sim.poll(&url))
}

fn poll_with_a_changed_signature(sim: &mut Sim) -> String {
    let url = sim.put(&service(), pls()).header("azure-asyncoperation").to_owned();
    short(&sim.poll(&url.replacen("&s=", "&s=x", 1)))
}

fn own_permissions(sim: &mut Sim) -> String {
    sim.caller = caller("55555555-0000-0000-0000-000000000005");
    short(&sim.get(&format!(
        "/subscriptions/{SUB}/providers/Microsoft.Authorization/permissions"
    )))
}

fn put_of_what_must_not_be_there(sim: &mut Sim) -> String {
    let body = Some(prefix("10.0.0.0/24"));
    short(&sim.call("PUT", &subnet("lb"), &[("if-none-match", "*")], body))
}

fn record_of_an_endpoint(sim: &mut Sim) -> String {
    connect(sim);
    sim.put(&zone(), json!({"location": "global"}));
    sim.wait(1000.0);
    let config = json!({"name": "c", "properties": {"privateDnsZoneId": zone()}});
    let group = format!("{GUEST_NET}/privateEndpoints/pe/privateDnsZoneGroups/g");
    sim.make(&group, json!({"properties": {"privateDnsZoneConfigs": [config]}}));
    short(&sim.get(&format!("{}/A/pe", zone())))
}

fn sim_with(name: &str, position: &Value) -> Sim {
    let mut json = seed();
    // All that the consumer needs to make a service, but for the frontend.
    json["roles"].as_array_mut().unwrap().push(json!({
        "object_id": CONSUMER, "scope": format!("/subscriptions/{SUB}"),
        "actions": ["Microsoft.Network/privateLinkServices/*", "Microsoft.Network/virtualNetworks/subnets/join/action"],
    }));
    json["switches"] = json!({name: position});
    let mut sim = Sim::seeded(json.clone(), Preset::Recorded);
    if name == "network_if_none_match" {
        // No spec of Microsoft.Network knows that header, so calls with it are not checked against the specs.
        sim.azure = SimulatedAzure::new(Preset::Recorded, 1);
        let seed = Seed::parse(json.to_string().as_bytes()).unwrap();
        sim.azure.seed(sim.now, seed).unwrap();
    }
    sim
}

#[test]
fn each_position_of_a_switch_is_observable() {
    for switch in all() {
        assert_ne!(switch.observed[0], switch.observed[1], "{}", switch.name);
        let [default, _] = &switch.positions;
        assert_eq!(defaults()[switch.name], *default, "{}", switch.name);
        for (position, expected) in switch.positions.iter().zip(switch.observed) {
            let mut sim = sim_with(switch.name, position);
            assert_eq!((switch.observe)(&mut sim), expected, "{} = {position}", switch.name);
        }
    }
}

fn defaults() -> Value {
    serde_json::to_value(Switches::default()).unwrap()
}

#[test]
fn no_switch_is_left_out() {
    let known = defaults();
    let known: BTreeSet<&str> = known.as_object().unwrap().keys().map(String::as_str).collect();
    let tried = all().into_iter().map(|switch| switch.name);
    // Those of tokens are in the tests of tokens.
    let tried: BTreeSet<&str> = tried.chain(["token_life_s", "token_skew_s"]).collect();
    assert_eq!(tried, known);
}
