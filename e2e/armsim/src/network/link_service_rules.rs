//! What Azure refuses of a private link service: references, network policies, quotas, immutable fields.
//!
//! Codes that begin with `PrivateLinkService...CannotBeChanged`, `...NotSupported`, `...Required` and
//! `...LimitReached` are the simulator's: Azure's own are not documented.

use serde_json::{Value, json};

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;

use super::link_service::{self, FRONTENDS, TYPE, frontend_of};
use super::reference::{missing, must_be_provisioned, referenced};
use super::shape::{items, named, region_of};
use super::subnet;
use super::written::Put;

/// One NAT configuration as asked for, references resolved.
pub(crate) struct NatConfiguration {
    pub(crate) name: String,
    pub(crate) subnet: ResourceId,
    pub(crate) primary: bool,
    /// The static address.
    pub(crate) address: Option<String>,
}

impl NatConfiguration {
    /// As the service keeps it.
    pub(crate) fn stored(&self) -> Value {
        let method = if self.address.is_some() { "Static" } else { "Dynamic" };
        let mut properties = json!({
            "privateIPAllocationMethod": method,
            "subnet": { "id": self.subnet },
            "primary": self.primary,
            "privateIPAddressVersion": "IPv4",
        });
        if let Some(address) = &self.address {
            properties["privateIPAddress"] = json!(address);
        }
        json!({ "name": self.name, "properties": properties })
    }
}

/// A service as asked for, references resolved.
pub(crate) struct DesiredService {
    pub(crate) configurations: Vec<NatConfiguration>,
    pub(crate) frontends: Vec<ResourceId>,
    pub(crate) destination: Option<String>,
}

impl DesiredService {
    /// Reads a body; refuses what refers to nothing.
    pub(crate) fn of(cx: &Context<'_>, id: &ResourceId, body: &Value) -> Result<Self, ArmError> {
        let properties = &body["properties"];
        let mut configurations = Vec::new();
        let given = named(id, &properties["ipConfigurations"])?;
        let primary = given
            .iter()
            .position(|(_, item)| item["properties"]["primary"].as_bool() == Some(true))
            .unwrap_or(0);
        for (at, (name, item)) in given.into_iter().enumerate() {
            let name = name.to_owned();
            let from = &item["properties"];
            let reference = from["subnet"]["id"].as_str();
            let reference =
                reference.ok_or_else(|| ArmError::invalid_content("An IP configuration needs a subnet."))?;
            let subnet = referenced(cx, id, reference)?.id.clone();
            let fixed = from["privateIPAllocationMethod"]
                .as_str()
                .is_some_and(|method| method.eq_ignore_ascii_case("Static"));
            let address = from["privateIPAddress"].as_str().filter(|_| fixed).map(str::to_owned);
            configurations.push(NatConfiguration {
                name,
                subnet,
                primary: at == primary,
                address,
            });
        }
        let mut frontends = Vec::new();
        for item in items(&properties[FRONTENDS]) {
            frontends.push(frontend_of(cx, id, item["id"].as_str().unwrap_or_default())?.0);
        }
        let destination = properties["destinationIPAddress"]
            .as_str()
            .filter(|address| !address.is_empty())
            .map(str::to_owned);
        Ok(Self {
            configurations,
            frontends,
            destination,
        })
    }
}

fn refuse<T>(code: &str, message: String) -> Result<T, ArmError> {
    Err(ArmError::service(400, code, message))
}

/// Every rule for a PUT, in the order in which they are checked.
pub(crate) fn check(cx: &Context<'_>, put: &Put<'_>) -> Result<DesiredService, ArmError> {
    let (id, location, body) = (put.id, put.location, put.given);
    let desired = DesiredService::of(cx, id, body)?;
    if desired.configurations.is_empty() {
        return refuse(
            "PrivateLinkServiceIpConfigurationRequired",
            format!("Private link service {id} needs an IP configuration."),
        );
    }
    if desired.frontends.is_empty() == desired.destination.is_none() {
        let message =
            format!("Private link service {id} needs either a load balancer frontend or a destination IP address.");
        return refuse("PrivateLinkServiceFrontendRequired", message);
    }
    if desired.frontends.len() > 1 {
        let message =
            format!("Private link service {id} cannot have more than one load balancer frontend IP configuration.");
        return refuse("PrivateLinkServiceMultipleFrontendsNotSupported", message);
    }
    unchangeable(cx, id, &desired)?;
    subnets(cx, put, &desired)?;
    load_balancer(cx, id, location, &desired)?;
    lists(cx, id, body)?;
    quotas(cx, id, &desired)?;
    Ok(desired)
}

/// The frontend, the primary configuration's subnet, and NAT configurations once they are there; but a dynamic address
/// can be made a static one.
fn unchangeable(cx: &Context<'_>, id: &ResourceId, desired: &DesiredService) -> Result<(), ArmError> {
    let Some(known) = cx.state.store.get(id) else {
        return Ok(());
    };
    let old: Vec<&str> = items(known.property(FRONTENDS))
        .iter()
        .filter_map(|item| item["id"].as_str())
        .collect();
    let same =
        old.len() == desired.frontends.len() && desired.frontends.iter().all(|new| old.iter().any(|old| new.is(old)));
    if !same || known.property("destinationIPAddress").as_str() != desired.destination.as_deref() {
        let message = format!("The load balancer frontend of private link service {id} cannot be changed.");
        return refuse("PrivateLinkServiceFrontendCannotBeChanged", message);
    }
    for item in items(known.property("ipConfigurations")) {
        let name = item["name"].as_str().unwrap_or_default();
        let Some(new) = desired
            .configurations
            .iter()
            .find(|new| new.name.eq_ignore_ascii_case(name))
        else {
            let message = format!("IP configuration '{name}' of private link service {id} cannot be removed.");
            return refuse("PrivateLinkServiceIpConfigurationCannotBeChanged", message);
        };
        let from = &item["properties"];
        let primary = from["primary"].as_bool().unwrap_or(false);
        let moved = !new.subnet.is(from["subnet"]["id"].as_str().unwrap_or_default());
        let fixed = from["privateIPAddress"].as_str();
        if moved || primary != new.primary || (fixed.is_some() && fixed != new.address.as_deref()) {
            let message = format!(
                "Subnet, primary flag and address of IP configuration '{name}' of private link service {id} cannot be changed."
            );
            return refuse("PrivateLinkServiceIpConfigurationCannotBeChanged", message);
        }
    }
    Ok(())
}

