//! Load balancers: frontends with their private addresses, pools, rules, probes, and who of them refers to whom.

use serde_json::{Value, json};

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::kind::{Call, LinkedScope};
use crate::engine::preset::Pace;
use crate::engine::resource::Resource;

use super::address::{self, Claim};
use super::link_service;
use super::load_balancer_rules as rules;
use super::nic;
use super::reference::referenced;
use super::shape::{
    by_name, defaults, filled, id_of, items, named, nested, properties, show, sku_by_version, spell, tracked,
};
use super::write::resource_guid;
use super::written::{About, Plan, Put, Written};

/// Microsoft.Network/loadBalancers.
pub(crate) struct LoadBalancers;

pub(crate) const TYPE: &str = "Microsoft.Network/loadBalancers";
pub(crate) const FRONTENDS: &str = "frontendIPConfigurations";
pub(crate) const POOLS: &str = "backendAddressPools";
const ADDRESSES: &str = "loadBalancerBackendAddresses";

static ABOUT: About = About {
    resource_type: TYPE,
    first_version: "2015-05-01-preview",
    noun: "LoadBalancer",
    create: Pace::new(3.0, 3),
    update: Pace::new(3.0, 3),
    delete: Pace::new(10.0, 10),
};

/// The lists whose parts network interfaces are members of.
const MEMBER_LISTS: [&str; 2] = [POOLS, "inboundNatRules"];
/// The lists beside the frontends.
pub(crate) const LISTS: [&str; 6] = [
    POOLS,
    "loadBalancingRules",
    "probes",
    "inboundNatRules",
    "outboundRules",
    "inboundNatPools",
];

/// Who names whom: the list of those that name, the field, the list of what is named.
pub(crate) const NAMES: [(&str, &str, &str); 9] = [
    ("inboundNatPools", "frontendIPConfiguration", FRONTENDS),
    ("inboundNatRules", "frontendIPConfiguration", FRONTENDS),
    ("loadBalancingRules", "frontendIPConfiguration", FRONTENDS),
    ("outboundRules", "frontendIPConfigurations", FRONTENDS),
    ("loadBalancingRules", "backendAddressPool", POOLS),
    ("loadBalancingRules", "backendAddressPools", POOLS),
    ("outboundRules", "backendAddressPool", POOLS),
    ("inboundNatRules", "backendAddressPool", POOLS),
    ("loadBalancingRules", "probe", "probes"),
];

/// What the service adds to a part, to be ignored in a PUT.
const READ_ONLY: [&str; 7] = [
    "backendIPConfigurations",
    "backendIPConfiguration",
    "inboundNatPools",
    "inboundNatRules",
    "loadBalancingRules",
    "outboundRule",
    "outboundRules",
];

impl Written for LoadBalancers {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn needs(&self, _cx: &Context<'_>, call: &Call<'_>) -> Vec<LinkedScope> {
        rules::joins(&call.body["properties"])
    }

    fn plan(&self, cx: &mut Context<'_>, put: &Put<'_>) -> Result<Plan, ArmError> {
        let given = named(put.id, &put.given["properties"][FRONTENDS])?;
        if put.call.is_some() {
            rules::check(cx, put, &given)?;
        }
        let mut body = tracked(put.location, put.given);
        let sku = &put.given["sku"];
        let name = sku["name"].as_str().unwrap_or("Basic");
        body["sku"] = json!({ "name": name, "tier": sku["tier"].as_str().unwrap_or("Regional") });
        let known = cx.state.store.get(put.id);
        let old = known.map(|known| known.property(FRONTENDS).clone()).unwrap_or_default();
        let mut claims: Vec<Claim> = Vec::new();
        let mut frontends = Vec::new();
        for (name, item) in given {
            frontends.push(one_frontend(cx, put, name, item, &old, &mut claims)?);
        }
        body["properties"] = json!({ FRONTENDS: frontends, "resourceGuid": resource_guid(cx, put.id) });
        for list in LISTS {
            let kept = named(put.id, &put.given["properties"][list])?;
            body["properties"][list] = kept.into_iter().map(|(name, item)| stored(list, name, item)).collect();
        }
        let id = put.id.clone();
        let at_once = claims.is_empty();
        let old = address::claims_of(&old);
        let left_out = known_members(cx, put).into_iter();
        let left_out = left_out.filter(|(list, name)| by_name(&body["properties"][list], name).is_none());
        let left_out: Vec<ResourceId> = left_out.map(|(list, name)| put.id.child(list, &name)).collect();
        let mut plan = Plan::new(body).then(move |cx| {
            address::settle(cx, &id, FRONTENDS, &old, &claims);
            left_out.iter().for_each(|part| nic::leave(cx, part));
        });
        plan.at_once = at_once;
        Ok(plan)
    }

