//! Recorded traffic of Azure against the simulated network types: the same requests in the same order, and each answer
//! compared by status, headers, shape and the values that are not made up.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod network_support;

use std::path::PathBuf;

use armsim::{Caller, Preset};
use bytes::Bytes;
use http::Request;
use network_support::{Got, Sim};
use regex::Regex;
use rstest::rstest;
use serde_json::{Value, json};

const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

/// Resources that only a recording's client needed.
const NOT_SIMULATED: &str = "(?i)Microsoft.Storage|Microsoft.Compute|privateDns|/operations/|/operationresults/";

/// Text that is the same in every answer to the same request.
const FIXED: [&str; 14] = [
    "type",
    "provisioningState",
    "status",
    "code",
    "privateIPAllocationMethod",
    "privateIPAddressVersion",
    "privateIPAddress",
    "privateEndpointNetworkPolicies",
    "privateLinkServiceNetworkPolicies",
    "privateEndpointVNetPolicies",
    "location",
    "addressPrefix",
    "actionsRequired",
    "ipVersionType",
];

/// Fields whose content is another service's.
const FOREIGN: [(&str, &str); 2] = [
    (
        "customDnsConfigs",
        "names of storage endpoints; nobody simulates storage",
    ),
    ("privateLinkConnectionProperties", "the same, on the network interface"),
];

/// Differences that are right: recording, how the difference begins, why.
const EXPLAINED: [(&str, &str, &str); 3] = [
    (
        "Alias",
        "GET Microsoft.Network/virtualNetworks/asotest-vn-ycbuio Etag",
        "the only VNet answers without the header; its body has the etag",
    ),
    ("CHINA", "Azure-Asyncnotification", "the China cloud does not send it"),
    (
        "PrivateEndpoint_2024",
        "DELETE Microsoft.Network/virtualNetworks/asotest-vn-esdfkk/subnets/asotest-subnet-ufpkdv/error/code",
        "recorded between the end of the VNet and the end of its group",
    ),
];

fn recordings() -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let root = std::env::var_os("HYPERLINK_REFERENCE_DATA").map_or(root, PathBuf::from);
    Some(root.join("azure-rest/recordings")).filter(|path| path.is_dir())
}

fn sim(group: &str, storage: &[String]) -> Sim {
    let mut resources: Vec<Value> = storage
        .iter()
        .map(|id| json!({"id": id, "location": "westus2"}))
        .collect();
    if !storage.is_empty() {
        resources.push(json!({"id": format!("/subscriptions/{NOBODY}/resourceGroups/{group}"), "location": "westus2"}));
    }
    let seed = json!({
        "tenants": [{"id": NOBODY}],
        "subscriptions": [{"id": NOBODY, "tenant": NOBODY}],
        "roles": [{"object_id": NOBODY, "scope": "/", "actions": ["*"]}],
        "resources": resources,
    });
    let mut sim = Sim::seeded(seed, Preset::Recorded);
    sim.caller = Caller {
        tenant_id: NOBODY.into(),
        client_id: NOBODY.into(),
        object_id: NOBODY.into(),
    };
    sim
}

/// Every key of the real answer, its type, and its value where that is fixed.
fn compare(at: &str, real: &Value, ours: &Value, differences: &mut Vec<String>) {
    let last = at.rsplit('/').next().unwrap_or_default();
    if FOREIGN.iter().any(|(key, _)| *key == last) {
        return;
    }
    match (real, ours) {
        (Value::Object(real), Value::Object(ours)) => {
            for (key, value) in real {
                match ours.get(key) {
                    Some(found) => compare(&format!("{at}/{key}"), value, found, differences),
                    None if FOREIGN.iter().any(|(known, _)| known == key) => {}
                    None => differences.push(format!("{at}/{key} is missing")),
                }
            }
        }
        (Value::Array(real), Value::Array(ours)) => {
            if real.len() != ours.len() {
                differences.push(format!("{at} has {} items, not {}", ours.len(), real.len()));
            }
            for (real, ours) in real.iter().zip(ours) {
                compare(at, real, ours, differences);
            }
        }
        (Value::String(real), Value::String(ours)) => {
            if FIXED.contains(&last) && real != ours {
                differences.push(format!("{at} is {ours}, not {real}"));
            }
        }
        _ if std::mem::discriminant(real) == std::mem::discriminant(ours) => {}
        _ => differences.push(format!("{at} is {ours}, not {real}")),
    }
}

