//! What the CPO role does for a custom resource: endpoint, zones, links, records; away in reverse. Pure.

use std::net::IpAddr;
use std::time::Duration;

use kube::ResourceExt;

use super::dns::{self, Place, WantedZone};
use crate::api::hypershift::AzurePlatform;
use crate::api::markers::CPO_INTENT;
use crate::api::{AzurePrivateLinkService, AzurePrivateLinkServiceStatus, ConditionType, Reason, Role, Status};
use crate::azure::endpoint::{Approval, Endpoint, address, approval};
use crate::azure::id::{IdError, ResourceId, SubscriptionId, location, same};
use crate::azure::plan::{Step, away, toward};
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
}

/// A HostedControlPlane.
#[derive(Debug, Clone)]
pub struct ControlPlane {
    /// Its cluster.
    pub identity: Identity,
    /// What it says about Azure.
    pub azure: AzurePlatform,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether our finalizer stands.
    pub held: bool,
}

/// A connection that waits for a person is looked at this often.
pub const APPROVAL_LOOK: Duration = Duration::from_secs(30);

/// Ids of a custom resource, parsed once.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The zones.
    pub zones: Vec<WantedZone>,
}

/// What is wanted for a custom resource of this cluster.
pub fn wanted(cr: &AzurePrivateLinkService, identity: &Identity) -> Result<Wanted, IdError> {
    let status = cr.status.clone().unwrap_or_default();
    let subscription = SubscriptionId::parse(&cr.spec.subscription_id)?;
    let network = ResourceId::parse_as(Kind::VirtualNetwork, &cr.spec.guest_vnet_id)?;
    let name = cr.name_any();
    let place = Place {
        cr: &name,
        subscription: &subscription,
        group: &cr.spec.resource_group_name,
        network: &network,
        base_domain: cr.spec.base_domain.as_deref(),
        recorded: &recorded_zones(&status),
    };
    let endpoint = names::endpoint(&name);
    Ok(Wanted {
        endpoint: Endpoint {
            id: names::in_group(Kind::Endpoint, &subscription, &cr.spec.resource_group_name, &endpoint)?,
            location: location(&cr.spec.location),
            marks: names::marks(&identity.cluster_id, "private-endpoint"),
            subnet: ResourceId::parse_as(Kind::Subnet, &cr.spec.guest_subnet_id)?,
            alias: status.private_link_service_alias.clone(),
            request_message: names::REQUEST_MESSAGE,
        },
        zones: dns::wanted(place, identity)?,
    })
}

fn recorded_zones(status: &AzurePrivateLinkServiceStatus) -> Vec<String> {
    status
        .private_dns_zone_id
        .iter()
        .chain(&status.base_domain_dns_zone_id)
        .cloned()
        .collect()
}

/// What to do for a custom resource that stays.
pub fn build(
    cr: &AzurePrivateLinkService,
    around: &Surroundings,
    facts: &Facts,
) -> Result<(Decision, Vec<WantedZone>), Needs> {
    let stuck = |problem: Problem| Ok((Decision::stuck(problem), Vec::new()));
    if let Some(problem) = &around.refused {
        return stuck(problem.clone());
    }
    let control_plane = match &around.control_plane {
        Ok(control_plane) => control_plane,
        Err(problem) => return stuck(problem.clone()),
    };
    if let Some(problem) = &around.paused {
        return Ok((Decision::paused(problem.clone()), Vec::new()));
    }
    if let Some(problem) = not_vouched_for(cr) {
        return stuck(problem);
    }
    if let Some(field) = outside(cr, &control_plane.azure) {
        return stuck(Problem::new(
            Reason::ScopeNotAllowed,
            format!("{field} is not that of the HostedControlPlane"),
        ));
    }
    let identity = &control_plane.identity;
    let want = match wanted(cr, identity) {
        Ok(want) => want,
        Err(error) => return stuck(Problem::new(Reason::InvalidSpec, error.to_string())),
    };
    let (endpoint, zones) = (bring_endpoint(cr, &want.endpoint, facts), |address| {
        together(want.zones.iter().map(|zone| dns::build(zone, address, facts)))
    });
    let (endpoint, zone_steps) = match endpoint {
        Ok(endpoint) => (endpoint.clone(), zones(usable_address(&endpoint))?),
        Err(mut needs) => {
            needs.extend(zones(None).err().unwrap_or_default());
            return Err(needs);
        }
    };
    let mut decision = Decision {
        intent: Some(intent_of(identity)),
        ..Decision::default()
    };
    decision.steps = std::iter::once(endpoint)
        .chain(zone_steps.into_iter().flatten())
        .collect();
    Ok((decision, want.zones))
}

