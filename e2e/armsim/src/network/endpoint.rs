//! Private endpoints: connection by id or alias, the network interface with its address, approval within the
//! operation, and the end of the connection.

use serde_json::{Value, json};

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::kind::{self, Call, Kind, LinkedScope, Reply};
use crate::engine::operation::{Operation, OperationStatus, Verb};
use crate::engine::preset::Pace;
use crate::engine::registry;
use crate::engine::resource::Resource;

use super::address;
use super::connection;
use super::endpoint_rules::{self as rules, AUTOMATIC, MANUAL, Target};
use super::link_service;
use super::nic::{self, IpConfiguration};
use super::write::{self, Write, items, nested};

/// Microsoft.Network/privateEndpoints.
pub(crate) struct PrivateEndpoints;

pub(crate) const TYPE: &str = "Microsoft.Network/privateEndpoints";

const CREATE: Pace = Pace {
    typical_s: 40.0,
    tails: &[(0.01, 600.0), (0.05, 120.0)],
    retry_after_s: 10,
};
const UPDATE: Pace = Pace::new(32.0, 10);
const DELETE: Pace = Pace::new(10.0, 10);

impl Kind for PrivateEndpoints {
    fn resource_type(&self) -> &'static str {
        TYPE
    }

    fn first_version(&self) -> &'static str {
        "2019-04-01"
    }

    fn links(&self, cx: &Context<'_>, call: &Call<'_>) -> Vec<LinkedScope> {
        let mut links = Vec::new();
        let properties = &call.body["properties"];
        if let Some(subnet) = properties["subnet"]["id"].as_str() {
            let action = "Microsoft.Network/virtualNetworks/subnets/join/action";
            links.push(LinkedScope {
                id: subnet.to_owned(),
                action,
            });
        }
        for item in items(&properties[AUTOMATIC]) {
            let Some(id) = item["properties"]["privateLinkServiceId"]
                .as_str()
                .filter(|id| id.starts_with('/'))
            else {
                continue;
            };
            let invited = cx.state.store.find(id).is_some_and(|found| {
                link_service::lists(found, "autoApproval", call.id.subscription())
            });
            if !invited {
                let action = "Microsoft.Network/privateLinkServices/privateEndpointConnectionsApproval/action";
                links.push(LinkedScope {
                    id: id.to_owned(),
                    action,
                });
            }
        }
        links
    }

    fn get(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let found = cx.find(&call.id)?;
        let mut shown = self.render(cx, found);
        let expand = call.parameter("$expand").unwrap_or_default();
        if expand
            .split(',')
            .any(|field| field.trim().eq_ignore_ascii_case("networkInterfaces"))
        {
            for slot in shown["properties"]["networkInterfaces"]
                .as_array_mut()
                .into_iter()
                .flatten()
            {
                let nic = slot["id"].as_str().and_then(|id| cx.state.store.find(id));
                if let (Some(nic), Some(kind)) = (nic, registry::kind(nic::TYPE)) {
                    *slot = kind.render(cx, nic);
                }
            }
        }
        Ok(Reply::new(200).body(shown).etag(&found.etag))
    }

    fn put(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let location = write::location(cx, call)?;
        let current = cx.state.store.get(&call.id).map(|known| known.etag.clone());
        write::precondition(cx, call, current.as_deref())?;
        write::not_being_deleted(cx, call)?;
        let target = rules::check(cx, &call.id, &location, &call.body)?;
        let (body, interface) = normalise(cx, &call.id, &location, &call.body, Some(&target))?;
        let connection = target.new_connection(&call.id, &body);
        let state =
            first_connection(&body)["properties"]["privateLinkServiceConnectionState"].clone();
        let name = "PutPrivateEndpointOperation";
        let region = location.clone();
        let reply = write::put(
            cx,
            call,
            Write {
                kind: self,
                id: &call.id,
                body,
                name,
                region,
                create: &CREATE,
                update: &UPDATE,
            },
        );
        if let Some((nic, configurations)) = interface {
            nic::extend(
                cx,
                &nic,
                ("privateEndpoint", &call.id, &location),
                configurations,
            );
        }
        if let Some(connection) = connection.filter(|_| current.is_none()) {
            connection::make(cx, &connection, &call.id, &location, &state);
        }
        Ok(reply)
    }

    fn delete(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let Some(found) = cx.state.store.get(&call.id) else {
            return Ok(Reply::new(204));
        };
        let region = found.body["location"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        write::precondition(cx, call, Some(&found.etag))?;
        Ok(write::delete(
            cx,
            call,
            self,
            "DeletePrivateEndpointOperation",
            &region,
            &DELETE,
        ))
    }

    fn render(&self, cx: &Context<'_>, resource: &Resource) -> Value {
        let mut shown = resource.body.clone();
        shown["id"] = json!(resource.id);
        shown["name"] = json!(resource.id.name());
        shown["type"] = json!(TYPE);
        shown["etag"] = json!(resource.etag);
        shown["properties"]["provisioningState"] = json!(resource.state.as_str());
        for list in [AUTOMATIC, MANUAL] {
            let all = items(resource.property(list))
                .iter()
                .map(|item| nested(item, resource, list, TYPE));
            shown["properties"][list] = all.collect();
        }
        // Two names for one thing, by age of the version.
        if cx.api_version.as_str() >= "2025-01-01" {
            shown["properties"]["ipVersionType"] = json!("IPv4");
        } else {
            shown["properties"]["isIPv6EnabledPrivateEndpoint"] = json!(false);
        }
        shown
    }

    fn install(&self, cx: &mut Context<'_>, id: &ResourceId, body: Value) -> Result<(), ArmError> {
        let location = write::region(body["location"].as_str().unwrap_or_default());
        let known = cx.state.store.get(id).map(|known| known.id.clone());
        let id = known.clone().unwrap_or_else(|| id.spelled(TYPE));
        let target = rules::target(cx, &body).ok();
        let (stored, interface) = normalise(cx, &id, &location, &body, target.as_ref())?;
        let connection = target.and_then(|target| target.new_connection(&id, &stored));
        let state =
            first_connection(&stored)["properties"]["privateLinkServiceConnectionState"].clone();
        cx.store(TYPE, &id, stored);
        if let Some((nic, configurations)) = interface {
            nic::extend(
                cx,
                &nic,
                ("privateEndpoint", &id, &location),
                configurations,
            );
        }
        let connected = state["status"] != json!("Disconnected");
        if let Some(connection) = connection.filter(|_| known.is_none() && connected) {
            connection::make(cx, &connection, &id, &location, &state);
        }
        Ok(())
    }

    fn finish(&self, cx: &mut Context<'_>, operation: &Operation) {
        kind::finish(cx, operation);
        if operation.status == OperationStatus::Succeeded && operation.verb == Verb::Put {
            approve_if_invited(cx, &operation.target);
        }
    }

    fn removed(&self, cx: &mut Context<'_>, gone: &Resource) {
        for nic in items(gone.property("networkInterfaces"))
            .iter()
            .filter_map(|nic| nic["id"].as_str())
        {
            if let Ok(nic) = ResourceId::parse(nic) {
                cx.remove(&nic);
            }
        }
        if let Some(service) = service_of(cx, gone)
            && let Some(made) = connection::made_by(cx, &service, &gone.id)
        {
            let made = made.id.clone();
            cx.remove(&made);
        }
    }
}

