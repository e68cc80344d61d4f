//! What the CPO role does for a custom resource that stays: endpoint, zones, links, records. Pure.

use std::net::IpAddr;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

use super::dns::{self, Part, Place, WantedZone};
use super::shadow::PublicNames;
use super::siblings::{Family, Sibling};
use crate::api::hypershift::AzurePlatform;
use crate::api::markers::CPO_INTENT;
use crate::api::{AzurePrivateLinkService, AzurePrivateLinkServiceStatus, ConditionType, Reason, Role, Status};
use crate::azure::endpoint::{Approval, Endpoint, address, approval};
use crate::azure::id::{IdError, ResourceId, SubscriptionId, location, same};
use crate::azure::plan::{Step, toward};
use crate::azure::resource::Kind;
use crate::conditions;
use crate::controllers::decision::{Decision, Problem};
use crate::controllers::facts::{Facts, Needs, together};
use crate::controllers::identity::Identity;
use crate::controllers::intent::{self, CpoIntent};
use crate::names;

/// What Kubernetes says about the custom resource's surroundings.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The control plane that owns the custom resource.
    pub control_plane: Result<ControlPlane, Problem>,
    /// Why the cluster is not to be touched now.
    pub paused: Option<Problem>,
    /// Why nothing that the custom resource names may be touched, whatever becomes of it.
    pub refused: Option<Problem>,
    /// Whether the control plane is being deleted.
    pub control_plane_goes: bool,
    /// The other custom resources of the control plane.
    pub siblings: Vec<Sibling>,
    /// Whether the cluster id that is recorded on the custom resource belongs to another control plane.
    pub claimed_elsewhere: bool,
    /// Another controller that serves the custom resource too, by the name under which it writes.
    pub other_controller: Option<String>,
}

/// A HostedControlPlane.
#[derive(Debug, Clone)]
pub struct ControlPlane {
    /// Its cluster.
    pub identity: Identity,
    /// What it says about Azure.
    pub azure: AzurePlatform,
    /// Whether our finalizer stands.
    pub held: bool,
    /// The public names that the cluster has.
    pub public: PublicNames,
}

/// A connection that waits for a person is looked at this often.
pub const APPROVAL_LOOK: Duration = Duration::from_secs(30);

/// Nothing tells of a control plane elsewhere that goes; whether it stands is looked at this often.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// Ids of a custom resource, parsed once.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The zones.
    pub zones: Vec<WantedZone>,
}

/// What is wanted for a custom resource of this cluster.
pub fn wanted(cr: &AzurePrivateLinkService, identity: &Identity, siblings: &[Sibling]) -> Result<Wanted, IdError> {
    let status = cr.status.clone().unwrap_or_default();
    let subscription = SubscriptionId::parse(&cr.spec.subscription_id)?;
    let network = ResourceId::parse_as(Kind::VirtualNetwork, &cr.spec.guest_vnet_id)?;
    let (name, group) = (cr.name_any(), cr.spec.resource_group_name.as_str());
    let base_domain = cr.spec.base_domain.as_deref();
    let family = Family::new(&name, base_domain, siblings);
    let address: Option<IpAddr> = status.private_endpoint_ip.as_ref().and_then(|text| text.parse().ok());
    let place = Place {
        cr: &name,
        subscription: &subscription,
        group,
        network: &network,
        base_domain,
        family,
        recorded: &recorded_zones(&status, family),
        known: &Vec::from_iter(address),
    };
    let id = names::in_group(Kind::Endpoint, &subscription, group, &names::endpoint(&name))?;
    let on_record = status
        .private_endpoint_id
        .and_then(|text| ResourceId::parse_as(Kind::Endpoint, &text).ok());
    Ok(Wanted {
        endpoint: Endpoint {
            recorded_address: address.filter(|_| on_record.as_ref() == Some(&id)),
            id,
            location: location(&cr.spec.location),
            marks: names::marks(&identity.cluster_id, "private-endpoint"),
            subnet: ResourceId::parse_as(Kind::Subnet, &cr.spec.guest_subnet_id)?,
            alias: status.private_link_service_alias,
            former_alias: former_alias(cr),
            request_message: names::REQUEST_MESSAGE,
        },
        zones: dns::wanted(place, identity)?,
    })
}

fn recorded_zones(status: &AzurePrivateLinkServiceStatus, family: Family<'_>) -> Vec<String> {
    let own = status.private_dns_zone_id.iter().chain(&status.base_domain_dns_zone_id);
    own.chain(family.sharing().filter_map(|one| one.zone.as_ref()))
        .cloned()
        .collect()
}