fn subnets(cx: &Context<'_>, put: &Put<'_>, desired: &DesiredService) -> Result<(), ArmError> {
    let id = put.id;
    for configuration in &desired.configurations {
        let found = subnet::usable(cx, put, configuration.subnet.as_str())?;
        let enabled = found.property("privateLinkServiceNetworkPolicies").as_str() != Some("Disabled");
        if enabled {
            let message = format!(
                "Private link service {id} cannot be created in a subnet {} since it has private link service network policies \
                 enabled.",
                found.id
            );
            let code = "PrivateLinkServiceCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled";
            return refuse(code, message);
        }
    }
    Ok(())
}

fn same_region(id: &ResourceId, location: &str, other: &ResourceId, body: &Value) -> Result<(), ArmError> {
    if region_of(body) == location {
        return Ok(());
    }
    Err(missing(id, other.as_str()))
}

fn load_balancer(cx: &Context<'_>, id: &ResourceId, location: &str, desired: &DesiredService) -> Result<(), ArmError> {
    for frontend in &desired.frontends {
        let (_, balancer, properties) = frontend_of(cx, id, frontend.as_str())?;
        let balancer = cx.find(&balancer)?;
        must_be_provisioned(cx, balancer, balancer.state, id)?;
        same_region(id, location, &balancer.id, &balancer.body)?;
        if balancer.body["sku"]["name"].as_str() != Some("Standard") {
            let message = format!(
                "Private link service {id} needs a load balancer of Standard SKU; {} is not.",
                balancer.id
            );
            return refuse("PrivateLinkServiceBasicLoadBalancerNotSupported", message);
        }
        let vnet = properties["subnet"]["id"]
            .as_str()
            .and_then(|subnet| ResourceId::parse(subnet).ok());
        let vnet = vnet.map(|subnet| subnet::vnet_id(&subnet));
        let elsewhere = desired.configurations.iter().find(|configuration| {
            vnet.as_ref()
                .is_some_and(|vnet| !vnet.is(subnet::vnet_id(&configuration.subnet).as_str()))
        });
        if let Some(elsewhere) = elsewhere {
            let message = format!(
                "Subnet {} is not in the virtual network of load balancer {}.",
                elsewhere.subnet, balancer.id
            );
            return refuse("PrivateLinkServiceSubnetInAnotherVirtualNetworkNotSupported", message);
        }
    }
    Ok(())
}

/// Lengths of the subscription lists; only subscriptions that can see the service may be auto-approved.
fn lists(cx: &Context<'_>, id: &ResourceId, body: &Value) -> Result<(), ArmError> {
    let limit = cx.state.quotas(id.subscription()).allowed_subscriptions;
    let list = |name: &str| -> Vec<String> {
        let named = items(&body["properties"][name]["subscriptions"]).iter();
        named
            .filter_map(|named| named.as_str().map(str::to_ascii_lowercase))
            .collect()
    };
    let (visible, approved) = (list("visibility"), list("autoApproval"));
    if visible.len() > limit || approved.len() > limit {
        let message = format!("Private link service {id} cannot list more than {limit} subscriptions.");
        return refuse("PrivateLinkServiceSubscriptionLimitReached", message);
    }
    if !visible.iter().any(|named| named == "*") && approved.iter().any(|named| !visible.contains(named)) {
        let message =
            format!("Auto-approval of private link service {id} lists a subscription to which it is not visible.");
        return refuse("PrivateLinkServiceAutoApprovalWithoutVisibilityNotSupported", message);
    }
    Ok(())
}

fn quotas(cx: &Context<'_>, id: &ResourceId, desired: &DesiredService) -> Result<(), ArmError> {
    let quotas = cx.state.quotas(id.subscription());
    if desired.configurations.len() > quotas.nat_ips_per_pls {
        let message = format!(
            "Private link service {id} cannot have more than {} IP configurations.",
            quotas.nat_ips_per_pls
        );
        return refuse("PrivateLinkServiceIpConfigurationLimitReached", message);
    }
    if cx.state.store.get(id).is_some() {
        return Ok(());
    }
    let here = ResourceId::parse(&format!("/subscriptions/{}", id.subscription()));
    let count = here.map_or(0, |here| cx.state.store.of_type(&here, TYPE).count());
    if count >= quotas.pls {
        let message = format!(
            "Cannot create more than {} private link services for this subscription.",
            quotas.pls
        );
        return refuse("PrivateLinkServiceLimitReached", message);
    }
    for balancer in desired.frontends.iter().filter_map(ResourceId::parent) {
        if link_service::on_load_balancer(cx, &balancer).len() >= quotas.pls_per_load_balancer {
            let limit = quotas.pls_per_load_balancer;
            let message = format!("Cannot create more than {limit} private link services on load balancer {balancer}.");
            return refuse("PrivateLinkServicePerLoadBalancerLimitReached", message);
        }
    }
    Ok(())
}
