//! Private link services: what may be created, what never changes, the alias, and what deletion needs.

use serde_json::{Value, json};

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::kind::{Call, Kind, LinkedScope};
use crate::engine::operation::{Operation, OperationStatus, Verb};
use crate::engine::preset::Pace;
use crate::engine::resource::{ProvisioningState, Resource};

use super::connection;
use super::link_service_rules as rules;
use super::load_balancer;
use super::nic::{self, IpConfiguration};
use super::reference::{missing, referring};
use super::shape::{by_name, id_of, items, nested, tracked};
use super::written::{About, Plan, Put, Written};

/// Microsoft.Network/privateLinkServices.
pub(crate) struct PrivateLinkServices;

pub(crate) const TYPE: &str = "Microsoft.Network/privateLinkServices";
pub(crate) const FRONTENDS: &str = "loadBalancerFrontendIpConfigurations";

static ABOUT: About = About {
    resource_type: TYPE,
    first_version: "2019-04-01",
    noun: "PrivateLinkService",
    create: Pace::new(12.0, 10),
    update: Pace::new(10.0, 10),
    delete: Pace::new(10.0, 10),
};

impl Written for PrivateLinkServices {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn needs(&self, cx: &Context<'_>, call: &Call<'_>) -> Vec<LinkedScope> {
        let properties = &call.body["properties"];
        let subnets = items(&properties["ipConfigurations"]).iter().map(|item| {
            (
                &item["properties"]["subnet"]["id"],
                "Microsoft.Network/virtualNetworks/subnets/join/action",
            )
        });
        let join = cx.state.switches.pls_needs_frontend_join;
        let frontends = items(&properties[FRONTENDS]).iter().filter(|_| join);
        let frontends = frontends.map(|item| {
            (
                &item["id"],
                "Microsoft.Network/loadBalancers/frontendIPConfigurations/join/action",
            )
        });
        let all = subnets.chain(frontends);
        all.filter_map(|(id, action)| {
            Some(LinkedScope {
                id: id.as_str()?.to_owned(),
                action,
            })
        })
        .collect()
    }

    fn plan(&self, cx: &mut Context<'_>, put: &Put<'_>) -> Result<Plan, ArmError> {
        let desired = match put.call {
            Some(_) => rules::check(cx, put)?,
            None => rules::DesiredService::of(cx, put.id, put.given)?,
        };
        let (body, addresses) = normalise(cx, put, &desired)?;
        let alias = body["properties"]["alias"]
            .as_str()
            .unwrap_or_default()
            .to_ascii_lowercase();
        let (nic, id, location) = (nic_id(&body), put.id.clone(), put.location.to_owned());
        let installed = put.call.is_none();
        Ok(Plan::new(body).then(move |cx| {
            cx.state.aliases.insert(alias, id.clone());
            if installed {
                known_since(cx, &id, 0);
            }
            if let Some(nic) = nic {
                nic::extend(cx, &nic, ("privateLinkService", &id, &location), &addresses);
            }
        }))
    }

    fn may_go(&self, cx: &Context<'_>, _call: &Call<'_>, found: &Resource) -> Result<(), ArmError> {
        let strict = cx.state.switches.rejected_connections_block_delete;
        let blocking = connection::of(cx, &found.id).filter(|found| strict || connection::status(found) != "Rejected");
        let blocking = blocking.count();
        if blocking == 0 {
            return Ok(());
        }
        let message = format!(
            "Private link service {} cannot be deleted since it has {blocking} private endpoint connection. Please delete all \
             private endpoint connections before deleting the private link service.",
            found.id
        );
        let code = "PrivateLinkServiceWithPrivateEndpointConnectionsCannotBeDeleted";
        Err(ArmError::service(400, code, message))
    }

    fn show(&self, cx: &Context<'_>, resource: &Resource, shown: &mut Value) {
        let all = items(resource.property("ipConfigurations")).iter();
        shown["properties"]["ipConfigurations"] = all
            .map(|item| nested(item, resource, "ipConfigurations", TYPE, ProvisioningState::Succeeded))
            .collect();
        let connections = connection::of(cx, &resource.id).map(|found| connection::Connections.render(cx, found));
        shown["properties"]["privateEndpointConnections"] = connections.collect();
    }

