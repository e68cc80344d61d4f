//! What the HO role does for a custom resource that is not deleted: NAT subnet, then Private Link Service. Pure.

mod limits;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::ResourceExt;

use super::basis::{Basis, Stop};
use super::connecting::Connecting;
use super::frontend::{self, ServiceFacts};
use super::nat_prefix::Refused;
use super::service_id::{self, invalid_spec};
use super::settings::Settings;
use super::subnet::{self, Chosen};
use super::{ownership, revocation, their_endpoint};
use crate::api::markers::{ALLOW_REPLACE, CPO_INTENT, HO_INTENT};
use crate::api::{AzurePrivateLinkService, Reason};
use crate::azure::arm::id::{IdError, ResourceId, location, same};
use crate::azure::cloud::Observed;
use crate::azure::kinds::Kind;
use crate::azure::kinds::load_balancer::Frontend;
use crate::azure::kinds::private_link_service::{OwnedPrivateLinkService, PrivateLinkService, connections};
use crate::azure::plan::{Step, Why};
use crate::controllers::azure::{Decision, Facts, Needs};
use crate::engine::plan::{Verb, ensure_present};
use crate::hypershift::azure::intent::HoIntent;
use crate::hypershift::azure::management_scopes::ManagementScope;
use crate::hypershift::identity::{DeletedCluster, Identity};
use crate::hypershift::intent;
use crate::hypershift::problem::Problem;
use crate::runtime::prune::Prune;

/// What a decision for a custom resource is made from, as Kubernetes shows it.
#[derive(Debug, Clone)]
pub struct PrivateLinkServiceInputs {
    /// The cluster, if HostedCluster and HostedControlPlane agree on it and no other HostedCluster has what it names.
    pub identity: Result<Identity, Problem>,
    /// The identity by the HostedCluster alone, if no older HostedCluster has its cluster id.
    pub own: Option<Identity>,
    /// The management scope of the HostedCluster; none if nothing shows it.
    pub management_scope: Option<ManagementScope>,
    /// The HostedCluster, if its control plane is in this namespace: it gets the Events too.
    pub hosted_cluster: Option<ObjectReference>,
    /// Why the cluster is not to be touched now.
    pub paused: Option<Problem>,
    /// `spec.pausedUntil` of the HostedCluster.
    pub paused_until: Option<String>,
    /// The management cluster that the cluster came from, by an administrator's annotation on the HostedCluster.
    pub adopt_from: Option<String>,
    /// Whom the HostedCluster lets connect.
    pub connecting: Connecting,
    /// The Service of the same name.
    pub service: Option<ServiceFacts>,
    /// Whether an older custom resource, of any cluster, has the same `spec.loadBalancerIP`.
    pub address_claimed: bool,
    /// Whether another custom resource of the same cluster stays, or is the last of those that are deleted together.
    pub sibling_stays: bool,
    /// Whether another one is under deletion, which this one has to wait for.
    pub sibling_deleting: bool,
    /// Whether another one recorded that the cluster's NAT subnet was made for it.
    pub sibling_made_subnet: bool,
    /// The cluster whose resources are deleted with the custom resource.
    pub deleted_cluster: DeletedCluster,
    /// The NAT subnet that this process observed the cluster's own service to use.
    pub shown_subnet: Option<ResourceId>,
    /// The NAT subnets of the cluster's name that somebody gives, in lower case.
    pub given_subnets: Vec<String>,
    /// Those of them that an older HostedCluster gives, which has them for itself.
    pub subnets_of_older: Vec<String>,
}

impl Prune for PrivateLinkServiceInputs {
    /// Only a deletion uses the subnet.
    fn prune(&mut self) {
        self.shown_subnet = None;
    }
}

/// The frontend, or why there is none; the status reports it.
pub type FoundFrontend = Result<Frontend, Problem>;

/// What to do for a custom resource that is not deleted, and the frontend it uses.
pub fn build(
    cr: &AzurePrivateLinkService,
    inputs: &PrivateLinkServiceInputs,
    facts: &Facts,
    settings: &Settings,
    refused: &[Refused],
) -> Result<(Decision, FoundFrontend), Needs> {
    let basis = Basis {
        cr,
        inputs,
        facts,
        settings,
    };
    let (decision, found) = decide(basis, refused)?;
    let basis = Basis {
        settings: &settings.to_take_away(),
        ..basis
    };
    Ok((revocation::revoke(decision, basis)?, found))
}

fn decide(basis: Basis<'_>, refused: &[Refused]) -> Result<(Decision, FoundFrontend), Needs> {
    let identity = match &basis.inputs.identity {
        Ok(identity) => identity,
        Err(problem) => return Ok((Decision::stuck(problem.clone()), Err(problem.clone()))),
    };
    if let Some(problem) = &basis.inputs.paused {
        return Ok((Decision::paused(problem.clone()), Err(problem.clone())));
    }
    match usable_frontend(basis, identity) {
        Ok(frontend) => {
            let decision = with_frontend(basis, identity, &frontend, refused).or_else(Stop::stuck)?;
            Ok((decision, Ok(frontend)))
        }
        Err(Stop::Blocked(problem)) => Ok((Decision::stuck(problem.clone()), Err(problem))),
        Err(Stop::Needs(needs)) => Err(needs),
    }
}

