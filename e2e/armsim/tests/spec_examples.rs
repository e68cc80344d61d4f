//! The examples that come with the specs, against the specs.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod spec_support;

use std::collections::BTreeSet;
use std::path::Path;

use bytes::Bytes;
use http::{Request, Response};
use serde_json::{Map, Value};

/// Errors of the examples: file, place, what is wrong there.
const WRONG: &[(&str, &str, &str)] = &[
    (
        "PrivateLinkServiceCreate.json",
        "extendedLocation",
        "stands beside the body that it is a part of",
    ),
    (
        "PrivateEndpointCreate.json",
        "extendedLocation",
        "stands beside the body that it is a part of",
    ),
    ("PrivateLinkServiceDelete.json", "parameters", "DELETE has no body"),
    ("PrivateEndpointDelete.json", "parameters", "DELETE has no body"),
    (
        "PrivateLinkServiceDelete.json",
        "location",
        "202 without the header that its options ask for",
    ),
    (
        "PrivateEndpointDelete.json",
        "location",
        "202 without the header that its options ask for",
    ),
    (
        "PrivateLinkServiceDeletePrivateEndpointConnection.json",
        "location",
        "the same, and a parameter of that name",
    ),
];

/// Operations that have examples: path, method, the operation, the example's file.
fn illustrated(file: &Path) -> Vec<(String, String, Value, String)> {
    let spec: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let mut found = Vec::new();
    for (path, methods) in spec["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            for example in operation["x-ms-examples"].as_object().into_iter().flat_map(Map::values) {
                let example = example["$ref"].as_str().unwrap().trim_start_matches("./").to_owned();
                found.push((path.clone(), method.to_ascii_uppercase(), operation.clone(), example));
            }
        }
    }
    found
}

/// The request of an example, by the operation's own declaration of its parameters.
fn request(path: &str, method: &str, operation: &Value, given: &Map<String, Value>) -> Request<Bytes> {
    let mut path = path.to_owned();
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    let mut builder = Request::builder().method(method);
    let mut body = Bytes::new();
    for (name, value) in given {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let mut declared = operation["parameters"].as_array().unwrap().iter();
        let declared = declared.find(|declared| declared["name"] == *name);
        match declared.and_then(|declared| declared["in"].as_str()) {
            Some("body") => body = Bytes::from(value.to_string()),
            Some("header") => builder = builder.header(name, text),
            _ if path.contains(&format!("{{{name}}}")) => {
                path = path.replace(&format!("{{{name}}}"), &text.replace(' ', "%20"))
            }
            _ => drop(query.append_pair(name, &text)),
        }
    }
    let uri = format!("https://management.azure.com{path}?{}", query.finish());
    builder.uri(uri).body(body).unwrap()
}

fn response(status: &str, given: &Value) -> Response<Bytes> {
    let mut builder = Response::builder().status(status);
    for (name, value) in given["headers"].as_object().into_iter().flatten() {
        builder = builder.header(name, value.as_str().unwrap());
    }
    let body = given.get("body").map(ToString::to_string).unwrap_or_default();
    builder.body(Bytes::from(body)).unwrap()
}

#[test]
fn examples_keep_to_the_specs_but_for_their_errors() {
    let Some(specs) = spec_support::specs() else { return };
    let root = spec_support::reference().unwrap();
    let (mut answers, mut found) = (0, Vec::new());
    for folder in ["network/2024-05-01", "privatedns/2024-06-01", "resources/2024-07-01"] {
        for file in std::fs::read_dir(root.join(folder)).unwrap() {
            let file = file.unwrap().path();
            if file.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            for (path, method, operation, name) in illustrated(&file) {
                let Ok(text) = std::fs::read(file.with_file_name(&name)) else {
                    continue;
                };
                let example: Value = serde_json::from_slice(&text).unwrap();
                let request = request(&path, &method, &operation, example["parameters"].as_object().unwrap());
                for (status, given) in example["responses"].as_object().unwrap() {
                    answers += 1;
                    let violations = specs.check(&request, &response(status, given));
                    found.extend(
                        violations
                            .into_iter()
                            .map(|found| (name.clone(), status.clone(), found)),
                    );
                }
            }
        }
    }
    let mut used = BTreeSet::new();
    found.retain(|(name, _, violation)| {
        let known = WRONG
            .iter()
            .position(|(file, place, _)| name.ends_with(&format!("/{file}")) && violation.place == *place);
        used.extend(known);
        known.is_none()
    });
    let lines: Vec<String> = found
        .iter()
        .map(|(name, status, found)| format!("{name} {status}: {found}"))
        .collect();
    assert!(lines.is_empty(), "{} findings\n{}", lines.len(), lines.join("\n"));
    assert_eq!(used.len(), WRONG.len(), "of {WRONG:#?} only {used:?} are met");
    println!(
        "{answers} answers of examples checked, {} places wrong in a known way",
        WRONG.len()
    );
}
