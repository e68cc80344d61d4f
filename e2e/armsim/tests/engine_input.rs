//! Bad input: whatever a caller sends, it gets an answer of ARM's, and a refused call has changed nothing.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod network_support;

use std::panic::{AssertUnwindSafe, catch_unwind};

use armsim::{Preset, Seed, SimulatedAzure};
use bytes::Bytes;
use http::Request;
use jiff::{SignedDuration, Timestamp};
use network_support::{GUEST_NET, GUEST_SUB, NET, PROVIDER, SUB, Sim, VERSION, caller, pe, pls, seed};
use rstest::rstest;
use serde_json::{Value, json};

const GROUP: &str = "/subscriptions/33333333-3333-3333-3333-333333333333/resourceGroups/rg";

/// Everything that a call may change, but for what counts calls.
fn lasting(azure: &SimulatedAzure) -> Value {
    let mut saved = serde_json::to_value(azure).unwrap();
    for name in ["journal", "random", "throttle"] {
        saved["state"].as_object_mut().unwrap().remove(name);
    }
    saved
}

fn send(azure: &mut SimulatedAzure, now: Timestamp, method: &str, uri: &str, body: &str) -> (u16, Value) {
    let request = Request::builder()
        .method(method)
        .uri(uri)
        .header("content-type", "application/json")
        .body(Bytes::from(body.to_owned()))
        .unwrap();
    let response = azure.handle(now, &caller(PROVIDER), &request).response;
    (
        response.status().as_u16(),
        serde_json::from_slice(response.body()).unwrap_or_default(),
    )
}

/// A PUT, a PATCH, or a control call that puts the resource behind everybody's back.
fn write(azure: &mut SimulatedAzure, now: Timestamp, method: &str, path: &str, body: Value) -> (u16, Value) {
    if method != "control" {
        return send(azure, now, method, &uri(path), &body.to_string());
    }
    match azure.put_resource(now, path, body) {
        Ok(shown) => (200, shown),
        Err(error) => (400, json!({"error": {"code": error.to_string()}})),
    }
}

/// A simulated Azure with one resource of every type, without budgets and specs, and its current time.
fn full_azure() -> (SimulatedAzure, Timestamp) {
    let mut json = seed();
    json["throttle"] = json!({"enabled": false});
    let mut now: Timestamp = "2026-01-05T10:00:00Z".parse().unwrap();
    let mut azure = SimulatedAzure::new(Preset::Recorded, 1);
    azure
        .seed(now, Seed::parse(json.to_string().as_bytes()).unwrap())
        .unwrap();
    for (path, body) in bodies("new") {
        let (status, answer) = send(&mut azure, now, "PUT", &uri(&path), &body.to_string());
        assert!([200, 201, 202].contains(&status), "{path}: {status} {answer}");
        now += SignedDuration::from_secs(700);
    }
    (azure, now)
}

fn uri(path: &str) -> String {
    format!("https://arm.test{path}?api-version={VERSION}")
}

