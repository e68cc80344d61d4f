//! Virtual networks: address space, DNS settings, and their subnets as one body.

use serde_json::{Value, json};

use crate::dns::links;
use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::kind::{Call, Kind, LinkedScope};
use crate::engine::operation::Operation;
use crate::engine::preset::Pace;
use crate::engine::resource::{ProvisioningState, Resource};

use super::shape::{defaults, items, named, properties, tracked};
use super::subnet::{self, Subnets};
use super::subnet_rules as rules;
use super::write::resource_guid;
use super::written::{About, Plan, Put, Written};

/// Microsoft.Network/virtualNetworks.
pub(crate) struct VirtualNetworks;

pub(crate) const TYPE: &str = "Microsoft.Network/virtualNetworks";

static ABOUT: About = About {
    resource_type: TYPE,
    first_version: "2015-05-01-preview",
    noun: "VirtualNetwork",
    create: Pace::new(3.0, 3),
    update: Pace::new(3.0, 3),
    delete: Pace::new(10.0, 10),
};

impl Written for VirtualNetworks {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn needs(&self, _cx: &Context<'_>, call: &Call<'_>) -> Vec<LinkedScope> {
        let subnets = items(&call.body["properties"]["subnets"]).iter();
        subnets.flat_map(subnet::joins).collect()
    }

    fn plan(&self, cx: &mut Context<'_>, put: &Put<'_>) -> Result<Plan, ArmError> {
        let body = normalise(cx, put);
        let given = subnets_of(put)?;
        // A seed without subnets leaves those that exist.
        if put.call.is_none() && !put.given["properties"]["subnets"].is_array() {
            return Ok(Plan::new(body));
        }
        let differs = |id: &ResourceId, body: &Value| cx.state.store.get(id).is_none_or(|known| known.body != *body);
        let new: Vec<(ResourceId, Value)> = given.iter().filter(|(id, body)| differs(id, body)).cloned().collect();
        let left_out = left_out(cx, put.id, &given);
        let more = !new.is_empty() || !left_out.is_empty();
        if let Some(call) = put.call {
            rules::check_vnet(cx, put, &body, &given)?;
            left_out.iter().try_for_each(|gone| rules::not_in_use(cx, gone))?;
            let known = cx.state.store.get(put.id);
            if more || known.is_none_or(|known| known.body != body || !known.is_idle()) {
                rules::vnet_is_free(cx, call, put.id)?;
                new.iter().try_for_each(|(id, _)| rules::users_are_idle(cx, id))?;
            }
        }
        let vnet = put.id.clone();
        let mut plan = Plan::new(body).then(move |cx| {
            left_out.iter().for_each(|gone| cx.remove(gone));
            store_subnets(cx, &vnet, new);
        });
        plan.more = more;
        Ok(plan)
    }

    fn may_go(&self, cx: &Context<'_>, call: &Call<'_>, found: &Resource) -> Result<(), ArmError> {
        let mut subnets = cx.state.store.of_type(&found.id, subnet::TYPE);
        subnets.try_for_each(|subnet| rules::not_in_use(cx, &subnet.id))?;
        rules::vnet_is_free(cx, call, &found.id)
    }

    fn show(&self, cx: &Context<'_>, resource: &Resource, shown: &mut Value) {
        let subnets = cx.state.store.of_type(&resource.id, subnet::TYPE);
        shown["properties"]["subnets"] = subnets.map(|found| Subnets.render(cx, found)).collect();
        if let Some(fields) = shown["properties"].as_object_mut() {
            if !cx.shows_since("2024-03-01") {
                fields.remove("privateEndpointVNetPolicies");
            }
            if cx.shows_since("2020-11-01") {
                fields.remove("enableVmProtection");
            } else {
                defaults(fields, &json!({ "enableVmProtection": false }));
            }
        }
    }

    /// Gives the subnets that came with the VNet's body its state and the time of its end.
    fn ended(&self, cx: &mut Context<'_>, operation: &Operation) {
        let Some(vnet) = cx.state.store.get(&operation.target) else {
            return;
        };
        let ended = (vnet.state, vnet.changed);
        let subnets = cx.state.store.of_type(&operation.target, subnet::TYPE);
        let own = subnets.filter(|found| found.operation.as_deref() == Some(&operation.id));
        let own: Vec<ResourceId> = own.map(|found| found.id.clone()).collect();
        for id in own {
            if let Some(found) = cx.state.store.get_mut(&id) {
                (found.state, found.changed) = ended;
            }
        }
    }

    fn gone(&self, cx: &mut Context<'_>, gone: &Resource) {
        links::unlink(cx, &gone.id);
    }
}

/// What is stored of a given VNet; its subnets are resources of their own.
fn normalise(cx: &mut Context<'_>, put: &Put<'_>) -> Value {
    let mut body = tracked(put.location, put.given);
    let mut kept = properties(put.given, &["subnets", "flowLogs"]);
    kept.insert("resourceGuid".to_owned(), resource_guid(cx, put.id));
    if cx.shows_since("2020-11-01") {
        kept.remove("enableVmProtection");
    }
    if let Some(options) = kept.get_mut("dhcpOptions").and_then(Value::as_object_mut) {
        defaults(options, &json!({ "dnsServers": [] }));
    }
    defaults(
        &mut kept,
        &json!({
            "addressSpace": { "addressPrefixes": [] },
            "privateEndpointVNetPolicies": "Disabled",
            "virtualNetworkPeerings": [],
            "enableDdosProtection": false,
        }),
    );
    body["properties"] = json!(kept);
    body
}

/// The subnets that a VNet's body holds, with what is stored of each.
fn subnets_of(put: &Put<'_>) -> Result<Vec<(ResourceId, Value)>, ArmError> {
    let named = named(put.id, &put.given["properties"]["subnets"])?.into_iter();
    Ok(named
        .map(|(name, given)| (put.id.child("subnets", name), subnet::normalise(given, put.location)))
        .collect())
}

/// The subnets that are there and not in the body: a PUT takes them away.
fn left_out(cx: &Context<'_>, vnet: &ResourceId, given: &[(ResourceId, Value)]) -> Vec<ResourceId> {
    let known = cx.state.store.of_type(vnet, subnet::TYPE).map(|known| known.id.clone());
    known
        .filter(|known| !given.iter().any(|(id, _)| id.is(known.as_str())))
        .collect()
}

/// Stores the subnets that differ; all of them, changed or not, are updating while the VNet's operation runs.
fn store_subnets(cx: &mut Context<'_>, vnet: &ResourceId, new: Vec<(ResourceId, Value)>) {
    let running = cx.state.store.get(vnet).and_then(|vnet| cx.running_on(vnet));
    let running = running.map(|operation| operation.id.clone());
    for (id, body) in new {
        cx.store(subnet::TYPE, &id, body);
    }
    let all = cx.state.store.of_type(vnet, subnet::TYPE);
    let all: Vec<ResourceId> = all.map(|subnet| subnet.id.clone()).collect();
    for id in all {
        if let (Some(operation), Some(stored)) = (&running, cx.state.store.get_mut(&id)) {
            stored.state = ProvisioningState::Updating;
            stored.operation = Some(operation.clone());
        }
    }
}
