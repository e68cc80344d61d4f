//! The shape of bodies: lists, nested resources, what is kept of given properties, regions.

use serde_json::{Map, Value, json};

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::names;
use crate::engine::resource::{ProvisioningState, Resource};

/// An array of the body, empty where there is none.
pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// What is an object wherever it stands in a body of Microsoft.Network, and what is a list.
const OBJECTS: [&str; 20] = [
    "addressSpace",
    "autoApproval",
    "backendAddressPool",
    "dhcpOptions",
    "dnsSettings",
    "extendedLocation",
    "frontendIPConfiguration",
    "natGateway",
    "networkSecurityGroup",
    "privateLinkServiceConnectionState",
    "probe",
    "properties",
    "publicIPAddress",
    "routeTable",
    "sku",
    "subnet",
    "tags",
    "virtualNetwork",
    "visibility",
    "remoteVirtualNetwork",
];
const LISTS: [&str; 26] = [
    "addressPrefixes",
    "appliedDnsServers",
    "applicationSecurityGroups",
    "backendAddressPools",
    "delegations",
    "dnsServers",
    "fqdns",
    "frontendIPConfigurations",
    "groupIds",
    "inboundNatPools",
    "inboundNatRules",
    "ipConfigurations",
    "ipTags",
    "loadBalancerBackendAddresses",
    "loadBalancerFrontendIpConfigurations",
    "loadBalancingRules",
    "manualPrivateLinkServiceConnections",
    "outboundRules",
    "privateLinkServiceConnections",
    "probes",
    "routes",
    "securityRules",
    "serviceEndpoints",
    "subnets",
    "subscriptions",
    "zones",
];

/// The lists whose items are texts.
const TEXTS: [&str; 6] = [
    "addressPrefixes",
    "appliedDnsServers",
    "dnsServers",
    "fqdns",
    "groupIds",
    "subscriptions",
];

/// The body as a service reads it: a property that is null counts as one that is not there. Refuses a body whose parts
/// are not of the JSON type that they have, at any depth.
pub(crate) fn read(body: &Value) -> Result<Value, ArmError> {
    Ok(match body {
        Value::Object(fields) => {
            let given = fields.iter().filter(|(_, value)| !value.is_null());
            let read = given.map(|(name, value)| typed(name, value).map(|value| (name.clone(), value)));
            Value::Object(read.collect::<Result<_, _>>()?)
        }
        Value::Array(items) => Value::Array(items.iter().map(read).collect::<Result<_, _>>()?),
        plain => plain.clone(),
    })
}

/// A property's value, read.
fn typed(name: &str, value: &Value) -> Result<Value, ArmError> {
    let fits = (!OBJECTS.contains(&name) || value.is_object())
        && (!LISTS.contains(&name) || value.is_array())
        && (!TEXTS.contains(&name) || items(value).iter().all(Value::is_string))
        && !items(value).contains(&Value::Null);
    if !fits {
        let message = format!("Error converting the value of '{name}'.");
        let refused = ArmError::service(400, "InvalidRequestFormat", "Cannot parse the request.");
        return Err(refused.because("InvalidJson", message));
    }
    read(value)
}

/// `value.id`, if it is there.
pub(crate) fn id_of(value: &Value) -> Option<&str> {
    value["id"].as_str()
}

/// A list to show; null for an empty one, since the service shows no empty back references.
pub(crate) fn filled(list: Vec<Value>) -> Value {
    if list.is_empty() { Value::Null } else { json!(list) }
}

/// `[{"id": ...}]` of resources; null for none.
pub(crate) fn ids<'a>(resources: impl Iterator<Item = &'a Resource>) -> Value {
    filled(resources.map(|found| json!({ "id": found.id })).collect())
}

/// Sets `shown.properties.name` unless there is nothing to show.
pub(crate) fn show(shown: &mut Value, name: &str, value: Value) {
    if !value.is_null() {
        shown["properties"][name] = value;
    }
}

/// The item of that name, in any case.
pub(crate) fn by_name<'a>(list: &'a Value, name: &str) -> Option<&'a Value> {
    items(list).iter().find(|item| is_named(item, name))
}

/// Whether an item has that name, in any case.
pub(crate) fn is_named(item: &Value, name: &str) -> bool {
    item["name"]
        .as_str()
        .is_some_and(|known| known.eq_ignore_ascii_case(name))
}

