//! Resource groups, subscriptions, providers, permissions: what ARM answers itself.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod network_support;

use armsim::Preset;
use network_support::{GUEST_NET, GUEST_SUB, NET, SUB, Sim, names, pe, pls, seed};
use rstest::rstest;
use serde_json::{Value, json};

const GROUP: &str = "/subscriptions/33333333-3333-3333-3333-333333333333/resourceGroups/rg";

fn groups() -> String {
    format!("/subscriptions/{SUB}/resourceGroups")
}

#[test]
fn a_group_is_made_patched_and_found() {
    let mut sim = Sim::new();
    let path = format!("{}/New", groups());
    assert_eq!(sim.call("HEAD", &path, &[], None).status, 404);
    let made = sim.put(&path, json!({"location": "westus2", "tags": {"a": "1"}}));
    assert_eq!(
        (made.status, &made.body),
        (
            201,
            &json!({"id": path, "name": "New", "type": "Microsoft.Resources/resourceGroups", "location": "westus2",
                    "tags": {"a": "1"}, "properties": {"provisioningState": "Succeeded"}})
        )
    );
    assert_eq!(sim.call("HEAD", &path, &[], None).status, 204);
    let patched = sim.call("PATCH", &path, &[], Some(json!({"tags": {"b": "2"}})));
    assert_eq!((patched.status, &patched.body["tags"]), (200, &json!({"b": "2"})));
    let moved = sim.put(&path, json!({"location": "eastus"}));
    assert_eq!(moved.refusal(), (409, "InvalidResourceGroupLocation", "gateway"));
    let again = sim.put(&path, json!({"location": "West US 2"}));
    assert_eq!(
        (again.status, &again.body["location"], again.body.get("tags")),
        (200, &json!("westus2"), None),
        "PUT drops what it omits"
    );
}

#[rstest]
#[case::none("", &["a", "b", "rg"])]
#[case::tag("&$filter=tagName eq 'env' and tagValue eq 'prod'", &["b"])]
#[case::tag_name("&$filter=tagName eq 'env'", &["a", "b"])]
#[case::other_tag("&$filter=tagName eq 'team' and tagValue eq 'prod'", &[])]
#[case::top("&$top=1", &["a"])]
fn groups_are_listed(#[case] query: &str, #[case] expected: &[&str]) {
    let mut sim = Sim::new();
    for (name, value) in [("a", "test"), ("b", "prod")] {
        let body = json!({"location": "westus2", "tags": {"env": value, "team": "x"}});
        assert_eq!(sim.put(&format!("{}/{name}", groups()), body).status, 201);
    }
    let got = sim.get(&format!(
        "{}?{}",
        groups(),
        query.replace(' ', "%20").replace('\'', "%27")
    ));
    assert_eq!(names(&got.body), expected);
    let bad = sim.get(&format!("{}?$filter=nonsense", groups()));
    assert_eq!(bad.refusal(), (400, "InvalidFilterInQueryString", "gateway"));
}

#[rstest]
#[case::space("a%20b", "InvalidResourceGroup")]
#[case::dot("ab.", "InvalidResourceGroup")]
#[case::star("a*", "InvalidResourceGroup")]
#[case::long(&"x".repeat(91), "InvalidResourceGroup")]
fn bad_group_names_are_refused(#[case] name: &str, #[case] code: &str) {
    let mut sim = Sim::new();
    let got = sim.put(&format!("{}/{name}", groups()), json!({"location": "westus2"}));
    assert_eq!(got.refusal(), (400, code, "gateway"), "{}", got.body);
    assert_eq!(sim.get(&format!("{}/{name}", groups())).code(), "ResourceGroupNotFound");
}