    fn ended(&self, cx: &mut Context<'_>, operation: &Operation) {
        if operation.status == OperationStatus::Succeeded && operation.verb == Verb::Put {
            known_since(cx, &operation.target, cx.now.as_millisecond());
        }
    }

    fn gone(&self, cx: &mut Context<'_>, gone: &Resource) {
        let alias = gone.property("alias").as_str().unwrap_or_default();
        cx.state.aliases.remove(&alias.to_ascii_lowercase());
        if let Some(nic) = nic_id(&gone.body) {
            cx.remove(&nic);
        }
    }
}

/// Notes when the alias became known; the first time stays.
fn known_since(cx: &mut Context<'_>, id: &ResourceId, since_ms: i64) {
    if let Some(service) = cx.state.store.get_mut(id)
        && service.hidden["known_since_ms"].is_null()
    {
        service.hidden = json!({ "known_since_ms": since_ms });
    }
}

/// Whether the alias can be used yet.
pub(crate) fn alias_is_known(cx: &Context<'_>, service: &Resource) -> bool {
    let lag_ms = (cx.state.switches.alias_lag_s * 1000.0) as i64;
    service.hidden["known_since_ms"]
        .as_i64()
        .is_some_and(|since| since.saturating_add(lag_ms) <= cx.now.as_millisecond())
}

/// The service of that alias, of whatever subscription.
pub(crate) fn by_alias<'a>(cx: &'a Context<'_>, alias: &str) -> Option<&'a Resource> {
    cx.state.store.get(cx.state.aliases.get(&alias.to_ascii_lowercase())?)
}

/// Whether callers of a subscription can use a service by its alias now.
pub(crate) fn is_visible(cx: &Context<'_>, service: &Resource, subscription: &str) -> bool {
    lists(service, "visibility", subscription) && alias_is_known(cx, service)
}

/// Whether a list of subscriptions (`visibility`, `autoApproval`) names one, or everybody.
pub(crate) fn lists(service: &Resource, list: &str, subscription: &str) -> bool {
    let named = items(&service.property(list)["subscriptions"])
        .iter()
        .filter_map(Value::as_str);
    named
        .into_iter()
        .any(|named| named == "*" || named.eq_ignore_ascii_case(subscription))
}

/// The services that use a frontend.
pub(crate) fn on_frontend(cx: &Context<'_>, frontend: &ResourceId) -> Vec<ResourceId> {
    referring(cx, frontend, TYPE).map(|found| found.id.clone()).collect()
}

/// The services that use any frontend of a load balancer. None uses more than one.
pub(crate) fn on_load_balancer(cx: &Context<'_>, balancer: &ResourceId) -> Vec<ResourceId> {
    let users = cx.state.store.referring_below(balancer);
    let services = users.filter(|user| user.resource_type == TYPE);
    services.map(|found| found.id.clone()).collect()
}

/// The service's IP configurations in a subnet, as the subnet shows them.
pub(crate) fn configurations_in<'a>(service: &'a Resource, subnet: &'a ResourceId) -> impl Iterator<Item = Value> + 'a {
    let all = items(service.property("ipConfigurations")).iter();
    let here = all.filter(|item| id_of(&item["properties"]["subnet"]).is_some_and(|id| subnet.is(id)));
    here.filter_map(|item| Some(json!({ "id": service.id.child("ipConfigurations", item["name"].as_str()?) })))
}

fn nic_id(body: &Value) -> Option<ResourceId> {
    ResourceId::parse(body["properties"]["networkInterfaces"][0]["id"].as_str()?).ok()
}

