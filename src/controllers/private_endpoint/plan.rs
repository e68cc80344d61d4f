//! What the CPO role does for a custom resource that is not deleted: endpoint, zones, links, records. Pure.

use std::net::IpAddr;
use std::time::Duration;

use kube::ResourceExt;

use super::dns::{self, DesiredZone, DnsScope, Part};
use super::served::{Served, served};
use super::shadow::PublicNames;
use super::siblings::{Sibling, SiblingSet};
use crate::api::AzurePrivateLinkService;
use crate::api::hypershift::AzurePlatform;
use crate::api::markers::CPO_INTENT;
use crate::azure::arm::id::{IdError, ResourceId, SubscriptionId, location};
use crate::azure::kinds::Kind;
use crate::azure::kinds::private_endpoint::{Approval, PrivateEndpoint, address, approval};
use crate::azure::plan::{Step, Why};
use crate::controllers::azure::{Decision, Facts, Needs};
use crate::controllers::facts::together;
use crate::engine::plan::ensure_present;
use crate::hypershift::azure::intent::CpoIntent;
use crate::hypershift::azure::names;
use crate::hypershift::identity::Identity;
use crate::hypershift::intent;
use crate::hypershift::names::internal_zone;
use crate::hypershift::problem::Problem;

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

/// The first wait before a Private Endpoint is read again whose connection a person has to approve. Later waits are
/// longer. HyperShift's controllers wait as long each time.
///
/// Rule: A2 in `docs/compatibility.md`.
pub const APPROVAL_POLL: Duration = Duration::from_secs(30);

/// The resources that a custom resource is to have, with parsed ids.
#[derive(Debug, Clone)]
pub struct DesiredResources {
    /// The Private Endpoint.
    pub endpoint: PrivateEndpoint,
    /// The desired zones.
    pub zones: Vec<DesiredZone>,
}

impl DesiredResources {
    /// Notes the address of the endpoint, if it is owned: the proof of what is in the zones.
    pub(super) fn note_address(&mut self, endpoint: &Step) {
        let owned = endpoint.found.as_ref().filter(|_| !endpoint.left());
        let unread = match &endpoint.why {
            Why::Unread(error) => Some(error),
            _ => None,
        };
        for zone in &mut self.zones {
            zone.known = owned.and_then(address);
            zone.endpoint_unread = unread.cloned();
        }
    }
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
    let name = cr.name_any();
    let group = cr.spec.resource_group_name.as_str();
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

/// What to do for a custom resource that is not deleted.
pub fn build(
    cr: &AzurePrivateLinkService,
    state: &ControlPlaneState,
    facts: &Facts,
) -> Result<(Decision, Names), Needs> {
    let Served {
        control_plane,
        mut desired,
    } = match served(cr, state) {
        Ok(served) => served,
        Err(decision) => return Ok((*decision, Names::default())),
    };
    let endpoint = match ensure_endpoint(cr, &desired.endpoint, facts) {
        Ok(endpoint) => endpoint,
        Err(mut needs) => {
            needs.extend(build_zones(&desired.zones, None, facts).err().unwrap_or_default());
            return Err(needs);
        }
    };
    desired.note_address(&endpoint);
    let zones = build_zones(&desired.zones, approved_address(&endpoint), facts)?;
    let steps = [vec![endpoint], zones].concat();
    let decision = Decision {
        intent: Some(intent_of(cr, &control_plane.identity, &desired, &steps)),
        steps,
        ..Decision::default()
    };
    let names = Names {
        internal_zone: Some(internal_zone(&control_plane.identity.name)),
        shadowing: shadowing(&desired.zones, &control_plane.public),
        zones: desired.zones,
        other_controller: state.other_controller.clone(),
    };
    Ok((decision, names))
}

fn build_zones(zones: &[DesiredZone], address: Option<IpAddr>, facts: &Facts) -> Result<Vec<Step>, Needs> {
    let steps = together(zones.iter().map(|zone| dns::build(zone, address, facts)))?;
    Ok(steps.concat())
}

/// The zone of the base domain, if it hides public names.
fn shadowing(zones: &[DesiredZone], public: &PublicNames) -> Option<String> {
    let base = zones.iter().find(|zone| zone.part == Part::BaseDomain)?;
    let records: Vec<String> = base.all_records.iter().map(|r| r.id.name().to_owned()).collect();
    let name = base.zone.id.name();
    public.hidden_by(name, &records).then(|| name.to_owned())
}

/// The step for the endpoint. Without an alias it is not compared: the service that it should lead to is unknown.
fn ensure_endpoint(cr: &AzurePrivateLinkService, desired: &PrivateEndpoint, facts: &Facts) -> Result<Step, Needs> {
    let recorded = cr
        .status
        .as_ref()
        .is_some_and(|status| status.private_endpoint_id.is_some());
    let waits = Step::waits(Kind::PrivateEndpoint, desired.id.clone(), NEEDS_ALIAS);
    if desired.alias.is_none() && !recorded {
        return Ok(waits);
    }
    let observed = facts.read(Kind::PrivateEndpoint, &desired.id)?;
    if desired.alias.is_some() {
        return Ok(ensure_present(&proven_endpoint(desired, facts), observed));
    }
    Ok(Step {
        found: observed.found().cloned(),
        ..waits
    })
}

/// Why an endpoint waits.
const NEEDS_ALIAS: Why = Why::NeedsValue(Kind::PrivateLinkService, "the alias of the Private Link Service");

/// The endpoint, `proven` if this process observed earlier that the cluster owns it.
pub(super) fn proven_endpoint(desired: &PrivateEndpoint, facts: &Facts) -> PrivateEndpoint {
    PrivateEndpoint {
        proven: facts.proven.contains(&desired.id),
        ..desired.clone()
    }
}

/// The address for the records: that of a ready endpoint whose connection is approved.
fn approved_address(endpoint: &Step) -> Option<IpAddr> {
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
    let mut aliases = recorded_aliases(cr);
    let new = desired
        .endpoint
        .alias
        .as_ref()
        .filter(|new| aliases.last() != Some(*new));
    aliases.extend(new.cloned());
    let mut endpoints = steps.iter().filter(|step| step.kind == Kind::PrivateEndpoint);
    let is_ready = endpoints.any(|step| step.ready().is_some());
    let keep = if is_ready { 1 } else { ALIASES };
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
    let mut ids = vec![&desired.endpoint.id];
    for zone in &desired.zones {
        ids.push(&zone.zone.id);
        if !zone.defers {
            ids.push(&zone.link.id);
        }
        ids.extend(zone.records.iter().map(|record| &record.id));
    }
    ids.retain(|id| !is_refused(id, steps));
    ids.into_iter().map(ResourceId::to_string).collect()
}

/// Whether a resource, or what it is in, is left to others.
fn is_refused(id: &ResourceId, steps: &[Step]) -> bool {
    let mut left = steps.iter().filter(|step| step.left());
    left.any(|step| step.key == *id || id.is_in(&step.key))
}

#[cfg(test)]
mod tests;
