//! Record sets: synchronous writes, unwrapped refusals, bodies, lists.

use rstest::rstest;
use serde_json::{Value, json};

use crate::dns_support::{Sim, a, seed, zone};

fn set(kind: &str, name: &str) -> String {
    format!("{}/{kind}/{name}", zone("example.com"))
}

fn with_zone() -> Sim {
    let mut sim = Sim::new();
    sim.make_zone("example.com");
    sim
}

#[test]
fn a_record_set_is_created_replaced_and_deleted_at_once() {
    let mut sim = with_zone();
    let created = sim.put(
        &set("a", "API"),
        json!({"properties": {"ttl": 300, "metadata": {"owner": "x"}, "aRecords": [{"ipv4Address": "10.0.0.5"}]}}),
    );
    let etag = created.body["etag"].as_str().unwrap().to_owned();
    assert_eq!((created.status, created.header("etag")), (201, Some(etag.as_str())));
    assert!(created.header("azure-asyncoperation").is_none() && created.header("location").is_none());
    assert_eq!(created.header("x-aspnet-version"), Some("4.0.30319"));
    assert_eq!(
        created.body,
        json!({
            "id": "/subscriptions/s1/resourceGroups/rg-guest/providers/Microsoft.Network/privateDnsZones/example.com/A/api",
            "name": "api",
            "type": "Microsoft.Network/privateDnsZones/A",
            "etag": etag,
            "properties": {
                "metadata": {"owner": "x"},
                "fqdn": "api.example.com.",
                "ttl": 300,
                "aRecords": [{"ipv4Address": "10.0.0.5"}],
                "isAutoRegistered": false,
            },
        })
    );
    let replaced = sim.put(&set("A", "api"), a(&["10.0.0.6"]));
    assert_eq!(replaced.status, 200);
    assert_ne!(replaced.body["etag"], etag);
    assert_eq!(
        replaced.body["properties"].get("metadata"),
        None,
        "a PUT drops what it omits"
    );
    assert_eq!(sim.get(&set("A", "api")).body, replaced.body);
    let deleted = sim.delete(&set("A", "api"));
    assert_eq!((deleted.status, deleted.body), (200, Value::Null));
    assert_eq!(sim.delete(&set("A", "api")).status, 204);
    let missing = sim.get(&set("A", "api"));
    assert_eq!(missing.status, 404);
    let message = "The resource record 'api' does not exist in resource group 'rg-guest' of subscription 's1'.";
    assert_eq!(missing.body, json!({"code": "NotFound", "message": message}));
}

#[test]
fn a_set_may_be_empty_at_the_apex_or_a_wildcard() {
    let mut sim = with_zone();
    let created = sim.put(&set("A", "empty"), json!({"properties": {"ttl": 1}}));
    assert_eq!(
        (created.status, &created.body["properties"]["aRecords"]),
        (201, &json!([]))
    );
    let apex = sim.put(&set("A", "%40"), a(&["10.0.0.5"]));
    assert_eq!(
        (apex.status, &apex.body["properties"]["fqdn"]),
        (201, &json!("example.com."))
    );
    let apps = sim.put(&set("A", "*.apps"), a(&["10.0.0.5"]));
    assert_eq!(
        (apps.status, &apps.body["properties"]["fqdn"]),
        (201, &json!("*.apps.example.com."))
    );
}

#[test]
fn the_zone_is_enough_and_a_missing_one_is_named() {
    let mut sim = Sim::new();
    for (verb, got) in [
        ("write", sim.put(&set("A", "api"), a(&["10.0.0.5"]))),
        ("read", sim.get(&set("A", "api"))),
        ("delete", sim.delete(&set("A", "api"))),
    ] {
        assert_eq!((got.status, got.code()), (404, "ParentResourceNotFound"));
        assert_eq!(got.header("x-ms-failure-cause"), Some("gateway"));
        let message = format!(
            "Failed to perform '{verb}' on resource(s) of type 'privateDnsZones/A', because the parent resource '{}' could \
             not be found.",
            zone("example.com")
        );
        assert_eq!(got.body["error"]["message"], message);
    }
}

