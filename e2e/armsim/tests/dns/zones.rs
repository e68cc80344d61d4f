//! Private DNS zones: asynchronous writes, late refusals, bodies, lists, names, quotas.

use base64::Engine as _;
use serde_json::{Value, json};

use crate::dns_support::{Got, NETWORK, Sim, seed, zone};

#[test]
fn a_new_zone_is_accepted_with_both_polling_urls() {
    let mut sim = Sim::new();
    let accepted = sim.put(&zone("Example.com"), json!({"location": "global"}));
    assert_eq!((accepted.status, &accepted.body), (202, &json!({})));
    assert_eq!(accepted.header("retry-after"), Some("30"));
    assert_eq!(
        accepted.header("x-ms-ratelimit-remaining-subscription-resource-requests"),
        Some("11999")
    );
    for (header, word) in [("azure-asyncoperation", "Statuses"), ("location", "Results")] {
        let url = accepted.header(header).unwrap();
        let path = format!("/resourceGroups/rg-guest/providers/Microsoft.Network/privateDnsOperation{word}/");
        let token = url.split_once(&path).unwrap().1.split_once('?').unwrap().0;
        let decoded = base64::engine::general_purpose::STANDARD.decode(token).unwrap();
        let decoded = String::from_utf8(decoded).unwrap();
        assert!(
            decoded.starts_with("FrontEndAsyncOperation;UpsertPrivateDnsZone;"),
            "{decoded}"
        );
        assert!(url.len() > 3000, "as long as a signed URL");
    }
}

#[test]
fn a_new_zone_appears_when_its_operation_has_ended() {
    let mut sim = Sim::new();
    let accepted = sim.put(&zone("example.com"), json!({"location": "global"}));
    let early = sim.get(&zone("example.com"));
    assert_eq!((early.status, early.code()), (404, "ResourceNotFound"));
    assert_eq!(early.header("x-ms-failure-cause"), Some("gateway"));
    let url = accepted.header("azure-asyncoperation").unwrap().to_owned();
    let poll = sim.get(&url);
    assert_eq!((poll.status, &poll.body), (202, &json!({"status": "InProgress"})));
    assert_eq!(poll.header("retry-after"), Some("30"));
    assert!(poll.header("azure-asyncoperation").is_some() && poll.header("location").is_some());
    sim.wait(30);
    let last = sim.get(&url);
    assert_eq!((last.status, &last.body), (200, &json!({"status": "Succeeded"})));
    assert!(last.header("azure-asyncoperation").is_none() && last.header("retry-after").is_none());
    let left = |got: &Got| -> u32 {
        let header = got.header("x-ms-ratelimit-remaining-subscription-resource-requests");
        header.unwrap().parse().unwrap()
    };
    assert!(left(&poll) > left(&last), "polls count against the reads");
    assert_eq!(sim.get(&zone("example.com")).status, 200);
}

#[test]
fn a_zone_has_azures_fields() {
    let mut sim = Sim::new();
    sim.put_and_end(&zone("Example.com"), json!({"location": "Global", "tags": {"a": "b"}}));
    let shown = sim.get(&zone("EXAMPLE.com"));
    let etag = shown.body["etag"].as_str().unwrap().to_owned();
    assert_eq!(shown.header("etag"), Some(etag.as_str()));
    assert_eq!(etag.len(), 36, "a bare GUID");
    let internal = shown.body["properties"]["internalId"].clone();
    assert!(internal.as_str().unwrap().starts_with("SW1tdXRhYmxlWm9uZUlkZW50aXR5O"));
    assert_eq!(
        shown.body,
        json!({
            "id": "/subscriptions/s1/resourceGroups/rg-guest/providers/Microsoft.Network/privateDnsZones/example.com",
            "name": "example.com",
            "type": "Microsoft.Network/privateDnsZones",
            "etag": etag,
            "location": "global",
            "tags": {"a": "b"},
            "properties": {
                "internalId": internal,
                "maxNumberOfRecordSets": 25000,
                "maxNumberOfVirtualNetworkLinks": 1000,
                "maxNumberOfVirtualNetworkLinksWithRegistration": 100,
                "numberOfRecordSets": 1,
                "numberOfVirtualNetworkLinks": 0,
                "numberOfVirtualNetworkLinksWithRegistration": 0,
                "provisioningState": "Succeeded",
            },
        })
    );
}

