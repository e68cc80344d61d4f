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

use super::connection;
use super::endpoint_body::normalise;
use super::endpoint_rules::{self as rules, AUTOMATIC, MANUAL};
use super::link_service;
use super::nic;
use super::write::{self, Write, items, nested};
use super::zone_group;

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
            let invited = cx
                .state
                .store
                .find(id)
                .is_some_and(|found| link_service::lists(found, "autoApproval", call.id.subscription()));
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
        let state = first_connection(&body)["properties"]["privateLinkServiceConnectionState"].clone();
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
            nic::extend(cx, &nic, ("privateEndpoint", &call.id, &location), configurations);
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
        let region = found.body["location"].as_str().unwrap_or_default().to_owned();
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
        shown["properties"]["customDnsConfigs"] = zone_group::custom_dns_configs(cx, resource);
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
        let state = first_connection(&stored)["properties"]["privateLinkServiceConnectionState"].clone();
        cx.store(TYPE, &id, stored);
        if let Some((nic, configurations)) = interface {
            nic::extend(cx, &nic, ("privateEndpoint", &id, &location), configurations);
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
    let reference = first_connection(&endpoint.body)["properties"]["privateLinkServiceId"].as_str()?;
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
        for item in endpoint.body["properties"][list].as_array_mut().into_iter().flatten() {
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
    let status = &first_connection(&endpoint.body)["properties"]["privateLinkServiceConnectionState"]["status"];
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
    let made = connection::made_by(cx, &service, id).filter(|made| connection::status(made) == "Pending");
    if let Some(made) = made.filter(|_| invited).map(|made| made.id.clone()) {
        connection::settle(cx, &made, connection::state("Approved", "Approved"));
    }
}
