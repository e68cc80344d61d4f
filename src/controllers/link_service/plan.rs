//! What the HO role does for a custom resource that stays: the NAT subnet, then the Private Link Service. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use ipnet::Ipv4Net;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::ResourceExt;

use super::frontend::{self, FrontendMatch, ServiceFacts};
use super::nat_subnet::{self, NatSubnetRules};
use crate::api::markers::{ALLOW_REPLACE, CPO_INTENT, HO_INTENT};
use crate::api::{AzurePrivateLinkService, Reason};
use crate::azure::error::ArmError;
use crate::azure::id::{IdError, ResourceId, SubscriptionId, location, same};
use crate::azure::link_service::{LinkService, connections};
use crate::azure::load_balancer::Frontend;
use crate::azure::plan::{Step, Verb, Why, away, toward};
use crate::azure::resource::{Kind, Seen};
use crate::azure::subnet::{NatSubnet, takes_link_services};
use crate::controllers::decision::{Decision, Problem};
use crate::controllers::facts::{Facts, Needs};
use crate::controllers::identity::Identity;
use crate::controllers::intent::{self, HoIntent};
use crate::names;

/// What the operator decided for all clusters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where Private Link Services are made.
    pub subscription: SubscriptionId,
    /// The group in it.
    pub resource_group: String,
    /// How NAT subnets are chosen.
    pub nat: NatSubnetRules,
    /// How frontends are recognised.
    pub frontend_match: FrontendMatch,
    /// Further scopes in which this process may go on with what was made there: `/subscriptions/ID[/resourceGroups/NAME]`.
    pub also_manage: Vec<String>,
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
        let subscription = format!("/subscriptions/{}", id.subscription());
        let group = format!("{subscription}/resourceGroups/{}", id.group());
        self.also_manage
            .iter()
            .any(|scope| same(scope, &subscription) || same(scope, &group))
    }
}

/// What Kubernetes says about the custom resource's surroundings.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The cluster, if HostedCluster and HostedControlPlane agree on it.
    pub identity: Result<Identity, Problem>,
    /// The HostedCluster, if its control plane is in this namespace: it hears of what happens.
    pub hosted_cluster: Option<ObjectReference>,
    /// Why the cluster is not to be touched now.
    pub paused: Option<Problem>,
    /// The Service of the same name.
    pub service: Option<ServiceFacts>,
    /// Whether another custom resource of the same cluster stays.
    pub sibling_stays: bool,
    /// Whether another HostedCluster has the cluster id or infra id that is recorded on the custom resource.
    pub claimed_elsewhere: bool,
}

/// While the other role's finalizer stands, deletion waits for it this long.
pub(super) const PATIENCE: Duration = Duration::from_secs(300);

/// What was found of the load balancer; kept for the status.
pub type Found = Result<Frontend, Problem>;

/// What to do for a custom resource that stays, and the frontend it uses.
pub fn build(
    cr: &AzurePrivateLinkService,
    around: &Surroundings,
    facts: &Facts,
    settings: &Settings,
    refused: &[Ipv4Net],
) -> Result<(Decision, Found), Needs> {
    let identity = match &around.identity {
        Ok(identity) => identity,
        Err(problem) => return Ok((Decision::stuck(problem.clone()), Err(problem.clone()))),
    };
    if let Some(problem) = &around.paused {
        return Ok((Decision::paused(problem.clone()), Err(problem.clone())));
    }
    if let Err(error) = usable(cr, identity, settings) {
        let problem = Problem::new(Reason::InvalidSpec, error.to_string());
        return Ok((Decision::stuck(problem.clone()), Err(problem)));
    }
    let found = find_frontend(cr, around, facts, settings)?;
    let decision = match &found {
        Ok(frontend) => with_frontend(cr, identity, frontend, facts, settings, refused)?,
        Err(problem) => Decision::stuck(problem.clone()),
    };
    Ok((decision, found))
}

/// Whether Azure can take every id and name that there will be. Asked before the first call.
fn usable(cr: &AzurePrivateLinkService, identity: &Identity, settings: &Settings) -> Result<(), IdError> {
    let (subscription, group) = (&settings.subscription, settings.resource_group.as_str());
    let name = names::link_service(&cr.name_any(), &identity.cluster_id);
    names::in_group(Kind::LinkService, subscription, group, &name)?;
    match &cr.spec.nat_subnet_id {
        Some(given) => ResourceId::parse_as(Kind::Subnet, given)?,
        // In which network is not known yet, and no matter for the name.
        None => ResourceId::new(
            Kind::Subnet,
            subscription,
            group,
            &["any", &names::nat_subnet(&identity.infra_id)],
        )?,
    };
    ResourceId::parse_as(Kind::Subnet, &cr.spec.guest_subnet_id)?;
    ResourceId::parse_as(Kind::VirtualNetwork, &cr.spec.guest_vnet_id)?;
    Ok(())
}

