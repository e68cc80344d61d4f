//! Subscriptions, providers and permissions: what a caller finds before it makes anything.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod network_support;

use armsim::Preset;
use network_support::{CONSUMER, GUEST_SUB, NET, PROVIDER, SUB, Sim, TENANT, caller, names, pls, seed};
use serde_json::{Value, json};

const GROUP: &str = "/subscriptions/33333333-3333-3333-3333-333333333333/resourceGroups/rg";

#[test]
fn a_client_that_logs_in_finds_its_subscriptions() {
    let mut sim = Sim::new();
    let list = sim.get("/subscriptions");
    assert_eq!(list.body["count"], json!({"type": "Total", "value": 2}));
    assert_eq!(list.body["value"][0]["tenantId"], json!(TENANT));
    assert_eq!(list.header("x-ms-ratelimit-remaining-tenant-reads"), "249");
    let one = sim.get(&format!("/subscriptions/{SUB}"));
    assert_eq!((one.status, &one.body), (200, &list.body["value"][0]));
    let tenants = sim.get("/tenants").body;
    assert_eq!(tenants["value"][0]["tenantId"], json!(TENANT));
    let regions = sim.get(&format!("/subscriptions/{SUB}/locations")).body;
    assert!(names(&regions).contains(&"westus2"));
    sim.caller.tenant_id = "other".into();
    assert_eq!(sim.get("/subscriptions").body["value"], json!([]));
    assert_eq!(sim.get("/tenants").body["value"], json!([]));
    assert_eq!(
        sim.get(&format!("/subscriptions/{SUB}")).code(),
        "InvalidAuthenticationTokenTenant"
    );
    assert_eq!(
        sim.get("/subscriptions/nonsense").refusal(),
        (400, "InvalidSubscriptionId", "gateway")
    );
}

#[test]
fn a_namespace_is_registered_before_it_is_written() {
    let mut json = seed();
    json["subscriptions"][0]["unregistered"] = json!(["microsoft.network"]);
    let mut sim = Sim::seeded(json, Preset::Recorded);
    let provider = format!("/subscriptions/{SUB}/providers/Microsoft.Network");
    assert_eq!(sim.get(&provider).body["registrationState"], json!("NotRegistered"));
    let path = format!("{NET}/privateLinkServices/svc");
    let refused = sim.put(&path, pls());
    assert_eq!(refused.refusal(), (409, "MissingSubscriptionRegistration", "gateway"));
    assert!(
        refused.message().contains("'Microsoft.Network'"),
        "{}",
        refused.message()
    );
    assert_eq!(
        sim.get(&format!("{NET}/virtualNetworks/vnet")).status,
        200,
        "reads go on"
    );
    let registering = sim.call("POST", &format!("{provider}/register"), &[], None);
    assert_eq!(registering.body["registrationState"], json!("Registering"));
    assert_eq!(sim.put(&path, pls()).code(), "MissingSubscriptionRegistration");
    sim.wait(31.0);
    assert_eq!(sim.get(&provider).body["registrationState"], json!("Registered"));
    assert_eq!(sim.put(&path, pls()).status, 201);
    let in_use = sim.call("POST", &format!("{provider}/unregister"), &[], None);
    assert_eq!(in_use.refusal(), (409, "ResourceProviderHasResources", "gateway"));
}

#[test]
fn a_namespace_without_resources_is_given_up() {
    let mut sim = Sim::new();
    sim.delete(GROUP);
    sim.wait(31.0);
    let provider = format!("/subscriptions/{SUB}/providers/microsoft.network");
    let unregistering = sim.call("POST", &format!("{provider}/unregister"), &[], None);
    assert_eq!(unregistering.body["registrationState"], json!("Unregistering"));
    sim.wait(31.0);
    assert_eq!(sim.get(&provider).body["registrationState"], json!("Unregistered"));
    let guest = sim.get(&format!("/subscriptions/{GUEST_SUB}/providers/Microsoft.Network"));
    assert_eq!(
        guest.body["registrationState"],
        json!("Registered"),
        "another subscription's"
    );
}

