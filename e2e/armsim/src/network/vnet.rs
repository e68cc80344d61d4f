//! Virtual networks: address space, DNS settings, and their subnets as one body.

use serde_json::{Value, json};

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::kind::{self, Call, Kind, Reply};
use crate::engine::operation::Operation;
use crate::engine::preset::Pace;
use crate::engine::resource::{ProvisioningState, Resource};

use super::address;
use super::subnet;
use super::subnet_rules;
use super::write::{self, Write, items};

/// Microsoft.Network/virtualNetworks.
pub(crate) struct VirtualNetworks;

pub(crate) const TYPE: &str = "Microsoft.Network/virtualNetworks";

const PUT: Pace = Pace::new(3.0, 3);
const DELETE: Pace = Pace::new(10.0, 10);

impl Kind for VirtualNetworks {
    fn resource_type(&self) -> &'static str {
        TYPE
    }

    fn first_version(&self) -> &'static str {
        "2015-05-01-preview"
    }

    fn put(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let location = write::location(cx, call)?;
        let current = cx.state.store.get(&call.id).map(|known| known.etag.clone());
        write::precondition(cx, call, current.as_deref())?;
        write::not_being_deleted(cx, call)?;
        let body = normalise(cx, &call.id, &location, &call.body);
        if address::prefixes(&body["properties"]["addressSpace"]).is_empty() {
            let message = format!(
                "Virtual network {} must have at least one address prefix.",
                call.id.name()
            );
            return Err(ArmError::service(
                400,
                "AddressPrefixStringCannotBeNullOrEmpty",
                message,
            ));
        }
        let given = subnets_of(&call.id, &call.body);
        let unchanged = given
            .iter()
            .all(|(id, body)| cx.state.store.get(id).is_some_and(|known| known.body == *body));
        let left_out = left_out(cx, &call.id, &given);
        if !(unchanged && left_out.is_empty() && current.is_some()) {
            subnet_rules::may_go(cx, &left_out)?;
            subnet_rules::vnet_is_free(cx, call, &call.id)?;
        }
        let name = "PutVirtualNetworkOperation";
        let region = location.clone();
        let write = Write {
            kind: self,
            id: &call.id,
            body,
            name,
            region,
            create: &PUT,
            update: &PUT,
        };
        let mut reply = write::put(cx, call, write);
        if !unchanged || !left_out.is_empty() {
            left_out.iter().for_each(|gone| cx.remove(gone));
            let running = reply
                .operation
                .clone()
                .filter(|id| cx.state.operations.get(id).is_some_and(Operation::running));
            install_subnets(cx, given, running.as_ref());
            reply.changed = true;
        }
        reply.body = cx.state.store.get(&call.id).map(|stored| self.render(cx, stored));
        Ok(reply)
    }

    fn delete(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let Some(found) = cx.state.store.get(&call.id) else {
            return Ok(Reply::new(204));
        };
        let region = found.body["location"].as_str().unwrap_or_default().to_owned();
        write::precondition(cx, call, Some(&found.etag))?;
        if found.state != ProvisioningState::Deleting {
            let subnets: Vec<ResourceId> = cx
                .state
                .store
                .of_type(&call.id, subnet::TYPE)
                .map(|subnet| subnet.id.clone())
                .collect();
            subnet_rules::may_go(cx, &subnets)?;
            subnet_rules::vnet_is_free(cx, call, &call.id)?;
        }
        Ok(write::delete(
            cx,
            call,
            self,
            "DeleteVirtualNetworkOperation",
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
        let subnets = cx.state.store.of_type(&resource.id, subnet::TYPE);
        let subnets: Vec<Value> = subnets.map(|found| subnet::Subnets.render(cx, found)).collect();
        shown["properties"]["subnets"] = json!(subnets);
        shown
    }

    fn install(&self, cx: &mut Context<'_>, id: &ResourceId, body: Value) -> Result<(), ArmError> {
        let location = write::region(body["location"].as_str().unwrap_or_default());
        let stored = normalise(cx, id, &location, &body);
        cx.store(TYPE, id, stored);
        if body["properties"]["subnets"].is_array() {
            let id = cx.find(id)?.id.clone();
            let given = subnets_of(&id, &body);
            left_out(cx, &id, &given).iter().for_each(|gone| cx.remove(gone));
            install_subnets(cx, given, None);
        }
        Ok(())
    }

    fn finish(&self, cx: &mut Context<'_>, operation: &Operation) {
        kind::finish(cx, operation);
        let Some(ended) = cx
            .state
            .store
            .get(&operation.target)
            .map(|vnet| (vnet.state, vnet.settled))
        else {
            return;
        };
        let subnets = cx.state.store.of_type(&operation.target, subnet::TYPE);
        let own = subnets.filter(|found| found.operation.as_deref() == Some(&operation.id));
        let own: Vec<ResourceId> = own.map(|found| found.id.clone()).collect();
        for id in own {
            if let Some(found) = cx.state.store.get_mut(&id) {
                (found.state, found.settled) = ended;
            }
        }
    }
}

/// What is stored of a given VNet; its subnets are resources of their own.
fn normalise(cx: &mut Context<'_>, id: &ResourceId, location: &str, given: &Value) -> Value {
    let mut body = write::tracked(location, given);
    let mut properties = match &given["properties"] {
        Value::Object(fields) => fields.clone(),
        _ => serde_json::Map::new(),
    };
    properties.retain(|name, value| {
        !["provisioningState", "subnets", "resourceGuid"].contains(&name.as_str()) && !value.is_null()
    });
    properties
        .entry("addressSpace")
        .or_insert_with(|| json!({ "addressPrefixes": [] }));
    properties
        .entry("privateEndpointVNetPolicies")
        .or_insert_with(|| json!("Disabled"));
    properties.entry("virtualNetworkPeerings").or_insert_with(|| json!([]));
    properties.entry("enableDdosProtection").or_insert_with(|| json!(false));
    let known = cx
        .state
        .store
        .get(id)
        .map(|known| known.property("resourceGuid").clone());
    let guid = known
        .filter(|guid| guid.is_string())
        .unwrap_or_else(|| json!(cx.guid()));
    properties.insert("resourceGuid".to_owned(), guid);
    body["properties"] = json!(properties);
    body
}

/// The subnets that a VNet's body holds, with what is stored of each.
fn subnets_of(vnet: &ResourceId, body: &Value) -> Vec<(ResourceId, Value)> {
    let named = items(&body["properties"]["subnets"]).iter().filter_map(|subnet| {
        let name = subnet["name"]
            .as_str()
            .filter(|name| !name.is_empty() && !name.contains('/'))?;
        Some((vnet.child("subnets", name), subnet::normalise(subnet)))
    });
    named.collect()
}

/// The subnets that are there and not in the body: a PUT takes them away.
fn left_out(cx: &Context<'_>, vnet: &ResourceId, given: &[(ResourceId, Value)]) -> Vec<ResourceId> {
    let known = cx.state.store.of_type(vnet, subnet::TYPE).map(|known| known.id.clone());
    known
        .filter(|known| !given.iter().any(|(id, _)| id.is(known.as_str())))
        .collect()
}

/// Stores the subnets that differ; they belong to the VNet's operation if there is one.
fn install_subnets(cx: &mut Context<'_>, given: Vec<(ResourceId, Value)>, operation: Option<&String>) {
    for (id, body) in given {
        if cx.state.store.get(&id).is_some_and(|known| known.body == body) {
            continue;
        }
        cx.store(subnet::TYPE, &id, body);
        if let (Some(operation), Some(stored)) = (operation, cx.state.store.get_mut(&id)) {
            stored.state = ProvisioningState::Updating;
            stored.operation = Some(operation.clone());
        }
    }
}