#[test]
fn a_group_is_deleted_dependants_first() {
    let mut sim = Sim::new();
    let mut service = pls();
    service["properties"]["visibility"] = json!({"subscriptions": ["*"]});
    let service = sim.put(&format!("{NET}/privateLinkServices/svc"), service).body;
    let alias = service["properties"]["alias"].as_str().unwrap().to_owned();
    sim.wait(60.0);
    // Everything that can be in the way of something else, in one group.
    let subnet = format!("{NET}/virtualNetworks/vnet/subnets/lb");
    let mut endpoint = pe(&alias);
    endpoint["properties"]["subnet"]["id"] = json!(subnet);
    assert_eq!(sim.put(&format!("{NET}/privateEndpoints/e"), endpoint).status, 201);
    sim.put(&format!("{NET}/privateDnsZones/z.com"), json!({"location": "global"}));
    sim.wait(700.0);
    let link = json!({"location": "global", "properties": {"registrationEnabled": false,
        "virtualNetwork": {"id": format!("{NET}/virtualNetworks/vnet")}}});
    let linked = sim.put(&format!("{NET}/privateDnsZones/z.com/virtualNetworkLinks/l"), link);
    assert_eq!(linked.status, 202, "{}", linked.body);
    sim.wait(100.0);
    let gone = sim.delete(GROUP);
    let url = gone.header("location").to_owned();
    assert!(
        url.starts_with(&format!(
            "https://arm.test/subscriptions/{SUB}/operationresults/eyJqb2JJZCI6IlJFU09VUkNFR1JPVVBERUxFVElPTkpPQi1"
        )),
        "{url}"
    );
    assert_eq!(sim.get(GROUP).state(), "Deleting");
    sim.wait(31.0);
    assert_eq!(sim.poll(&url).status, 200);
    assert!(
        sim.azure
            .resources(sim.now, &format!("/subscriptions/{SUB}"))
            .is_empty()
    );
    sim.wait(100.0);
    assert!(sim.azure.operations_in_flight(sim.now).is_empty());
    // Nothing is left of what was deleted: it can all be created again.
    assert_eq!(sim.put(GROUP, json!({"location": "westus2"})).status, 201);
    let vnet = json!({"location": "westus2", "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
        "subnets": [{"name": "lb", "properties": {"addressPrefix": "10.0.0.0/29"}}]}});
    assert_eq!(sim.put(&format!("{NET}/virtualNetworks/vnet"), vnet).status, 201);
    sim.wait(10.0);
    let endpoint = sim.put(&format!("{NET}/privateEndpoints/e"), {
        let mut body = pe("x");
        body["properties"]["subnet"]["id"] = json!(subnet);
        body
    });
    assert_ne!(endpoint.code(), "SubnetIsFull");
}

#[test]
fn what_others_use_stops_the_deletion_of_its_group() {
    let mut sim = Sim::new();
    let alias = sim.link_service("svc");
    sim.endpoint("e", &alias);
    let url = sim.delete(GROUP).header("location").to_owned();
    sim.wait(31.0);
    let ended = sim.poll(&url);
    assert_eq!(
        (ended.status, ended.code()),
        (409, "ResourceGroupDeletionBlocked"),
        "{}",
        ended.body
    );
    assert!(
        ended.message().contains("Microsoft.Network/privateLinkServices/svc"),
        "{}",
        ended.message()
    );
    assert_eq!((sim.get(GROUP).status, sim.get(GROUP).state()), (200, "Succeeded"));
    assert_eq!(sim.get(&format!("{NET}/privateLinkServices/svc")).status, 200);
    // Once the guest's endpoint is deleted, the group can be deleted too.
    sim.delete(&format!("{GUEST_NET}/privateEndpoints/e"));
    sim.wait(60.0);
    sim.delete(GROUP);
    sim.wait(31.0);
    assert_eq!(sim.get(GROUP).status, 404);
}

#[test]
fn a_group_that_is_being_deleted_refuses_writes() {
    let mut sim = Sim::new();
    let first = sim.delete(GROUP).header("location").to_owned();
    let lb = format!("{NET}/loadBalancers/lb");
    for (method, path) in [
        ("PUT", GROUP.to_owned()),
        ("PATCH", GROUP.to_owned()),
        ("PUT", format!("{NET}/privateLinkServices/new")),
        ("PATCH", lb.clone()),
    ] {
        let got = sim.call(method, &path, &[], Some(json!({"location": "westus2"})));
        assert_eq!(
            got.refusal(),
            (409, "ResourceGroupBeingDeleted", "gateway"),
            "{method} {path}"
        );
    }
    assert_eq!(sim.get(&lb).status, 200);
    let again = sim.delete(GROUP);
    assert_eq!(again.status, 202);
    assert_eq!(again.header("location").split('?').next(), first.split('?').next());
}