fn find_frontend(
    cr: &AzurePrivateLinkService,
    around: &Surroundings,
    facts: &Facts,
    settings: &Settings,
) -> Result<Found, Needs> {
    let address = match frontend::wanted_address(cr.spec.load_balancer_ip.as_deref(), around.service.as_ref()) {
        Ok(address) => address,
        Err(problem) => return Ok(Err(problem)),
    };
    let Some(service) = &around.service else {
        return Ok(Err(Problem::new(Reason::WaitingForLoadBalancer, "")));
    };
    let choose = |list: &Result<Vec<Frontend>, ArmError>| match list {
        Ok(list) => frontend::choose(list, address, service, settings.frontend_match).cloned(),
        Err(error) => Err(Problem::error(Reason::ILBLookupFailed, "load balancers", error).again(error.delay(1))),
    };
    let waits = |problem: &Problem| problem.reason == Reason::WaitingForLoadBalancer;
    let mut last = None;
    for group in [Some(settings.resource_group.as_str()), None] {
        let mut chosen = choose(facts.frontends(&settings.subscription, group)?);
        if chosen.as_ref().is_err_and(waits) {
            chosen = choose(facts.new_frontends(&settings.subscription, group)?);
        }
        match chosen {
            Err(problem) if waits(&problem) => last = Some(problem),
            decided => return Ok(decided),
        }
    }
    Ok(Err(
        last.unwrap_or_else(|| Problem::new(Reason::WaitingForLoadBalancer, ""))
    ))
}

fn with_frontend(
    cr: &AzurePrivateLinkService,
    identity: &Identity,
    frontend: &Frontend,
    facts: &Facts,
    settings: &Settings,
    refused: &[Ipv4Net],
) -> Result<Decision, Needs> {
    let (subnet, made) = match nat_subnet_of(cr, identity, frontend) {
        Ok(subnet) => subnet,
        Err(problem) => return Ok(Decision::stuck(problem)),
    };
    let mut want = match wanted(cr, identity, frontend, &subnet, settings) {
        Ok(want) => want,
        Err(error) => return Ok(Decision::stuck(Problem::new(Reason::InvalidSpec, error.to_string()))),
    };
    match recorded_elsewhere(cr, &want.id, settings) {
        Ok(None) => {}
        Ok(Some(recorded)) => want.id = recorded,
        Err(problem) => return Ok(Decision::stuck(problem)),
    }
    let mut decision = Decision::default();
    let ready = if made {
        let step = match bring_subnet(&subnet, identity, facts, settings, refused)? {
            Ok(step) => step,
            Err(problem) => return Ok(Decision::stuck(problem)),
        };
        let ready = step.settled().is_some();
        decision.steps.push(step);
        ready
    } else {
        match check_given(&subnet, facts)? {
            None => true,
            Some(problem) => return Ok(Decision::stuck(problem)),
        }
    };
    decision.intent = Some(intent::write(&HoIntent {
        cluster: identity.name.clone(),
        cluster_id: identity.cluster_id.clone(),
        infra_id: identity.infra_id.clone(),
        link_service: want.id.to_string(),
        frontend: want.frontend.clone(),
        nat_subnet: made.then(|| subnet.to_string()),
    }));
    if ready {
        bring_link_service(cr, &want, facts, &mut decision)?;
    } else {
        decision
            .steps
            .push(Step::needs(Kind::LinkService, want.id, "the NAT subnet"));
    }
    Ok(decision)
}

/// The service as it was recorded, if that is in another place than this process makes services in now.
/// Never a second one: the recorded one is gone on with, or nothing is done.
pub(super) fn recorded_elsewhere(
    cr: &AzurePrivateLinkService,
    own: &ResourceId,
    settings: &Settings,
) -> Result<Option<ResourceId>, Problem> {
    let recorded: Option<HoIntent> = intent::read(cr.annotations().get(HO_INTENT));
    let recorded = recorded.and_then(|r| ResourceId::parse_as(Kind::LinkService, &r.link_service).ok());
    match recorded.filter(|id| id != own && same(id.name(), own.name())) {
        None => Ok(None),
        Some(id) if settings.allows(&id) => Ok(Some(id)),
        Some(id) => {
            let scope = format!("/subscriptions/{}/resourceGroups/{}", id.subscription(), id.group());
            let text = format!("the Private Link Service was made in {scope}; allow it with --also-manage");
            Err(Problem::new(Reason::ConfigurationChanged, text))
        }
    }
}

/// The NAT subnet, and whether it is this role that makes it.
fn nat_subnet_of(
    cr: &AzurePrivateLinkService,
    identity: &Identity,
    frontend: &Frontend,
) -> Result<(ResourceId, bool), Problem> {
    let invalid = |error: IdError| Problem::new(Reason::InvalidSpec, format!("NAT subnet: {error}"));
    let network = frontend.subnet.parent().ok_or_else(|| invalid(IdError::Form))?;
    match &cr.spec.nat_subnet_id {
        None => Ok((
            network
                .child(Kind::Subnet, &names::nat_subnet(&identity.infra_id))
                .map_err(invalid)?,
            true,
        )),
        Some(text) => {
            let given = ResourceId::parse_as(Kind::Subnet, text).map_err(invalid)?;
            let inside = given.parent().as_ref() == Some(&network);
            let outside = || {
                Problem::new(
                    Reason::InvalidSpec,
                    "natSubnetID is not in the load balancer's virtual network",
                )
            };
            inside.then_some((given, false)).ok_or_else(outside)
        }
    }
}