/// An endpoint's only connection, of whichever list.
pub(crate) fn first_connection(body: &Value) -> &Value {
    let manual = items(&body["properties"][MANUAL]).first();
    items(&body["properties"][AUTOMATIC])
        .first()
        .or(manual)
        .unwrap_or(&Value::Null)
}

/// The service that an endpoint is for, by id or alias, if it is there.
pub(crate) fn service_of(cx: &Context<'_>, endpoint: &Resource) -> Option<ResourceId> {
    let reference =
        first_connection(&endpoint.body)["properties"]["privateLinkServiceId"].as_str()?;
    let service = cx
        .state
        .store
        .find(reference)
        .or_else(|| link_service::by_alias(cx, reference))?;
    Some(service.id.clone())
}

/// Shows the endpoint what the provider has decided. A disconnected endpoint stays so.
pub(crate) fn see(cx: &mut Context<'_>, id: &ResourceId, state: Value) {
    let etag = cx.weak_etag();
    let Some(endpoint) = cx.state.store.get_mut(id) else {
        return;
    };
    for list in [AUTOMATIC, MANUAL] {
        for item in endpoint.body["properties"][list]
            .as_array_mut()
            .into_iter()
            .flatten()
        {
            let seen = &mut item["properties"]["privateLinkServiceConnectionState"];
            if seen["status"] != json!("Disconnected") && *seen != state {
                *seen = state.clone();
                endpoint.etag.clone_from(&etag);
            }
        }
    }
}

/// A request from an invited subscription is approved before the endpoint's operation ends.
fn approve_if_invited(cx: &mut Context<'_>, id: &ResourceId) {
    let Some(endpoint) = cx.state.store.get(id) else {
        return;
    };
    let status = &first_connection(&endpoint.body)["properties"]["privateLinkServiceConnectionState"]
        ["status"];
    if *status != json!("Pending") {
        return;
    }
    let Some(service) = service_of(cx, endpoint) else {
        return;
    };
    let invited = cx
        .state
        .store
        .get(&service)
        .is_some_and(|service| link_service::lists(service, "autoApproval", id.subscription()));
    let made =
        connection::made_by(cx, &service, id).filter(|made| connection::status(made) == "Pending");
    if let Some(made) = made.filter(|_| invited).map(|made| made.id.clone()) {
        connection::settle(cx, &made, connection::state("Approved", "Approved"));
    }
}

