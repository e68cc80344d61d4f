//! What ARM itself checks and sends, before and around every resource type.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod network_support;

use armsim::{Preset, Seed, World};
use bytes::Bytes;
use http::Request;
use network_support::{CONSUMER, GUEST_NET, GUEST_SUB, NET, SUB, Sim, caller, pe, pls, seed};
use rstest::rstest;
use serde_json::{Value, json};

fn raw(sim: &mut Sim, method: &str, uri: &str, body: &str) -> network_support::Got {
    let request = Request::builder()
        .method(method)
        .uri(uri)
        .header("content-type", "application/json");
    sim.send(request.body(Bytes::from(body.to_owned())).unwrap())
}

#[rstest]
#[case::missing("", 400, "MissingApiVersionParameter")]
#[case::twice("?api-version=2024-05-01&api-version=2024-05-01", 400, "MissingApiVersionParameter")]
#[case::garbage("?api-version=latest", 400, "InvalidApiVersionParameter")]
#[case::too_old("?api-version=2018-12-31", 400, "NoRegisteredProviderFound")]
#[case::too_new("?api-version=2027-01-01", 400, "NoRegisteredProviderFound")]
#[case::first("?api-version=2019-04-01", 200, "")]
#[case::newest("?API-Version=2026-12-01-preview", 200, "")]
fn api_version(#[case] query: &str, #[case] status: u16, #[case] code: &str) {
    let mut sim = Sim::new();
    let got = raw(&mut sim, "GET", &format!("{NET}/privateLinkServices{query}"), "");
    assert_eq!((got.status, got.code()), (status, code));
}

#[rstest]
#[case::path("/nothing", 404, "InvalidResourcePath")]
#[case::subscription(
    "/subscriptions/99999999-9999-9999-9999-999999999999/resourceGroups/rg",
    404,
    "SubscriptionNotFound"
)]
#[case::namespace(
    "/subscriptions/33333333-3333-3333-3333-333333333333/resourceGroups/rg/providers/Microsoft.Nothing/things/x",
    404,
    "InvalidResourceNamespace"
)]
#[case::kind(
    "/subscriptions/33333333-3333-3333-3333-333333333333/resourceGroups/rg/providers/Microsoft.Network/things/x",
    404,
    "InvalidResourceType"
)]
#[case::group(
    "/subscriptions/33333333-3333-3333-3333-333333333333/resourceGroups/none",
    404,
    "ResourceGroupNotFound"
)]
#[case::in_group(
    "/subscriptions/33333333-3333-3333-3333-333333333333/resourceGroups/none/providers/Microsoft.Network/privateEndpoints/x",
    404,
    "ResourceGroupNotFound"
)]
#[case::list(
    "/subscriptions/33333333-3333-3333-3333-333333333333/resourceGroups/none/providers/Microsoft.Network/privateEndpoints",
    404,
    "ResourceGroupNotFound"
)]
#[case::resource(
    "/subscriptions/33333333-3333-3333-3333-333333333333/resourceGroups/rg/providers/Microsoft.Network/privateEndpoints/x",
    404,
    "ResourceNotFound"
)]
#[case::list_of_nothing(
    "/subscriptions/33333333-3333-3333-3333-333333333333/resourceGroups/rg/providers/Microsoft.Network/privateLinkServices/x/privateEndpointConnections",
    404,
    "ResourceNotFound"
)]
fn what_is_not_there(#[case] path: &str, #[case] status: u16, #[case] code: &str) {
    let mut sim = Sim::new();
    assert_eq!(sim.get(path).refusal(), (status, code, "gateway"));
}

