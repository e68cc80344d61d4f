//! Private endpoints: connection by id or alias, the network interface with its address, approval within the
//! operation, and the end of the connection.

use serde_json::{Value, json};

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::kind::{Call, LinkedScope};
use crate::engine::operation::{Operation, OperationStatus, Verb};
use crate::engine::preset::Pace;
use crate::engine::resource::{ProvisioningState, Resource};

use super::connection;
use super::endpoint_body::normalise;
use super::endpoint_rules::{self as rules, AUTOMATIC, MANUAL};
use super::link_service;
use super::nic::{self, CONFIGURATIONS};
use super::shape::{id_of, items, nested};
use super::written::{About, Plan, Put, Written};
use super::zone_group;

/// Microsoft.Network/privateEndpoints.
pub(crate) struct PrivateEndpoints;

pub(crate) const TYPE: &str = "Microsoft.Network/privateEndpoints";

static ABOUT: About = About {
    resource_type: TYPE,
    first_version: "2019-04-01",
    noun: "PrivateEndpoint",
    create: Pace {
        typical_s: 40.0,
        tails: &[(0.01, 600.0), (0.05, 120.0)],
        retry_after_s: 10,
    },
    update: Pace::new(32.0, 10),
    delete: Pace::new(10.0, 10),
};

impl Written for PrivateEndpoints {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn needs(&self, cx: &Context<'_>, call: &Call<'_>) -> Vec<LinkedScope> {
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
            // Whom a service of another tenant has invited still cannot name it here: that is for manual requests.
            if !is_invited(cx, id, call.id.subscription()) || is_foreign(cx, id, call.id.subscription()) {
                let action = "Microsoft.Network/privateLinkServices/privateEndpointConnectionsApproval/action";
                links.push(LinkedScope {
                    id: id.to_owned(),
                    action,
                });
            }
        }
        links
    }

    fn plan(&self, cx: &mut Context<'_>, put: &Put<'_>) -> Result<Plan, ArmError> {
        let target = match put.call {
            Some(_) => Some(rules::check(cx, put)?),
            None => rules::target(cx, put.given).ok(),
        };
        let (body, interface) = normalise(cx, put, target.as_ref())?;
        let state = first_connection(&body)["properties"]["privateLinkServiceConnectionState"].clone();
        let is_new = cx.state.store.get(put.id).is_none() && state["status"] != json!("Disconnected");
        let connection = target
            .and_then(|target| target.new_connection(put.id, &body))
            .filter(|_| is_new);
        let (id, location) = (put.id.clone(), put.location.to_owned());
        let bare = items(&body["properties"]["networkInterfaces"]).is_empty();
        let dropped = cx.state.store.get(put.id).filter(|_| bare).map(interfaces_of);
        Ok(Plan::new(body).then(move |cx| {
            dropped.iter().flatten().for_each(|nic| cx.remove(nic));
            if let Some((nic, configurations)) = interface {
                nic::extend(cx, &nic, ("privateEndpoint", &id, &location), &configurations);
            }
            if let Some(connection) = connection {
                connection::make(cx, &connection, &id, &location, &state);
            }
        }))
    }

    fn show(&self, cx: &Context<'_>, resource: &Resource, shown: &mut Value) {
        for list in [AUTOMATIC, MANUAL] {
            let all = items(resource.property(list)).iter();
            let all = all.map(|item| nested(item, resource, list, TYPE, ProvisioningState::Succeeded));
            shown["properties"][list] = all.collect();
        }
        let fixed = items(resource.property(CONFIGURATIONS)).iter();
        let fixed = fixed.map(|item| nested(item, resource, CONFIGURATIONS, TYPE, resource.state));
        shown["properties"][CONFIGURATIONS] = fixed.collect();
        shown["properties"]["customDnsConfigs"] = zone_group::custom_dns_configs(cx, resource);
        // Two names for one thing; some versions have the one, some the other, the newest both.
        let version = cx.api_version.as_str();
        if version >= "2025-01-01" {
            shown["properties"]["ipVersionType"] = json!("IPv4");
        }
        if cx.shows_since("2024-03-01") && !("2025-01-01".."2025-05-01").contains(&version) {
            shown["properties"]["isIPv6EnabledPrivateEndpoint"] = json!(false);
        }
    }

    fn ended(&self, cx: &mut Context<'_>, operation: &Operation) {
        if operation.status == OperationStatus::Succeeded && operation.verb == Verb::Put {
            approve_if_invited(cx, &operation.target);
        }
    }

    fn gone(&self, cx: &mut Context<'_>, gone: &Resource) {
        interfaces_of(gone).iter().for_each(|nic| cx.remove(nic));
        if let Some(service) = service_of(cx, gone)
            && let Some(made) = connection::made_by(cx, &service, &gone.id)
        {
            let made = made.id.clone();
            cx.remove(&made);
        }
    }
}

/// The network interfaces of an endpoint.
fn interfaces_of(endpoint: &Resource) -> Vec<ResourceId> {
    let named = items(endpoint.property("networkInterfaces")).iter().filter_map(id_of);
    named.filter_map(|nic| ResourceId::parse(nic).ok()).collect()
}

/// Whether a service approves a subscription by itself.
fn is_invited(cx: &Context<'_>, service: &str, subscription: &str) -> bool {
    let found = cx.state.store.find(service);
    found.is_some_and(|found| link_service::lists(found, "autoApproval", subscription))
}

/// Whether a resource's subscription trusts another tenant than `subscription` does.
fn is_foreign(cx: &Context<'_>, id: &str, subscription: &str) -> bool {
    let tenant = |subscription: &str| Some(cx.state.subscription(subscription)?.tenant.to_ascii_lowercase());
    let theirs = ResourceId::parse(id).ok().and_then(|id| tenant(id.subscription()));
    theirs.is_some_and(|theirs| tenant(subscription) != Some(theirs))
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
pub(crate) fn see(cx: &mut Context<'_>, id: &ResourceId, state: &Value) {
    let etag = cx.weak_etag();
    let Some(endpoint) = cx.state.store.get_mut(id) else {
        return;
    };
    for list in [AUTOMATIC, MANUAL] {
        for item in endpoint.body["properties"][list].as_array_mut().into_iter().flatten() {
            let shown = &mut item["properties"]["privateLinkServiceConnectionState"];
            if shown["status"] != json!("Disconnected") && shown != state {
                *shown = state.clone();
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
