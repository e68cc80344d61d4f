//! The state as it can be read in different ways: by the control API, GET, lists, and saved. They must agree.

use std::collections::{BTreeMap, BTreeSet};

use armsim::SimulatedAzure;
use jiff::Timestamp;
use serde_json::Value;

use super::body::{POISON, View};
use super::call::{Got, Sent};
use super::cloud::{SUBSCRIPTIONS, owner};
use super::run::{Outcome, Run};

/// All resources by the control API.
pub fn of(azure: &mut SimulatedAzure, now: Timestamp) -> View {
    let all = azure.resources(now, "");
    all.into_iter().map(|shown| (text(&shown["id"]), shown)).collect()
}

/// A text in lower case; empty where there is none.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_ascii_lowercase()
}

/// What must stay if nothing changes: all but what counts calls.
pub fn state(azure: &SimulatedAzure) -> Value {
    let mut saved = serde_json::to_value(azure).unwrap();
    let state = saved["state"].as_object_mut().unwrap();
    for counts in ["journal", "throttle", "random", "faults"] {
        state.remove(counts);
    }
    saved
}

/// A write that changes nothing leaves an operation that has ended, and resources remember their last one.
pub fn but_operations(state: &Value) -> Value {
    let mut state = state.clone();
    state["state"]["operations"] = Value::Null;
    for resource in state["state"]["store"]
        .as_object_mut()
        .into_iter()
        .flat_map(|all| all.values_mut())
    {
        resource["operation"] = Value::Null;
    }
    state
}

/// The first place in which two states differ.
pub fn difference(a: &Value, b: &Value) -> String {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            let keys: BTreeSet<&String> = x.keys().chain(y.keys()).collect();
            let first = keys.into_iter().find(|key| x.get(*key) != y.get(*key));
            first.map_or(String::new(), |key| format!("{key} / {}", difference(&a[key], &b[key])))
        }
        _ => format!("{a} → {b}"),
    }
}

/// A GET that was just answered must agree with the control API.
pub fn read_agrees(run: &mut Run, sent: &Sent, got: &Got) -> Outcome {
    if run.mode.faults || sent.method != "GET" || !matches!(got.status, 200 | 404) {
        return Ok(());
    }
    let known = of(&mut run.azure, run.now);
    let known = known.get(&sent.path.to_ascii_lowercase());
    if known.is_some() != (got.status == 200) {
        return Err(format!(
            "GET {} answers {}, the control side has {known:?}",
            sent.path, got.status
        ));
    }
    if got.status == 200 && got.body.to_string().contains(POISON) {
        return Err(format!("GET {} shows what was sent in a read-only field", sent.path));
    }
    let etag = got.body["etag"].as_str();
    if got.status == 200 && got.header("etag") != etag {
        return Err(format!(
            "GET {}: etag {:?} in the header, {etag:?} in the body",
            sent.path,
            got.header("etag")
        ));
    }
    Ok(())
}

/// The tracked types: listed by subscription and by group. Nested ones: by parent.
const TRACKED: [&str; 7] = [
    "virtualNetworks",
    "networkSecurityGroups",
    "loadBalancers",
    "networkInterfaces",
    "privateLinkServices",
    "privateEndpoints",
    "privateDnsZones",
];
const NESTED: [(&str, &str); 4] = [
    ("virtualNetworks", "subnets"),
    ("privateLinkServices", "privateEndpointConnections"),
    ("privateDnsZones", "virtualNetworkLinks"),
    ("privateDnsZones", "ALL"),
];

/// Lists by subscription are those by group together, pages hold every item once, and all show what the control API
/// shows.
pub fn lists_agree(run: &mut Run) -> Outcome {
    if run.mode.faults || run.mode.throttle {
        return Ok(());
    }
    let view = of(&mut run.azure, run.now);
    for (at, subscription) in SUBSCRIPTIONS.into_iter().enumerate() {
        let subscription = format!("/subscriptions/{subscription}");
        for kind in TRACKED {
            let type_name = format!("microsoft.network/{kind}").to_ascii_lowercase();
            let expected: Vec<String> = of_type(&view, &subscription, &type_name);
            let whole = items(
                run,
                at,
                &format!("{subscription}/providers/Microsoft.Network/{kind}"),
                1 + at,
            )?;
            if whole != expected {
                return Err(format!(
                    "{kind} of {subscription}: {whole:?} are listed, {expected:?} are there"
                ));
            }
            let mut by_group = Vec::new();
            for group in of_type(&view, &subscription, "microsoft.resources/resourcegroups") {
                by_group.extend(items(
                    run,
                    at,
                    &format!("{group}/providers/Microsoft.Network/{kind}"),
                    1000,
                )?);
            }
            by_group.sort();
            if by_group != expected {
                return Err(format!(
                    "{kind} by groups of {subscription}: {by_group:?}, {expected:?} are there"
                ));
            }
        }
        for (parent, kind) in NESTED {
            let type_name = format!("microsoft.network/{parent}").to_ascii_lowercase();
            for id in of_type(&view, &subscription, &type_name) {
                let listed = items(run, at, &format!("{id}/{kind}"), 1)?;
                let expected: Vec<String> = below(&view, &id, kind);
                if listed != expected {
                    return Err(format!("{id}/{kind}: {listed:?} are listed, {expected:?} are there"));
                }
            }
        }
    }
    Ok(())
}

fn of_type(view: &View, scope: &str, type_name: &str) -> Vec<String> {
    let prefix = format!("{scope}/");
    let found = view
        .iter()
        .filter(|(id, shown)| id.starts_with(&prefix) && text(&shown["type"]) == type_name);
    found.map(|(id, _)| id.clone()).collect()
}

fn below(view: &View, parent: &str, kind: &str) -> Vec<String> {
    let prefix = format!("{parent}/");
    let links = format!("{parent}/virtualnetworklinks/");
    let own = format!("{parent}/{}/", kind.to_ascii_lowercase());
    let is_below = |id: &&String| {
        if kind == "ALL" {
            id.starts_with(&prefix) && !id.starts_with(&links)
        } else {
            id.starts_with(&own)
        }
    };
    view.keys().filter(is_below).cloned().collect()
}

/// The ids of a list, page by page, sorted.
fn items(run: &mut Run, subscription: usize, path: &str, top: usize) -> Result<Vec<String>, String> {
    let mut path = format!("{path}?$top={top}");
    let mut ids = BTreeMap::new();
    loop {
        let sent = Sent {
            method: "GET",
            path,
            query: "",
            headers: vec![],
            body: Value::Null,
            who: owner(subscription),
        };
        let got = run.call(&sent)?;
        if got.status != 200 {
            return Err(format!("list {}: {} {}", sent.path, got.status, got.body));
        }
        let page = got.body["value"].as_array().cloned().unwrap_or_default();
        if page.is_empty() && !ids.is_empty() {
            return Err(format!("an empty page of {}", sent.path));
        }
        for shown in page {
            let id = text(&shown["id"]);
            if ids.insert(id.clone(), shown).is_some() {
                return Err(format!("{id} is on two pages of {}", sent.path));
            }
        }
        match got.body["nextLink"].as_str() {
            Some(next) => path = next.to_owned(),
            None => return Ok(ids.into_keys().collect()),
        }
    }
}