#[test]
fn messages_are_azures() {
    let mut sim = Sim::new();
    let got = sim.get(&format!("{NET}/privateEndpoints/x"));
    assert_eq!(
        got.message(),
        "The Resource 'Microsoft.Network/privateEndpoints/x' under resource group 'rg' was not found. For more details please go \
         to https://aka.ms/ARMResourceNotFoundFix"
    );
    for method in ["GET", "DELETE", "PUT"] {
        let path = format!("/subscriptions/{SUB}/resourceGroups/none/providers/Microsoft.Network/privateEndpoints/x");
        let got = sim.call(method, &path, &[], Some(json!({})));
        assert_eq!(got.message(), "Resource group 'none' could not be found.");
        assert_eq!(got.header("x-ms-ratelimit-remaining-subscription-reads"), "");
    }
}

#[test]
fn missing_role_is_named() {
    let mut sim = Sim::new();
    sim.caller = caller(CONSUMER);
    let got = sim.put(&format!("{NET}/privateLinkServices/svc"), pls());
    assert_eq!(got.refusal(), (403, "AuthorizationFailed", "gateway"));
    assert!(
        got.message().contains("'Microsoft.Network/privateLinkServices/write'"),
        "{}",
        got.message()
    );
    assert!(
        got.message()
            .contains(&format!("over scope '{NET}/privateLinkServices/svc'")),
        "{}",
        got.message()
    );
    // The role is asked for before the group: who may nothing learns nothing.
    let hidden = sim.get(&format!("/subscriptions/{SUB}/resourceGroups/none"));
    assert!(
        hidden
            .message()
            .contains("'Microsoft.Resources/subscriptions/resourceGroups/read'"),
        "{}",
        hidden.message()
    );
}

#[rstest]
#[case::nothing(&[], false)]
#[case::subnet_only(&["Microsoft.Network/virtualNetworks/subnets/join/action"], false)]
#[case::both(&["Microsoft.Network/virtualNetworks/subnets/join/action", "Microsoft.Network/loadBalancers/frontendIPConfigurations/join/action"], true)]
fn linked_scopes_need_join(#[case] actions: &[&str], #[case] allowed: bool) {
    let mut json = seed();
    let roles = json["roles"].as_array_mut().unwrap();
    let scope = format!("/subscriptions/{SUB}/resourceGroups/rg");
    roles.push(json!({"object_id": CONSUMER, "scope": scope, "actions": ["Microsoft.Network/privateLinkServices/*"]}));
    roles.push(json!({"object_id": CONSUMER, "scope": scope, "actions": actions}));
    let mut sim = Sim::seeded(json, Preset::Recorded);
    sim.caller = caller(CONSUMER);
    let got = sim.put(&format!("{NET}/privateLinkServices/svc"), pls());
    if allowed {
        assert_eq!(got.status, 201, "{}", got.body);
    } else {
        assert_eq!(got.refusal(), (403, "LinkedAuthorizationFailed", "gateway"));
        assert!(
            got.message().contains("it does not have permission to perform action"),
            "{}",
            got.message()
        );
    }
}

#[test]
fn other_tenants_are_kept_apart() {
    let mut json = seed();
    json["tenants"].as_array_mut().unwrap().push(json!({"id": "other"}));
    json["subscriptions"][1]["tenant"] = json!("other");
    let mut sim = Sim::seeded(json, Preset::Recorded);
    let got = sim.get(&format!("{GUEST_NET}/privateEndpoints"));
    assert_eq!(got.refusal(), (401, "InvalidAuthenticationTokenTenant", "gateway"));
    let mut body = pls();
    body["properties"]["ipConfigurations"][0]["properties"]["subnet"]["id"] =
        json!(format!("{GUEST_NET}/virtualNetworks/workers/subnets/pe"));
    let got = sim.put(&format!("{NET}/privateLinkServices/svc"), body);
    assert_eq!(got.code(), "LinkedAuthorizationFailed");
    assert!(
        got.message().contains(&format!(
            "is not authorized to access linked subscription '{GUEST_SUB}'"
        )),
        "{}",
        got.message()
    );
}