#[test]
fn old_versions_show_no_internal_id_and_no_resolution_policy() {
    let mut sim = Sim::new();
    let name = "privatelink.example.com";
    sim.make_zone(name);
    sim.link(name, "l", "vnet1");
    let link = format!("{}/virtualNetworkLinks/l", zone(name));
    for (path, property, old, new) in [
        (zone(name), "internalId", "2018-09-01", "2020-06-01"),
        (link, "resolutionPolicy", "2020-06-01", "2024-06-01"),
    ] {
        let mut shows = |version: &str| {
            let got = sim.get(&format!("https://arm.test{path}?api-version={version}"));
            got.body["properties"].get(property).is_some()
        };
        assert_eq!((shows(old), shows(new)), (false, true), "{property}");
    }
}

#[test]
fn an_update_is_an_operation_too_and_drops_the_tags_it_omits() {
    let mut sim = Sim::new();
    sim.put_and_end(&zone("example.com"), json!({"location": "global", "tags": {"a": "b"}}));
    let before = sim.get(&zone("example.com")).body;
    let accepted = sim.put(&zone("example.com"), json!({"location": "Global"}));
    let during = sim.get(&zone("example.com")).body;
    assert_eq!(during["properties"]["provisioningState"], "Updating");
    assert_eq!(during["tags"], json!({"a": "b"}));
    sim.end(&accepted);
    let after = sim.get(&zone("example.com")).body;
    assert_eq!(after.get("tags"), None);
    assert_ne!(after["etag"], before["etag"]);
    assert_eq!(after["properties"]["internalId"], before["properties"]["internalId"]);
    assert_eq!(after["properties"]["provisioningState"], "Succeeded");
}

#[test]
fn a_patch_replaces_the_tags_only() {
    let mut sim = Sim::new();
    let missing = sim.call("PATCH", &zone("example.com"), json!({"tags": {}}), &[]);
    assert_eq!((missing.status, missing.code()), (404, "ResourceNotFound"));
    sim.put_and_end(&zone("example.com"), json!({"location": "global", "tags": {"a": "b"}}));
    for (body, tags) in [
        (json!({}), json!({"a": "b"})),
        (json!({"tags": {"c": "d"}}), json!({"c": "d"})),
    ] {
        let accepted = sim.call("PATCH", &zone("example.com"), body, &[]);
        assert_eq!(sim.end(&accepted), json!({"status": "Succeeded"}));
        assert_eq!(sim.get(&zone("example.com")).body["tags"], tags);
    }
}

#[test]
fn failed_preconditions_are_reported_by_the_operation() {
    let mut sim = Sim::new();
    sim.make_zone("example.com");
    let before = sim.get(&zone("example.com")).body;
    for (method, header, message) in [
        (
            "PUT",
            ("if-none-match", "*"),
            "The Zone example.com exists already and hence cannot be created again.",
        ),
        (
            "PUT",
            ("if-match", "other"),
            "The Zone example.com has been modified (etag mismatch).",
        ),
        (
            "PATCH",
            ("if-match", "other"),
            "The Zone example.com has been modified (etag mismatch).",
        ),
        (
            "DELETE",
            ("if-match", "other"),
            "The Zone example.com has been modified (etag mismatch).",
        ),
    ] {
        let body = if method == "DELETE" {
            Value::Null
        } else {
            json!({"location": "global", "tags": {"x": "y"}})
        };
        let accepted = sim.call(method, &zone("example.com"), body, &[header]);
        let error = json!({"code": "PreconditionFailed", "message": message});
        assert_eq!(sim.end(&accepted), json!({"status": "Failed", "error": error}));
        assert_eq!(sim.get(&zone("example.com")).body, before);
    }
    let etag = before["etag"].as_str().unwrap().to_owned();
    let accepted = sim.call("DELETE", &zone("example.com"), Value::Null, &[("if-match", &etag)]);
    assert_eq!(accepted.body, Value::Null);
    assert_eq!(sim.end(&accepted), json!({"status": "Succeeded"}));
    assert_eq!(sim.get(&zone("example.com")).status, 404);
}