fn former_alias(cr: &AzurePrivateLinkService) -> Option<String> {
    intent::read::<CpoIntent>(cr.annotations().get(CPO_INTENT))?.alias
}

/// What is decided of names besides the steps.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// The zones.
    pub zones: Vec<WantedZone>,
    /// The zone of the names that only the guest knows, by name.
    pub internal_zone: Option<String>,
    /// The zone that hides public names from the guest.
    pub shadowing: Option<String>,
    /// Another controller that serves the custom resource too, by the name under which it writes.
    pub other_controller: Option<String>,
}

/// The control plane and what is wanted for it, or why the custom resource is not served.
pub fn served<'a>(
    cr: &AzurePrivateLinkService,
    around: &'a Surroundings,
) -> Result<(&'a ControlPlane, Wanted), Box<Decision>> {
    let stuck = |problem: Problem| Box::new(Decision::stuck(problem));
    let control_plane = around
        .control_plane
        .as_ref()
        .map_err(|problem| stuck(problem.clone()))?;
    if let Some(problem) = &around.paused {
        return Err(Box::new(Decision::paused(problem.clone())));
    }
    // What is wrong with the cluster as such says more than what it may use.
    if let Some(problem) = not_vouched_for(cr).or_else(|| around.refused.clone()) {
        return Err(stuck(problem));
    }
    if around.claimed_elsewhere {
        let text = "an older HostedControlPlane has this cluster id";
        return Err(stuck(Problem::new(Reason::DuplicateIdentity, text).again(LOOK_AGAIN)));
    }
    if let Some(problem) = outside(cr, &control_plane.azure) {
        return Err(stuck(problem));
    }
    match wanted(cr, &control_plane.identity, &around.siblings) {
        Ok(want) => Ok((control_plane, want)),
        Err(error) => Err(stuck(Problem::new(Reason::InvalidSpec, error.to_string()))),
    }
}

/// What to do for a custom resource that stays.
pub fn build(cr: &AzurePrivateLinkService, around: &Surroundings, facts: &Facts) -> Result<(Decision, Names), Needs> {
    let (control_plane, mut want) = match served(cr, around) {
        Ok(served) => served,
        Err(decision) => return Ok((*decision, Names::default())),
    };
    let zones = |zones: &[WantedZone], address| together(zones.iter().map(|zone| dns::build(zone, address, facts)));
    let endpoint = match bring_endpoint(cr, &want.endpoint, facts) {
        Ok(endpoint) => endpoint,
        Err(mut needs) => {
            needs.extend(zones(&want.zones, None).err().unwrap_or_default());
            return Err(needs);
        }
    };
    let seen = endpoint.found.as_ref().filter(|_| !endpoint.left()).and_then(address);
    want.zones.iter_mut().for_each(|zone| zone.known.extend(seen));
    let zone_steps = zones(&want.zones, usable_address(&endpoint))?;
    let decision = Decision {
        intent: Some(intent_of(cr, &control_plane.identity, &want.endpoint, &endpoint)),
        steps: std::iter::once(endpoint)
            .chain(zone_steps.into_iter().flatten())
            .collect(),
        ..Decision::default()
    };
    let names = Names {
        internal_zone: Some(names::internal_zone(&control_plane.identity.name)),
        shadowing: shadowing(&want.zones, &control_plane.public),
        zones: want.zones,
        other_controller: around.other_controller.clone(),
    };
    Ok((decision, names))
}

/// The zone of the base domain, if it hides public names.
fn shadowing(zones: &[WantedZone], public: &PublicNames) -> Option<String> {
    let base = zones.iter().find(|zone| zone.part == Part::BaseDomain)?;
    let records: Vec<String> = base.all_records.iter().map(|r| r.id.name().to_owned()).collect();
    let name = base.zone.id.name();
    public.hidden_by(name, &records).then(|| name.to_owned())
}

/// What the management side finds wrong with a cluster as such, beyond its own half of the path.
const REFUSALS: [Reason; 7] = [
    Reason::InvalidSpec,
    Reason::HostedClusterNotFound,
    Reason::HostedControlPlaneNotFound,
    Reason::IdentityMismatch,
    Reason::DuplicateIdentity,
    Reason::HostNameClaimed,
    Reason::CloudMismatch,
];

