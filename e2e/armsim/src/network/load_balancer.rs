//! Load balancers: frontends with their private addresses. Rules, probes and pools are kept and shown as given.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::kind::{Call, Kind, Reply};
use crate::engine::page;
use crate::engine::preset::Pace;
use crate::engine::resource::{ProvisioningState, Resource};

use super::address;
use super::link_service;
use super::write::{self, Write, items, nested};

/// Microsoft.Network/loadBalancers.
pub(crate) struct LoadBalancers;
/// Microsoft.Network/loadBalancers/frontendIPConfigurations: only read, part of the load balancer.
pub(crate) struct Frontends;

pub(crate) const TYPE: &str = "Microsoft.Network/loadBalancers";
pub(crate) const FRONTENDS: &str = "frontendIPConfigurations";

/// With a frontend in a subnet; without one a write is over when it is answered.
const PUT: Pace = Pace::new(3.0, 3);
const DELETE: Pace = Pace::new(10.0, 10);
/// The other lists of a load balancer.
const LISTS: [&str; 6] = [
    "backendAddressPools",
    "loadBalancingRules",
    "probes",
    "inboundNatRules",
    "outboundRules",
    "inboundNatPools",
];

impl Kind for LoadBalancers {
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
        let (body, addresses) = normalise(cx, &call.id, &location, &call.body)?;
        in_use(cx, &call.id, &body)?;
        let name = "PutLoadBalancerOperation";
        let pace = if addresses.is_empty() { &Pace::AT_ONCE } else { &PUT };
        let write = Write {
            kind: self,
            id: &call.id,
            body,
            name,
            region: location,
            create: pace,
            update: pace,
        };
        let reply = write::put(cx, call, write);
        settle_addresses(cx, &call.id, addresses);
        Ok(reply)
    }

    fn delete(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let Some(found) = cx.state.store.get(&call.id) else {
            return Ok(Reply::new(204));
        };
        let region = found.body["location"].as_str().unwrap_or_default().to_owned();
        write::precondition(cx, call, Some(&found.etag))?;
        if found.state != ProvisioningState::Deleting
            && let Some(service) = link_service::on_load_balancer(cx, &call.id).first()
        {
            let message = format!(
                "Load balancer {} cannot be deleted since it is used by private link service {service}. Please delete the \
                 private link service before deleting the load balancer.",
                call.id
            );
            return Err(ArmError::service(
                400,
                "CannotDeleteLoadBalancerWithPrivateLinkService",
                message,
            ));
        }
        Ok(write::delete(
            cx,
            call,
            self,
            "DeleteLoadBalancerOperation",
            &region,
            &DELETE,
        ))
    }

    fn render(&self, _cx: &Context<'_>, resource: &Resource) -> Value {
        let mut shown = resource.body.clone();
        shown["id"] = json!(resource.id);
        shown["name"] = json!(resource.id.name());
        shown["type"] = json!(TYPE);
        shown["etag"] = json!(resource.etag);
        shown["properties"]["provisioningState"] = json!(resource.state.as_str());
        for list in LISTS.into_iter().chain([FRONTENDS]) {
            let all = items(resource.property(list)).iter();
            shown["properties"][list] = all.map(|item| part(item, resource, list)).collect();
        }
        shown
    }

    fn install(&self, cx: &mut Context<'_>, id: &ResourceId, body: Value) -> Result<(), ArmError> {
        let location = write::region(body["location"].as_str().unwrap_or_default());
        let (body, addresses) = normalise(cx, id, &location, &body)?;
        cx.store(TYPE, id, body);
        let id = cx.find(id)?.id.clone();
        settle_addresses(cx, &id, addresses);
        Ok(())
    }

    fn removed(&self, cx: &mut Context<'_>, gone: &Resource) {
        address::release(cx, &gone.id);
        cx.state.services.retain(|service| !gone.id.is(&service.load_balancer));
    }
}

