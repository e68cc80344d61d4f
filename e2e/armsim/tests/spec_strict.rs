//! A strict simulated Azure: what breaks the specs is refused with status 500, and can be listed.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod spec_support;

use armsim::{Caller, Part, Preset, Seed, SimulatedAzure, Specs, parse_faults};
use bytes::Bytes;
use http::{Request, Response};
use serde_json::{Value, json};

const VNET: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v";

fn strict_azure(specs: &std::path::Path) -> SimulatedAzure {
    let mut azure = SimulatedAzure::new(Preset::Recorded, 1);
    let seed = json!({
        "tenants": [{"id": "t"}],
        "subscriptions": [{"id": "s", "tenant": "t"}],
        "roles": [{"object_id": "o", "scope": "/", "actions": ["*"]}],
        "resources": [
            {"id": "/subscriptions/s/resourceGroups/g", "location": "westus2"},
            {"id": VNET, "location": "westus2", "tags": {"a": 1}, "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}}},
        ],
    });
    azure.check_against(Specs::shared(specs).unwrap());
    let seed = Seed::parse(seed.to_string().as_bytes()).unwrap();
    azure.seed("2026-01-01T00:00:00Z".parse().unwrap(), seed).unwrap();
    azure
}

fn put(azure: &mut SimulatedAzure, name: &str, body: &Value) -> Response<Bytes> {
    call(azure, "PUT", &format!("{VNET}/subnets/{name}"), body)
}

fn call(azure: &mut SimulatedAzure, method: &str, path: &str, body: &Value) -> Response<Bytes> {
    let caller = Caller {
        tenant_id: "t".into(),
        client_id: "c".into(),
        object_id: "o".into(),
    };
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let request = Request::builder()
        .method(method)
        .uri(format!("https://arm.test{path}?api-version=2024-05-01"))
        .header("content-type", "application/json")
        .body(Bytes::from(body))
        .unwrap();
    let now = "2026-01-01T00:00:01Z".parse().unwrap();
    azure.handle(now, &caller, &request).response
}

#[test]
fn a_field_that_the_spec_does_not_know_is_refused() {
    let Some(dir) = spec_support::specs().and_then(|_| spec_support::reference()) else {
        return;
    };
    let mut azure = strict_azure(&dir);
    let wrong = json!({"properties": {"addressPrefix": "10.0.1.0/24", "nat": true}});
    let refused = put(&mut azure, "one", &wrong);
    assert_eq!(refused.status(), 500);
    let body: Value = serde_json::from_slice(refused.body()).unwrap();
    assert_eq!(body["error"]["code"], "SpecViolation");
    assert!(
        body["error"]["message"].as_str().unwrap().contains("/properties/nat"),
        "{body}"
    );
    let violation = &azure.violations()[0];
    assert_eq!(
        (violation.operation.as_str(), violation.part),
        ("Subnets_CreateOrUpdate", Part::Request)
    );
    assert_eq!(azure.journal(0).last().unwrap().code.as_deref(), Some("SpecViolation"));
}

#[test]
fn an_answer_that_breaks_the_spec_is_refused() {
    let Some(dir) = spec_support::specs().and_then(|_| spec_support::reference()) else {
        return;
    };
    let mut azure = strict_azure(&dir);
    // A seed is not checked.
    assert_eq!(call(&mut azure, "GET", VNET, &Value::Null).status(), 500);
    assert_eq!(azure.violations()[0].place, "/tags/a");
}

#[test]
fn a_fault_that_was_ordered_is_no_violation() {
    let Some(dir) = spec_support::specs().and_then(|_| spec_support::reference()) else {
        return;
    };
    let mut azure = strict_azure(&dir);
    let rules = json!([{"match": {}, "do": {"status": 418, "body": "<html>"}}]);
    azure.set_faults(parse_faults(rules.to_string().as_bytes()).unwrap());
    let right = json!({"properties": {"addressPrefix": "10.0.1.0/24"}});
    assert_eq!(put(&mut azure, "one", &right).status(), 418);
    assert!(azure.violations().is_empty());
}

#[test]
fn nothing_is_checked_without_specs() {
    let Some(dir) = spec_support::specs().and_then(|_| spec_support::reference()) else {
        return;
    };
    let saved = serde_json::to_string(&strict_azure(&dir)).unwrap();
    let mut azure: SimulatedAzure = serde_json::from_str(&saved).unwrap();
    assert_eq!(call(&mut azure, "GET", VNET, &Value::Null).status(), 200);
    assert!(azure.violations().is_empty() && azure.spec_tally().is_none());
}
