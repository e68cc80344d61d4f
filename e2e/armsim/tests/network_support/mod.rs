//! A small seeded simulated Azure and a caller, without sockets: time passes only in `wait`.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    reason = "each test binary uses a part of it, and a test that cannot go on fails"
)]

#[path = "../spec_support/mod.rs"]
pub mod spec_support;

use armsim::{Answer, Caller, Preset, Seed, SimulatedAzure, WireFault, parse_faults};
use bytes::Bytes;
use http::{HeaderMap, Request};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

pub const TENANT: &str = "11111111-1111-1111-1111-111111111111";
pub const PROVIDER: &str = "aaaaaaaa-0000-0000-0000-000000000001";
pub const CONSUMER: &str = "aaaaaaaa-0000-0000-0000-000000000002";
pub const SUB: &str = "33333333-3333-3333-3333-333333333333";
pub const GUEST_SUB: &str = "44444444-4444-4444-4444-444444444444";
pub const NET: &str =
    "/subscriptions/33333333-3333-3333-3333-333333333333/resourceGroups/rg/providers/Microsoft.Network";
pub const GUEST_NET: &str =
    "/subscriptions/44444444-4444-4444-4444-444444444444/resourceGroups/guest/providers/Microsoft.Network";
pub const VERSION: &str = "2024-05-01";

/// An answer, taken apart.
#[derive(Debug)]
pub struct Got {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Value,
    /// The body as it was sent.
    pub text: String,
    pub wire: WireFault,
}

impl Got {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or_default()
    }

    pub fn detail(&self) -> &str {
        self.body["error"]["details"][0]["code"].as_str().unwrap_or_default()
    }

    pub fn message(&self) -> &str {
        self.body["error"]["message"].as_str().unwrap_or_default()
    }

    /// Status, code and who made the error.
    pub fn refusal(&self) -> (u16, &str, &str) {
        let gateway = self.header("x-ms-failure-cause") == "gateway";
        (self.status, self.code(), if gateway { "gateway" } else { "service" })
    }

    pub fn state(&self) -> &str {
        self.body["properties"]["provisioningState"]
            .as_str()
            .unwrap_or_default()
    }
}

/// The simulated Azure, its time and who calls.
pub struct Sim {
    pub azure: SimulatedAzure,
    pub now: Timestamp,
    pub caller: Caller,
}

/// The whole of the seed: a provider's and a guest's subscription, each with a VNet; a standard load balancer.
pub fn seed() -> Value {
    json!({
        "tenants": [{"id": TENANT, "principals": []}],
        "subscriptions": [{"id": SUB, "tenant": TENANT}, {"id": GUEST_SUB, "tenant": TENANT}],
        "roles": [
            {"object_id": PROVIDER, "scope": format!("/subscriptions/{SUB}"), "actions": ["*"]},
            {"object_id": PROVIDER, "scope": format!("/subscriptions/{GUEST_SUB}"), "actions": ["*"]},
        ],
        "resources": [
            {"id": format!("/subscriptions/{SUB}/resourceGroups/rg"), "location": "westus2"},
            {"id": format!("/subscriptions/{GUEST_SUB}/resourceGroups/guest"), "location": "westus2"},
            {"id": format!("{NET}/virtualNetworks/vnet"), "location": "westus2", "properties": {
                "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
                "subnets": [
                    {"name": "lb", "properties": {"addressPrefix": "10.0.0.0/24"}},
                    {"name": "nat", "properties": {"addressPrefix": "10.0.1.0/24", "privateLinkServiceNetworkPolicies": "Disabled"}},
                ]}},
            {"id": format!("{GUEST_NET}/virtualNetworks/workers"), "location": "westus2", "properties": {
                "addressSpace": {"addressPrefixes": ["10.1.0.0/16"]},
                "subnets": [{"name": "pe", "properties": {"addressPrefix": "10.1.0.0/28"}}]}},
            {"id": format!("{NET}/loadBalancers/lb"), "location": "westus2", "sku": {"name": "Standard"}, "properties": {
                "frontendIPConfigurations": [
                    {"name": "router", "properties": {"subnet": {"id": format!("{NET}/virtualNetworks/vnet/subnets/lb")}}},
                ]}},
        ],
    })
}

impl Sim {
    /// A call with this text for a body, JSON or not.
    pub fn raw(&mut self, method: &str, uri: &str, body: &str) -> Got {
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header("content-type", "application/json");
        self.send(request.body(Bytes::from(body.to_owned())).unwrap())
    }

    pub fn new() -> Self {
        Self::seeded(seed(), Preset::Recorded)
    }

    /// The usual seed with other switches.
    pub fn with_switches(switches: Value) -> Self {
        let mut json = seed();
        json["switches"] = switches;
        Self::seeded(json, Preset::Recorded)
    }

    pub fn seeded(json: Value, preset: Preset) -> Self {
        let mut azure = SimulatedAzure::new(preset, 1);
        spec_support::check(&mut azure);
        Self::of(azure, json)
    }

    /// The usual seed, with calls that are not checked against the specs.
    pub fn unchecked() -> Self {
        Self::of(SimulatedAzure::new(Preset::Recorded, 1), seed())
    }

