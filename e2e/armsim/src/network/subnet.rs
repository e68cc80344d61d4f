//! Subnets: their life, what they show, who uses them, and the etag that they share with their VNet.

use serde_json::{Value, json};

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::kind::{self, Call, Kind, LinkedScope, Reply};
use crate::engine::operation::Operation;
use crate::engine::preset::Pace;
use crate::engine::resource::{ProvisioningState, Resource};

use super::address;
use super::subnet_rules as rules;
use super::write::{self, Write, items};

/// Microsoft.Network/virtualNetworks/subnets.
pub(crate) struct Subnets;

pub(crate) const TYPE: &str = "Microsoft.Network/virtualNetworks/subnets";

const PUT: Pace = Pace::new(3.0, 3);
const DELETE: Pace = Pace::new(10.0, 10);

/// What the service adds to a subnet and ignores in a PUT.
const READ_ONLY: [&str; 9] = [
    "provisioningState",
    "ipConfigurations",
    "ipConfigurationProfiles",
    "privateEndpoints",
    "resourceNavigationLinks",
    "serviceAssociationLinks",
    "purpose",
    "interfaceEndpoints",
    "resourceGuid",
];

/// References of a subnet and the permission that each needs.
pub(crate) const LINKS: [(&str, &str); 3] = [
    (
        "networkSecurityGroup",
        "Microsoft.Network/networkSecurityGroups/join/action",
    ),
    ("routeTable", "Microsoft.Network/routeTables/join/action"),
    ("natGateway", "Microsoft.Network/natGateways/join/action"),
];

impl Kind for Subnets {
    fn resource_type(&self) -> &'static str {
        TYPE
    }

    fn first_version(&self) -> &'static str {
        "2015-05-01-preview"
    }

    fn links(&self, _cx: &Context<'_>, call: &Call<'_>) -> Vec<LinkedScope> {
        let link = |(field, action): (&str, &'static str)| {
            let id = call.body["properties"][field]["id"].as_str()?;
            Some(LinkedScope {
                id: id.to_owned(),
                action,
            })
        };
        LINKS.into_iter().filter_map(link).collect()
    }

    fn get(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let found = write::find_nested(cx, &call.id)?;
        Ok(Reply::new(200).body(self.render(cx, found)).etag(&self.etag(cx, found)))
    }

    fn put(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let vnet = vnet_id(&call.id);
        let Some(parent) = cx.state.store.get(&vnet) else {
            return Err(ArmError::parent_not_found(&vnet));
        };
        let region = parent.body["location"].as_str().unwrap_or_default().to_owned();
        let current = cx.state.store.get(&call.id).map(|_| parent.etag.clone());
        write::precondition(cx, call, current.as_deref())?;
        let body = normalise(&call.body);
        rules::check_prefixes(cx, &call.id, &body)?;
        rules::check_references(cx, &call.id, &body)?;
        rules::check_policies(cx, &call.id, &body)?;
        if cx
            .state
            .store
            .get(&call.id)
            .is_none_or(|known| known.body != body || !known.is_settled())
        {
            rules::vnet_is_free(cx, call, &vnet)?;
            rules::users_are_settled(cx, &call.id)?;
        }
        let name = "PutSubnetOperation";
        let mut reply = write::put(
            cx,
            call,
            Write {
                kind: self,
                id: &call.id,
                body,
                name,
                region,
                create: &PUT,
                update: &PUT,
            },
        );
        if reply.changed {
            touch(cx, &vnet);
        }
        reply.body = cx.state.store.get(&call.id).map(|stored| self.render(cx, stored));
        Ok(reply)
    }

    fn delete(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let vnet = vnet_id(&call.id);
        let parent = cx.find(&vnet)?;
        let (region, etag) = (
            parent.body["location"].as_str().unwrap_or_default().to_owned(),
            parent.etag.clone(),
        );
        let Some(found) = cx.state.store.get(&call.id) else {
            return Ok(Reply::new(204));
        };
        if found.state != ProvisioningState::Deleting {
            write::precondition(cx, call, Some(&etag))?;
            rules::not_in_use(cx, &call.id)?;
            rules::vnet_is_free(cx, call, &vnet)?;
        }
        let reply = write::delete(cx, call, self, "DeleteSubnetOperation", &region, &DELETE);
        touch(cx, &vnet);
        Ok(reply)
    }

    fn etag(&self, cx: &Context<'_>, resource: &Resource) -> String {
        cx.state
            .store
            .get(&vnet_id(&resource.id))
            .map(|vnet| vnet.etag.clone())
            .unwrap_or_default()
    }

    fn render(&self, cx: &Context<'_>, resource: &Resource) -> Value {
        let mut shown = resource.body.clone();
        shown["id"] = json!(resource.id);
        shown["name"] = json!(resource.id.name());
        shown["type"] = json!(TYPE);
        shown["etag"] = json!(self.etag(cx, resource));
        shown["properties"]["provisioningState"] = json!(state(cx, resource).as_str());
        let used: Vec<Value> = address::users(cx, &resource.id)
            .map(|(_, by)| json!({ "id": by }))
            .collect();
        if !used.is_empty() {
            shown["properties"]["ipConfigurations"] = json!(used);
        }
        let endpoints: Vec<Value> = endpoints(cx, &resource.id)
            .into_iter()
            .map(|id| json!({ "id": id }))
            .collect();
        if !endpoints.is_empty() {
            shown["properties"]["privateEndpoints"] = json!(endpoints);
        }
        shown
    }

    fn install(&self, cx: &mut Context<'_>, id: &ResourceId, body: Value) -> Result<(), ArmError> {
        cx.store(TYPE, id, normalise(&body));
        touch(cx, &vnet_id(id));
        Ok(())
    }

    fn finish(&self, cx: &mut Context<'_>, operation: &Operation) {
        kind::finish(cx, operation);
        touch(cx, &vnet_id(&operation.target));
    }

    fn removed(&self, cx: &mut Context<'_>, gone: &Resource) {
        cx.state.addresses.remove(&gone.id.key());
        touch(cx, &vnet_id(&gone.id));
    }
}