/// A nested resource as it is shown inside its parent: under the parent's id and etag.
pub(crate) fn nested(
    item: &Value,
    parent: &Resource,
    list: &str,
    resource_type: &str,
    state: ProvisioningState,
) -> Value {
    let name = item["name"].as_str().unwrap_or_default();
    let mut shown = json!({
        "name": name,
        "id": format!("{}/{list}/{name}", parent.id),
        "etag": parent.etag,
        "type": format!("{resource_type}/{list}"),
        "properties": properties(item, &[]),
    });
    if let Some(zones) = item.get("zones") {
        shown["zones"] = zones.clone();
    }
    shown["properties"]["provisioningState"] = json!(state.as_str());
    shown
}

/// The properties of `given` without what the service makes itself (state, GUID and `read_only`), and without nulls.
pub(crate) fn properties(given: &Value, read_only: &[&str]) -> Map<String, Value> {
    let mut kept = match &given["properties"] {
        Value::Object(fields) => fields.clone(),
        _ => Map::new(),
    };
    let made = |name: &str| ["provisioningState", "resourceGuid"].contains(&name) || read_only.contains(&name);
    kept.retain(|name, value| !made(name) && !value.is_null());
    kept
}

/// Keeps no more than the id of a reference, which clients send expanded too.
pub(crate) fn only_id(properties: &mut Map<String, Value>, name: &str) {
    let id = properties.get(name).and_then(id_of).map(str::to_owned);
    match id {
        Some(id) => properties.insert(name.to_owned(), json!({ "id": id })),
        None => properties.remove(name),
    };
}

/// The same for a list of references; an absent or empty list is left out.
pub(crate) fn only_ids(properties: &mut Map<String, Value>, name: &str) {
    let Some(given) = properties.remove(name) else { return };
    let kept: Vec<Value> = items(&given)
        .iter()
        .filter_map(id_of)
        .map(|id| json!({ "id": id }))
        .collect();
    if !kept.is_empty() {
        properties.insert(name.to_owned(), json!(kept));
    }
}

/// A SKU's tier is shown from one version on.
pub(crate) fn sku_by_version(cx: &Context<'_>, shown: &mut Value) {
    if !cx.shows_since("2020-08-01")
        && let Some(sku) = shown["sku"].as_object_mut()
    {
        sku.remove("tier");
    }
}

/// Spells a word as the service does, if it is one of `known`.
pub(crate) fn spell(properties: &mut Map<String, Value>, name: &str, known: &[&str]) {
    let given = properties.get(name).and_then(Value::as_str).unwrap_or_default();
    if let Some(known) = known.iter().find(|known| known.eq_ignore_ascii_case(given)) {
        properties.insert(name.to_owned(), json!(known));
    }
}

/// Fills in what is absent.
pub(crate) fn defaults(properties: &mut Map<String, Value>, values: &Value) {
    for (name, value) in values.as_object().into_iter().flatten() {
        properties.entry(name).or_insert_with(|| value.clone());
    }
}

/// The items of a list of `id`, each with a name that no other has.
pub(crate) fn named<'a>(id: &ResourceId, list: &'a Value) -> Result<Vec<(&'a str, &'a Value)>, ArmError> {
    let mut all: Vec<(&str, &Value)> = Vec::new();
    for item in items(list) {
        let name = item["name"]
            .as_str()
            .filter(|name| !name.is_empty() && !name.contains('/'));
        let name = name.ok_or_else(|| ArmError::invalid_content(format!("A nested resource of {id} needs a name.")))?;
        names::network(name)?;
        if all.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
            let message = format!("Resource {id} has two child resources with the same name ({name}).");
            let refused = ArmError::service(400, "InvalidRequestFormat", "Cannot parse the request.");
            return Err(refused.because("DuplicateResourceName", message));
        }
        all.push((name, item));
    }
    Ok(all)
}

/// `West US 2` is `westus2`.
pub(crate) fn region(text: &str) -> String {
    let letters = text.chars().filter(|letter| !letter.is_whitespace());
    letters.collect::<String>().to_ascii_lowercase()
}

/// The region that a body names.
pub(crate) fn region_of(body: &Value) -> String {
    region(body["location"].as_str().unwrap_or_default())
}

/// A new body with location and what else stands beside the properties.
pub(crate) fn tracked(location: &str, given: &Value) -> Value {
    let mut body = json!({ "location": location });
    for name in ["tags", "extendedLocation", "zones"] {
        if let Some(value) = given.get(name).filter(|value| !value.is_null() && **value != json!([])) {
            body[name] = value.clone();
        }
    }
    body
}