#[rstest]
#[case::garbage("{", 400, "InvalidRequestContent")]
#[case::no_object("[]", 400, "InvalidRequestContent")]
#[case::empty("", 400, "InvalidRequestContent")]
fn bad_body(#[case] body: &str, #[case] status: u16, #[case] code: &str) {
    let mut sim = Sim::new();
    let uri = format!("{NET}/privateLinkServices/svc?api-version=2024-05-01");
    assert_eq!(raw(&mut sim, "PUT", &uri, body).refusal(), (status, code, "gateway"));
    let wrong = Request::builder()
        .method("PUT")
        .uri(&uri)
        .header("content-type", "text/html")
        .body(Bytes::from("{}"))
        .unwrap();
    assert_eq!(sim.send(wrong).refusal(), (415, "UnsupportedMediaType", "gateway"));
    let huge = "x".repeat(4 * 1024 * 1024 + 1);
    assert_eq!(raw(&mut sim, "PUT", &uri, &huge).status, 413);
}

#[test]
fn unknown_method_is_refused() {
    let mut sim = Sim::new();
    for (method, path) in [
        ("PATCH", "virtualNetworks/vnet/subnets/nat"),
        ("TRACE", "privateLinkServices/svc"),
        ("PUT", "privateLinkServices"),
    ] {
        let got = sim.call(method, &format!("{NET}/{path}"), &[], Some(json!({})));
        assert_eq!(got.refusal(), (405, "MethodNotAllowed", "gateway"), "{method} {path}");
    }
}

#[test]
fn request_ids_come_back() {
    let mut sim = Sim::new();
    let path = format!("{NET}/privateLinkServices");
    let headers = [
        ("x-ms-correlation-request-id", "c0"),
        ("x-ms-client-request-id", "c1"),
        ("x-ms-return-client-request-id", "true"),
    ];
    let got = sim.call("GET", &path, &headers, None);
    assert_eq!(
        (
            got.header("x-ms-correlation-request-id"),
            got.header("x-ms-client-request-id")
        ),
        ("c0", "c1")
    );
    let silent = sim.call("GET", &path, &headers[..2], None);
    assert_eq!(silent.header("x-ms-client-request-id"), "");
    let made = sim.get(&path);
    assert_eq!(made.header("x-ms-correlation-request-id").len(), 36);
    assert_eq!(made.header("x-ms-request-id").len(), 36);
    assert_eq!(made.header("x-ms-arm-service-request-id").len(), 36);
    assert!(made.header("x-ms-routing-request-id").contains(":20260105T100000Z:"));
    assert_eq!(made.header("cache-control"), "no-cache");
    let journal = sim.world.journal(0);
    assert_eq!(journal[0].correlation_id, "c0");
    assert_eq!(journal[2].correlation_id, made.header("x-ms-correlation-request-id"));
}

#[test]
fn ids_compare_without_case_and_keep_theirs() {
    let mut sim = Sim::new();
    let path = format!("{NET}/privateLinkServices/MySvc");
    let put = sim.put(&path.to_lowercase().replace("mysvc", "MySvc"), pls());
    assert_eq!((put.status, &put.body["id"]), (201, &json!(path)));
    sim.wait(60.0);
    let got = sim.get(&path.to_uppercase().replace("/SUBSCRIPTIONS", "/subscriptions"));
    assert_eq!((got.status, &got.body["id"]), (200, &json!(path)));
    assert_eq!(sim.put(&path.to_uppercase(), pls()).status, 200);
    assert_eq!(sim.get(&path).body["id"], json!(path));
}

