//! What the CPO role does for a custom resource that is not deleted: endpoint, zones, links, records. Pure.

use std::net::IpAddr;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;

use super::dns::{self, DesiredZone, DnsScope, Part};
use super::shadow::PublicNames;
use super::siblings::{Sibling, SiblingSet};
use crate::api::hypershift::AzurePlatform;
use crate::api::markers::CPO_INTENT;
use crate::api::{AzurePrivateLinkService, AzurePrivateLinkServiceStatus, ConditionType, Reason, Role, Status};
use crate::azure::id::{IdError, ResourceId, SubscriptionId, location, same};
use crate::azure::kinds::private_endpoint::{Approval, PrivateEndpoint, address, approval};
use crate::azure::plan::{Step, ensure_present};
use crate::azure::resource::Kind;
use crate::conditions;
use crate::controllers::decision::Decision;
use crate::controllers::facts::{Facts, Needs, together};
use crate::controllers::identity::Identity;
use crate::controllers::intent::{self, CpoIntent};
use crate::hypershift::problem::Problem;
use crate::names;

/// What a decision for a custom resource is made from, as Kubernetes shows it.
#[derive(Debug, Clone)]
pub struct ControlPlaneState {
    /// The control plane that owns the custom resource.
    pub control_plane: Result<ControlPlane, Problem>,
    /// Why the cluster is not to be touched now.
    pub paused: Option<Problem>,
    /// Why nothing that the custom resource names may be touched, not even to delete it.
    pub refused: Option<Problem>,
    /// Whether the control plane is being deleted.
    pub control_plane_deleting: bool,
    /// The other custom resources of the control plane.
    pub siblings: Vec<Sibling>,
    /// What vouches for the cluster.
    pub voucher: Voucher,
    /// Another controller that serves the custom resource too, by the name under which it writes.
    pub other_controller: Option<String>,
}

/// What vouches for the cluster of a custom resource.
#[derive(Debug, Clone)]
pub enum Voucher {
    /// The conditions of the HO role. Whoever writes in the namespace can forge them, so they serve only a process that
    /// acts as this one cluster.
    Conditions,
    /// The HostedCluster, which nobody in the namespace can write.
    HostedCluster(Box<Vouched>),
}

/// What the HostedCluster shows of its cluster.
#[derive(Debug, Clone, Default)]
pub struct Vouched {
    /// Why the cluster is not served.
    pub refusal: Option<Problem>,
    /// The HostedCluster's own identity; none if it does not exist, or is younger than the custom resource.
    pub identity: Option<Identity>,
    /// Its Azure settings; none if it does not exist.
    pub azure: Option<AzurePlatform>,
    /// Whether another HostedCluster has the cluster id that the owner tags bear.
    pub claimed_elsewhere: bool,
}

impl ControlPlaneState {
    /// What the HostedCluster shows, in a process that reads it.
    pub(super) fn vouched(&self) -> Option<&Vouched> {
        match &self.voucher {
            Voucher::Conditions => None,
            Voucher::HostedCluster(vouched) => Some(vouched),
        }
    }

    /// The first field of a custom resource that lies outside what the HostedCluster names, or the HostedControlPlane
    /// where the former is not read or does not exist.
    pub(super) fn outside(&self, cr: &AzurePrivateLinkService) -> Option<Problem> {
        if let Some(azure) = self.vouched().and_then(|vouched| vouched.azure.as_ref()) {
            return outside(cr, azure, "HostedCluster");
        }
        let control_plane = self.control_plane.as_ref().ok()?;
        outside(cr, &control_plane.azure, "HostedControlPlane")
    }
}

/// A HostedControlPlane of this custom resource.
#[derive(Debug, Clone)]
pub struct ControlPlane {
    /// Its cluster's identity.
    pub identity: Identity,
    /// Its Azure settings.
    pub azure: AzurePlatform,
    /// Whether it has our finalizer.
    pub held: bool,
    /// The public names that the cluster has.
    pub public: PublicNames,
}

/// A connection that waits for a person is read again after this long at first.
pub const APPROVAL_POLL: Duration = Duration::from_secs(30);