impl Kind for Frontends {
    fn resource_type(&self) -> &'static str {
        "Microsoft.Network/loadBalancers/frontendIPConfigurations"
    }

    fn first_version(&self) -> &'static str {
        "2015-05-01-preview"
    }

    fn get(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let parent = call.id.parent().unwrap_or_else(|| call.id.clone());
        let balancer = cx.find(&parent)?;
        let found = frontend(balancer, call.id.name()).ok_or_else(|| ArmError::nested_not_found(&call.id))?;
        Ok(Reply::new(200)
            .body(part(found, balancer, FRONTENDS))
            .etag(&balancer.etag))
    }

    fn list(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let balancer = cx.find(&call.id)?;
        let all = items(balancer.property(FRONTENDS))
            .iter()
            .map(|item| part(item, balancer, FRONTENDS));
        page::page(
            call,
            all.map(|shown| (shown["id"].to_string().to_ascii_lowercase(), shown))
                .collect(),
            1000,
            |shown| shown,
        )
    }

    fn install(&self, _cx: &mut Context<'_>, _id: &ResourceId, _body: Value) -> Result<(), ArmError> {
        Err(ArmError::invalid_content(
            "a frontend is part of its load balancer: put that",
        ))
    }
}

/// One item of a list as it is shown: with the load balancer's state, and a frontend with what refers to it.
fn part(item: &Value, balancer: &Resource, list: &str) -> Value {
    let mut shown = nested(item, balancer, list, TYPE);
    shown["properties"]["provisioningState"] = json!(balancer.state.as_str());
    if list != FRONTENDS {
        return shown;
    }
    let id = shown["id"].as_str().unwrap_or_default().to_ascii_lowercase();
    for list in ["inboundNatPools", "inboundNatRules", "loadBalancingRules"] {
        let refers = |item: &&Value| {
            let frontend = item["properties"]["frontendIPConfiguration"]["id"].as_str();
            frontend.is_some_and(|frontend| frontend.to_ascii_lowercase() == id)
        };
        let users = items(balancer.property(list)).iter().filter(refers);
        let users: Vec<Value> = users
            .map(|item| json!({ "id": nested(item, balancer, list, TYPE)["id"] }))
            .collect();
        if !users.is_empty() {
            shown["properties"][list] = json!(users);
        }
    }
    shown
}

/// What the service fills in of a NAT pool.
fn pool_defaults(properties: &mut serde_json::Map<String, Value>) {
    properties.entry("idleTimeoutInMinutes").or_insert_with(|| json!(4));
    for name in [
        "enableFloatingIP",
        "enableDestinationServiceEndpoint",
        "enableTcpReset",
        "allowBackendPortConflict",
    ] {
        properties.entry(name).or_insert_with(|| json!(false));
    }
}

/// The frontend of that name, in any case.
pub(crate) fn frontend<'a>(balancer: &'a Resource, name: &str) -> Option<&'a Value> {
    let mut all = items(balancer.property(FRONTENDS)).iter();
    all.find(|item| {
        item["name"]
            .as_str()
            .is_some_and(|known| known.eq_ignore_ascii_case(name))
    })
}

/// Addresses to take once the load balancer is stored: subnet, address, frontend.
type Addresses = Vec<(ResourceId, Ipv4Addr, String)>;

/// What is stored of a given load balancer. Internal frontends get an address and keep it.
fn normalise(
    cx: &mut Context<'_>,
    id: &ResourceId,
    location: &str,
    given: &Value,
) -> Result<(Value, Addresses), ArmError> {
    let mut body = write::tracked(location, given);
    let sku = given["sku"]["name"].as_str().unwrap_or("Basic");
    body["sku"] = json!({ "name": sku, "tier": given["sku"]["tier"].as_str().unwrap_or("Regional") });
    let guid = cx
        .state
        .store
        .get(id)
        .map(|known| known.property("resourceGuid").clone());
    body["properties"]["resourceGuid"] = guid.unwrap_or_else(|| json!(cx.guid()));
    for list in LISTS {
        let kept = items(&given["properties"][list]).iter().map(|item| {
            let mut kept = json!({ "name": item["name"], "properties": item["properties"] });
            if let Some(properties) = kept["properties"].as_object_mut() {
                properties.remove("provisioningState");
                if list == "inboundNatPools" {
                    pool_defaults(properties);
                }
            }
            kept
        });
        body["properties"][list] = kept.collect();
    }
    let mut addresses = Addresses::new();
    let mut frontends = Vec::new();
    for item in items(&given["properties"][FRONTENDS]) {
        frontends.push(one_frontend(cx, id, item, &mut addresses)?);
    }
    body["properties"][FRONTENDS] = json!(frontends);
    Ok((body, addresses))
}