#[test]
fn failed_preconditions_are_unwrapped_412s() {
    let mut sim = with_zone();
    sim.put(&set("A", "api"), a(&["10.0.0.5"]));
    let before = sim.get(&set("A", "api")).body;
    let exists = json!({"code": "PreconditionFailed", "message": "The Record set api exists already and hence cannot be created again."});
    let modified =
        json!({"code": "PreconditionFailed", "message": "The Record set api has been modified (etag mismatch)."});
    for (method, header, body) in [
        ("PUT", ("if-none-match", "*"), &exists),
        ("PUT", ("if-match", "other"), &modified),
        ("PATCH", ("if-match", "other"), &modified),
        ("DELETE", ("if-match", "other"), &modified),
    ] {
        let sent = if method == "DELETE" {
            Value::Null
        } else {
            a(&["10.0.0.9"])
        };
        let refused = sim.call(method, &set("A", "api"), sent, &[header]);
        assert_eq!((refused.status, &refused.body), (412, body), "{method}");
        assert_eq!(sim.get(&set("A", "api")).body, before);
    }
    let etag = before["etag"].as_str().unwrap().to_owned();
    assert_eq!(
        sim.call("PUT", &set("A", "api"), a(&["10.0.0.9"]), &[("if-match", &etag)])
            .status,
        200
    );
    assert_eq!(
        sim.call("PUT", &set("A", "new"), a(&["10.0.0.9"]), &[("if-none-match", "*")])
            .status,
        201
    );
    assert_eq!(
        sim.call("PUT", &set("A", "newer"), a(&[]), &[("if-match", &etag)])
            .status,
        412
    );
}

#[test]
fn a_patch_changes_the_metadata_and_keeps_the_records() {
    let mut sim = with_zone();
    assert_eq!(sim.call("PATCH", &set("A", "api"), json!({}), &[]).status, 404);
    sim.put(&set("A", "api"), a(&["10.0.0.5"]));
    let patched = sim.call(
        "PATCH",
        &set("A", "api"),
        json!({"properties": {"metadata": {"k": "v"}}}),
        &[],
    );
    assert_eq!(patched.status, 200);
    let properties = &patched.body["properties"];
    assert_eq!(
        (&properties["metadata"], &properties["ttl"], &properties["aRecords"]),
        (&json!({"k": "v"}), &json!(300), &json!([{"ipv4Address": "10.0.0.5"}]))
    );
}

#[test]
fn slashes_are_escaped_by_the_service_and_not_by_arm() {
    let mut sim = with_zone();
    let zone = sim.get(&zone("example.com"));
    assert!(zone.text.contains(r"\/privateDnsZones\/example.com"), "{}", zone.text);
    let arm = sim.get(&set("A", "none").replace("example.com", "example.org"));
    assert_eq!(arm.header("x-ms-failure-cause"), Some("gateway"));
    assert!(arm.text.contains("Microsoft.Network/privateDnsZones/"), "{}", arm.text);
}

#[rstest]
#[case("AAAA", json!({"aaaaRecords": [{"ipv6Address": "FD00:0:0:0::5"}]}))]
#[case("CNAME", json!({"cnameRecord": {"cname": "example.org"}}))]
#[case("MX", json!({"mxRecords": [{"preference": 10, "exchange": "mail.example.org"}]}))]
#[case("PTR", json!({"ptrRecords": [{"ptrdname": "host.example.org"}]}))]
#[case("SRV", json!({"srvRecords": [{"priority": 1, "weight": 2, "port": 443, "target": "host.example.org"}]}))]
#[case("TXT", json!({"txtRecords": [{"value": ["v=1", "two"]}]}))]
fn every_type_keeps_its_records(#[case] kind: &str, #[case] records: Value) {
    let mut sim = with_zone();
    let mut properties = records.clone();
    properties["ttl"] = json!(60);
    assert_eq!(
        sim.put(&set(kind, "name"), json!({"properties": properties})).status,
        201
    );
    let shown = sim.get(&set(kind, "name")).body;
    assert_eq!(shown["type"], format!("Microsoft.Network/privateDnsZones/{kind}"));
    for (name, value) in records.as_object().unwrap() {
        assert_eq!(&shown["properties"][name], value);
    }
}

