//! What ARM itself checks and sends, before and around every resource type.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod network_support;

use armsim::Preset;
use bytes::Bytes;
use http::Request;
use network_support::{CONSUMER, GUEST_NET, GUEST_SUB, NET, SUB, Sim, caller, pls, seed};
use rstest::rstest;
use serde_json::{Value, json};

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
    let got = sim.raw("GET", &format!("{NET}/privateLinkServices{query}"), "");
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
    assert_eq!(sim.raw("PUT", &uri, body).refusal(), (status, code, "gateway"));
    let wrong = Request::builder()
        .method("PUT")
        .uri(&uri)
        .header("content-type", "text/html")
        .body(Bytes::from("{}"))
        .unwrap();
    assert_eq!(sim.send(wrong).refusal(), (415, "UnsupportedMediaType", "gateway"));
    let huge = "x".repeat(4 * 1024 * 1024 + 1);
    assert_eq!(sim.raw("PUT", &uri, &huge).status, 413);
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
    let journal = sim.azure.journal(0);
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
fn resource_group_is_deleted_with_what_is_in_it() {
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
    assert!(sim.azure.resources(sim.now, &group).is_empty());
}

#[test]
fn journal_lists_what_was_called() {
    let mut sim = Sim::new();
    let path = format!("{NET}/privateLinkServices/svc");
    sim.get(&path);
    let url = sim.put(&path, pls()).header("azure-asyncoperation").to_owned();
    sim.poll(&url);
    sim.put(&path, pls());
    let journal: Vec<_> = sim
        .azure
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
    assert_eq!(sim.azure.journal(2).len(), 2);
    sim.azure.clear_journal();
    sim.get(&path);
    assert_eq!(sim.azure.journal(0)[0].seq, 5);
}

#[test]
fn journal_has_the_fixed_keys() {
    let mut sim = Sim::new();
    sim.get(&format!("{NET}/privateLinkServices"));
    let entry = serde_json::to_value(&sim.azure.journal(0)[0]).unwrap();
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

#[test]
fn resources_outside_groups_are_unknown() {
    let mut sim = Sim::new();
    let path = format!("/subscriptions/{SUB}/providers/Microsoft.Network/virtualNetworks/v");
    for method in ["PUT", "GET", "DELETE"] {
        let got = sim.call(method, &path, &[], Some(json!({"location": "westus2"})));
        assert_eq!(got.refusal(), (404, "InvalidResourceType", "gateway"), "{method}");
    }
    assert_eq!(sim.azure.resources(sim.now, &path).len(), 0);
}