#[test]
fn lists_by_group_and_subscription_come_in_pages() {
    let mut sim = Sim::new();
    for n in 0..5 {
        sim.make_zone(&format!("z{n}.example.com"));
    }
    for scope in [
        NETWORK.to_owned(),
        "/subscriptions/s1/providers/Microsoft.Network".to_owned(),
    ] {
        let mut names = Vec::new();
        let mut next = Some(format!("{scope}/privateDnsZones?$top=2"));
        let mut pages = 0;
        while let Some(url) = next {
            let page = sim.get(&url);
            assert_eq!(page.status, 200, "{}", page.body);
            let rows = page.body["value"].as_array().unwrap();
            let left = 60_000 - rows.len();
            let header = "x-ms-ratelimit-remaining-subscription-resource-entities-read";
            assert_eq!(page.header(header), Some(left.to_string().as_str()));
            names.extend(rows.iter().map(|zone| zone["name"].as_str().unwrap().to_owned()));
            next = page.body["nextLink"].as_str().map(str::to_owned);
            pages += 1;
        }
        assert_eq!(pages, 3);
        assert_eq!(names, (0..5).map(|n| format!("z{n}.example.com")).collect::<Vec<_>>());
    }
}

#[test]
fn wrong_names_locations_and_tags_are_refused_at_once() {
    let mut sim = Sim::new();
    let global = json!({"location": "global"});
    let tags: serde_json::Map<String, Value> = (0..16).map(|n| (format!("t{n}"), json!("v"))).collect();
    for (name, body, code) in [
        ("local", global.clone(), "BadRequest"),
        ("a..com", global.clone(), "BadRequest"),
        ("core.windows.net", global, "BadRequest"),
        ("example.com", json!({}), "LocationRequired"),
        (
            "example.com",
            json!({"location": "westus2"}),
            "LocationNotAvailableForResourceType",
        ),
        (
            "example.com",
            json!({"location": "global", "tags": {"a": 1}}),
            "InvalidRequestContent",
        ),
        (
            "example.com",
            json!({"location": "global", "tags": tags}),
            "TooManyTags",
        ),
    ] {
        let refused = sim.put(&zone(name), body);
        assert_eq!((refused.status, refused.code()), (400, code), "{}", refused.body);
    }
    sim.wait(60);
    assert_eq!(sim.get(&format!("{NETWORK}/privateDnsZones")).body["value"], json!([]));
}

#[test]
fn the_quota_of_zones_holds_for_zones_created_at_once() {
    let mut seed = seed();
    seed["subscriptions"][0]["quotas"] = json!({"zones": 2});
    let mut sim = Sim::with(seed);
    let accepted: Vec<_> = (0..3)
        .map(|n| sim.put(&zone(&format!("z{n}.com")), json!({"location": "global"})))
        .collect();
    let ends: Vec<Value> = accepted
        .iter()
        .map(|accepted| sim.end(accepted)["status"].clone())
        .collect();
    assert_eq!(ends, ["Succeeded", "Succeeded", "Failed"]);
}

#[test]
fn a_faulted_operation_leaves_no_zone() {
    let mut sim = Sim::new();
    sim.faults(json!([{"match": {"method": "PUT"}, "do": {"operation": "fail", "operation_error": {"code": "X", "message": "y"}}}]));
    let failed = sim.put_and_end(&zone("example.com"), json!({"location": "global"}));
    assert_eq!(
        failed,
        json!({"status": "Failed", "error": {"code": "X", "message": "y"}})
    );
    assert_eq!(sim.get(&zone("example.com")).status, 404);
    sim.faults(json!([]));
    sim.make_zone("example.com");
}

#[test]
fn a_seeded_zone_is_complete() {
    let mut seed = seed();
    let resources = seed["resources"].as_array_mut().unwrap();
    resources.push(json!({"id": zone("Seeded.com")}));
    resources.push(json!({"id": format!("{}/A/api", zone("seeded.com")), "properties": {"aRecords": [{"ipv4Address": "10.0.0.5"}]}}));
    let mut sim = Sim::with(seed);
    let shown = sim.get(&zone("seeded.com")).body;
    assert_eq!(
        (&shown["name"], &shown["location"]),
        (&json!("seeded.com"), &json!("global"))
    );
    assert_eq!(shown["properties"]["numberOfRecordSets"], 2);
    assert_eq!(
        sim.get(&format!("{}/A/api", zone("seeded.com"))).body["properties"]["ttl"],
        3600
    );
}