/// The resources that a custom resource is to have, with parsed ids.
#[derive(Debug, Clone)]
pub struct DesiredResources {
    /// The Private Endpoint.
    pub endpoint: PrivateEndpoint,
    /// The desired zones.
    pub zones: Vec<DesiredZone>,
}

/// The resources that a custom resource of this cluster is to have.
pub fn desired_resources(
    cr: &AzurePrivateLinkService,
    identity: &Identity,
    siblings: &[Sibling],
) -> Result<DesiredResources, IdError> {
    let alias = cr
        .status
        .as_ref()
        .and_then(|status| status.private_link_service_alias.clone());
    let subscription = SubscriptionId::parse(&cr.spec.subscription_id)?;
    let network = ResourceId::parse_as(Kind::VirtualNetwork, &cr.spec.guest_vnet_id)?;
    let (name, group) = (cr.name_any(), cr.spec.resource_group_name.as_str());
    let base_domain = cr.spec.base_domain.as_deref();
    let sibling_set = SiblingSet::new(&name, base_domain, siblings);
    let scope = DnsScope {
        cr: &name,
        subscription: &subscription,
        group,
        network: &network,
        base_domain,
        sibling_set,
    };
    let id = names::in_group(Kind::PrivateEndpoint, &subscription, group, &names::endpoint(&name))?;
    Ok(DesiredResources {
        endpoint: PrivateEndpoint {
            id,
            location: location(&cr.spec.location),
            owner_tags: names::owner_tags(&identity.cluster_id, "private-endpoint"),
            subnet: ResourceId::parse_as(Kind::Subnet, &cr.spec.guest_subnet_id)?,
            alias,
            proven: false,
            request_message: names::REQUEST_MESSAGE,
        },
        zones: dns::desired_zones(scope, identity)?,
    })
}

/// The aliases in the recorded intent.
pub(super) fn recorded_aliases(cr: &AzurePrivateLinkService) -> Vec<String> {
    let recorded: Option<CpoIntent> = intent::read(cr.annotations().get(CPO_INTENT));
    recorded.map(|recorded| recorded.aliases).unwrap_or_default()
}

/// What was decided about DNS names besides the steps.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// The desired zones.
    pub zones: Vec<DesiredZone>,
    /// The name of the zone whose names only the guest knows.
    pub internal_zone: Option<String>,
    /// The name of the zone that hides public names from the guest.
    pub shadowing: Option<String>,
    /// Another controller that serves the custom resource too, by the name under which it writes.
    pub other_controller: Option<String>,
}

/// The control plane and the desired resources, or why the custom resource is not served.
pub fn served<'a>(
    cr: &AzurePrivateLinkService,
    state: &'a ControlPlaneState,
) -> Result<(&'a ControlPlane, DesiredResources), Box<Decision>> {
    let stuck = |problem: Problem| Box::new(Decision::stuck(problem));
    let control_plane = state.control_plane.as_ref().map_err(|problem| stuck(problem.clone()))?;
    if let Some(problem) = &state.paused {
        return Err(Box::new(Decision::paused(problem.clone())));
    }
    // A problem of the cluster itself is reported before a scope that it may not use.
    let refusal = match &state.voucher {
        Voucher::Conditions => not_vouched_for(cr),
        Voucher::HostedCluster(vouched) => vouched.refusal.clone(),
    };
    if let Some(problem) = refusal {
        return Err(stuck(problem));
    }
    // An id that does not parse lies outside every scope.
    let desired = desired_resources(cr, &control_plane.identity, &state.siblings)
        .map_err(|error| stuck(Problem::new(Reason::InvalidSpec, error.to_string())))?;
    match state.refused.clone().or_else(|| state.outside(cr)) {
        Some(problem) => Err(stuck(problem)),
        None => Ok((control_plane, desired)),
    }
}