fn compare_headers(at: &str, recorded: &Value, got: &Got, all_kept: bool, differences: &mut Vec<String>) {
    for name in [
        "Azure-Asyncoperation",
        "Azure-Asyncnotification",
        "Location",
        "Retry-After",
        "Etag",
        "X-Ms-Failure-Cause",
    ] {
        let real = recorded[name][0].as_str().unwrap_or_default();
        let ours = got.header(name);
        let same_value = !matches!(name, "Retry-After" | "X-Ms-Failure-Cause") || real == ours;
        let trimmed = !all_kept && name == "Retry-After";
        if !trimmed && (real.is_empty() != ours.is_empty() || !same_value) {
            differences.push(format!("{at} {name} is '{ours:.40}', not '{real:.40}'"));
        }
    }
}

/// What Azure made up and the client sent back: aliases and names of interfaces.
fn made_up(real: &Value, ours: &Value, known: &mut Vec<(String, String)>) {
    for pointer in ["/properties/alias", "/properties/networkInterfaces/0/id"] {
        if let (Some(real), Some(ours)) = (real.pointer(pointer), ours.pointer(pointer)) {
            known.push((real.as_str().unwrap().to_owned(), ours.as_str().unwrap().to_owned()));
        }
    }
}

#[rstest]
#[case::link_service("aso/Test_Networking_PrivateLinkService_20240301_CRUD.yaml", 22)]
#[case::endpoint_by_alias("aso/Test_Networking_PrivateEndpoint_Alias_20250301_CRUD.yaml", 29)]
#[case::endpoint_and_interface("aso/Test_Networking_PrivateEndpoint_20240301_CRUD.yaml", 19)]
#[case::subnet(
    "aso/Test_Networking_Subnet_CreatedThenVNETUpdated_20240301_SubnetStillExists.yaml",
    16
)]
#[case::load_balancer("aso/Test_Networking_LoadBalancer_20240301_CRUD.yaml", 7)]
#[case::public_cloud("cloud-provider-azure/privatelinkserviceclient.AZURECLOUD.yaml", 16)]
#[case::china_cloud("cloud-provider-azure/privatelinkserviceclient.AZURECHINACLOUD.yaml", 16)]
fn recorded_traffic_is_answered_alike(#[case] file: &str, #[case] at_least: usize) {
    let Some(recordings) = recordings() else {
        eprintln!("skipped: no recordings beside the project and HYPERLINK_REFERENCE_DATA is not set");
        return;
    };
    let cassette: Value = serde_yaml_ng::from_str(&std::fs::read_to_string(recordings.join(file)).unwrap()).unwrap();
    let skip = Regex::new(NOT_SIMULATED).unwrap();
    let text = cassette.to_string();
    let storage =
        Regex::new("/subscriptions/[^\"\\\\]*?/providers/Microsoft.Storage/storageAccounts/[a-z0-9]+").unwrap();
    let storage: Vec<String> = storage
        .find(&text)
        .map(|found| found.as_str().to_owned())
        .into_iter()
        .collect();
    let group = Regex::new("resourceGroups/([^/\"\\\\?]+)")
        .unwrap()
        .captures(&text)
        .unwrap()[1]
        .to_owned();
    let mut sim = sim(&group, &storage);
    let (mut known, mut differences, mut compared) = (Vec::new(), Vec::new(), 0);
    for exchange in cassette["interactions"].as_array().unwrap() {
        let url = exchange["request"]["url"].as_str().unwrap();
        if skip.is_match(url.split('?').next().unwrap()) {
            continue;
        }
        let swap = |text: &str| {
            known
                .iter()
                .fold(text.to_owned(), |text, (real, ours): &(String, String)| {
                    text.replace(real, ours)
                })
        };
        let method = exchange["request"]["method"].as_str().unwrap();
        let body = swap(exchange["request"]["body"].as_str().unwrap_or_default());
        let request = Request::builder()
            .method(method)
            .uri(swap(url))
            .header("content-type", "application/json");
        let got = sim.send(request.body(Bytes::from(body)).unwrap());
        let real: Value =
            serde_json::from_str(exchange["response"]["body"].as_str().unwrap_or_default()).unwrap_or(Value::Null);
        let at = format!(
            "{method} {}",
            url.split('?').next().unwrap().rsplit("/providers/").next().unwrap()
        );
        let status = exchange["response"]["code"].as_u64().unwrap();
        // A group that had to be there for the storage account is created again.
        let seeded = !storage.is_empty() && status == 201 && got.status == 200;
        if u64::from(got.status) != status && !seeded {
            differences.push(format!("{at} answers {} {}, not {status}", got.status, got.body));
        }
        compare(&at, &real, &got.body, &mut differences);
        compare_headers(
            &at,
            &exchange["response"]["headers"],
            &got,
            file.starts_with("aso/"),
            &mut differences,
        );
        made_up(&real, &got.body, &mut known);
        compared += 1;
        sim.wait(60.0);
    }
    differences.retain(|difference| {
        !EXPLAINED
            .iter()
            .any(|(of, start, _)| file.contains(of) && difference.contains(start))
    });
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(compared >= at_least, "only {compared} exchanges compared");
}