#[test]
fn lists_by_group_and_by_subscription() {
    let mut sim = Sim::new();
    sim.link_service("b");
    sim.link_service("A");
    for path in [
        format!("{NET}/privateLinkServices"),
        format!("/subscriptions/{SUB}/providers/Microsoft.Network/privateLinkServices"),
    ] {
        let got = sim.get(&path);
        let names: Vec<&Value> = got.body["value"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| &item["name"])
            .collect();
        assert_eq!(names, ["A", "b"]);
        assert!(got.body["nextLink"].is_null());
    }
    assert_eq!(
        sim.get(&format!(
            "/subscriptions/{GUEST_SUB}/providers/Microsoft.Network/privateLinkServices"
        ))
        .body["value"],
        json!([])
    );
    let page = sim.get(&format!("{NET}/privateLinkServices?$top=1"));
    assert_eq!(page.body["value"][0]["name"], json!("A"));
    let link = page.body["nextLink"].as_str().unwrap().to_owned();
    assert!(
        link.starts_with(&format!("https://arm.test{NET}/privateLinkServices?")),
        "{link}"
    );
    let last = sim.poll(&link);
    assert_eq!(
        (&last.body["value"][0]["name"], last.body["nextLink"].is_null()),
        (&json!("b"), true)
    );
}

#[test]
fn resource_group_goes_with_what_is_in_it() {
    let mut sim = Sim::new();
    sim.link_service("svc");
    let group = format!("/subscriptions/{SUB}/resourceGroups/rg");
    assert_eq!(sim.call("HEAD", &group, &[], None).status, 204);
    let gone = sim.delete(&group);
    assert_eq!(
        (
            gone.status,
            gone.header("retry-after"),
            gone.header("azure-asyncoperation")
        ),
        (202, "15", "")
    );
    let location = gone.header("location").to_owned();
    assert_eq!(
        sim.put(&format!("{NET}/privateLinkServices/new"), pls()).code(),
        "ResourceGroupBeingDeleted"
    );
    assert_eq!(sim.poll(&location).status, 202);
    sim.wait(31.0);
    assert_eq!(sim.poll(&location).status, 200);
    assert_eq!(sim.get(&group).code(), "ResourceGroupNotFound");
    assert!(sim.world.resources(sim.now, &group).is_empty());
}

#[test]
fn polling_urls_of_others_are_unknown() {
    let mut sim = Sim::new();
    let url = sim
        .put(&format!("{NET}/privateLinkServices/svc"), pls())
        .header("azure-asyncoperation")
        .to_owned();
    assert_eq!(
        sim.poll(&url.replace(SUB, GUEST_SUB)).refusal(),
        (404, "NotFound", "service")
    );
    assert_eq!(sim.poll(&url).status, 200);
    sim.caller = caller(CONSUMER);
    assert_eq!(sim.poll(&url).status, 200, "the URL is signed");
    let mut strict = Sim::with_switches(json!({"network_poll_needs_role": true}));
    let url = strict
        .put(&format!("{NET}/privateLinkServices/svc"), pls())
        .header("azure-asyncoperation")
        .to_owned();
    strict.caller = caller(CONSUMER);
    assert_eq!(strict.poll(&url).code(), "AuthorizationFailed");
}

#[test]
fn journal_says_what_was_called() {
    let mut sim = Sim::new();
    let path = format!("{NET}/privateLinkServices/svc");
    sim.get(&path);
    let url = sim.put(&path, pls()).header("azure-asyncoperation").to_owned();
    sim.poll(&url);
    sim.put(&path, pls());
    let journal: Vec<_> = sim
        .world
        .journal(0)
        .iter()
        .map(|entry| {
            (
                entry.seq,
                entry.method.as_str(),
                entry.status,
                entry.code.as_deref(),
                entry.changed,
                entry.resource_kind.as_str(),
            )
        })
        .collect();
    let kind = "Microsoft.Network/privateLinkServices";
    assert_eq!(
        journal,
        [
            (1, "GET", 404, Some("ResourceNotFound"), false, kind),
            (2, "PUT", 201, None, true, kind),
            (3, "GET", 200, None, false, "Microsoft.Network/locations/operations"),
            (4, "PUT", 200, None, true, kind),
        ]
    );
    assert_eq!(sim.world.journal(2).len(), 2);
    sim.world.clear_journal();
    sim.get(&path);
    assert_eq!(sim.world.journal(0)[0].seq, 5);
}