    fn of(mut azure: SimulatedAzure, json: Value) -> Self {
        let now: Timestamp = "2026-01-05T10:00:00Z".parse().unwrap();
        azure
            .seed(now, Seed::parse(json.to_string().as_bytes()).unwrap())
            .unwrap();
        Self {
            azure,
            now,
            caller: caller(PROVIDER),
        }
    }

    pub fn wait(&mut self, seconds: f64) {
        self.now += SignedDuration::from_millis((seconds * 1000.0) as i64);
    }

    /// Sends a request as it is.
    pub fn send(&mut self, request: Request<Bytes>) -> Got {
        let Answer { response, wire } = self.azure.handle(self.now, &self.caller, &request);
        let (parts, body) = response.into_parts();
        Got {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: serde_json::from_slice(&body).unwrap_or(Value::Null),
            text: String::from_utf8_lossy(&body).into_owned(),
            wire,
        }
    }

    pub fn call(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<Value>) -> Got {
        let mark = if path.contains('?') { '&' } else { '?' };
        let uri = format!("https://arm.test{path}{mark}api-version={VERSION}");
        let mut request = Request::builder()
            .method(method)
            .uri(uri)
            .header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        self.send(request.body(Bytes::from(body)).unwrap())
    }

    pub fn get(&mut self, path: &str) -> Got {
        self.call("GET", path, &[], None)
    }

    pub fn put(&mut self, path: &str, body: Value) -> Got {
        self.call("PUT", path, &[], Some(body))
    }

    pub fn delete(&mut self, path: &str) -> Got {
        self.call("DELETE", path, &[], None)
    }

    pub fn patch(&mut self, path: &str, body: Value) -> Got {
        self.call("PATCH", path, &[], Some(body))
    }

    pub fn post(&mut self, path: &str, body: Value) -> Got {
        self.call("POST", path, &[], Some(body))
    }

    /// Puts what must be accepted, and waits until it is ready; returns its body.
    pub fn make(&mut self, path: &str, body: Value) -> Value {
        let put = self.put(path, body);
        assert!(matches!(put.status, 200 | 201), "{path}: {}", put.body);
        self.wait(60.0);
        self.get(path).body
    }

    /// The names in a list.
    pub fn names(&mut self, path: &str) -> Vec<String> {
        let got = self.get(path);
        let listed = got.body["value"].as_array().unwrap_or_else(|| panic!("{}", got.body));
        listed
            .iter()
            .map(|item| item["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Follows a polling URL as it was sent.
    pub fn poll(&mut self, url: &str) -> Got {
        let request = Request::builder().method("GET").uri(url).body(Bytes::new()).unwrap();
        self.send(request)
    }

    pub fn faults(&mut self, rules: Value) {
        self.azure
            .set_faults(parse_faults(rules.to_string().as_bytes()).unwrap());
    }

    /// Creates a private link service on the seeded frontend and waits until it is ready; returns its alias.
    pub fn link_service(&mut self, name: &str) -> String {
        let put = self.put(&format!("{NET}/privateLinkServices/{name}"), pls());
        assert_eq!(put.status, 201, "{}", put.body);
        self.wait(60.0);
        put.body["properties"]["alias"].as_str().unwrap().to_owned()
    }

    /// Creates an endpoint by alias and waits until it is ready; returns it with its interfaces expanded.
    pub fn endpoint(&mut self, name: &str, alias: &str) -> Value {
        let path = format!("{GUEST_NET}/privateEndpoints/{name}");
        let put = self.put(&path, pe(alias));
        assert_eq!(put.status, 201, "{}", put.body);
        self.wait(700.0);
        self.get(&format!("{path}?$expand=networkInterfaces")).body
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        spec_support::kept(&self.azure);
    }
}

pub fn caller(object_id: &str) -> Caller {
    Caller {
        tenant_id: TENANT.into(),
        client_id: format!("client-of-{object_id}"),
        object_id: object_id.into(),
    }
}

/// A private link service on the seeded frontend, open to the guest's subscription.
pub fn pls() -> Value {
    json!({
        "location": "westus2",
        "properties": {
            "loadBalancerFrontendIpConfigurations": [{"id": format!("{NET}/loadBalancers/lb/frontendIpConfigurations/router")}],
            "ipConfigurations": [{"name": "nat", "properties": {
                "privateIPAllocationMethod": "Dynamic", "subnet": {"id": format!("{NET}/virtualNetworks/vnet/subnets/nat")}}}],
            "visibility": {"subscriptions": [GUEST_SUB]},
            "autoApproval": {"subscriptions": [GUEST_SUB]},
        }
    })
}

/// An endpoint by alias in the guest's subnet.
pub fn pe(alias: &str) -> Value {
    json!({
        "location": "westus2",
        "properties": {
            "subnet": {"id": format!("{GUEST_NET}/virtualNetworks/workers/subnets/pe")},
            "manualPrivateLinkServiceConnections": [{"name": "c", "properties": {"privateLinkServiceId": alias}}],
        }
    })
}

/// The names in a list.
pub fn names(list: &Value) -> Vec<&str> {
    let items = list["value"].as_array().unwrap();
    items.iter().map(|item| item["name"].as_str().unwrap()).collect()
}