/// The VNet that a subnet is in.
pub(crate) fn vnet_id(subnet: &ResourceId) -> ResourceId {
    subnet.parent().unwrap_or_else(|| subnet.clone())
}

/// A VNet and its subnets share one etag; any write among them changes it.
fn touch(cx: &mut Context<'_>, vnet: &ResourceId) {
    let etag = cx.weak_etag();
    if let Some(vnet) = cx.state.store.get_mut(vnet) {
        vnet.etag = etag;
    }
}

/// The state shown, which may lag behind the end of the operation.
pub(crate) fn state(cx: &Context<'_>, subnet: &Resource) -> ProvisioningState {
    let lag_s = cx.state.switches.subnet_lag_s;
    let age_s = cx.now.duration_since(subnet.settled).as_secs_f64();
    let written = subnet.operation.as_deref().and_then(|id| cx.state.operations.get(id));
    let lags = lag_s > 0.0 && age_s < lag_s && written.is_some_and(|operation| operation.started != subnet.settled);
    if subnet.state == ProvisioningState::Succeeded && lags {
        ProvisioningState::Updating
    } else {
        subnet.state
    }
}

/// What is stored of a given subnet: defaults filled in, read-only fields dropped.
pub(crate) fn normalise(given: &Value) -> Value {
    let mut properties = match &given["properties"] {
        Value::Object(fields) => fields.clone(),
        _ => serde_json::Map::new(),
    };
    properties.retain(|name, value| !READ_ONLY.contains(&name.as_str()) && !value.is_null());
    for (name, _) in LINKS {
        if let Some(id) = properties
            .get(name)
            .and_then(|reference| reference["id"].as_str())
            .map(str::to_owned)
        {
            properties.insert(name.to_owned(), json!({ "id": id }));
        }
    }
    properties.entry("delegations").or_insert_with(|| json!([]));
    properties
        .entry("privateEndpointNetworkPolicies")
        .or_insert_with(|| json!("Disabled"));
    properties
        .entry("privateLinkServiceNetworkPolicies")
        .or_insert_with(|| json!("Enabled"));
    json!({ "properties": properties })
}

/// Private endpoints with an address in the subnet.
pub(crate) fn endpoints(cx: &Context<'_>, subnet: &ResourceId) -> Vec<String> {
    owners(cx, subnet, "privateEndpoint")
}

/// The resources for whose sake network interfaces in the subnet exist.
pub(crate) fn owners(cx: &Context<'_>, subnet: &ResourceId, field: &str) -> Vec<String> {
    let mut owners = Vec::new();
    for (_, user) in address::users(cx, subnet) {
        let nic = ResourceId::parse(user).ok().and_then(|user| user.parent());
        let nic = nic.and_then(|nic| cx.state.store.get(&nic));
        let owner = nic.and_then(|nic| nic.property(field)["id"].as_str());
        if let Some(owner) = owner.filter(|owner| !owners.iter().any(|known| known == owner)) {
            owners.push(owner.to_owned());
        }
    }
    owners
}

/// Whether a subnet belongs to another service.
pub(crate) fn is_delegated(subnet: &Resource) -> bool {
    !items(subnet.property("delegations")).is_empty()
}