    fn may_go(&self, cx: &Context<'_>, _call: &Call<'_>, found: &Resource) -> Result<(), ArmError> {
        let Some(service) = link_service::on_load_balancer(cx, &found.id).into_iter().next() else {
            return Ok(());
        };
        let message = format!(
            "Load balancer {} cannot be deleted since it is used by private link service {service}. Please delete the private \
             link service before deleting the load balancer.",
            found.id
        );
        let code = "CannotDeleteLoadBalancerWithPrivateLinkService";
        Err(ArmError::service(400, code, message))
    }

    fn show(&self, cx: &Context<'_>, resource: &Resource, shown: &mut Value) {
        sku_by_version(cx, shown);
        for list in LISTS.into_iter().chain([FRONTENDS]) {
            let all = items(resource.property(list)).iter();
            shown["properties"][list] = all.map(|item| part(cx, item, resource, list)).collect();
        }
    }

    fn gone(&self, cx: &mut Context<'_>, gone: &Resource) {
        let old = address::claims_of(gone.property(FRONTENDS));
        address::settle(cx, &gone.id, FRONTENDS, &old, &[]);
        for list in MEMBER_LISTS {
            for name in items(gone.property(list))
                .iter()
                .filter_map(|item| item["name"].as_str())
            {
                nic::leave(cx, &gone.id.child(list, name));
            }
        }
        cx.state.services.retain(|service| !gone.id.is(&service.load_balancer));
    }
}

/// The pools and rules that the load balancer has now: list and name.
fn known_members(cx: &Context<'_>, put: &Put<'_>) -> Vec<(&'static str, String)> {
    let Some(known) = cx.state.store.get(put.id) else {
        return vec![];
    };
    let names = |list: &'static str| {
        let all = items(known.property(list)).iter();
        all.filter_map(move |item| Some((list, item["name"].as_str()?.to_owned())))
    };
    MEMBER_LISTS.into_iter().flat_map(names).collect()
}

/// One item of a list as it is shown: with the load balancer's state, and with what names it.
fn part(cx: &Context<'_>, item: &Value, balancer: &Resource, list: &str) -> Value {
    let mut shown = nested(item, balancer, list, TYPE, balancer.state);
    let id = balancer.id.child(list, item["name"].as_str().unwrap_or_default());
    for (by, field, _) in NAMES.iter().filter(|(_, _, named)| *named == list) {
        let users = items(balancer.property(by)).iter();
        let users = users.filter(|user| {
            let named = &user["properties"][field];
            let mut all = items(named).iter().chain(Some(named)).filter_map(id_of);
            all.any(|named| id.is(named))
        });
        let users = users
            .map(|user| json!({ "id": format!("{}/{by}/{}", balancer.id, user["name"].as_str().unwrap_or_default()) }));
        let users: Vec<Value> = users.collect();
        if shown["properties"][by].is_null() {
            show(&mut shown, by, filled(users));
        }
    }
    if list == POOLS {
        show(&mut shown, "backendIPConfigurations", filled(members(cx, &id)));
        let addresses = shown["properties"][ADDRESSES].as_array_mut();
        addresses
            .into_iter()
            .flatten()
            .for_each(|item| name_address(item, &id, balancer));
    }
    shown
}

