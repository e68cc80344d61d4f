//! DNS zone groups of private endpoints: they keep A records of the endpoint's names in private DNS zones.
//!
//! The records are marked as the endpoint's, and only such records are replaced or removed. An endpoint of a Private Link
//! Service has no names that Azure knows: its groups hold zones and write nothing, unless a switch allows it.

use serde_json::{Map, Value, json};

use crate::dns::record::RecordType;
use crate::dns::record_sets;
use crate::engine::context::Context;
use crate::engine::error::{ArmError, ErrorDetail};
use crate::engine::id::ResourceId;
use crate::engine::kind::{Call, LinkedScope};
use crate::engine::operation::{Operation, OperationStatus, Verb};
use crate::engine::preset::Pace;
use crate::engine::resource::Resource;

use super::endpoint::{first_connection, service_of};
use super::group_names;
use super::reference::missing;
use super::shape::items;
use super::written::{About, Plan, Put, Written};
use super::zone_group_rules as rules;

/// Microsoft.Network/privateEndpoints/privateDnsZoneGroups.
pub(crate) struct ZoneGroups;

pub(crate) const TYPE: &str = "Microsoft.Network/privateEndpoints/privateDnsZoneGroups";
/// The list of zones, and the type of its items.
const CONFIGS: &str = "privateDnsZoneConfigs";
/// Seconds.
const TTL: u32 = 10;

static ABOUT: About = About {
    resource_type: TYPE,
    first_version: "2020-03-01",
    noun: "PrivateDnsZoneGroup",
    create: Pace::new(10.0, 10),
    update: Pace::new(10.0, 10),
    delete: Pace::new(10.0, 10),
};

impl Written for ZoneGroups {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn needs(&self, _cx: &Context<'_>, call: &Call<'_>) -> Vec<LinkedScope> {
        let zones = rules::zone_ids(&call.body);
        let scope = |id: &str| LinkedScope {
            id: id.to_owned(),
            action: "Microsoft.Network/privateDnsZones/join/action",
        };
        zones.map(scope).collect()
    }

    fn plan(&self, cx: &mut Context<'_>, put: &Put<'_>) -> Result<Plan, ArmError> {
        let endpoint = endpoint_of(cx, put.id)?;
        if let Some(call) = put.call {
            rules::check(cx, endpoint, call)?;
        }
        let plan = Plan::new(stored(cx, endpoint, put.given));
        if put.call.is_some() {
            return Ok(plan);
        }
        let id = put.id.clone();
        Ok(plan.then(move |cx| write_records(cx, &id)))
    }

    fn show(&self, _cx: &Context<'_>, group: &Resource, shown: &mut Value) {
        let (state, etag) = (json!(group.state.as_str()), shown["etag"].clone());
        for config in list_mut(&mut shown["properties"][CONFIGS]) {
            config["id"] = json!(format!(
                "{}/{CONFIGS}/{}",
                group.id,
                config["name"].as_str().unwrap_or_default()
            ));
            config["etag"] = etag.clone();
            config["type"] = json!(format!("{TYPE}/{CONFIGS}"));
            config["properties"]["provisioningState"] = state.clone();
            for set in list_mut(&mut config["properties"]["recordSets"]) {
                set["provisioningState"] = state.clone();
            }
        }
    }

    fn fails(&self, cx: &Context<'_>, operation: &Operation) -> Option<ErrorDetail> {
        let put = operation.verb == Verb::Put;
        missing_zone(cx, &operation.target).filter(|_| put)
    }

    fn ended(&self, cx: &mut Context<'_>, operation: &Operation) {
        if (operation.status, operation.verb) == (OperationStatus::Succeeded, Verb::Put) {
            write_records(cx, &operation.target);
        }
    }

    fn gone(&self, cx: &mut Context<'_>, gone: &Resource) {
        for set in written(gone) {
            remove_record(cx, &set, &gone.hidden["creator"]);
        }
    }
}

/// `customDnsConfigs` of an endpoint: its names and addresses, which a zone group takes over.
pub(crate) fn custom_dns_configs(cx: &Context<'_>, endpoint: &Resource) -> Value {
    let grouped = cx.state.store.of_type(&endpoint.id, TYPE).next().is_some();
    if grouped || !endpoint.is_idle() {
        return json!([]);
    }
    let addresses = addresses(cx, endpoint);
    let configs = names(endpoint).into_iter();
    configs
        .map(|fqdn| json!({ "fqdn": fqdn, "ipAddresses": addresses }))
        .collect()
}

/// The names that Azure knows of an endpoint.
fn names(endpoint: &Resource) -> Vec<String> {
    let connection = &first_connection(&endpoint.body)["properties"];
    let service = connection["privateLinkServiceId"].as_str();
    let Some(service) = service.and_then(|id| ResourceId::parse(id).ok()) else {
        return vec![];
    };
    let groups = items(&connection["groupIds"]).iter().filter_map(Value::as_str);
    groups.filter_map(|group| group_names::fqdn(&service, group)).collect()
}

