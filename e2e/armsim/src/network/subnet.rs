//! Subnets: their life, what they show, who uses them, and the etag that they share with their VNet.

use serde_json::{Map, Value, json};

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::kind::{Call, LinkedScope};
use crate::engine::preset::Pace;
use crate::engine::resource::{ProvisioningState, Resource};

use super::address;
use super::endpoint;
use super::link_service;
use super::reference::{in_region, must_be_provisioned, referenced, referring};
use super::shape::{defaults, filled, id_of, ids, items, nested, only_id, only_ids, properties, region, show, spell};
use super::subnet_rules as rules;
use super::written::{About, Plan, Put, Written};

/// Microsoft.Network/virtualNetworks/subnets.
pub(crate) struct Subnets;

pub(crate) const TYPE: &str = "Microsoft.Network/virtualNetworks/subnets";

static ABOUT: About = About {
    resource_type: TYPE,
    first_version: "2015-05-01-preview",
    noun: "Subnet",
    create: Pace::new(3.0, 3),
    update: Pace::new(3.0, 3),
    delete: Pace::new(10.0, 10),
};

/// What the service adds to a subnet and ignores in a PUT.
const READ_ONLY: [&str; 7] = [
    "ipConfigurations",
    "ipConfigurationProfiles",
    "privateEndpoints",
    "resourceNavigationLinks",
    "serviceAssociationLinks",
    "purpose",
    "interfaceEndpoints",
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

impl Written for Subnets {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn needs(&self, _cx: &Context<'_>, call: &Call<'_>) -> Vec<LinkedScope> {
        joins(&call.body)
    }

    fn plan(&self, cx: &mut Context<'_>, put: &Put<'_>) -> Result<Plan, ArmError> {
        let body = normalise(put.given, put.location);
        if let Some(call) = put.call {
            rules::check(cx, put, &body)?;
            let known = cx.state.store.get(put.id);
            if known.is_none_or(|known| known.body != body || !known.is_idle()) {
                rules::vnet_is_free(cx, call, &vnet_id(put.id))?;
                rules::users_are_idle(cx, put.id)?;
            }
        }
        Ok(Plan::new(body))
    }

    fn may_go(&self, cx: &Context<'_>, call: &Call<'_>, found: &Resource) -> Result<(), ArmError> {
        rules::not_in_use(cx, &found.id)?;
        rules::vnet_is_free(cx, call, &vnet_id(&found.id))
    }

    fn show(&self, cx: &Context<'_>, resource: &Resource, shown: &mut Value) {
        shown["properties"]["provisioningState"] = json!(state(cx, resource).as_str());
        let users = address::users(cx, &resource.id).map(|(_, by)| json!({ "id": by }));
        let services = referring(cx, &resource.id, link_service::TYPE);
        let services = services.flat_map(|service| link_service::configurations_in(service, &resource.id));
        let configurations = users.chain(services).map(|mut item| {
            if let (true, Some(id)) = (cx.reads, id_of(&item)) {
                item["id"] = json!(in_capitals(id));
            }
            item
        });
        show(shown, "ipConfigurations", filled(configurations.collect()));
        show(
            shown,
            "privateEndpoints",
            ids(referring(cx, &resource.id, endpoint::TYPE)),
        );
        let etag = shown["etag"].clone();
        let delegations = items(resource.property("delegations")).iter().map(|item| {
            let mut shown = nested(item, resource, "delegations", TYPE, ProvisioningState::Succeeded);
            shown["etag"].clone_from(&etag);
            shown["properties"]["actions"] = json!(["Microsoft.Network/virtualNetworks/subnets/action"]);
            shown
        });
        shown["properties"]["delegations"] = delegations.collect();
        let endpoints = shown["properties"]
            .get_mut("serviceEndpoints")
            .and_then(Value::as_array_mut);
        for service in endpoints.into_iter().flatten() {
            service["provisioningState"] = json!("Succeeded");
        }
    }

    fn gone(&self, cx: &mut Context<'_>, gone: &Resource) {
        cx.state.addresses.remove(&gone.id.key());
    }
}

/// What a caller must be allowed to join to put this subnet.
pub(crate) fn joins(given: &Value) -> Vec<LinkedScope> {
    let link = |(field, action): (&str, &'static str)| {
        let id = id_of(&given["properties"][field])?.to_owned();
        Some(LinkedScope { id, action })
    };
    LINKS.into_iter().filter_map(link).collect()
}

/// An id as reads of a subnet show those of its IP configurations: the names of group and resources in capitals, those
/// of provider and types as ever.
fn in_capitals(id: &str) -> String {
    let named = |at: usize| at == 4 || (at >= 8 && at.is_multiple_of(2));
    let parts = id.split('/').enumerate();
    let parts = parts.map(|(at, part)| {
        if named(at) {
            part.to_uppercase()
        } else {
            part.to_owned()
        }
    });
    parts.collect::<Vec<_>>().join("/")
}

/// The VNet that a subnet is in.
pub(crate) fn vnet_id(subnet: &ResourceId) -> ResourceId {
    subnet.parent().unwrap_or_else(|| subnet.clone())
}

/// The state shown, which may lag behind the end of the operation.
pub(crate) fn state(cx: &Context<'_>, subnet: &Resource) -> ProvisioningState {
    let lag_s = cx.state.switches.subnet_lag_s;
    let age_s = cx.now.duration_since(subnet.changed).as_secs_f64();
    let written = subnet.operation.as_deref().and_then(|id| cx.state.operations.get(id));
    let lags = age_s < lag_s && written.is_some_and(|operation| operation.ends == Some(subnet.changed));
    if subnet.state == ProvisioningState::Succeeded && lags {
        ProvisioningState::Updating
    } else {
        subnet.state
    }
}

/// What is stored of a given subnet: defaults filled in, read-only fields dropped.
pub(crate) fn normalise(given: &Value, location: &str) -> Value {
    let mut kept = properties(given, &READ_ONLY);
    for (name, _) in LINKS {
        only_id(&mut kept, name);
    }
    only_ids(&mut kept, "serviceEndpointPolicies");
    // Clients that send every list send empty ones too.
    kept.retain(|name, value| name != "addressPrefixes" || !items(value).is_empty());
    let policies = [
        "Enabled",
        "Disabled",
        "NetworkSecurityGroupEnabled",
        "RouteTableEnabled",
    ];
    for name in ["privateEndpointNetworkPolicies", "privateLinkServiceNetworkPolicies"] {
        spell(&mut kept, name, &policies);
    }
    defaults(
        &mut kept,
        &json!({
            "delegations": [],
            "privateEndpointNetworkPolicies": "Disabled",
            "privateLinkServiceNetworkPolicies": "Enabled",
        }),
    );
    kept.insert("delegations".to_owned(), delegations(&kept));
    if let Some(endpoints) = kept.get("serviceEndpoints").cloned() {
        let stored = items(&endpoints).iter().map(|item| service_endpoint(item, location));
        kept.insert("serviceEndpoints".to_owned(), stored.collect());
    }
    json!({ "properties": kept })
}

fn delegations(kept: &Map<String, Value>) -> Value {
    let stored = items(&kept["delegations"]).iter().map(|item| {
        let service = &item["properties"]["serviceName"];
        json!({ "name": item["name"], "properties": { "serviceName": service } })
    });
    stored.collect()
}

/// The service decides where an endpoint leads; by default to the VNet's own region.
fn service_endpoint(item: &Value, location: &str) -> Value {
    let given = items(&item["locations"]).iter().filter_map(Value::as_str).map(region);
    let mut locations: Vec<String> = given.collect();
    if locations.is_empty() {
        locations.push(location.to_owned());
    }
    json!({ "service": item["service"], "locations": locations })
}

/// The subnet that a body refers to, if what has the address can be in it now: the subnet is provisioned, its VNet is in
/// the region of `put` and stays.
pub(crate) fn usable<'a>(cx: &'a Context<'_>, put: &Put<'_>, reference: &str) -> Result<&'a Resource, ArmError> {
    let found = referenced(cx, put.id, reference)?;
    must_be_provisioned(cx, found, state(cx, found), put.id)?;
    let vnet = cx.find(&vnet_id(&found.id))?;
    if vnet.state == ProvisioningState::Deleting {
        must_be_provisioned(cx, vnet, vnet.state, put.id)?;
    }
    in_region(put.id, put.location, vnet)?;
    Ok(found)
}

/// Whether a subnet belongs to another service.
pub(crate) fn is_delegated(subnet: &Resource) -> bool {
    !items(subnet.property("delegations")).is_empty()
}
