//! What the HO role does for a custom resource that is not deleted: NAT subnet, then Private Link Service. Pure.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::ResourceExt;

use super::connecting::Connecting;
use super::frontend::{self, FrontendMatch, ServiceFacts};
use super::nat_prefix::{NatSubnetRules, Refused};
use super::ownership;
use super::revocation;
use super::subnet::{self, Chosen};
use super::their_endpoint;
use crate::api::markers::{ALLOW_REPLACE, CPO_INTENT, HO_INTENT};
use crate::api::{AzurePrivateLinkService, Reason};
use crate::azure::id::{IdError, ResourceId, SubscriptionId, location, same};
use crate::azure::kinds::load_balancer::Frontend;
use crate::azure::kinds::private_link_service::{OwnedPrivateLinkService, PrivateLinkService, connections};
use crate::azure::plan::{Step, Verb, Why, ensure_present};
use crate::azure::resource::{Kind, MISSED, Observed};
use crate::azure::scope::Scope;
use crate::controllers::decision::Decision;
use crate::controllers::facts::{Facts, Needs};
use crate::controllers::identity::{DeletedCluster, Identity};
use crate::controllers::intent::{self, HoIntent};
use crate::hypershift::problem::Problem;
use crate::names;

/// What the operator decided for all clusters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The Azure cloud that this process serves, as HostedClusters spell it.
    pub cloud: &'static str,
    /// The UID of the management cluster's namespace kube-system, with which each Private Link Service is stamped.
    pub management_cluster: String,
    /// Where Private Link Services are made.
    pub subscription: SubscriptionId,
    /// The resource group in it.
    pub resource_group: String,
    /// How NAT subnets are chosen.
    pub nat: NatSubnetRules,
    /// The NAT subnet that clusters in its network share, where none is given.
    pub nat_subnet: Option<ResourceId>,
    /// How frontends are recognised.
    pub frontend_match: FrontendMatch,
    /// Further scopes in which this process may manage what was made there. The groups among them are searched for load
    /// balancers before the whole subscription.
    pub also_manage: Vec<Scope>,
}

impl Settings {
    /// Whether this process may touch a Private Link Service with this id.
    pub fn allows(&self, id: &ResourceId) -> bool {
        let own = *id.subscription() == self.subscription && same(id.group(), &self.resource_group);
        own || self.also_manages(id)
    }

    /// Whether this process may remove a NAT subnet with this id: its network may be in any group of the subscription.
    pub fn allows_subnet(&self, id: &ResourceId) -> bool {
        *id.subscription() == self.subscription || self.also_manages(id)
    }

    fn also_manages(&self, id: &ResourceId) -> bool {
        self.also_manage.iter().any(|scope| scope.covers(id))
    }

    /// Further groups of the own subscription.
    pub(super) fn further_groups(&self) -> impl Iterator<Item = &str> {
        self.also_manage.iter().filter_map(|scope| match scope {
            Scope::Group(subscription, group) if *subscription == self.subscription => {
                Some(group.as_str()).filter(|group| !same(group, &self.resource_group))
            }
            _ => None,
        })
    }
}