#[rstest]
#[case::fails("fail")]
#[case::is_cancelled("cancel")]
fn a_deletion_that_fails_leaves_the_group(#[case] how: &str) {
    let mut sim = Sim::new();
    sim.faults(json!([{"match": {"method": "DELETE", "path": "/resourceGroups/rg$"}, "do": {"operation": how}}]));
    let url = sim.delete(GROUP).header("location").to_owned();
    sim.wait(31.0);
    assert_eq!(sim.poll(&url).status, 409);
    assert_eq!((sim.get(GROUP).status, sim.get(GROUP).state()), (200, "Succeeded"));
    assert_eq!(sim.get(&format!("{NET}/loadBalancers/lb")).status, 200);
}

#[test]
fn resources_are_listed_whatever_their_type() {
    let mut sim = Sim::new();
    sim.link_service("svc");
    sim.put(
        &format!("{NET}/privateDnsZones/z.com"),
        json!({"location": "global", "tags": {"a": "b"}}),
    );
    sim.wait(60.0);
    let list = |sim: &mut Sim, query: &str| sim.get(&format!("{GROUP}/resources{query}")).body;
    let all = list(&mut sim, "");
    let nic = all["value"][1]["name"].as_str().unwrap().to_owned();
    assert_eq!(
        names(&all),
        ["lb", &nic, "z.com", "svc", "vnet"],
        "no subnets, no record sets"
    );
    let zone = &all["value"][2];
    assert_eq!(
        zone,
        &json!({"id": zone["id"], "name": "z.com", "type": "Microsoft.Network/privateDnsZones", "location": "global",
                "tags": {"a": "b"}})
    );
    let found = list(
        &mut sim,
        "?$filter=resourceType%20eq%20'Microsoft.Network/privateLinkServices'",
    );
    assert_eq!(names(&found), ["svc"]);
    let expanded = list(&mut sim, "?$top=1&$expand=createdTime,changedTime,provisioningState");
    let first = &expanded["value"][0];
    assert_eq!(names(&expanded), ["lb"]);
    assert_eq!(
        (&first["provisioningState"], &first["createdTime"]),
        (&json!("Succeeded"), &json!("2026-01-05T10:00:00Z"))
    );
    assert_eq!(
        sim.poll(expanded["nextLink"].as_str().unwrap()).body["value"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let of_sub = sim.get(&format!("/subscriptions/{SUB}/resources")).body;
    assert_eq!(names(&of_sub).len(), 5);
    assert_eq!(
        sim.get(&format!("{}/none/resources", groups())).code(),
        "ResourceGroupNotFound"
    );
}

#[rstest]
#[case::angle(json!({"a<b": "x"}), "InvalidTagNameCharacters")]
#[case::slash(json!({"a/b": "x"}), "InvalidTagNameCharacters")]
#[case::backslash(json!({"a\\b": "x"}), "InvalidTagNameCharacters")]
#[case::control(json!({"a\u{7}b": "x"}), "InvalidTagNameCharacters")]
#[case::long_name(json!({"x".repeat(513): "x"}), "InvalidTagName")]
#[case::long_value(json!({"a": "x".repeat(257)}), "InvalidTagValueLength")]
#[case::number(json!({"a": 1}), "InvalidRequestContent")]
#[case::array(json!(["a"]), "InvalidRequestContent")]
#[case::longest(json!({"x".repeat(512): "x".repeat(256)}), "")]
fn tags_have_limits(#[case] tags: Value, #[case] code: &str) {
    let mut sim = Sim::new();
    for path in [
        GROUP.to_owned(),
        format!("{NET}/networkSecurityGroups/nsg"),
        format!("{NET}/publicIPAddresses/ip"),
    ] {
        let body = json!({"location": "westus2", "tags": tags});
        let put = sim.put(&path, body);
        assert_eq!(put.code(), code, "PUT {path} {}", put.body);
        let status = if code.is_empty() {
            [200, 201].contains(&put.status)
        } else {
            put.status == 400
        };
        assert!(status, "PUT {path} {}", put.status);
    }
    let patch = sim.call("PATCH", GROUP, &[], Some(json!({"tags": tags})));
    assert_eq!(patch.code(), code);
}

#[test]
fn there_are_fifty_tags_and_fifteen_on_private_dns() {
    let mut sim = Sim::new();
    let tags = |count: usize| -> Value {
        (0..count)
            .map(|at| (format!("t{at}"), json!("v")))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let nsg = format!("{NET}/networkSecurityGroups/nsg");
    let zone = format!("{NET}/privateDnsZones/z.com");
    for (path, location, most) in [(&nsg, "westus2", 50), (&zone, "global", 15)] {
        assert!(sim.put(path, json!({"location": location, "tags": tags(most)})).status < 300);
        let refused = sim.put(path, json!({"location": location, "tags": tags(most + 1)}));
        assert_eq!(refused.refusal(), (400, "TooManyTags", "gateway"));
    }
}

#[test]
fn every_tracked_type_takes_a_patch_of_tags() {
    let mut sim = Sim::new();
    let alias = sim.link_service("svc");
    sim.endpoint("e", &alias);
    sim.put(
        &format!("{NET}/networkSecurityGroups/nsg"),
        json!({"location": "westus2"}),
    );
    sim.put(&format!("{NET}/privateDnsZones/z.com"), json!({"location": "global"}));
    sim.wait(60.0);
    let scopes = [format!("/subscriptions/{SUB}"), format!("/subscriptions/{GUEST_SUB}")];
    let lists: Vec<Value> = scopes
        .iter()
        .map(|scope| sim.get(&format!("{scope}/resources")).body)
        .collect();
    let all: Vec<&Value> = lists
        .iter()
        .flat_map(|list| list["value"].as_array().unwrap())
        .collect();
    assert_eq!(all.len(), 9, "{all:?}");
    for found in all {
        let id = found["id"].as_str().unwrap();
        let before = sim.get(id).body;
        let patched = sim.call("PATCH", id, &[], Some(json!({"tags": {"p": "q"}})));
        // The interface of a link service or endpoint is not its caller's to change.
        if before["managedBy"].is_string() {
            assert_eq!(patched.status, 400, "{id}");
            continue;
        }
        assert!([200, 202].contains(&patched.status), "{id}: {}", patched.body);
        sim.wait(60.0);
        let mut after = sim.get(id).body;
        assert_eq!(after["tags"], json!({"p": "q"}), "{id}");
        assert_eq!(after["properties"]["provisioningState"], json!("Succeeded"), "{id}");
        after["properties"]["resourceGuid"] = before["properties"]["resourceGuid"].clone();
        assert_eq!(after["location"], before["location"], "{id}");
    }
}

#[rstest]
#[case::space("a b")]
#[case::percent("a%b")]
#[case::first("-a")]
#[case::last("a-")]
#[case::long(&"x".repeat(81))]
fn names_of_network_resources_have_a_form(#[case] name: &str) {
    let mut sim = Sim::new();
    let encoded: String = name.replace('%', "%25").replace(' ', "%20");
    for kind in [
        "privateLinkServices",
        "networkSecurityGroups",
        "virtualNetworks",
        "privateEndpoints",
        "loadBalancers",
    ] {
        let got = sim.put(&format!("{NET}/{kind}/{encoded}"), json!({"location": "westus2"}));
        assert_eq!(
            got.refusal(),
            (400, "InvalidResourceName", "service"),
            "{kind} {}",
            got.body
        );
    }
}

#[test]
fn heads_say_whether_a_resource_exists() {
    let mut sim = Sim::new();
    let vnet = format!("{NET}/virtualNetworks/vnet");
    let head = sim.call("HEAD", &vnet, &[], None);
    assert_eq!((head.status, &head.body), (204, &Value::Null));
    assert_eq!(
        sim.call("HEAD", &format!("{NET}/virtualNetworks/x"), &[], None).status,
        404
    );
}

#[test]
fn lists_and_registrations_survive_a_restart() {
    let mut json = seed();
    json["subscriptions"][0]["unregistered"] = json!(["Microsoft.Network"]);
    let mut loaded = Sim::seeded(json, Preset::Recorded);
    let saved = serde_json::to_string(&loaded.azure).unwrap();
    loaded.azure = serde_json::from_str(&saved).unwrap();
    let provider = format!("/subscriptions/{SUB}/providers/Microsoft.Network");
    assert_eq!(loaded.get(&provider).body["registrationState"], json!("NotRegistered"));
    assert_eq!(
        names(&loaded.get(&format!("{NET}/virtualNetworks")).body),
        ["vnet"],
        "the index is built again"
    );
}