/// Only the management side reads the HostedCluster. What it refuses is not served here either, and nothing begins before
/// it has looked.
fn not_vouched_for(cr: &AzurePrivateLinkService) -> Option<Problem> {
    let status = cr.status.as_ref();
    let refused = verdicts(cr).find(|(reason, _)| REFUSALS.contains(reason));
    if let Some((reason, condition)) = refused {
        return Some(Problem::new(reason, condition.message.clone()));
    }
    let begun = |status: &AzurePrivateLinkServiceStatus| {
        status.private_link_service_alias.is_some() || status.private_endpoint_id.is_some()
    };
    let said = |status: &AzurePrivateLinkServiceStatus| theirs(status).next().is_some();
    let looked = status.is_some_and(|status| begun(status) || said(status));
    (!looked).then(|| {
        Problem::new(
            Reason::WaitingForPrivateLinkService,
            "the management side has not looked at the cluster yet",
        )
    })
}

/// The management side's conditions.
fn theirs(status: &AzurePrivateLinkServiceStatus) -> impl Iterator<Item = &Condition> {
    ConditionType::owned_by(Role::Ho).filter_map(|kind| conditions::get(&status.conditions, kind))
}

/// Why they are False, where they are.
fn verdicts(cr: &AzurePrivateLinkService) -> impl Iterator<Item = (Reason, &Condition)> {
    let stands = |status: &AzurePrivateLinkServiceStatus, condition: &Condition| {
        condition.status == Status::False.as_str() && !conditions::is_overtaken(condition, &status.conditions)
    };
    let all = cr.status.iter();
    let refused = all.flat_map(move |status| theirs(status).filter(move |condition| stands(status, condition)));
    refused.filter_map(|condition| Some((Reason::parse(&condition.reason)?, condition)))
}

/// Whether the management side refuses the cluster for this reason.
pub fn refused_for(cr: &AzurePrivateLinkService, reason: Reason) -> bool {
    verdicts(cr).any(|(said, _)| said == reason)
}

/// The first field that lies outside what the HostedControlPlane names.
pub(super) fn outside(cr: &AzurePrivateLinkService, azure: &AzurePlatform) -> Option<Problem> {
    let equal = |given: &str, named: &Option<String>| named.as_deref().is_some_and(|named| same(given, named));
    let fields = [
        (
            equal(&cr.spec.subscription_id, &azure.subscription_id),
            "subscriptionID",
        ),
        (
            equal(&cr.spec.resource_group_name, &azure.resource_group),
            "resourceGroupName",
        ),
        (equal(&cr.spec.guest_vnet_id, &azure.vnet_id), "guestVNetID"),
        (equal(&cr.spec.guest_subnet_id, &azure.subnet_id), "guestSubnetID"),
    ];
    let (_, field) = fields.into_iter().find(|(inside, _)| !inside)?;
    let text = format!("{field} is not that of the HostedControlPlane");
    Some(Problem::new(Reason::ScopeNotAllowed, text))
}

/// Without an alias nothing is compared: it is unknown what the endpoint should lead to.
fn bring_endpoint(cr: &AzurePrivateLinkService, want: &Endpoint, facts: &Facts) -> Result<Step, Needs> {
    let recorded = cr
        .status
        .as_ref()
        .is_some_and(|status| status.private_endpoint_id.is_some());
    let waits = || Step::needs(Kind::Endpoint, want.id.clone(), "the alias of the Private Link Service");
    if want.alias.is_some() {
        return Ok(toward(want, facts.look(Kind::Endpoint, &want.id)?));
    }
    if !recorded {
        return Ok(waits());
    }
    let seen = facts.look(Kind::Endpoint, &want.id)?;
    Ok(Step {
        found: seen.found().cloned(),
        ..waits()
    })
}

/// The address that records shall lead to: that of a settled endpoint whose connection is approved.
fn usable_address(endpoint: &Step) -> Option<IpAddr> {
    endpoint
        .settled()
        .filter(|body| approval(body) == Approval::Approved)
        .and_then(address)
}

/// The old alias stays on record until the endpoint leads to the new one: by it the old endpoint is known as ours.
fn intent_of(cr: &AzurePrivateLinkService, identity: &Identity, want: &Endpoint, endpoint: &Step) -> String {
    let former = former_alias(cr).filter(|_| endpoint.settled().is_none());
    intent::write(&CpoIntent {
        cluster: identity.name.clone(),
        cluster_id: identity.cluster_id.clone(),
        infra_id: identity.infra_id.clone(),
        alias: former.or_else(|| want.alias.clone()),
    })
}

#[cfg(test)]
mod tests;