/// A whole body for each type that takes one, in the order in which they can be put.
fn bodies(name: &str) -> Vec<(String, Value)> {
    let tags = json!({"a": "b"});
    let vnet = format!("{NET}/virtualNetworks/{name}");
    let subnet = json!({"addressPrefix": "10.7.1.0/24", "privateLinkServiceNetworkPolicies": "Disabled",
        "networkSecurityGroup": {"id": format!("{NET}/networkSecurityGroups/{name}")}, "serviceEndpoints": [{"service": "Microsoft.Storage"}],
        "delegations": []});
    let mut service = pls();
    service["tags"] = tags.clone();
    service["properties"]["fqdns"] = json!(["a.example"]);
    service["properties"]["enableProxyProtocol"] = json!(true);
    let mut endpoint = pe(&format!("{NET}/privateLinkServices/{name}"));
    endpoint["tags"] = tags.clone();
    endpoint["properties"]["manualPrivateLinkServiceConnections"][0]["properties"]["requestMessage"] = json!("please");
    endpoint["properties"]["ipConfigurations"] =
        json!([{"name": "ip", "properties": {"privateIPAddress": "10.1.0.9", "groupId": "", "memberName": ""}}]);
    let balancer = json!({"location": "westus2", "tags": tags, "sku": {"name": "Standard"}, "properties": {
        "frontendIPConfigurations": [{"name": "f", "zones": ["1"], "properties": {"privateIPAllocationMethod": "Dynamic",
            "subnet": {"id": format!("{vnet}/subnets/s")}}}],
        "backendAddressPools": [{"name": "pool"}], "probes": [{"name": "p", "properties": {"protocol": "Tcp", "port": 80, "intervalInSeconds": 5}}],
        "loadBalancingRules": []}});
    let zone = format!("{NET}/privateDnsZones/{name}.example");
    let mut all = vec![
        (
            format!("/subscriptions/{SUB}/resourceGroups/{name}"),
            json!({"location": "westus2", "tags": tags, "managedBy": "x"}),
        ),
        (
            format!("{NET}/networkSecurityGroups/{name}"),
            json!({"location": "westus2", "tags": tags, "properties": {"securityRules": []}}),
        ),
        (
            format!("{NET}/routeTables/{name}"),
            json!({"location": "westus2", "tags": tags, "properties": {"routes": []}}),
        ),
        (
            vnet.clone(),
            json!({"location": "westus2", "tags": tags, "properties": {"addressSpace": {"addressPrefixes": ["10.7.0.0/16"]},
            "dhcpOptions": {"dnsServers": ["10.7.0.4"]}, "subnets": [{"name": "s", "properties": {"addressPrefix": "10.7.0.0/24"}}]}}),
        ),
        (format!("{vnet}/subnets/t"), json!({"properties": subnet})),
        (format!("{NET}/loadBalancers/{name}"), balancer),
        (format!("{NET}/privateLinkServices/{name}"), service),
        (format!("{GUEST_NET}/privateEndpoints/{name}"), endpoint),
        (zone.clone(), json!({"location": "global", "tags": tags})),
        (
            format!("{zone}/virtualNetworkLinks/l"),
            json!({"location": "global", "tags": tags, "properties": {
            "registrationEnabled": false, "virtualNetwork": {"id": vnet}}}),
        ),
    ];
    all.extend(record_bodies(&zone));
    all
}

/// Whole bodies for all types of record sets.
fn record_bodies(zone: &str) -> Vec<(String, Value)> {
    let records = [
        ("A", json!({"aRecords": [{"ipv4Address": "10.0.0.1"}]})),
        ("AAAA", json!({"aaaaRecords": [{"ipv6Address": "fd00::1"}]})),
        ("CNAME", json!({"cnameRecord": {"cname": "a.example"}})),
        ("MX", json!({"mxRecords": [{"preference": 1, "exchange": "m.example"}]})),
        ("PTR", json!({"ptrRecords": [{"ptrdname": "a.example"}]})),
        (
            "SRV",
            json!({"srvRecords": [{"priority": 1, "weight": 1, "port": 80, "target": "a.example"}]}),
        ),
        ("TXT", json!({"txtRecords": [{"value": ["x"]}]})),
    ];
    let set = |(kind, mut properties): (&str, Value)| {
        properties["ttl"] = json!(300);
        properties["metadata"] = json!({"k": "v"});
        (
            format!("{zone}/{kind}/r-{}", kind.to_lowercase()),
            json!({"properties": properties}),
        )
    };
    records.into_iter().map(set).collect()
}

/// Where the fields of a body are, as JSON pointers.
fn fields(body: &Value, at: &str, into: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match body {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(at, value)| (at.to_string(), value))
            .collect(),
        _ => vec![],
    };
    for (name, value) in children {
        let place = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
        into.push(place.clone());
        fields(value, &place, into);
    }
}

