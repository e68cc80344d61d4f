//! Recorded traffic of Azure's private DNS, request by request: status, headers and body must be Azure's but for what a
//! server makes up.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod dns_support;

use std::collections::BTreeMap;
use std::path::PathBuf;

use dns_support::{Got, Sim};
use regex::Regex;
use rstest::rstest;
use serde_json::{Value, json};

const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

/// Headers that are there or not as recorded; `=` compares the values too.
const HEADERS: [&str; 10] = [
    "Azure-Asyncoperation",
    "Location",
    "Etag",
    "=Cache-Control",
    "=Pragma",
    "=Expires",
    "=Content-Type",
    "=X-Aspnet-Version",
    "=X-Powered-By",
    "=X-Ms-Failure-Cause",
];
/// Those that a recorder of the China cloud's traffic leaves out, or that this cloud does not send.
const PUBLIC_HEADERS: [&str; 2] = [
    "=Retry-After",
    "X-Ms-Ratelimit-Remaining-Subscription-Resource-Requests",
];

fn recording(file: &str) -> Option<Value> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let root = std::env::var_os("HYPERLINK_REFERENCE_DATA").map_or(beside, PathBuf::from);
    let text = std::fs::read_to_string(root.join("azure-rest/recordings").join(file)).ok()?;
    serde_yaml_ng::from_str(&text).unwrap()
}

fn sim() -> Sim {
    let mut sim = Sim::with(json!({
        "tenants": [{"id": NOBODY}],
        "subscriptions": [{"id": NOBODY, "tenant": NOBODY}],
        "roles": [{"object_id": NOBODY, "scope": "/", "actions": ["*"]}],
    }));
    sim.caller.tenant_id = NOBODY.to_owned();
    sim.caller.object_id = NOBODY.to_owned();
    sim
}

/// The body without what a server makes up: GUIDs and the identity of a zone.
fn plain(body: &Value) -> Value {
    let guid = Regex::new("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").unwrap();
    let text = guid.replace_all(&body.to_string(), "GUID").into_owned();
    let identity = Regex::new("SW1tdXRhYmxlWm9uZUlkZW50aXR5O[A-Za-z0-9+/]+={0,2}").unwrap();
    serde_json::from_str(&identity.replace_all(&text, "IDENTITY")).unwrap()
}

fn header_differences(recorded: &Value, got: &Got, public: bool) -> Vec<String> {
    let more = if public { &PUBLIC_HEADERS[..] } else { &[] };
    let mut differences = Vec::new();
    for name in HEADERS.iter().chain(more) {
        let (name, by_value) = name.strip_prefix('=').map_or((*name, false), |name| (name, true));
        let (real, ours) = (recorded[name][0].as_str(), got.header(name));
        if real.is_some() != ours.is_some() || (by_value && real != ours) {
            differences.push(format!("{name}: recorded {real:.60?}, ours {ours:.60?}"));
        }
    }
    differences
}

#[rstest]
#[case::public_cloud("aso/Test_Networking_PrivateDnsZone_20240601_CRUD.yaml", true, 31)]
#[case::china_cloud("cloud-provider-azure/virtualnetworklinkclient.AZURECHINACLOUD.yaml", false, 14)]
fn recorded_traffic_is_answered_alike(#[case] file: &str, #[case] public: bool, #[case] compared_at_least: usize) {
    let Some(cassette) = recording(file) else {
        eprintln!("SKIPPED: no recordings beside the project, and HYPERLINK_REFERENCE_DATA is not set");
        return;
    };
    let mut sim = sim();
    // Recorded polling URL to ours.
    let mut polls: BTreeMap<String, String> = BTreeMap::new();
    let (mut differences, mut compared) = (Vec::new(), 0);
    for exchange in cassette["interactions"].as_array().unwrap() {
        let (request, response) = (&exchange["request"], &exchange["response"]);
        let (method, url) = (request["method"].as_str().unwrap(), request["url"].as_str().unwrap());
        let path = url.split('?').next().unwrap();
        if path.contains("/operations/") || path.contains("/operationresults/") {
            continue;
        }
        let real = serde_json::from_str(response["body"].as_str().unwrap_or_default()).unwrap_or(Value::Null);
        let sent = serde_json::from_str(request["body"].as_str().unwrap_or_default()).unwrap_or(Value::Null);
        let ours = match polls.get(path) {
            Some(ours) if real["status"] == "InProgress" => sim.get(&ours.clone()),
            Some(ours) => {
                sim.wait(60);
                sim.get(&ours.clone())
            }
            None => sim.call(method, url, sent, &[]),
        };
        for name in ["azure-asyncoperation", "location"] {
            let recorded = response["headers"][if name == "location" {
                "Location"
            } else {
                "Azure-Asyncoperation"
            }][0]
                .as_str();
            if let (Some(recorded), Some(ours)) = (recorded, ours.header(name)) {
                polls.insert(recorded.split('?').next().unwrap().to_owned(), ours.to_owned());
            }
        }
        if !path.contains("privateDns") {
            continue;
        }
        compared += 1;
        let mut found = header_differences(&response["headers"], &ours, public);
        if response["code"].as_u64() != Some(ours.status.into()) {
            found.push(format!("status: recorded {}, ours {}", response["code"], ours.status));
        }
        if plain(&real) != plain(&ours.body) {
            found.push(format!("body: recorded {real}, ours {}", ours.body));
        }
        differences.extend(
            found
                .into_iter()
                .map(|difference| format!("{method} {path}: {difference}")),
        );
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(compared >= compared_at_least, "only {compared} exchanges");
}
