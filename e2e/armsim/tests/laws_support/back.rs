//! References: none leads nowhere, and where two sides know of each other they agree.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::body::View;
use super::cloud::Mode;
use super::run::Outcome;
use super::structure::configurations;
use super::view::text;

/// Fields of a type that hold ids of what must be there: the list (or nothing) and the pointer below each item.
const REFERENCES: [(&str, &str, &str); 11] = [
    ("virtualnetworks/subnets", "", "/properties/networkSecurityGroup/id"),
    ("loadbalancers", "frontendIPConfigurations", "/properties/subnet/id"),
    ("networkinterfaces", "", "/managedBy"),
    ("networkinterfaces", "ipConfigurations", "/properties/subnet/id"),
    ("privatelinkservices", "ipConfigurations", "/properties/subnet/id"),
    ("privatelinkservices", "networkInterfaces", "/id"),
    ("privateendpoints", "", "/properties/subnet/id"),
    ("privateendpoints", "networkInterfaces", "/id"),
    (
        "privatelinkservices/privateendpointconnections",
        "",
        "/properties/privateEndpoint/id",
    ),
    ("privatelinkservices", "privateEndpointConnections", "/id"),
    (
        "privatednszones/virtualnetworklinks",
        "",
        "/properties/virtualNetwork/id",
    ),
];

fn kind(shown: &Value) -> String {
    text(&shown["type"]).trim_start_matches("microsoft.network/").to_owned()
}

pub fn references(view: &View) -> Outcome {
    for (id, shown) in view {
        let kind = kind(shown);
        for (_, list, pointer) in REFERENCES.iter().filter(|(of, _, _)| *of == kind) {
            let whole = std::slice::from_ref(shown);
            let items = if list.is_empty() {
                whole
            } else {
                shown["properties"][list].as_array().map_or(&[][..], Vec::as_slice)
            };
            for item in items {
                let target = text(item.pointer(pointer).unwrap_or(&Value::Null));
                if !target.is_empty() && !view.contains_key(&target) {
                    return Err(format!("{list}{pointer} of {id} leads nowhere: {target}"));
                }
            }
        }
        for used in shown["properties"]["loadBalancerFrontendIpConfigurations"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let frontend = text(&used["id"]);
            if !configurations(view).iter().any(|(known, _, _)| *known == frontend) {
                return Err(format!("{id} uses {frontend}, which is not there"));
            }
        }
    }
    Ok(())
}

/// Subnets know who uses them; a connection and its endpoint show the same state.
pub fn sides(view: &View) -> Outcome {
    let mut users: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut endpoints: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (owner, subnet, _) in configurations(view) {
        let nic = owner.split("/ipconfigurations/").next().unwrap_or_default();
        let endpoint = view
            .get(nic)
            .map(|nic| text(&nic["properties"]["privateEndpoint"]["id"]))
            .unwrap_or_default();
        if !endpoint.is_empty() {
            endpoints.entry(subnet.clone()).or_default().insert(endpoint);
        }
        users.entry(subnet).or_default().insert(owner);
    }
    // A link service's NAT configurations are shown beside those of its interface.
    for (id, shown) in view.iter().filter(|(_, shown)| kind(shown) == "privatelinkservices") {
        for item in shown["properties"]["ipConfigurations"].as_array().into_iter().flatten() {
            let owner = format!("{id}/ipconfigurations/{}", text(&item["name"]));
            let subnet = text(&item["properties"]["subnet"]["id"]);
            users.entry(subnet).or_default().insert(owner);
        }
    }
    for (id, shown) in view
        .iter()
        .filter(|(_, shown)| kind(shown) == "virtualnetworks/subnets")
    {
        for (list, expected) in [
            ("ipConfigurations", users.remove(id)),
            ("privateEndpoints", endpoints.remove(id)),
        ] {
            let listed: BTreeSet<String> = ids(&shown["properties"][list]).collect();
            if listed != expected.clone().unwrap_or_default() {
                return Err(format!("{list} of {id}: {listed:?}, there are {expected:?}"));
            }
        }
    }
    view.iter()
        .filter(|(_, shown)| kind(shown) == "privateendpoints")
        .try_for_each(|(id, shown)| connected(view, id, shown))?;
    for (id, shown) in view.iter().filter(|(_, shown)| kind(shown) == "privatelinkservices") {
        let prefix = format!("{id}/privateendpointconnections/");
        let nested: Vec<&String> = view.keys().filter(|known| known.starts_with(&prefix)).collect();
        let listed: Vec<String> = ids(&shown["properties"]["privateEndpointConnections"]).collect();
        if !listed.iter().eq(nested) {
            return Err(format!("{id} lists the connections {listed:?}"));
        }
    }
    Ok(())
}

fn ids(list: &Value) -> impl Iterator<Item = String> {
    list.as_array().into_iter().flatten().map(|item| text(&item["id"]))
}

fn connected(view: &View, id: &str, endpoint: &Value) -> Outcome {
    let properties = &endpoint["properties"];
    let lists = ["privateLinkServiceConnections", "manualPrivateLinkServiceConnections"];
    let connection = lists
        .iter()
        .find_map(|list| properties[list].get(0))
        .unwrap_or(&Value::Null);
    let shown_status = &connection["properties"]["privateLinkServiceConnectionState"]["status"];
    let made = view.values().find(|shown| {
        text(&shown["properties"]["privateEndpoint"]["id"]) == id
            && kind(shown).ends_with("/privateendpointconnections")
    });
    let Some(made) = made else {
        return if shown_status == "Disconnected" {
            Ok(())
        } else {
            Err(format!("{id} is {shown_status} and has no connection"))
        };
    };
    let decided = &made["properties"]["privateLinkServiceConnectionState"]["status"];
    if made["properties"]["provisioningState"] == "Succeeded" && decided != shown_status {
        return Err(format!("{id} is {shown_status}, its connection {decided}"));
    }
    Ok(())
}

/// A zone counts what is listed. A link that is only still shown does not count.
pub fn counters(view: &View, mode: Mode) -> Outcome {
    for (id, shown) in view.iter().filter(|(_, shown)| kind(shown) == "privatednszones") {
        let (prefix, links) = (format!("{id}/"), format!("{id}/virtualnetworklinks/"));
        let nested: Vec<&String> = view.keys().filter(|known| known.starts_with(&prefix)).collect();
        let links = nested.iter().filter(|known| known.starts_with(&links)).count();
        let count = |name: &str| shown["properties"][name].as_u64().unwrap_or_default() as usize;
        let lags = mode.switches & 32 != 0;
        if count("numberOfRecordSets") != nested.len() - links
            || (count("numberOfVirtualNetworkLinks") != links && !lags)
        {
            return Err(format!(
                "{id} counts {} and {}, there are {nested:?}",
                count("numberOfRecordSets"),
                count("numberOfVirtualNetworkLinks")
            ));
        }
    }
    Ok(())
}
