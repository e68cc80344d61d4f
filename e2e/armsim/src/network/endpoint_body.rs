//! What is stored of a private endpoint: its connection's state, its network interface and the addresses of that.

use serde_json::{Value, json};

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;

use super::address;
use super::connection;
use super::endpoint_rules::{AUTOMATIC, MANUAL, Target};
use super::nic::{self, CONFIGURATIONS, IpConfiguration};
use super::reference::referenced;
use super::shape::{self, items, named, only_ids, tracked};
use super::written::Put;

/// A network interface to make, with the addresses chosen for it.
pub(crate) type Interface = Option<(ResourceId, Vec<IpConfiguration>)>;

/// What is stored of a given endpoint. What was there once stays: GUID, interface, connection states.
pub(crate) fn normalise(
    cx: &mut Context<'_>,
    put: &Put<'_>,
    target: Option<&Target>,
) -> Result<(Value, Interface), ArmError> {
    let (id, given) = (put.id, put.given);
    let known = cx.state.store.get(id).map(|known| known.body["properties"].clone());
    let from = &given["properties"];
    let mut body = tracked(put.location, given);
    let subnet = referenced(cx, id, from["subnet"]["id"].as_str().unwrap_or_default())?
        .id
        .clone();
    let custom = from["customNetworkInterfaceName"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let guid = match &known {
        Some(known) => known["resourceGuid"].clone(),
        None => {
            // Seed and control calls may set what the server makes for others.
            let given_guid = from["resourceGuid"].as_str().filter(|_| put.call.is_none());
            json!(given_guid.map_or_else(|| cx.guid(), str::to_owned))
        }
    };
    let (nics, interface) = interfaces(cx, put, known.as_ref(), &subnet)?;
    let mut properties = json!({
        "resourceGuid": guid,
        "customNetworkInterfaceName": custom,
        "subnet": { "id": subnet },
        CONFIGURATIONS: static_configurations(put)?,
        "networkInterfaces": nics,
        "customDnsConfigs": [],
    });
    for list in [AUTOMATIC, MANUAL] {
        let old = known.as_ref().map_or(&Value::Null, |known| &known[list]);
        let stored = items(&from[list])
            .iter()
            .map(|item| one_connection(put, item, old, target, list == MANUAL));
        properties[list] = stored.collect();
    }
    let mut groups = shape::properties(given, &[]);
    only_ids(&mut groups, "applicationSecurityGroups");
    if let Some(groups) = groups.remove("applicationSecurityGroups") {
        properties["applicationSecurityGroups"] = groups;
    }
    body["properties"] = properties;
    Ok((body, interface))
}

/// The references to an endpoint's interface, and the interface where it is yet to be made. Seed and control calls can
/// take it away by an empty list, and leave it to be made by none.
fn interfaces(
    cx: &mut Context<'_>,
    put: &Put<'_>,
    known: Option<&Value>,
    subnet: &ResourceId,
) -> Result<(Value, Interface), ArmError> {
    let from = &put.given["properties"];
    let installed = put.call.is_none();
    if installed && from["networkInterfaces"] == json!([]) {
        return Ok((json!([]), None));
    }
    let held = known.map(|known| &known["networkInterfaces"]);
    if let Some(held) = held.filter(|held| !installed || !items(held).is_empty()) {
        return Ok((held.clone(), None));
    }
    let configurations = addresses(cx, subnet, from)?;
    let custom = from["customNetworkInterfaceName"].as_str().unwrap_or_default();
    let name = match custom {
        "" => format!("{}.nic.{}", put.id.name(), cx.guid()),
        custom => custom.to_owned(),
    };
    let nic = put.id.sibling(nic::TYPE, &name);
    Ok((json!([{ "id": nic }]), Some((nic, configurations))))
}

/// One connection as it is stored. Its state is the old one, or what the case begins with.
fn one_connection(put: &Put<'_>, item: &Value, old: &Value, target: Option<&Target>, manual: bool) -> Value {
    let from = &item["properties"];
    let before = items(old).iter().find(|known| known["name"] == item["name"]);
    let before = before.map(|known| known["properties"]["privateLinkServiceConnectionState"].clone());
    // Seed and control calls may set the state.
    let given_state = Some(&from["privateLinkServiceConnectionState"])
        .filter(|state| put.call.is_none() && state["status"].is_string());
    let state = given_state.cloned().or(before).unwrap_or_else(|| {
        if manual {
            connection::state("Pending", "Awaiting Approval")
        } else {
            connection::state("Approved", "Auto Approved")
        }
    });
    let reference = target.map_or_else(
        || from["privateLinkServiceId"].clone(),
        |target| json!(target.reference),
    );
    let mut properties = json!({ "privateLinkServiceId": reference, "privateLinkServiceConnectionState": state });
    for name in ["groupIds", "requestMessage"] {
        if let Some(value) = from.get(name).filter(|value| !value.is_null() && **value != json!([])) {
            properties[name] = value.clone();
        }
    }
    json!({ "name": item["name"], "properties": properties })
}

/// Static addresses as given.
fn static_configurations(put: &Put<'_>) -> Result<Vec<Value>, ArmError> {
    let given = named(put.id, &put.given["properties"][CONFIGURATIONS])?.into_iter();
    Ok(given
        .map(|(name, item)| json!({ "name": name, "properties": shape::properties(item, &[]) }))
        .collect())
}

/// The addresses of a new endpoint: those asked for, or one of the subnet's.
fn addresses(cx: &mut Context<'_>, subnet: &ResourceId, from: &Value) -> Result<Vec<IpConfiguration>, ArmError> {
    let fixed: Vec<&str> = items(&from[CONFIGURATIONS])
        .iter()
        .filter_map(|item| item["properties"]["privateIPAddress"].as_str())
        .collect();
    let requests: Vec<Option<&str>> = if fixed.is_empty() {
        vec![None]
    } else {
        fixed.into_iter().map(Some).collect()
    };
    let mut made = Vec::new();
    let mut taken = Vec::new();
    for request in requests {
        let address = address::choose(cx, cx.find(subnet)?, request, &taken)?;
        taken.push(address);
        let name = format!("privateEndpointIpConfig.{}", cx.guid());
        let method = if request.is_some() { "Static" } else { "Dynamic" };
        made.push(IpConfiguration {
            name,
            subnet: subnet.clone(),
            address,
            method,
        });
    }
    Ok(made)
}