fn wanted(
    cr: &AzurePrivateLinkService,
    identity: &Identity,
    frontend: &Frontend,
    subnet: &ResourceId,
    settings: &Settings,
) -> Result<LinkService, IdError> {
    let name = names::link_service(&cr.name_any(), &identity.cluster_id);
    let guest = ResourceId::parse_as(Kind::Subnet, &cr.spec.guest_subnet_id)?
        .subscription()
        .clone();
    let more = cr
        .spec
        .additional_allowed_subscriptions
        .iter()
        .flatten()
        .map(|text| SubscriptionId::parse(text));
    let subscriptions: BTreeSet<SubscriptionId> = std::iter::once(Ok(guest)).chain(more).collect::<Result<_, _>>()?;
    Ok(LinkService {
        id: names::in_group(
            Kind::LinkService,
            &settings.subscription,
            &settings.resource_group,
            &name,
        )?,
        location: location(&cr.spec.location),
        marks: names::link_service_marks(&identity.name, &identity.cluster_id),
        frontend: frontend.id.clone(),
        nat_subnet: subnet.clone(),
        subscriptions,
    })
}

fn bring_subnet(
    id: &ResourceId,
    identity: &Identity,
    facts: &Facts,
    settings: &Settings,
    refused: &[Ipv4Net],
) -> Result<Result<Step, Problem>, Needs> {
    let failed = |text: String| Problem::new(Reason::NATSubnetCreationFailed, text);
    let seen = facts.look(Kind::Subnet, id)?;
    let mut want = NatSubnet {
        id: id.clone(),
        prefix: None,
    };
    if *seen == Seen::Absent {
        let Some(network) = id.parent() else {
            return Ok(Err(failed(IdError::Form.to_string())));
        };
        want.prefix = match facts.look(Kind::VirtualNetwork, &network)? {
            Seen::Found(body) => nat_subnet::choose(body, settings.nat, &identity.infra_id, refused),
            Seen::ReadFailed(error) => {
                let subject = format!("virtual_network {}", network.name());
                let problem = Problem::error(Reason::NATSubnetCreationFailed, &subject, error);
                return Ok(Err(problem.again(error.delay(1))));
            }
            _ => {
                return Ok(Err(
                    failed("the virtual network does not exist".to_owned()).again(PATIENCE)
                ));
            }
        };
        if want.prefix.is_none() {
            return Ok(Err(failed(
                "the virtual network has no room for a NAT subnet".to_owned(),
            )
            .again(PATIENCE)));
        }
    }
    Ok(Ok(toward(&want, seen)))
}

/// What is wrong with a NAT subnet that was given. It is never written.
fn check_given(id: &ResourceId, facts: &Facts) -> Result<Option<Problem>, Needs> {
    let failed = |text: &str| Some(Problem::new(Reason::NATSubnetCreationFailed, text).again(PATIENCE));
    Ok(match facts.look(Kind::Subnet, id)? {
        Seen::Found(body) if takes_link_services(body) => None,
        Seen::Found(_) => failed("natSubnetID: set its privateLinkServiceNetworkPolicies to Disabled"),
        Seen::ReadFailed(error) | Seen::WriteFailed(error) | Seen::DeleteFailed(error) => {
            let subject = format!("subnet {}", id.name());
            Some(Problem::error(Reason::NATSubnetCreationFailed, &subject, error).again(error.delay(1)))
        }
        Seen::Absent | Seen::Pending => failed("natSubnetID does not exist"),
    })
}

/// Steps for the service. One that must be replaced is replaced only if somebody will connect the guest to the new one.
fn bring_link_service(
    cr: &AzurePrivateLinkService,
    want: &LinkService,
    facts: &Facts,
    decision: &mut Decision,
) -> Result<(), Needs> {
    let seen = facts.look(Kind::LinkService, &want.id)?;
    let mut step = toward(want, seen);
    if step.verb == Verb::Delete {
        let served = cr.annotations().contains_key(CPO_INTENT) || cr.annotations().contains_key(ALLOW_REPLACE);
        if !served {
            let text = format!(
                "the Private Link Service has to be replaced ({}); set the annotation {ALLOW_REPLACE}",
                step.why
            );
            decision.problem = Some(Problem::new(Reason::ReplacementBlocked, text));
            (step.verb, step.why) = (Verb::Wait, Why::Needs("permission to be replaced"));
        } else if disconnect(seen, decision) {
            (step.verb, step.why) = (Verb::Wait, Why::Needs("its connections to go"));
        }
    }
    decision.steps.push(step);
    Ok(())
}

/// Adds steps that delete the connections of a service; says whether there are any.
pub(super) fn disconnect(seen: &Seen, decision: &mut Decision) -> bool {
    let found = seen.found().map(connections).unwrap_or_default();
    for connection in &found {
        let present = Seen::Found(serde_json::Value::Null);
        decision.steps.push(away(connection, &present));
    }
    !found.is_empty()
}

#[cfg(test)]
mod tests;