/// An address of a pool is shown as a resource below the pool.
fn name_address(item: &mut Value, pool: &ResourceId, balancer: &Resource) {
    let name = item["name"].as_str().unwrap_or_default();
    item["id"] = json!(format!("{pool}/{ADDRESSES}/{name}"));
    item["type"] = json!(format!("{TYPE}/{POOLS}/{ADDRESSES}"));
    item["etag"] = json!(balancer.etag);
    item["properties"]["provisioningState"] = json!(balancer.state.as_str());
}

/// The IP configurations of network interfaces in a backend pool.
fn members(cx: &Context<'_>, pool: &ResourceId) -> Vec<Value> {
    let mut members = Vec::new();
    for interface in super::reference::referring(cx, pool, nic::TYPE) {
        for item in items(interface.property(nic::CONFIGURATIONS)) {
            let mut pools = items(&item["properties"][nic::LISTS[0]]).iter().filter_map(id_of);
            if pools.any(|named| pool.is(named)) {
                let name = item["name"].as_str().unwrap_or_default();
                members.push(json!({ "id": interface.id.child(nic::CONFIGURATIONS, name) }));
            }
        }
    }
    members
}

/// The frontend of that name, in any case.
pub(crate) fn frontend<'a>(balancer: &'a Resource, name: &str) -> Option<&'a Value> {
    by_name(balancer.property(FRONTENDS), name)
}

/// An item of a list as it is stored, with what the service fills in.
fn stored(list: &str, name: &str, item: &Value) -> Value {
    let mut kept = properties(item, &READ_ONLY);
    if let Some(addresses) = kept.get_mut(ADDRESSES).and_then(Value::as_array_mut) {
        for address in addresses {
            *address = json!({ "name": address["name"], "properties": properties(address, &[]) });
        }
    }
    spell(&mut kept, "protocol", &["Tcp", "Udp", "All", "Http", "Https"]);
    let usual = match list {
        "inboundNatPools" | "inboundNatRules" => json!({
            "protocol": "Tcp",
            "idleTimeoutInMinutes": 4,
            "enableFloatingIP": false,
            "enableDestinationServiceEndpoint": false,
            "enableTcpReset": false,
            "allowBackendPortConflict": false,
        }),
        "loadBalancingRules" => json!({
            "idleTimeoutInMinutes": 4,
            "enableFloatingIP": false,
            "enableDestinationServiceEndpoint": false,
            "enableTcpReset": false,
            "allowBackendPortConflict": false,
            "loadDistribution": "Default",
            "disableOutboundSnat": false,
        }),
        "probes" => json!({
            "intervalInSeconds": 15,
            "numberOfProbes": 2,
            "probeThreshold": 1,
            "noHealthyBackendsBehavior": "AllProbedDown",
        }),
        "outboundRules" => json!({ "allocatedOutboundPorts": 0, "enableTcpReset": false, "idleTimeoutInMinutes": 4 }),
        POOLS => json!({ ADDRESSES: [] }),
        _ => json!({}),
    };
    defaults(&mut kept, &usual);
    json!({ "name": name, "properties": kept })
}

/// A frontend as it is stored. An internal one gets an address and keeps it.
fn one_frontend(
    cx: &Context<'_>,
    put: &Put<'_>,
    name: &str,
    item: &Value,
    old: &Value,
    claims: &mut Vec<Claim>,
) -> Result<Value, ArmError> {
    let given = &item["properties"];
    let mut kept = json!({ "privateIPAllocationMethod": address::method(given) });
    for field in ["publicIPAddress", "publicIPPrefix", "gatewayLoadBalancer"] {
        if let Some(id) = id_of(&given[field]) {
            kept[field] = json!({ "id": id });
        }
    }
    if let Some(reference) = id_of(&given["subnet"]) {
        let subnet = referenced(cx, put.id, reference)?;
        let claim = address::claim(cx, subnet, name, given, by_name(old, name), claims)?;
        kept["subnet"] = json!({ "id": subnet.id });
        kept["privateIPAddress"] = json!(claim.address.to_string());
        kept["privateIPAddressVersion"] = json!("IPv4");
        claims.push(claim);
    }
    let mut kept = json!({ "name": name, "properties": kept });
    if let Some(zones) = item.get("zones").filter(|zones| !items(zones).is_empty()) {
        kept["zones"] = zones.clone();
    }
    Ok(kept)
}