#[test]
fn journal_has_the_fixed_keys() {
    let mut sim = Sim::new();
    sim.get(&format!("{NET}/privateLinkServices"));
    let entry = serde_json::to_value(&sim.world.journal(0)[0]).unwrap();
    let keys: Vec<&String> = entry.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "api_version",
            "changed",
            "correlation_id",
            "method",
            "path",
            "principal",
            "query",
            "resource_kind",
            "seq",
            "status",
            "time"
        ]
    );
}

/// The same calls against two worlds.
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
    other.world = World::new(Preset::Recorded, 2);
    network_support::spec_support::check(&mut other.world);
    other
        .world
        .seed(other.now, Seed::parse(seed().to_string().as_bytes()).unwrap())
        .unwrap();
    assert_ne!(life(&mut other), life(&mut Sim::new()));
}

#[test]
fn saved_world_goes_on_where_it_was() {
    let mut sim = Sim::new();
    let put = sim.put(&format!("{NET}/privateLinkServices/svc"), pls());
    sim.faults(json!([{"match": {"method": "GET", "from": 2}, "do": {"status": 500}}]));
    let saved = serde_json::to_string(&sim.world).unwrap();
    let mut loaded = Sim::new();
    loaded.world = serde_json::from_str(&saved).unwrap();
    network_support::spec_support::check(&mut loaded.world);
    assert_eq!(serde_json::to_string(&loaded.world).unwrap(), saved);
    loaded.wait(13.0);
    assert_eq!(
        loaded.poll(put.header("azure-asyncoperation")).body,
        json!({"status": "Succeeded"})
    );
    assert_eq!(loaded.poll(put.header("azure-asyncoperation")).status, 500);
    assert_eq!(loaded.world.journal(0).len(), 3);
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
            .world
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
    sim.world
        .seed(sim.now, Seed::parse(seed().to_string().as_bytes()).unwrap())
        .unwrap();
    assert!(sim.world.journal(0).is_empty());
    assert_eq!(sim.get(&format!("{NET}/privateLinkServices/svc")).status, 404);
}

#[test]
fn drift_is_seen_by_everybody() {
    let mut sim = Sim::new();
    let path = format!("{NET}/virtualNetworks/vnet/subnets/lb");
    let before = sim.get(&path).header("etag").to_owned();
    let body = json!({"properties": {"addressPrefix": "10.0.0.0/25"}});
    let shown = sim.world.put_resource(sim.now, &path, body).unwrap();
    assert_eq!(shown["properties"]["provisioningState"], json!("Succeeded"));
    let got = sim.get(&path);
    assert_eq!(got.body["properties"]["addressPrefix"], json!("10.0.0.0/25"));
    assert_ne!(got.header("etag"), before);
    assert!(sim.world.delete_resource(sim.now, &path).unwrap());
    assert!(!sim.world.delete_resource(sim.now, &path).unwrap());
    assert_eq!(sim.get(&path).status, 404);
    assert!(sim.world.delete_resource(sim.now, "nonsense").is_err());
    assert_eq!(sim.world.journal(0).len(), 3, "control calls are not in the journal");
}

#[test]
fn types_that_nobody_simulates_can_be_seeded() {
    let mut sim = Sim::new();
    let id = format!("/subscriptions/{SUB}/resourceGroups/rg/providers/Microsoft.Storage/storageAccounts/acc");
    let shown = sim
        .world
        .put_resource(sim.now, &id, json!({"location": "westus2", "kind": "x"}))
        .unwrap();
    assert_eq!(
        (&shown["id"], &shown["type"], &shown["kind"]),
        (&json!(id), &json!("Microsoft.Storage/storageAccounts"), &json!("x"))
    );
}

#[test]
fn resources_outside_groups_are_unknown() {
    let mut sim = Sim::new();
    let path = format!("/subscriptions/{SUB}/providers/Microsoft.Network/virtualNetworks/v");
    for method in ["PUT", "GET", "DELETE"] {
        let got = sim.call(method, &path, &[], Some(json!({"location": "westus2"})));
        assert_eq!(got.refusal(), (404, "InvalidResourceType", "gateway"), "{method}");
    }
    assert_eq!(sim.world.resources(sim.now, &path).len(), 0);
}