#[rstest]
#[case::put_of_something_new("other", "PUT")]
#[case::put_of_what_is_there("new", "PUT")]
#[case::patch("new", "PATCH")]
#[case::something_new_by_control("other", "control")]
#[case::what_is_there_by_control("new", "control")]
fn every_field_may_be_of_any_json_type(#[case] name: &str, #[case] method: &str) {
    let (start, now) = full_azure();
    let before = lasting(&start);
    let (mut sent, mut wrong) = (0, vec![]);
    for (path, body) in bodies(name) {
        // New names below new parents would be refused for these.
        let path = path
            .replace("virtualNetworks/other/", "virtualNetworks/new/")
            .replace("other.example/", "new.example/");
        let path = path.replace("subnets/t", if name == "other" { "subnets/u" } else { "subnets/t" });
        let mut places = vec![String::new()];
        fields(&body, "", &mut places);
        for place in places {
            for value in [
                json!(null),
                json!(-1.5),
                json!("\u{0}'<x>/"),
                json!([]),
                json!([null, {"name": 5}]),
                json!({}),
                json!({"id": {"id": []}, "properties": 7}),
                json!(true),
                json!(1e300),
            ] {
                let mut bad = body.clone();
                *bad.pointer_mut(&place).unwrap() = value.clone();
                sent += 1;
                let case = format!("{method} {path} with {place} = {value}");
                let tried = catch_unwind(AssertUnwindSafe(|| {
                    let mut azure = start.clone();
                    let (status, answer) = write(&mut azure, now, method, &path, bad.clone());
                    if status >= 400 {
                        let changed = lasting(&azure) != before;
                        let coded = answer["error"]["code"].is_string() || answer["code"].is_string();
                        return (status >= 500 || changed || !coded)
                            .then(|| format!("{status} changed={changed} {answer}"));
                    }
                    // What was accepted can be shown, ends, and can be deleted.
                    let later = now + SignedDuration::from_secs(700);
                    let (shown, answer) = send(&mut azure, later, "GET", &uri(&path), "");
                    azure.resources(later, "");
                    send(&mut azure, later, "DELETE", &uri(&path), "");
                    azure.resources(later + SignedDuration::from_secs(700), "");
                    (shown >= 500).then(|| format!("GET {shown} {answer}"))
                }));
                match tried {
                    Ok(None) => {}
                    Ok(Some(what)) => wrong.push(format!("{case}: {what}")),
                    Err(_) => wrong.push(format!("{case}: panics")),
                }
            }
        }
    }
    assert!(sent > 1000, "{sent}");
    assert!(wrong.is_empty(), "{} of {sent}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn bodies_that_are_no_objects_change_nothing() {
    let (start, now) = full_azure();
    let before = lasting(&start);
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_object = format!("{}1{}", "{\"properties\":".repeat(100_000), "}".repeat(100_000));
    let texts = [
        "",
        " ",
        "null",
        "5",
        "\"x\"",
        "[]",
        "[{}]",
        "true",
        "{",
        "{\"a\":}",
        "{\"location\":\"westus2\"}}",
        "\u{feff}{}",
        "{\"a\":\"\\ud800\"}",
        &deep,
        &deep_object,
    ];
    for (path, _) in bodies("new") {
        for method in ["PUT", "PATCH"] {
            for text in texts {
                let mut azure = start.clone();
                let (status, answer) = send(&mut azure, now, method, &uri(&path), text);
                let shown: String = text.chars().take(20).collect();
                assert!(
                    [400, 405].contains(&status),
                    "{method} {path} {shown}: {status} {answer}"
                );
                assert_eq!(lasting(&azure), before, "{method} {path} {shown}");
            }
        }
    }
}

#[rstest]
#[case::traversal("/subscriptions/S/resourceGroups/rg/../rg")]
#[case::encoded_traversal("/subscriptions/S/resourceGroups/%2e%2e/providers/Microsoft.Network/virtualNetworks/v")]
#[case::null("/subscriptions/S/resourceGroups/r%00g")]
#[case::encoded_slash("/subscriptions/S/resourceGroups/r%2Fg")]
#[case::no_utf8("/subscriptions/S/resourceGroups/%c3%28")]
#[case::half_escape("/subscriptions/S/resourceGroups/%c")]
#[case::signed_escape("/subscriptions/S/resourceGroups/%+1")]
#[case::line_end("/subscriptions/S/resourceGroups/a%0d%0aX:%20y")]
#[case::too_long(&format!("/subscriptions/S/resourceGroups/{}", "x".repeat(5000)))]
#[case::no_provider("/subscriptions/S/resourceGroups/rg/providers")]
#[case::no_type("/subscriptions/S/resourceGroups/rg/providers/Microsoft.Network")]
#[case::odd("/subscriptions/S/resourceGroups/rg/provider/Microsoft.Network/virtualNetworks/v")]
#[case::many(&"/subscriptions/S".repeat(500))]
fn broken_paths_are_refused(#[case] path: &str) {
    let mut sim = Sim::new();
    let path = path.replace("/S", &format!("/{SUB}"));
    for method in ["GET", "PUT", "PATCH", "DELETE", "POST", "HEAD"] {
        let got = sim.call(method, &path, &[], Some(json!({"location": "westus2"})));
        assert!([404, 405].contains(&got.status), "{method} {path}: {}", got.body);
        assert_eq!(got.header("x-ms-failure-cause"), "gateway", "{method} {path}");
        assert!(
            method == "HEAD" || !got.code().is_empty(),
            "{method} {path}: {}",
            got.body
        );
    }
}

#[test]
fn methods_that_a_type_does_not_have_are_refused() {
    let (start, now) = full_azure();
    let before = lasting(&start);
    for (path, body) in bodies("new") {
        for method in ["POST", "OPTIONS", "TRACE", "CONNECT", "PURGE"] {
            let mut azure = start.clone();
            let (status, answer) = send(&mut azure, now, method, &uri(&path), &body.to_string());
            assert!([404, 405].contains(&status), "{method} {path}: {status} {answer}");
            let list = path.rsplit_once('/').unwrap().0;
            let (status, answer) = send(&mut azure, now, "PUT", &uri(list), &body.to_string());
            assert!([400, 404, 405].contains(&status), "PUT {list}: {status} {answer}");
            let (status, answer) = send(&mut azure, now, "DELETE", &uri(list), "");
            assert!([404, 405].contains(&status), "DELETE {list}: {status} {answer}");
            assert_eq!(lasting(&azure), before, "{method} {path}");
        }
    }
}

#[rstest]
#[case::weak("W/\"E\"", true)]
#[case::strong("\"E\"", true)]
#[case::bare("E", true)]
#[case::any("*", true)]
#[case::empty("", true)]
#[case::other("W/\"11111111-1111-1111-1111-111111111111\"", false)]
#[case::other_bare("x", false)]
fn if_match_takes_every_form(#[case] form: &str, #[case] holds: bool) {
    let (start, now) = full_azure();
    // Private DNS has no weak etags.
    let kinds: &[&str] = if form.starts_with("W/\"E") {
        &["/subnets/"]
    } else {
        &["/subnets/", "/A/"]
    };
    for (path, body) in bodies("new")
        .into_iter()
        .filter(|(path, _)| kinds.iter().any(|kind| path.contains(kind)))
    {
        let mut azure = start.clone();
        let (_, found) = send(&mut azure, now, "GET", &uri(&path), "");
        let etag = found["etag"]
            .as_str()
            .unwrap()
            .trim_start_matches("W/")
            .trim_matches('"')
            .to_owned();
        let request = Request::builder()
            .method("PUT")
            .uri(uri(&path))
            .header("content-type", "application/json")
            .header("if-match", form.replace('E', &etag));
        let request = request.body(Bytes::from(body.to_string())).unwrap();
        let status = azure
            .handle(now, &caller(PROVIDER), &request)
            .response
            .status()
            .as_u16();
        assert_eq!(status != 412, holds, "{path} {form}: {status}");
    }
}

#[test]
fn everything_is_deleted_with_its_groups() {
    let (mut azure, now) = full_azure();
    let guest = format!("/subscriptions/{GUEST_SUB}/resourceGroups/guest");
    for group in [guest.as_str(), GROUP] {
        assert_eq!(send(&mut azure, now, "DELETE", &uri(group), "").0, 202);
    }
    let later = now + SignedDuration::from_secs(31);
    let left: Vec<Value> = azure
        .resources(later, "")
        .iter()
        .map(|found| found["id"].clone())
        .collect();
    assert_eq!(left, [json!(format!("/subscriptions/{SUB}/resourceGroups/new"))]);
    let saved = lasting(&azure);
    assert_eq!(
        saved["state"]["addresses"]
            .as_object()
            .unwrap()
            .values()
            .filter(|used| used != &&json!({}))
            .count(),
        0,
        "{}",
        saved["state"]["addresses"]
    );
}