/// The frontend, if Azure can take all that there will be.
fn usable_frontend(basis: Basis<'_>, identity: &Identity) -> Result<Frontend, Stop> {
    limits::check(basis, identity)?;
    frontend::find(basis)
}

fn with_frontend(
    basis: Basis<'_>,
    identity: &Identity,
    frontend: &Frontend,
    refused: &[Refused],
) -> Result<Decision, Stop> {
    let id = service_id::find(basis, identity)?;
    let shared = subnet::shared(basis, frontend, &id)?;
    let chosen = subnet::choose(basis, identity, frontend, shared)?;
    let mut desired = desired_service(basis, identity, frontend, id, chosen.id()).map_err(invalid_spec)?;
    let mut decision = Decision::default();
    let mut recorded = intent::read(basis.cr.annotations().get(HO_INTENT)).unwrap_or_else(|| HoIntent::of(identity));
    let ready = match &chosen {
        Chosen::Own(id) => {
            let step = subnet::ensure_own(basis, identity, id, refused)?;
            let made = basis.inputs.sibling_made_subnet || step.why == Why::Absent;
            record_subnet(&mut recorded, id, made);
            let ready = step.ready().is_some();
            decision.steps.push(step);
            ready
        }
        Chosen::Given(id, by) => {
            subnet::check_given(id, by, basis.facts)?;
            true
        }
    };
    recorded = HoIntent {
        link_service: Some(desired.owned.id.to_string()),
        nat_subnet: recorded.nat_subnet,
        nat_subnet_made: recorded.nat_subnet_made,
        ..HoIntent::of(identity)
    };
    if ready {
        desired.owned = ownership::prove(desired.owned, basis)?;
        add_service_steps(basis, &desired, &mut decision, &mut recorded)?;
        let service = decision.step(Kind::PrivateLinkService);
        if service.is_some_and(|step| step.ready().is_some()) {
            decision.problem = their_endpoint::not_connected(basis.cr, &desired.owned.id, basis.facts)?;
        }
    } else {
        decision.steps.push(Step::needs(
            Kind::PrivateLinkService,
            desired.owned.id,
            "the NAT subnet",
        ));
    }
    decision.intent = Some(intent::write(&recorded));
    Ok(decision)
}

/// Records the NAT subnet. That it was made stays recorded as long as it is the same subnet.
fn record_subnet(recorded: &mut HoIntent, id: &ResourceId, made: bool) {
    let id = id.to_string();
    let same_one = recorded.nat_subnet.as_deref().is_some_and(|text| same(text, &id));
    recorded.nat_subnet_made = (same_one && recorded.nat_subnet_made) || made;
    recorded.nat_subnet = Some(id);
}

fn desired_service(
    basis: Basis<'_>,
    identity: &Identity,
    frontend: &Frontend,
    id: ResourceId,
    nat_subnet: &ResourceId,
) -> Result<PrivateLinkService, IdError> {
    Ok(PrivateLinkService {
        owned: OwnedPrivateLinkService {
            frontend: Some(frontend.id.clone()),
            ..ownership::owned(id, identity, basis)
        },
        location: location(&basis.cr.spec.location),
        nat_subnet: nat_subnet.clone(),
        subscriptions: basis.inputs.connecting.subscriptions(basis.cr)?,
    })
}

/// Adds the steps for the service. It is replaced only if somebody will connect the guest to the new one.
fn add_service_steps(
    basis: Basis<'_>,
    desired: &PrivateLinkService,
    decision: &mut Decision,
    recorded: &mut HoIntent,
) -> Result<(), Needs> {
    let observed = basis.facts.read(Kind::PrivateLinkService, &desired.owned.id)?;
    let mut step = ensure_present(desired, observed);
    if step.left() {
        recorded.link_service = None;
    }
    if step.verb == Verb::Delete {
        let annotations = basis.cr.annotations();
        let will_reconnect = annotations.contains_key(CPO_INTENT) || annotations.contains_key(ALLOW_REPLACE);
        if !will_reconnect {
            let text = format!(
                "the Private Link Service has to be replaced ({}); set the annotation {ALLOW_REPLACE}",
                step.why
            );
            decision.problem = Some(Problem::new(Reason::ReplacementBlocked, text));
            step.verb = Verb::Wait;
            step.why = Why::Needs("permission to be replaced");
        } else if disconnect(observed, decision) {
            step.verb = Verb::Wait;
            step.why = Why::Needs("its connections to go");
        }
    }
    decision.steps.push(step);
    Ok(())
}

/// Adds steps that delete the connections of a service. Returns whether there are any.
pub(super) fn disconnect(observed: &Observed, decision: &mut Decision) -> bool {
    let found = observed.found().map(connections).unwrap_or_default();
    let any = !found.is_empty();
    let steps = found
        .into_iter()
        .map(|id| Step::remove(Kind::PrivateEndpointConnection, id));
    decision.steps.extend(steps);
    any
}

#[cfg(test)]
mod tests;
