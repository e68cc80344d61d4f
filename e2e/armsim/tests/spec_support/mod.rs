//! The specs of the reference data, once per test program, and recorded or made-up exchanges to hold against them.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    reason = "each test binary uses a part of it, and a test that cannot go on fails"
)]

use std::path::PathBuf;
use std::sync::{Arc, Once};

use armsim::{Specs, World};
use bytes::Bytes;
use http::{Request, Response};
use serde_json::Value;

/// The directory of the OpenAPI files, if the reference data is there.
pub fn reference() -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let root = std::env::var_os("HYPERLINK_REFERENCE_DATA").map_or(beside, PathBuf::from);
    Some(root.join("azure-rest")).filter(|path| path.is_dir())
}

/// The specs; says once that there are none.
pub fn specs() -> Option<Arc<Specs>> {
    static SAID: Once = Once::new();
    let Some(dir) = reference() else {
        SAID.call_once(|| eprintln!("SKIPPED: no reference data, so no call is checked against the specs"));
        return None;
    };
    Some(Specs::shared(&dir).unwrap())
}

/// Holds everything that happens in a world against the specs.
pub fn check(world: &mut World) {
    if let Some(specs) = specs() {
        world.check_against(specs);
    }
}

/// Fails the test if anything in the world broke the specs.
pub fn kept(world: &World) {
    let lines: Vec<String> = world.violations().iter().map(ToString::to_string).collect();
    assert!(lines.is_empty() || std::thread::panicking(), "{}", lines.join("\n"));
}

/// A request and its answer.
pub type Exchange = (Request<Bytes>, Response<Bytes>);

/// All exchanges of a go-vcr cassette.
pub fn cassette(path: &std::path::Path) -> Vec<Exchange> {
    let json: Value = serde_yaml_ng::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let interactions = json["interactions"].as_array().unwrap();
    interactions.iter().map(recorded).collect()
}

fn recorded(interaction: &Value) -> Exchange {
    let (sent, got) = (&interaction["request"], &interaction["response"]);
    let body = |half: &Value| Bytes::from(half["body"].as_str().unwrap_or_default().to_owned());
    let headers = |half: &Value| -> Vec<(String, String)> {
        let named = half["headers"].as_object().cloned().unwrap_or_default();
        let first = |value: &Value| value[0].as_str().unwrap_or_default().to_owned();
        named.into_iter().map(|(name, value)| (name, first(&value))).collect()
    };
    let mut request = Request::builder()
        .method(sent["method"].as_str().unwrap())
        .uri(sent["url"].as_str().unwrap());
    for (name, value) in headers(sent) {
        request = request.header(name, value);
    }
    let code = u16::try_from(got["code"].as_u64().unwrap()).unwrap();
    let mut response = Response::builder().status(code);
    for (name, value) in headers(got) {
        response = response.header(name, value);
    }
    (request.body(body(sent)).unwrap(), response.body(body(got)).unwrap())
}