/// What to do for a custom resource that is not deleted.
pub fn build(
    cr: &AzurePrivateLinkService,
    state: &ControlPlaneState,
    facts: &Facts,
) -> Result<(Decision, Names), Needs> {
    let (control_plane, mut desired) = match served(cr, state) {
        Ok(served) => served,
        Err(decision) => return Ok((*decision, Names::default())),
    };
    let zones = |zones: &[DesiredZone], address| together(zones.iter().map(|zone| dns::build(zone, address, facts)));
    let endpoint = match ensure_endpoint(cr, &desired.endpoint, facts) {
        Ok(endpoint) => endpoint,
        Err(mut needs) => {
            needs.extend(zones(&desired.zones, None).err().unwrap_or_default());
            return Err(needs);
        }
    };
    let known_address = endpoint.found.as_ref().filter(|_| !endpoint.left()).and_then(address);
    desired.zones.iter_mut().for_each(|zone| zone.known = known_address);
    let zone_steps = zones(&desired.zones, usable_address(&endpoint))?;
    let steps = [vec![endpoint], zone_steps.concat()].concat();
    let decision = Decision {
        intent: Some(intent_of(cr, &control_plane.identity, &desired, &steps)),
        steps,
        ..Decision::default()
    };
    let names = Names {
        internal_zone: Some(names::internal_zone(&control_plane.identity.name)),
        shadowing: shadowing(&desired.zones, &control_plane.public),
        zones: desired.zones,
        other_controller: state.other_controller.clone(),
    };
    Ok((decision, names))
}

/// The zone of the base domain, if it hides public names.
fn shadowing(zones: &[DesiredZone], public: &PublicNames) -> Option<String> {
    let base = zones.iter().find(|zone| zone.part == Part::BaseDomain)?;
    let records: Vec<String> = base.all_records.iter().map(|r| r.id.name().to_owned()).collect();
    let name = base.zone.id.name();
    public.hidden_by(name, &records).then(|| name.to_owned())
}

/// The reasons for which the HO role refuses a cluster as such, beyond its own half of the path.
const REFUSALS: [Reason; 7] = [
    Reason::InvalidSpec,
    Reason::HostedClusterNotFound,
    Reason::HostedControlPlaneNotFound,
    Reason::IdentityMismatch,
    Reason::DuplicateIdentity,
    Reason::HostNameClaimed,
    Reason::CloudMismatch,
];

/// Where only the HO role reads the HostedCluster: what that role refuses is not served here either, and nothing begins
/// before it has reported.
fn not_vouched_for(cr: &AzurePrivateLinkService) -> Option<Problem> {
    let status = cr.status.as_ref();
    let refused = verdicts(cr).find(|(reason, _)| REFUSALS.contains(reason));
    if let Some((reason, condition)) = refused {
        return Some(Problem::new(reason, condition.message.clone()));
    }
    let begun = |status: &AzurePrivateLinkServiceStatus| {
        status.private_link_service_alias.is_some() || status.private_endpoint_id.is_some()
    };
    let has_conditions = |status: &AzurePrivateLinkServiceStatus| ho_conditions(status).next().is_some();
    let has_reported = status.is_some_and(|status| begun(status) || has_conditions(status));
    (!has_reported).then(|| {
        Problem::new(
            Reason::WaitingForPrivateLinkService,
            "the management side has not looked at the cluster yet",
        )
    })
}

/// The conditions that the HO role owns.
fn ho_conditions(status: &AzurePrivateLinkServiceStatus) -> impl Iterator<Item = &Condition> {
    ConditionType::owned_by(Role::Ho).filter_map(|kind| conditions::get(&status.conditions, kind))
}

/// The reasons of the HO role's conditions that are False.
fn verdicts(cr: &AzurePrivateLinkService) -> impl Iterator<Item = (Reason, &Condition)> {
    let is_false = |status: &AzurePrivateLinkServiceStatus, condition: &Condition| {
        condition.status == Status::False.as_str() && !conditions::is_overtaken(condition, &status.conditions)
    };
    let all = cr.status.iter();
    let refused =
        all.flat_map(move |status| ho_conditions(status).filter(move |condition| is_false(status, condition)));
    refused.filter_map(|condition| Some((Reason::parse(&condition.reason)?, condition)))
}

