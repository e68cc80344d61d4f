//! A resource of Azure, in the demo's words.

use serde_json::Value;

use crate::demo::observed::Observed;

/// Adds a resource with its state, if it is of a kind that the demo shows.
pub(in crate::demo) fn add(observed: &mut Observed, resource: &Value) {
    let id = resource["id"].as_str().unwrap_or_default();
    let Some((kind, name)) = kind_and_name(id) else { return };
    let properties = &resource["properties"];
    let state = properties["provisioningState"].as_str().unwrap_or_default();
    let (label, detail) = match kind.as_str() {
        "virtualnetworks/subnets" if name.ends_with("-pls-nat") => ("NAT subnet", text(&properties["addressPrefix"])),
        "privatelinkservices" => ("Private Link Service", text(&properties["alias"])),
        "privateendpoints" => ("Private Endpoint", connection(properties)),
        "privatednszones" => ("zone", String::new()),
        "privatednszones/virtualnetworklinks" => ("zone link", text(&properties["virtualNetworkLinkState"])),
        "privatednszones/a" => ("record", addresses(properties)),
        _ => return,
    };
    observed.add(format!("{label} {name}"), format!("{state} {detail}").trim().to_owned());
}

/// The type below `Microsoft.Network` in lower case, and the name; for private DNS, the name includes its parents'
/// names.
fn kind_and_name(id: &str) -> Option<(String, String)> {
    let (_, below) = id.split_once("/providers/Microsoft.Network/")?;
    let parts: Vec<_> = below.split('/').collect();
    let kinds: Vec<_> = parts.iter().step_by(2).map(|part| part.to_lowercase()).collect();
    let names: Vec<_> = parts.iter().skip(1).step_by(2).rev().copied().collect();
    let name = if kinds.first().is_some_and(|kind| kind == "privatednszones") {
        names.join(".")
    } else {
        (*names.first()?).to_owned()
    };
    Some((kinds.join("/"), name))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The states of the connections of a Private Endpoint, of both lists.
fn connection(endpoint: &Value) -> String {
    let lists = ["manualPrivateLinkServiceConnections", "privateLinkServiceConnections"];
    let all = lists.iter().filter_map(|list| endpoint[list].as_array()).flatten();
    let states: Vec<_> = all
        .map(|one| text(&one["properties"]["privateLinkServiceConnectionState"]["status"]))
        .collect();
    states.join(" ")
}

fn addresses(record: &Value) -> String {
    let records = record["aRecords"].as_array().or(record["ARecords"].as_array());
    let all: Vec<_> = records
        .into_iter()
        .flatten()
        .map(|one| text(&one["ipv4Address"]))
        .collect();
    all.join(" ")
}