#[test]
fn the_soa_exists_as_long_as_its_zone() {
    let mut sim = with_zone();
    let soa = sim.get(&set("SOA", "@")).body;
    assert_eq!(
        soa["properties"]["soaRecord"],
        json!({
            "email": "azureprivatedns-host.microsoft.com", "expireTime": 2_419_200, "host": "azureprivatedns.net",
            "minimumTtl": 10, "refreshTime": 3600, "retryTime": 300, "serialNumber": 1,
        })
    );
    let changed = sim.put(
        &set("SOA", "@"),
        json!({"properties": {"ttl": 60, "soaRecord": {
            "email": "me.example.com.", "minimumTtl": 30, "host": "mine", "serialNumber": 5,
        }}}),
    );
    assert_eq!(changed.status, 200);
    assert_eq!(changed.body["properties"]["soaRecord"]["email"], "me.example.com.");
    assert_eq!(
        changed.body["properties"]["soaRecord"]["serialNumber"], 1,
        "the service counts"
    );
    assert_eq!(changed.body["properties"]["soaRecord"]["minimumTtl"], 30);
    assert_eq!(changed.body["properties"]["soaRecord"]["host"], "azureprivatedns.net");
    assert_eq!(sim.delete(&set("SOA", "@")).status, 400);
    assert_eq!(
        sim.put(&set("SOA", "other"), json!({"properties": {"ttl": 60}})).status,
        400
    );
}

#[test]
fn a_cname_stands_alone() {
    let mut sim = with_zone();
    let cname = json!({"properties": {"ttl": 60, "cnameRecord": {"cname": "example.org"}}});
    sim.put(&set("A", "x"), a(&["10.0.0.5"]));
    let refused = sim.put(&set("CNAME", "X"), cname.clone());
    assert_eq!((refused.status, refused.body["code"].as_str()), (409, Some("Conflict")));
    assert_eq!(sim.put(&set("CNAME", "y"), cname.clone()).status, 201);
    assert_eq!(sim.put(&set("A", "y"), a(&["10.0.0.5"])).status, 409);
    assert_eq!(sim.put(&set("CNAME", "y"), cname).status, 200);
}

#[rstest]
#[case("A", "x..y", json!({"ttl": 1}))]
#[case("A", "x", json!({"aRecords": []}))]
#[case("A", "x", json!({"ttl": 1, "aRecords": [{"ipv4Address": "10.0.0"}]}))]
#[case("CNAME", "@", json!({"ttl": 1, "cnameRecord": {"cname": "a.b"}}))]
fn a_bad_record_set_is_an_unwrapped_400_and_changes_nothing(
    #[case] kind: &str,
    #[case] name: &str,
    #[case] properties: Value,
) {
    let mut sim = with_zone();
    let refused = sim.put(&set(kind, name), json!({"properties": properties}));
    assert_eq!(
        (refused.status, refused.body["code"].as_str()),
        (400, Some("BadRequest")),
        "{}",
        refused.body
    );
    assert_eq!(
        sim.get(&zone("example.com")).body["properties"]["numberOfRecordSets"],
        1
    );
    assert_eq!(sim.azure.journal(0).last().map(|entry| entry.changed), Some(false));
}

#[test]
fn a_cname_set_without_its_record_is_empty() {
    let mut sim = with_zone();
    let created = sim.put(&set("CNAME", "alias"), json!({"properties": {"ttl": 3600}}));
    assert_eq!(created.status, 201, "{}", created.body);
    let properties = json!({"fqdn": "alias.example.com.", "ttl": 3600, "isAutoRegistered": false});
    assert_eq!(created.body["properties"], properties);
    let filled = json!({"properties": {"ttl": 3600, "cnameRecord": {"cname": "single-label"}}});
    assert_eq!(sim.put(&set("CNAME", "alias"), filled).status, 200);
    let patched = sim.call("PATCH", &set("CNAME", "alias"), json!({"properties": {"ttl": 60}}), &[]);
    assert_eq!(
        patched.body["properties"]["cnameRecord"],
        json!({"cname": "single-label"})
    );
}