/// Whether the HO role refuses the cluster for this reason.
pub fn refused_for(cr: &AzurePrivateLinkService, reason: Reason) -> bool {
    verdicts(cr).any(|(refused, _)| refused == reason)
}

/// The first field that lies outside what an object of this kind names.
fn outside(cr: &AzurePrivateLinkService, azure: &AzurePlatform, kind: &str) -> Option<Problem> {
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
    let text = format!("{field} is not that of the {kind}");
    Some(Problem::new(Reason::ScopeNotAllowed, text))
}

/// The step for the endpoint. Without an alias it is not compared: the service that it should lead to is unknown.
fn ensure_endpoint(cr: &AzurePrivateLinkService, desired: &PrivateEndpoint, facts: &Facts) -> Result<Step, Needs> {
    let recorded = cr
        .status
        .as_ref()
        .is_some_and(|status| status.private_endpoint_id.is_some());
    let waits = || {
        Step::needs(
            Kind::PrivateEndpoint,
            desired.id.clone(),
            "the alias of the Private Link Service",
        )
    };
    if desired.alias.is_some() {
        let observed = facts.read(Kind::PrivateEndpoint, &desired.id)?;
        return Ok(ensure_present(&proven_endpoint(desired, facts), observed));
    }
    if !recorded {
        return Ok(waits());
    }
    let observed = facts.read(Kind::PrivateEndpoint, &desired.id)?;
    Ok(Step {
        found: observed.found().cloned(),
        ..waits()
    })
}

/// The endpoint, `proven` if this process observed earlier that the cluster owns it.
pub(super) fn proven_endpoint(desired: &PrivateEndpoint, facts: &Facts) -> PrivateEndpoint {
    PrivateEndpoint {
        proven: facts.proven.contains(&desired.id),
        ..desired.clone()
    }
}

/// The address for the records: that of a ready endpoint whose connection is approved.
fn usable_address(endpoint: &Step) -> Option<IpAddr> {
    endpoint
        .ready()
        .filter(|body| approval(body) == Approval::Approved)
        .and_then(address)
}

/// So many aliases stay on record: the endpoint may still lead to the service before the last.
const ALIASES: usize = 4;

/// The intent to record. A deletion needs to know where the endpoint led to, so old aliases stay until it leads to the
/// new one.
fn intent_of(cr: &AzurePrivateLinkService, identity: &Identity, desired: &DesiredResources, steps: &[Step]) -> String {
    let ready = |step: &Step| step.kind == Kind::PrivateEndpoint && step.ready().is_some();
    let mut aliases = recorded_aliases(cr);
    let new = desired
        .endpoint
        .alias
        .as_ref()
        .filter(|new| aliases.last() != Some(*new));
    aliases.extend(new.cloned());
    let keep = if steps.iter().any(ready) { 1 } else { ALIASES };
    aliases.drain(..aliases.len().saturating_sub(keep));
    intent::write(&CpoIntent {
        cluster: identity.name.clone(),
        cluster_id: identity.cluster_id.clone(),
        infra_id: identity.infra_id.clone(),
        aliases,
        resources: own_ids(desired, steps),
    })
}

/// The ids of what this custom resource makes, without refused resources and what is in them.
fn own_ids(desired: &DesiredResources, steps: &[Step]) -> Vec<String> {
    let zone = |zone: &'_ DesiredZone| {
        let link = (!zone.defers).then(|| zone.link.id.clone());
        let records = zone.records.iter().map(|record| record.id.clone());
        let ids = std::iter::once(zone.zone.id.clone()).chain(link).chain(records);
        ids.collect::<Vec<_>>()
    };
    let zones = desired.zones.iter().flat_map(zone);
    let refused = |id: &ResourceId| {
        steps
            .iter()
            .any(|step| step.left() && (step.id == *id || id.is_in(&step.id)))
    };
    std::iter::once(desired.endpoint.id.clone())
        .chain(zones)
        .filter(|id| !refused(id))
        .map(|id| id.to_string())
        .collect()
}

#[cfg(test)]
mod tests;