#[test]
fn providers_say_what_they_offer() {
    let mut sim = Sim::new();
    let list = sim.get(&format!("/subscriptions/{SUB}/providers")).body;
    let namespaces: Vec<&Value> = list["value"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["namespace"])
        .collect();
    assert_eq!(
        namespaces,
        ["Microsoft.Authorization", "Microsoft.Network", "Microsoft.Resources"]
    );
    let network = sim
        .get(&format!("/subscriptions/{SUB}/providers/MICROSOFT.NETWORK"))
        .body;
    let types = network["resourceTypes"].as_array().unwrap();
    for (name, first, version) in [
        ("privateLinkServices", "2019-04-01", "2024-05-01"),
        ("privateDnsZones/virtualNetworkLinks", "2018-09-01", "2024-06-01"),
        ("virtualNetworks/subnets", "", "2024-05-01"),
    ] {
        let found = types.iter().find(|one| one["resourceType"] == json!(name)).unwrap();
        let versions: Vec<&str> = found["apiVersions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one.as_str().unwrap())
            .collect();
        assert_eq!(versions.first(), Some(&version), "{name}: newest first");
        assert!(versions.iter().all(|one| *one >= first), "{name}: {versions:?}");
        // A version that is offered is accepted.
        for offered in versions {
            let list = format!(
                "https://arm.test/subscriptions/{SUB}/providers/Microsoft.Network/{name}?api-version={offered}"
            );
            if !name.contains('/') {
                assert_eq!(sim.poll(&list).status, 200, "{list}");
            }
        }
    }
    let resource_types = sim
        .get(&format!(
            "/subscriptions/{SUB}/providers/Microsoft.Network/resourceTypes"
        ))
        .body;
    assert_eq!(resource_types["value"].as_array().unwrap().len(), types.len());
    assert!(
        sim.get("/providers").body["value"][0]
            .get("registrationState")
            .is_none()
    );
    let unknown = sim.get(&format!("/subscriptions/{SUB}/providers/Microsoft.Nothing"));
    assert_eq!(unknown.refusal(), (404, "InvalidResourceNamespace", "gateway"));
    assert_eq!(
        sim.put(&format!("/subscriptions/{SUB}/providers/Microsoft.Network"), json!({}))
            .status,
        405
    );
}

#[test]
fn permissions_of_a_scope_are_the_callers() {
    let mut json = seed();
    let roles = json["roles"].as_array_mut().unwrap();
    roles.push(json!({"object_id": CONSUMER, "scope": GROUP, "actions": ["*/read"]}));
    roles.push(json!({"object_id": CONSUMER, "scope": format!("{NET}/loadBalancers/lb"), "actions": ["Microsoft.Network/loadBalancers/*"]}));
    roles.push(json!({"object_id": PROVIDER, "scope": GROUP, "actions": ["Microsoft.Nothing/*"]}));
    let mut sim = Sim::seeded(json, Preset::Recorded);
    sim.caller = caller(CONSUMER);
    let of = |sim: &mut Sim, scope: &str| sim.get(&format!("{scope}/providers/Microsoft.Authorization/permissions"));
    let entry = |action: &str| json!({"actions": [action], "notActions": [], "dataActions": [], "notDataActions": []});
    assert_eq!(of(&mut sim, GROUP).body["value"], json!([entry("*/read")]));
    assert_eq!(
        of(&mut sim, &format!("{NET}/loadBalancers/lb")).body["value"],
        json!([entry("*/read"), entry("Microsoft.Network/loadBalancers/*")])
    );
    let above = of(&mut sim, &format!("/subscriptions/{SUB}"));
    assert_eq!(above.refusal(), (403, "AuthorizationFailed", "gateway"));
    let mut open = Sim::with_switches(json!({"permissions_need_role": false}));
    open.caller = caller(CONSUMER);
    assert_eq!(of(&mut open, &format!("/subscriptions/{SUB}")).body["value"], json!([]));
}

#[test]
fn lists_show_what_the_caller_may_read() {
    let mut json = seed();
    let roles = json["roles"].as_array_mut().unwrap();
    roles.push(json!({"object_id": CONSUMER, "scope": format!("{GROUP}/providers/Microsoft.Network/virtualNetworks/vnet"), "actions": ["*/read"]}));
    let mut sim = Sim::seeded(json, Preset::Recorded);
    sim.caller = caller(CONSUMER);
    let subscriptions = sim.get("/subscriptions").body;
    assert_eq!(subscriptions["value"].as_array().unwrap().len(), 1);
    assert_eq!(subscriptions["value"][0]["subscriptionId"], json!(SUB));
    assert_eq!(names(&sim.get(&format!("{GROUP}/resources")).body), ["vnet"]);
    assert_eq!(
        sim.get(&format!("/subscriptions/{SUB}/resourceGroups")).refusal(),
        (403, "AuthorizationFailed", "gateway")
    );
    let guest = sim.get(&format!("/subscriptions/{GUEST_SUB}/resources"));
    assert_eq!(guest.refusal(), (403, "AuthorizationFailed", "gateway"));
}