/// The addresses of an endpoint.
fn addresses(cx: &Context<'_>, endpoint: &Resource) -> Vec<String> {
    let interfaces = items(endpoint.property("networkInterfaces")).iter();
    let interfaces = interfaces.filter_map(|nic| cx.state.store.find(nic["id"].as_str()?));
    let all = interfaces.flat_map(|nic| items(nic.property("ipConfigurations")));
    all.filter_map(|ip| ip["properties"]["privateIPAddress"].as_str().map(str::to_owned))
        .collect()
}

/// The endpoint that a group is of.
fn endpoint_of<'a>(cx: &'a Context<'_>, group: &ResourceId) -> Result<&'a Resource, ArmError> {
    let endpoint = group.parent().unwrap_or_else(|| group.clone());
    let found = cx.state.store.get(&endpoint);
    found.ok_or_else(|| ArmError::parent_not_found(&endpoint))
}

/// What is stored: the zones as given, each with the record sets that the endpoint has in it.
fn stored(cx: &Context<'_>, endpoint: &Resource, given: &Value) -> Value {
    let configs = items(&given["properties"][CONFIGS]).iter().map(|config| {
        let zone = &config["properties"]["privateDnsZoneId"];
        let sets = record_sets_in(cx, endpoint, zone.as_str().unwrap_or_default());
        json!({ "name": config["name"], "properties": { "privateDnsZoneId": zone, "recordSets": sets } })
    });
    json!({ "properties": { CONFIGS: configs.collect::<Vec<Value>>() } })
}

fn record_sets_in(cx: &Context<'_>, endpoint: &Resource, zone: &str) -> Vec<Value> {
    let zone = zone.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let addresses = addresses(cx, endpoint);
    let mut relative: Vec<String> = names(endpoint)
        .iter()
        .filter_map(|fqdn| group_names::in_zone(fqdn, &zone))
        .collect();
    if cx.state.switches.zone_group_names_endpoint && service_of(cx, endpoint).is_some() && relative.is_empty() {
        relative.push(endpoint.id.name().to_ascii_lowercase());
    }
    let set = |name: String| {
        json!({
            "recordType": "A",
            "recordSetName": name,
            "fqdn": format!("{name}.{zone}"),
            "ttl": TTL,
            "ipAddresses": addresses,
        })
    };
    relative.into_iter().map(set).collect()
}

/// The refusal of a group whose zone went while its operation ran.
fn missing_zone(cx: &Context<'_>, group: &ResourceId) -> Option<ErrorDetail> {
    let found = cx.state.store.get(group)?;
    let gone = rules::zone_ids(&found.body).find(|zone| cx.state.store.find(zone).is_none())?;
    Some(missing(group, gone).error)
}

/// Puts the group's records in the place of those that it wrote before.
fn write_records(cx: &mut Context<'_>, group: &ResourceId) {
    let Some(found) = cx.state.store.get(group).cloned() else {
        return;
    };
    let Ok(endpoint) = endpoint_of(cx, group) else { return };
    let guid = endpoint.property("resourceGuid").as_str().unwrap_or_default();
    let creator = format!(
        "created by private endpoint {} with resource guid {guid}",
        endpoint.id.name()
    );
    let mut sets: Vec<(ResourceId, Map<String, Value>)> = Vec::new();
    for config in items(found.property(CONFIGS)) {
        let zone = config["properties"]["privateDnsZoneId"].as_str();
        let Some(zone) = zone.and_then(|zone| cx.state.store.find(zone)) else {
            continue;
        };
        for set in items(&config["properties"]["recordSets"]) {
            let name = set["recordSetName"].as_str().unwrap_or_default();
            let records = items(&set["ipAddresses"]).iter();
            let records: Vec<Value> = records.map(|address| json!({ "ipv4Address": address })).collect();
            let properties = [
                ("ttl", set["ttl"].clone()),
                ("metadata", json!({ "creator": creator })),
                (RecordType::A.property(), json!(records)),
            ];
            let properties = properties.map(|(name, value)| (name.to_owned(), value));
            sets.push((
                record_sets::id_of(&zone.id, RecordType::A, name),
                Map::from_iter(properties),
            ));
        }
    }
    for old in written(&found).filter(|old| !sets.iter().any(|(id, _)| id.is(old.as_str()))) {
        remove_record(cx, &old, &json!(creator));
    }
    let ids: Vec<String> = sets.iter().map(|(id, _)| id.to_string()).collect();
    for (id, properties) in sets {
        record_sets::store(cx, RecordType::A, &id, properties);
    }
    if let Some(group) = cx.state.store.get_mut(group) {
        group.hidden = json!({ "creator": creator, "written": ids });
    }
}

/// The record sets that a group has written.
fn written(group: &Resource) -> impl Iterator<Item = ResourceId> + use<'_> {
    let ids = items(&group.hidden["written"]).iter().filter_map(Value::as_str);
    ids.filter_map(|id| ResourceId::parse(id).ok())
}

/// Removes a record set, unless somebody else has written it since.
fn remove_record(cx: &mut Context<'_>, id: &ResourceId, creator: &Value) {
    let found = cx.state.store.get(id);
    if found.is_some_and(|set| set.property("metadata")["creator"] == *creator) {
        cx.remove(id);
    }
}

fn list_mut(value: &mut Value) -> impl Iterator<Item = &mut Value> {
    value.as_array_mut().into_iter().flatten()
}