/// What the management side finds wrong with a cluster as such, beyond its own half of the path.
const REFUSALS: [Reason; 6] = [
    Reason::InvalidSpec,
    Reason::HostedClusterNotFound,
    Reason::HostedControlPlaneNotFound,
    Reason::IdentityMismatch,
    Reason::DuplicateIdentity,
    Reason::CloudMismatch,
];

/// Only the management side reads the HostedCluster. What it refuses is not served here either, and nothing begins before
/// it has looked.
fn not_vouched_for(cr: &AzurePrivateLinkService) -> Option<Problem> {
    let status = cr.status.as_ref();
    let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
    let theirs: Vec<_> = ConditionType::owned_by(Role::Ho)
        .filter_map(|kind| conditions::get(conditions, kind))
        .collect();
    let refused = theirs
        .iter()
        .filter(|condition| condition.status == Status::False.as_str());
    let mut refused = refused.filter_map(|condition| Some((Reason::parse(&condition.reason)?, condition)));
    if let Some((reason, condition)) = refused.find(|(reason, _)| REFUSALS.contains(reason)) {
        return Some(Problem::new(reason, condition.message.clone()));
    }
    let begun = |status: &AzurePrivateLinkServiceStatus| {
        status.private_link_service_alias.is_some() || status.private_endpoint_id.is_some()
    };
    let looked = !theirs.is_empty() || status.is_some_and(begun);
    (!looked).then(|| {
        Problem::new(
            Reason::WaitingForPrivateLinkService,
            "the management side has not looked at the cluster yet",
        )
    })
}

/// The first field that lies outside what the HostedControlPlane names.
fn outside(cr: &AzurePrivateLinkService, azure: &AzurePlatform) -> Option<&'static str> {
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
    fields
        .into_iter()
        .find_map(|(inside, field)| (!inside).then_some(field))
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

fn intent_of(identity: &Identity) -> String {
    intent::write(&CpoIntent {
        cluster: identity.name.clone(),
        cluster_id: identity.cluster_id.clone(),
        infra_id: identity.infra_id.clone(),
    })
}

/// What to do for a custom resource that goes, or whose control plane goes. All steps are gone when nothing is left.
pub fn teardown(cr: &AzurePrivateLinkService, around: &Surroundings, facts: &Facts) -> Result<Decision, Needs> {
    if let Some(problem) = &around.refused {
        return Ok(Decision::stuck(problem.clone()));
    }
    let recorded: Option<CpoIntent> = intent::read(cr.annotations().get(CPO_INTENT));
    let recorded = recorded.map(|r| Identity {
        name: r.cluster,
        cluster_id: r.cluster_id,
        infra_id: r.infra_id,
    });
    let known = around.control_plane.as_ref().ok().map(|c| c.identity.clone());
    let Some(identity) = recorded.or(known) else {
        return Ok(Decision::default());
    };
    // What does not parse was never made.
    let Ok(want) = wanted(cr, &identity) else {
        return Ok(Decision::default());
    };
    let endpoint = facts
        .look(Kind::Endpoint, &want.endpoint.id)
        .map(|seen| away(&want.endpoint, seen));
    let zones = want.zones.iter().map(|zone| dns::teardown(zone, facts));
    let steps = together(std::iter::once(endpoint.map(|step| vec![step])).chain(zones))?.concat();
    Ok(Decision {
        steps,
        ..Decision::default()
    })
}

#[cfg(test)]
mod tests;