/// What is stored of a given service, and the NAT addresses that are new in it.
fn normalise(
    cx: &mut Context<'_>,
    put: &Put<'_>,
    desired: &rules::DesiredService,
) -> Result<(Value, Vec<IpConfiguration>), ArmError> {
    let (id, location, given) = (put.id, put.location, put.given);
    let known = cx
        .state
        .store
        .get(id)
        .map(|known| known.body["properties"].clone())
        .unwrap_or_default();
    let addresses = new_addresses(cx, &known, desired)?;
    let mut body = tracked(location, given);
    let from = &given["properties"];
    // Seed and control calls may set what the server makes for others.
    let installed = put.call.is_none();
    let mut make = |name: &str, new: &dyn Fn(String) -> Value| match (&known[name], &from[name]) {
        (Value::Null, given) if installed && !given.is_null() => given.clone(),
        (Value::Null, _) => new(cx.guid()),
        (old, _) => old.clone(),
    };
    let name = id.name().to_ascii_lowercase();
    let mut properties = json!({
        "resourceGuid": make("resourceGuid", &|guid| json!(guid)),
        "alias": make("alias", &|guid| json!(format!("{name}.{guid}.{location}.azure.privatelinkservice"))),
        "networkInterfaces": make("networkInterfaces", &|guid| {
            json!([{ "id": id.sibling(nic::TYPE, &format!("{}.nic.{guid}", id.name())) }])
        }),
        "fqdns": from["fqdns"].as_array().cloned().unwrap_or_default(),
        "enableProxyProtocol": from["enableProxyProtocol"].as_bool().unwrap_or(false),
        "ipConfigurations": desired.configurations.iter().map(rules::NatConfiguration::stored).collect::<Vec<_>>(),
        FRONTENDS: desired.frontends.iter().map(|frontend| json!({ "id": frontend })).collect::<Vec<_>>(),
    });
    for list in ["visibility", "autoApproval"] {
        if from[list]["subscriptions"].is_array() {
            properties[list] = json!({ "subscriptions": from[list]["subscriptions"] });
        }
    }
    if let Some(address) = &desired.destination {
        properties["destinationIPAddress"] = json!(address);
    }
    body["properties"] = properties;
    Ok((body, addresses))
}

/// The frontend's address, subnet and existence as a service's rules need them.
pub(crate) fn frontend_of(
    cx: &Context<'_>,
    by: &ResourceId,
    id: &str,
) -> Result<(ResourceId, ResourceId, Value), ArmError> {
    let missing = || missing(by, id);
    let parsed = ResourceId::parse(id).map_err(|_| missing())?;
    let balancer = parsed
        .parent()
        .and_then(|balancer| cx.state.store.get(&balancer))
        .ok_or_else(missing)?;
    let found = load_balancer::frontend(balancer, parsed.name()).ok_or_else(missing)?;
    let name = found["name"].as_str().unwrap_or_default();
    Ok((
        balancer.id.child(load_balancer::FRONTENDS, name),
        balancer.id.clone(),
        found["properties"].clone(),
    ))
}

/// Whether the service can be connected to now.
pub(crate) fn is_provisioned(service: &Resource) -> bool {
    service.state == ProvisioningState::Succeeded
}

/// The addresses of the NAT configurations that were not there before, or ask for another one.
fn new_addresses(
    cx: &Context<'_>,
    known: &Value,
    desired: &rules::DesiredService,
) -> Result<Vec<IpConfiguration>, ArmError> {
    let interface = known["networkInterfaces"][0]["id"].as_str();
    let interface = interface.and_then(|id| cx.state.store.find(id));
    let held = interface.map_or(&Value::Null, |found| found.property(nic::CONFIGURATIONS));
    let mut addresses = Vec::new();
    let mut taken = Vec::new();
    for configuration in &desired.configurations {
        let fixed = configuration.address.as_deref();
        let method = if fixed.is_some() { "Static" } else { "Dynamic" };
        let held = by_name(held, &configuration.name).map(|item| &item["properties"]);
        let own = held.and_then(|held| held["privateIPAddress"].as_str());
        let address = match (
            held,
            own.filter(|own| fixed == Some(*own)).and_then(|own| own.parse().ok()),
        ) {
            (Some(held), _) if held["privateIPAllocationMethod"] == json!(method) => continue,
            (_, Some(own)) => own,
            _ => {
                let subnet = cx.find(&configuration.subnet)?;
                super::address::choose(cx, subnet, fixed, &taken)?
            }
        };
        taken.push(address);
        addresses.push(IpConfiguration {
            name: configuration.name.clone(),
            subnet: configuration.subnet.clone(),
            address,
            method,
        });
    }
    Ok(addresses)
}
