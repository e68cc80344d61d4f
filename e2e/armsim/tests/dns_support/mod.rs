//! A small simulated Azure with two VNets, and a caller that may do everything, without sockets.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    reason = "each test binary uses a part of it, and a test that cannot go on fails"
)]

#[path = "../spec_support/mod.rs"]
pub mod spec_support;

use armsim::{Caller, Preset, Seed, SimulatedAzure, parse_faults};
use bytes::Bytes;
use http::{HeaderMap, Request};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

pub const GROUP: &str = "/subscriptions/s1/resourceGroups/rg-Guest";
pub const NETWORK: &str = "/subscriptions/s1/resourceGroups/rg-Guest/providers/Microsoft.Network";
pub const VERSION: &str = "2024-06-01";

pub struct Sim {
    pub azure: SimulatedAzure,
    pub now: Timestamp,
    pub caller: Caller,
}

#[derive(Debug)]
pub struct Got {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Value,
    /// The body as it was sent.
    pub text: String,
}

impl Got {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The code of an error, wrapped or not.
    pub fn code(&self) -> &str {
        self.body["error"]["code"]
            .as_str()
            .or(self.body["code"].as_str())
            .unwrap_or_default()
    }
}

pub fn seed() -> Value {
    json!({
        "tenants": [{"id": "t1"}],
        "subscriptions": [{"id": "s1", "tenant": "t1"}],
        "roles": [{"object_id": "o1", "scope": "/", "actions": ["*"]}],
        "resources": [
            {"id": GROUP, "location": "westus2"},
            {"id": vnet("vnet1"), "location": "westus2", "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}}},
            {"id": vnet("vnet2"), "location": "westus2", "properties": {"addressSpace": {"addressPrefixes": ["10.1.0.0/16"]}}},
        ],
        "throttle": {"enabled": false},
    })
}

pub fn vnet(name: &str) -> String {
    format!("{NETWORK}/virtualNetworks/{name}")
}

pub fn zone(name: &str) -> String {
    format!("{NETWORK}/privateDnsZones/{name}")
}

impl Sim {
    pub fn new() -> Self {
        Self::with(seed())
    }

    pub fn with(seed: Value) -> Self {
        let mut azure = SimulatedAzure::new(Preset::Recorded, 7);
        spec_support::check(&mut azure);
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        azure
            .seed(now, Seed::parse(seed.to_string().as_bytes()).unwrap())
            .unwrap();
        let caller = Caller {
            tenant_id: "t1".into(),
            client_id: "c1".into(),
            object_id: "o1".into(),
        };
        Self { azure, now, caller }
    }

    pub fn wait(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// One call; the api-version is added unless the path has a query.
    pub fn call(&mut self, method: &str, path: &str, body: Value, headers: &[(&str, &str)]) -> Got {
        let uri = match path.strip_prefix("https://") {
            Some(_) => path.to_owned(),
            None if path.contains('?') => format!("https://arm.test{path}&api-version={VERSION}"),
            None => format!("https://arm.test{path}?api-version={VERSION}"),
        };
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let bytes = if body.is_null() {
            Bytes::new()
        } else {
            request = request.header("content-type", "application/json");
            Bytes::from(body.to_string())
        };
        let answer = self.azure.handle(self.now, &self.caller, &request.body(bytes).unwrap());
        let (parts, bytes) = answer.response.into_parts();
        let body = if bytes.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&bytes).unwrap()
        };
        Got {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        }
    }

    pub fn get(&mut self, path: &str) -> Got {
        self.call("GET", path, Value::Null, &[])
    }

    pub fn put(&mut self, path: &str, body: Value) -> Got {
        self.call("PUT", path, body, &[])
    }

    pub fn delete(&mut self, path: &str) -> Got {
        self.call("DELETE", path, Value::Null, &[])
    }

    /// Polls an accepted write to its end; its last status body.
    pub fn end(&mut self, accepted: &Got) -> Value {
        assert_eq!(accepted.status, 202, "{}", accepted.body);
        let url = accepted.header("azure-asyncoperation").unwrap().to_owned();
        for _ in 0..100 {
            let poll = self.get(&url);
            if poll.status == 200 {
                return poll.body;
            }
            assert_eq!((poll.status, &poll.body), (202, &json!({"status": "InProgress"})));
            self.wait(5);
        }
        panic!("{url} never ends");
    }

    pub fn put_and_end(&mut self, path: &str, body: Value) -> Value {
        let accepted = self.put(path, body);
        self.end(&accepted)
    }

    pub fn make_zone(&mut self, name: &str) {
        assert_eq!(
            self.put_and_end(&zone(name), json!({"location": "global"})),
            json!({"status": "Succeeded"})
        );
    }

    /// Links a zone to a VNet; the end of the operation.
    pub fn link(&mut self, zone_name: &str, link: &str, vnet_name: &str) -> Value {
        self.put_and_end(
            &format!("{}/virtualNetworkLinks/{link}", zone(zone_name)),
            link_to(&vnet(vnet_name)),
        )
    }

    pub fn faults(&mut self, rules: Value) {
        self.azure
            .set_faults(parse_faults(rules.to_string().as_bytes()).unwrap());
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        spec_support::kept(&self.azure);
    }
}

pub fn link_to(vnet: &str) -> Value {
    json!({"location": "global", "properties": {"registrationEnabled": false, "virtualNetwork": {"id": vnet}}})
}

pub fn a(addresses: &[&str]) -> Value {
    let records: Vec<Value> = addresses
        .iter()
        .map(|address| json!({"ipv4Address": address}))
        .collect();
    json!({"properties": {"ttl": 300, "aRecords": records}})
}