fn one_frontend(cx: &Context<'_>, id: &ResourceId, item: &Value, addresses: &mut Addresses) -> Result<Value, ArmError> {
    let name = item["name"]
        .as_str()
        .filter(|name| !name.is_empty() && !name.contains('/'));
    let Some(name) = name else {
        return Err(ArmError::invalid_content("A frontend IP configuration needs a name."));
    };
    let given = &item["properties"];
    let method = given["privateIPAllocationMethod"].as_str().unwrap_or("Dynamic");
    let mut properties = json!({ "privateIPAllocationMethod": method });
    if let Some(public) = given["publicIPAddress"]["id"].as_str() {
        properties["publicIPAddress"] = json!({ "id": public });
    }
    if let Some(reference) = given["subnet"]["id"].as_str() {
        let subnet = write::referenced(cx, id, reference)?;
        let before = cx.state.store.get(id).and_then(|balancer| frontend(balancer, name));
        let before = before.filter(|before| {
            before["properties"]["subnet"]["id"]
                .as_str()
                .is_some_and(|old| subnet.id.is(old))
        });
        let before = before.and_then(|before| before["properties"]["privateIPAddress"].as_str());
        let wanted = given["privateIPAddress"].as_str().filter(|address| !address.is_empty());
        let wanted = wanted.or(if method.eq_ignore_ascii_case("Static") {
            None
        } else {
            before
        });
        let taken: Vec<Ipv4Addr> = addresses.iter().map(|(_, address, _)| *address).collect();
        let own = before
            .filter(|before| wanted.is_none_or(|wanted| wanted == *before))
            .and_then(|before| before.parse().ok());
        let address = match own {
            Some(own) => own,
            None => address::choose(cx, subnet, wanted, &taken)?,
        };
        addresses.push((subnet.id.clone(), address, name.to_owned()));
        properties["subnet"] = json!({ "id": subnet.id });
        properties["privateIPAddress"] = json!(address.to_string());
        properties["privateIPAddressVersion"] = json!("IPv4");
    }
    let mut kept = json!({ "name": name, "properties": properties });
    if let Some(zones) = item.get("zones") {
        kept["zones"] = zones.clone();
    }
    Ok(kept)
}

/// Frees what the frontends had and takes what they have now.
fn settle_addresses(cx: &mut Context<'_>, id: &ResourceId, addresses: Addresses) {
    address::release(cx, id);
    for (subnet, address, name) in addresses {
        address::take(cx, &subnet, address, id.child(FRONTENDS, &name).to_string());
    }
}

/// A frontend that a private link service uses cannot be left out.
fn in_use(cx: &Context<'_>, id: &ResourceId, body: &Value) -> Result<(), ArmError> {
    let Some(balancer) = cx.state.store.get(id) else {
        return Ok(());
    };
    for item in items(balancer.property(FRONTENDS)) {
        let name = item["name"].as_str().unwrap_or_default();
        let stays = items(&body["properties"][FRONTENDS]).iter().any(|kept| {
            kept["name"]
                .as_str()
                .is_some_and(|kept| kept.eq_ignore_ascii_case(name))
        });
        let frontend = id.child(FRONTENDS, name);
        if !stays && let Some(service) = link_service::on_frontend(cx, &frontend).first() {
            let message =
                format!("Frontend IP configuration {frontend} cannot be deleted since it is used by {service}.");
            return Err(ArmError::service(
                400,
                "FrontendIPConfigurationInUseByPrivateLinkService",
                message,
            ));
        }
    }
    Ok(())
}