#[test]
fn a_scope_is_not_its_prefix() {
    let mut json = seed();
    json["resources"]
        .as_array_mut()
        .unwrap()
        .push(json!({"id": format!("/subscriptions/{SUB}/resourceGroups/r"), "location": "westus2"}));
    let mut sim = Sim::seeded(json, Preset::Recorded);
    let put = sim.call(
        "PUT",
        &format!("{NET}/privateDnsZones/z.com"),
        &[],
        Some(json!({"location": "global"})),
    );
    let url = put.header("azure-asyncoperation").to_owned();
    assert_eq!(sim.poll(&url).status, 202);
    assert_eq!(
        sim.poll(&url.replace("/resourceGroups/rg/", "/resourceGroups/r/"))
            .status,
        404
    );
}

#[rstest]
#[case::as_given("", "", 200, "")]
#[case::changed("&s=", "&s=x", 403, "AuthorizationFailed")]
#[case::older("t=", "t=1", 403, "AuthorizationFailed")]
#[case::without_hash("&h=", "&x=", 403, "AuthorizationFailed")]
fn the_signature_of_a_polling_url_is_checked(
    #[case] of: &str,
    #[case] by: &str,
    #[case] status: u16,
    #[case] code: &str,
) {
    for kind in ["privateLinkServices/svc", "privateDnsZones/z.com", ""] {
        let mut sim = Sim::new();
        let url = match kind {
            "" => sim
                .delete(NET.split("/providers").next().unwrap())
                .header("location")
                .to_owned(),
            _ if kind.starts_with("privateDns") => {
                let body = json!({"location": "global"});
                sim.put(&format!("{NET}/{kind}"), body)
                    .header("azure-asyncoperation")
                    .to_owned()
            }
            _ => sim
                .put(&format!("{NET}/{kind}"), pls())
                .header("azure-asyncoperation")
                .to_owned(),
        };
        let got = sim.poll(&url.replacen(of, by, 1));
        let polled = if status == 200 && !kind.starts_with("privateLink") {
            202
        } else {
            status
        };
        assert_eq!((got.status, got.code()), (polled, code), "{kind}");
        let mut lax = Sim::with_switches(json!({"changed_signature_is_refused": false}));
        let url = lax
            .put(&format!("{NET}/privateLinkServices/svc"), pls())
            .header("azure-asyncoperation")
            .to_owned();
        assert_eq!(lax.poll(&url.replacen(of, by, 1)).status, 200);
    }
}

#[test]
fn a_polling_url_without_signature_needs_the_role() {
    let mut sim = Sim::new();
    let url = sim
        .put(&format!("{NET}/privateLinkServices/svc"), pls())
        .header("azure-asyncoperation")
        .to_owned();
    let (bare, _) = url.split_once("&t=").unwrap();
    assert_eq!(sim.poll(bare).status, 200);
    sim.caller = caller(CONSUMER);
    assert_eq!(sim.poll(&url).status, 200, "signed");
    let refused = sim.poll(bare);
    assert_eq!(refused.code(), "AuthorizationFailed");
    assert!(
        refused.message().contains("locations/operations/read"),
        "{}",
        refused.message()
    );
}

#[test]
fn an_operation_is_forgotten_a_day_after_its_end() {
    let mut sim = Sim::new();
    let url = sim
        .put(&format!("{NET}/privateLinkServices/svc"), pls())
        .header("azure-asyncoperation")
        .to_owned();
    sim.wait(60.0);
    assert_eq!(sim.poll(&url).body["status"], json!("Succeeded"));
    sim.wait(23.0 * 3600.0);
    sim.link_service("b");
    assert_eq!(sim.poll(&url).body["status"], json!("Succeeded"));
    sim.wait(2.0 * 3600.0);
    sim.link_service("c");
    assert_eq!(sim.poll(&url).refusal(), (404, "NotFound", "service"));
}