#[test]
fn the_etag_in_a_body_is_no_condition() {
    let mut sim = with_zone();
    sim.put(&set("A", "api"), a(&["10.0.0.5"]));
    let mut body = a(&["10.0.0.6"]);
    body["etag"] = json!("of-another-time");
    assert_eq!(sim.put(&set("A", "api"), body).status, 200);
}

#[test]
fn the_quotas_of_records_and_metadata_hold() {
    let mut seed = seed();
    seed["subscriptions"][0]["quotas"] = json!({"records_per_set": 2});
    let mut sim = Sim::with(seed);
    sim.make_zone("example.com");
    assert_eq!(sim.put(&set("A", "x"), a(&["10.0.0.1", "10.0.0.2"])).status, 201);
    let before = sim.get(&set("A", "x")).body;
    let three = a(&["10.0.0.1", "10.0.0.2", "10.0.0.3"]);
    assert_eq!(sim.put(&set("A", "x"), three.clone()).status, 400);
    assert_eq!(sim.call("PATCH", &set("A", "x"), three, &[]).status, 400);
    assert_eq!(sim.get(&set("A", "x")).body, before);
}

#[test]
fn the_quota_of_record_sets_holds() {
    let mut seed = seed();
    seed["subscriptions"][0]["quotas"] = json!({"record_sets_per_zone": 2});
    let mut sim = Sim::with(seed);
    sim.make_zone("example.com");
    assert_eq!(sim.put(&set("A", "x"), a(&[])).status, 201);
    assert_eq!(sim.put(&set("A", "y"), a(&[])).status, 400);
    assert_eq!(
        sim.put(&set("A", "x"), a(&["10.0.0.5"])).status,
        200,
        "what is there can be replaced"
    );
}

fn names(sim: &mut Sim, path: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut next = Some(path.to_owned());
    while let Some(url) = next {
        let page = sim.get(&url);
        assert_eq!(page.status, 200, "{}", page.body);
        for row in page.body["value"].as_array().unwrap() {
            let kind = row["type"].as_str().unwrap().rsplit('/').next().unwrap();
            names.push(format!("{kind} {}", row["name"].as_str().unwrap()));
        }
        next = page.body["nextLink"].as_str().map(str::to_owned);
    }
    names
}

#[test]
fn lists_by_type_over_all_types_and_by_suffix() {
    let mut sim = with_zone();
    for name in ["api", "*.apps", "x.apps", "y.apps"] {
        sim.put(&set("A", name), a(&["10.0.0.5"]));
    }
    for name in ["t", "@"] {
        let text = json!({"properties": {"ttl": 1, "txtRecords": [{"value": ["v"]}]}});
        assert_eq!(sim.put(&set("TXT", name), text).status, 201);
    }
    // Names come in the order of their characters, and the types of one name in that of theirs.
    let all = ["A *.apps", "SOA @", "TXT @", "A api", "TXT t", "A x.apps", "A y.apps"];
    for (path, expected) in [
        ("ALL", &all[..]),
        ("all?$top=2", &all[..]),
        ("A", &["A *.apps", "A api", "A x.apps", "A y.apps"]),
        ("soa", &["SOA @"]),
        ("TXT", &["TXT @", "TXT t"]),
        ("MX", &[]),
        ("A?$recordsetnamesuffix=apps", &["A *.apps", "A x.apps", "A y.apps"]),
        (
            "ALL?$top=1&$recordsetnamesuffix=apps",
            &["A *.apps", "A x.apps", "A y.apps"],
        ),
    ] {
        assert_eq!(
            names(&mut sim, &format!("{}/{path}", zone("example.com"))),
            expected,
            "{path}"
        );
    }
    assert_eq!(sim.get(&format!("{}/A?$top=0", zone("example.com"))).status, 400);
    assert_eq!(sim.get(&format!("{}/A", zone("missing.com"))).status, 404);
}

#[test]
fn a_page_holds_100_record_sets() {
    let mut sim = with_zone();
    for n in 0..101 {
        sim.put(&set("A", &format!("n{n:03}")), a(&["10.0.0.5"]));
    }
    let page = sim.get(&format!("{}/A", zone("example.com"))).body;
    assert_eq!(page["value"].as_array().unwrap().len(), 100);
    assert!(page["nextLink"].as_str().unwrap().contains("$skipToken="));
}