/// A network interface to make, with the addresses chosen for it.
type Interface = Option<(ResourceId, Vec<IpConfiguration>)>;

/// What is stored of a given endpoint. What was there once stays: GUID, interface, connection states.
fn normalise(
    cx: &mut Context<'_>,
    id: &ResourceId,
    location: &str,
    given: &Value,
    target: Option<&Target>,
) -> Result<(Value, Interface), ArmError> {
    let known = cx
        .state
        .store
        .get(id)
        .map(|known| known.body["properties"].clone());
    let from = &given["properties"];
    let mut body = write::tracked(location, given);
    let subnet = write::referenced(cx, id, from["subnet"]["id"].as_str().unwrap_or_default())?
        .id
        .clone();
    let custom = from["customNetworkInterfaceName"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let (guid, nics, interface) = match &known {
        Some(known) => (
            known["resourceGuid"].clone(),
            known["networkInterfaces"].clone(),
            None,
        ),
        None => {
            let configurations = addresses(cx, &subnet, from)?;
            let guid = from["resourceGuid"]
                .as_str()
                .map_or_else(|| cx.guid(), str::to_owned);
            let suffix = cx.guid();
            let name = if custom.is_empty() {
                format!("{}.nic.{suffix}", id.name())
            } else {
                custom.clone()
            };
            let nic = id.sibling(nic::TYPE, &name);
            (
                json!(guid),
                json!([{ "id": nic }]),
                Some((nic, configurations)),
            )
        }
    };
    let mut properties = json!({
        "resourceGuid": guid,
        "customNetworkInterfaceName": custom,
        "subnet": { "id": subnet },
        "ipConfigurations": static_configurations(from),
        "networkInterfaces": nics,
        "customDnsConfigs": [],
    });
    for list in [AUTOMATIC, MANUAL] {
        let old = known.as_ref().map_or(&Value::Null, |known| &known[list]);
        let stored = items(&from[list])
            .iter()
            .map(|item| one_connection(cx, item, old, target, list == MANUAL));
        properties[list] = stored.collect();
    }
    if let Some(groups) = from.get("applicationSecurityGroups") {
        properties["applicationSecurityGroups"] = groups.clone();
    }
    body["properties"] = properties;
    Ok((body, interface))
}

/// One connection as it is stored. Its state is the old one, or what the case begins with.
fn one_connection(
    cx: &Context<'_>,
    item: &Value,
    old: &Value,
    target: Option<&Target>,
    manual: bool,
) -> Value {
    let from = &item["properties"];
    let before = items(old)
        .iter()
        .find(|known| known["name"] == item["name"]);
    let before =
        before.map(|known| known["properties"]["privateLinkServiceConnectionState"].clone());
    // Only seed and control calls run without a caller: they say what the state is.
    let told = Some(&from["privateLinkServiceConnectionState"])
        .filter(|state| cx.caller.is_none() && state["status"].is_string());
    let state = told.cloned().or(before).unwrap_or_else(|| {
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
    let mut properties =
        json!({ "privateLinkServiceId": reference, "privateLinkServiceConnectionState": state });
    for name in ["groupIds", "requestMessage"] {
        if let Some(value) = from
            .get(name)
            .filter(|value| !value.is_null() && **value != json!([]))
        {
            properties[name] = value.clone();
        }
    }
    json!({ "name": item["name"], "properties": properties })
}

/// Static addresses as given.
fn static_configurations(from: &Value) -> Value {
    let kept = items(&from["ipConfigurations"]).iter().map(|item| {
        let mut properties = item["properties"].clone();
        if let Some(fields) = properties.as_object_mut() {
            fields.remove("provisioningState");
        }
        json!({ "name": item["name"], "properties": properties })
    });
    kept.collect()
}

/// The addresses of a new endpoint: those asked for, or one of the subnet's.
fn addresses(
    cx: &mut Context<'_>,
    subnet: &ResourceId,
    from: &Value,
) -> Result<Vec<IpConfiguration>, ArmError> {
    let fixed: Vec<&str> = items(&from["ipConfigurations"])
        .iter()
        .filter_map(|item| item["properties"]["privateIPAddress"].as_str())
        .collect();
    let wanted: Vec<Option<&str>> = if fixed.is_empty() {
        vec![None]
    } else {
        fixed.into_iter().map(Some).collect()
    };
    let mut made = Vec::new();
    let mut taken = Vec::new();
    for wanted in wanted {
        let address = address::choose(cx, cx.find(subnet)?, wanted, &taken)?;
        taken.push(address);
        let name = format!("privateEndpointIpConfig.{}", cx.guid());
        let method = if wanted.is_some() {
            "Static"
        } else {
            "Dynamic"
        };
        made.push(IpConfiguration {
            name,
            subnet: subnet.clone(),
            address,
            method,
        });
    }
    Ok(made)
}
