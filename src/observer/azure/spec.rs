//! The spec of a custom resource as derived from its control plane, in the spelling that its definition requires. Pure.
//!
//! A required value that cannot be used prevents that the custom resource is created. An optional value that cannot be
//! used is left as it is, with a complaint, so that one bad value never stops the others.

use crate::api::AzurePrivateLinkServiceSpec;
use crate::api::hypershift::{AzurePlatform, ClusterSpec};
use crate::azure::arm::id::{ResourceId, is_group_name, location};
use crate::azure::kinds::Kind;
use crate::engine::text::is_uuid;
use crate::hypershift::host_names::base_domain;
use crate::observer::verdict::pause_complaint;

/// What a control plane asks for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DesiredSpec {
    /// The spec, without what cannot be used.
    pub spec: AzurePrivateLinkServiceSpec,
    /// All subscriptions that may connect besides the guest's own; more than [`MOST_SUBSCRIPTIONS`] do not fit into a
    /// spec.
    pub subscriptions: Vec<String>,
    /// Why no custom resource may be created from this, though an existing one may follow it.
    pub unmakeable: Option<String>,
    /// The problems of values that are left as they are.
    pub complaints: Vec<String>,
}

/// The most subscriptions that the definition lets a spec have.
pub const MOST_SUBSCRIPTIONS: usize = 50;

/// The spec for `cluster`, whose Service has this address; or what is wrong.
pub fn derive(
    cluster: &str,
    spec: &ClusterSpec,
    azure: &AzurePlatform,
    address: String,
) -> Result<DesiredSpec, String> {
    let mut derived = DesiredSpec {
        spec: required(azure, address)?,
        ..DesiredSpec::default()
    };
    let private = azure.private.clone().unwrap_or_default().private_link;
    if let Some(nat) = private.nat_subnet_id.filter(|text| !text.is_empty()) {
        match id(Kind::Subnet, &nat, "private.privateLink.natSubnetID") {
            Ok(nat) => derived.spec.nat_subnet_id = Some(nat),
            // Without it a subnet would be created, which nobody asked for.
            Err(wrong) => derived.unmakeable = Some(wrong),
        }
    }
    let (usable, unusable) = subscriptions(&private.additional_allowed_subscriptions);
    if unusable > 0 {
        derived.complaints.push(format!(
            "platform.azure.private.privateLink.additionalAllowedSubscriptions: {unusable} that are no UUIDs are left out"
        ));
    }
    if usable.len() > MOST_SUBSCRIPTIONS {
        derived.complaints.push(format!(
            "platform.azure.private.privateLink.additionalAllowedSubscriptions: {} are more than {MOST_SUBSCRIPTIONS}: none is added",
            usable.len()
        ));
    } else if !usable.is_empty() {
        derived.spec.additional_allowed_subscriptions = Some(usable.clone());
    }
    derived.subscriptions = usable;
    match base_domain(cluster, spec) {
        Ok(domain) => derived.spec.base_domain = domain,
        Err(wrong) => derived.complaints.push(wrong),
    }
    derived.complaints.extend(pause_complaint(spec));
    Ok(derived)
}

/// The fields that every custom resource must have.
fn required(azure: &AzurePlatform, address: String) -> Result<AzurePrivateLinkServiceSpec, String> {
    let subscription = text(azure.subscription_id.as_deref(), "subscriptionID")?.to_ascii_lowercase();
    let group = text(azure.resource_group.as_deref(), "resourceGroup")?;
    let region = location(text(azure.location.as_deref(), "location")?);
    if !is_uuid(&subscription) {
        return Err("platform.azure.subscriptionID is not a UUID".to_owned());
    }
    if !is_group(group) {
        return Err("platform.azure.resourceGroup is not the name of a resource group".to_owned());
    }
    if !is_region(&region) {
        return Err("platform.azure.location is not a region".to_owned());
    }
    let subnet = text(azure.subnet_id.as_deref(), "subnetID")?;
    let subnet = id(Kind::Subnet, subnet, "subnetID")?;
    let network = text(azure.vnet_id.as_deref(), "vnetID")?;
    let network = id(Kind::VirtualNetwork, network, "vnetID")?;
    Ok(AzurePrivateLinkServiceSpec {
        load_balancer_ip: Some(address),
        subscription_id: subscription,
        resource_group_name: group.to_owned(),
        location: region,
        guest_subnet_id: subnet,
        guest_vnet_id: network,
        ..AzurePrivateLinkServiceSpec::default()
    })
}

/// A field of the platform that must not be empty.
fn text<'a>(value: Option<&'a str>, field: &str) -> Result<&'a str, String> {
    let value = value.filter(|value| !value.is_empty());
    value.ok_or_else(|| format!("platform.azure.{field} is empty"))
}

fn id(kind: Kind, value: &str, field: &str) -> Result<String, String> {
    ResourceId::parse_as(kind, value)
        .map(|id| id.to_string())
        .map_err(|error| format!("platform.azure.{field}: {error}"))
}

/// Whether the definition accepts the name: of those that Azure accepts, only ASCII ones.
fn is_group(text: &str) -> bool {
    text.is_ascii() && is_group_name(text)
}

fn is_region(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=50).contains(&text.len()) && text.chars().all(allowed)
}

/// Each subscription once and in lower case, in the order given, and how many of the texts are not UUIDs.
fn subscriptions(given: &[String]) -> (Vec<String>, usize) {
    let mut usable = Vec::new();
    let mut unusable = 0;
    for text in given.iter().map(|text| text.to_ascii_lowercase()) {
        if !is_uuid(&text) {
            unusable += 1;
        } else if !usable.contains(&text) {
            usable.push(text);
        }
    }
    (usable, unusable)
}

#[cfg(test)]
mod tests;