/// What a decision for a custom resource is made from, as Kubernetes shows it.
#[derive(Debug, Clone)]
pub struct PrivateLinkServiceInputs {
    /// The cluster, if HostedCluster and HostedControlPlane agree on it and no other HostedCluster has what it names.
    pub identity: Result<Identity, Problem>,
    /// The identity by the HostedCluster alone, if no older HostedCluster has its cluster id.
    pub own: Option<Identity>,
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

/// The frontend, or why there is none; the status reports it.
pub type Found = Result<Frontend, Problem>;

/// What to do for a custom resource that is not deleted, and the frontend it uses.
pub fn build(
    cr: &AzurePrivateLinkService,
    inputs: &PrivateLinkServiceInputs,
    facts: &Facts,
    settings: &Settings,
    refused: &[Refused],
) -> Result<(Decision, Found), Needs> {
    let (decision, found) = decide(cr, inputs, facts, settings, refused)?;
    Ok((revocation::revoke(decision, cr, inputs, facts, settings)?, found))
}

fn decide(
    cr: &AzurePrivateLinkService,
    inputs: &PrivateLinkServiceInputs,
    facts: &Facts,
    settings: &Settings,
    refused: &[Refused],
) -> Result<(Decision, Found), Needs> {
    let identity = match &inputs.identity {
        Ok(identity) => identity,
        Err(problem) => return Ok((Decision::stuck(problem.clone()), Err(problem.clone()))),
    };
    if let Some(problem) = &inputs.paused {
        return Ok((Decision::paused(problem.clone()), Err(problem.clone())));
    }
    if let Err(problem) = usable(cr, identity, &inputs.connecting, settings) {
        return Ok((Decision::stuck(problem.clone()), Err(problem)));
    }
    let found = frontend::find(cr, inputs, facts, settings)?;
    let decision = match &found {
        Ok(frontend) => with_frontend(cr, identity, frontend, inputs, facts, settings, refused)?,
        Err(problem) => Decision::stuck(problem.clone()),
    };
    Ok((decision, found))
}

/// Azure's limit of subscriptions that a service may be shown to, and as many whose connections it approves
/// (<https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits>).
const MAX_SUBSCRIPTIONS: usize = 100;

/// Whether Azure can take every id, name and list that there will be. Checked before the first call.
fn usable(
    cr: &AzurePrivateLinkService,
    identity: &Identity,
    connecting: &Connecting,
    settings: &Settings,
) -> Result<(), Problem> {
    let invalid = |text: String| Problem::new(Reason::InvalidSpec, text);
    let allowed = names_are_usable(cr, identity, settings).and_then(|()| connecting.subscriptions(cr));
    let allowed = allowed.map_err(|error| invalid(error.to_string()))?.len();
    if allowed > MAX_SUBSCRIPTIONS {
        let text =
            format!("{allowed} subscriptions are allowed, the guest's own included; Azure takes {MAX_SUBSCRIPTIONS}");
        // Not InvalidSpec, which would stop the guest's side too.
        return Err(Problem::new(Reason::PLSCreationFailed, text));
    }
    Ok(())
}

fn names_are_usable(cr: &AzurePrivateLinkService, identity: &Identity, settings: &Settings) -> Result<(), IdError> {
    let (subscription, group) = (&settings.subscription, settings.resource_group.as_str());
    let name = names::link_service(&cr.name_any(), &identity.cluster_id);
    names::in_group(Kind::PrivateLinkService, subscription, group, &name)?;
    match &cr.spec.nat_subnet_id {
        Some(given) => ResourceId::parse_as(Kind::Subnet, given)?,
        // The network is not known yet and does not matter for this check.
        None => ResourceId::new(
            Kind::Subnet,
            subscription,
            group,
            &["any", &names::nat_subnet(&identity.infra_id)],
        )?,
    };
    ResourceId::parse_as(Kind::VirtualNetwork, &cr.spec.guest_vnet_id)?;
    Ok(())
}

fn with_frontend(
    cr: &AzurePrivateLinkService,
    identity: &Identity,
    frontend: &Frontend,
    inputs: &PrivateLinkServiceInputs,
    facts: &Facts,
    settings: &Settings,
    refused: &[Refused],
) -> Result<Decision, Needs> {
    let (at, chosen) = match placed(cr, identity, frontend, inputs, facts, settings)? {
        Ok(placed) => placed,
        Err(problem) => return Ok(Decision::stuck(problem)),
    };
    let mut desired = match desired_service(cr, identity, frontend, (at, chosen.id()), (inputs, settings)) {
        Ok(desired) => desired,
        Err(error) => return Ok(Decision::stuck(Problem::new(Reason::InvalidSpec, error.to_string()))),
    };
    let mut decision = Decision::default();
    let mut recorded = intent::read(cr.annotations().get(HO_INTENT)).unwrap_or_else(|| HoIntent::of(identity));
    let ready = match &chosen {
        Chosen::Own(id) => {
            let step = match subnet::ensure_own(id, identity, facts, settings, refused)? {
                Ok(step) => step,
                Err(problem) => return Ok(Decision::stuck(problem)),
            };
            let made = inputs.sibling_made_subnet || step.why == Why::Absent;
            record_subnet(&mut recorded, id, made);
            let ready = step.ready().is_some();
            decision.steps.push(step);
            ready
        }
        Chosen::Given(id, by) => match subnet::check_given(id, by, facts)? {
            None => true,
            Some(problem) => return Ok(Decision::stuck(problem)),
        },
    };
    recorded = HoIntent {
        link_service: Some(desired.owned.id.to_string()),
        nat_subnet: recorded.nat_subnet,
        nat_subnet_made: recorded.nat_subnet_made,
        ..HoIntent::of(identity)
    };
    if ready {
        desired.owned = ownership::prove(desired.owned, cr, inputs, facts, settings)?;
        add_service_steps(cr, &desired, facts, &mut decision, &mut recorded)?;
        if decision
            .step(Kind::PrivateLinkService)
            .is_some_and(|step| step.ready().is_some())
        {
            decision.problem = their_endpoint::not_connected(cr, &desired.owned.id, facts)?;
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

/// The id that the service has or will have, and its NAT subnet.
fn placed(
    cr: &AzurePrivateLinkService,
    identity: &Identity,
    frontend: &Frontend,
    inputs: &PrivateLinkServiceInputs,
    facts: &Facts,
    settings: &Settings,
) -> Result<Result<(ResourceId, Chosen), Problem>, Needs> {
    let name = names::link_service(&cr.name_any(), &identity.cluster_id);
    let (subscription, group) = (&settings.subscription, &settings.resource_group);
    let here = match names::in_group(Kind::PrivateLinkService, subscription, group, &name) {
        Ok(here) => here,
        Err(error) => return Ok(Err(Problem::new(Reason::InvalidSpec, error.to_string()))),
    };
    let at = match service_id(cr, &here, facts, settings)? {
        Ok(at) => at,
        Err(problem) => return Ok(Err(problem)),
    };
    let shared = subnet::shared(cr, frontend, &at, facts, settings)?;
    let chosen = subnet::choose(cr, identity, frontend, shared, &inputs.subnets_of_older);
    Ok(chosen.map(|chosen| (at, chosen)))
}

/// The id that the service has or will have. If it is gone from where it was recorded, it is recreated here.
fn service_id(
    cr: &AzurePrivateLinkService,
    own: &ResourceId,
    facts: &Facts,
    settings: &Settings,
) -> Result<Result<ResourceId, Problem>, Needs> {
    let recorded = match recorded_elsewhere(cr, own, settings) {
        Ok(Some(recorded)) => recorded,
        Ok(None) => return Ok(Ok(own.clone())),
        Err(problem) => return Ok(Err(problem)),
    };
    let is_found = *facts.read(Kind::PrivateLinkService, &recorded)? != Observed::Absent;
    if is_found || *facts.fresh_read(Kind::PrivateLinkService, &recorded)? != Observed::Absent {
        return Ok(Ok(recorded));
    }
    if facts.surely_gone.contains(&recorded) {
        return Ok(Ok(own.clone()));
    }
    let text = format!(
        "the recorded {} {} is not found",
        Kind::PrivateLinkService.label(),
        recorded.name()
    );
    Ok(Err(Problem::new(Reason::Provisioning, text).requeue_after(MISSED * 2)))
}

/// Records the NAT subnet. That it was made stays recorded as long as it is the same subnet.
fn record_subnet(recorded: &mut HoIntent, id: &ResourceId, made: bool) {
    let id = id.to_string();
    let same_one = recorded.nat_subnet.as_deref().is_some_and(|text| same(text, &id));
    recorded.nat_subnet_made = (same_one && recorded.nat_subnet_made) || made;
    recorded.nat_subnet = Some(id);
}

/// The id of a service in another scope than the one in which this process makes services now, from the intent or the
/// status. No second service is made: this process manages the recorded one, or reports that it may not.
pub(super) fn recorded_elsewhere(
    cr: &AzurePrivateLinkService,
    own: &ResourceId,
    settings: &Settings,
) -> Result<Option<ResourceId>, Problem> {
    let recorded: Option<HoIntent> = intent::read(cr.annotations().get(HO_INTENT));
    let recorded = recorded.and_then(|recorded| recorded.link_service);
    let shown = || cr.status.as_ref()?.private_link_service_id.clone();
    let known = recorded.or_else(shown);
    let known = known.and_then(|id| ResourceId::parse_as(Kind::PrivateLinkService, &id).ok());
    match known.filter(|id| id != own && same(id.name(), own.name())) {
        None => Ok(None),
        Some(id) if settings.allows(&id) => Ok(Some(id)),
        Some(id) => {
            let scope = format!("/subscriptions/{}/resourceGroups/{}", id.subscription(), id.group());
            let text = format!("the Private Link Service was made in {scope}; allow it with --also-manage");
            Err(Problem::new(Reason::ConfigurationChanged, text))
        }
    }
}

fn desired_service(
    cr: &AzurePrivateLinkService,
    identity: &Identity,
    frontend: &Frontend,
    (id, subnet): (ResourceId, &ResourceId),
    (inputs, settings): (&PrivateLinkServiceInputs, &Settings),
) -> Result<PrivateLinkService, IdError> {
    Ok(PrivateLinkService {
        owned: OwnedPrivateLinkService {
            frontend: Some(frontend.id.clone()),
            ..ownership::owned(id, identity, inputs, settings)
        },
        location: location(&cr.spec.location),
        nat_subnet: subnet.clone(),
        subscriptions: inputs.connecting.subscriptions(cr)?,
    })
}

/// Adds the steps for the service. It is replaced only if somebody will connect the guest to the new one.
fn add_service_steps(
    cr: &AzurePrivateLinkService,
    desired: &PrivateLinkService,
    facts: &Facts,
    decision: &mut Decision,
    recorded: &mut HoIntent,
) -> Result<(), Needs> {
    let observed = facts.read(Kind::PrivateLinkService, &desired.owned.id)?;
    let mut step = ensure_present(desired, observed);
    if step.left() {
        recorded.link_service = None;
    }
    if step.verb == Verb::Delete {
        let will_reconnect = cr.annotations().contains_key(CPO_INTENT) || cr.annotations().contains_key(ALLOW_REPLACE);
        if !will_reconnect {
            let text = format!(
                "the Private Link Service has to be replaced ({}); set the annotation {ALLOW_REPLACE}",
                step.why
            );
            decision.problem = Some(Problem::new(Reason::ReplacementBlocked, text));
            (step.verb, step.why) = (Verb::Wait, Why::Needs("permission to be replaced"));
        } else if disconnect(observed, decision) {
            (step.verb, step.why) = (Verb::Wait, Why::Needs("its connections to go"));
        }
    }
    decision.steps.push(step);
    Ok(())
}

/// Adds steps that delete the connections of a service. Returns whether there are any.
pub(super) fn disconnect(observed: &Observed, decision: &mut Decision) -> bool {
    let found = observed.found().map(connections).unwrap_or_default();
    let any = !found.is_empty();
    let steps = found.into_iter().map(|id| Step::remove(Kind::Connection, id));
    decision.steps.extend(steps);
    any
}

#[cfg(test)]
mod tests;
