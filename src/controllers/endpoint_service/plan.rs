//! What the HO role does for an AWSEndpointService that is not deleted: the endpoint service of the Service's load
//! balancer, then who may connect to it. Pure.

use kube::ResourceExt;
use serde_json::{Map, Value, json};

use super::inputs::EndpointServiceInputs;
use super::service::{self, only_load_balancer};
use super::settings::Settings;
use crate::api::markers::aws::SERVICE_ZONES;
use crate::api::markers::{CLUSTER_ANNOTATION, HO_INTENT};
use crate::api::{AWSEndpointService, Reason};
use crate::aws::body::{text, texts};
use crate::aws::cloud::{Aws, Observed};
use crate::aws::kinds::Kind;
use crate::aws::kinds::allowed_principals::AllowedPrincipals;
use crate::aws::kinds::endpoint_service::{EndpointService, OwnedEndpointService};
use crate::aws::kinds::load_balancer::{dns_name, is_impaired};
use crate::aws::slot::Slot;
use crate::controllers::aws::{Decision, Facts, Needs, Step};
use crate::engine::cloud::Cloud;
use crate::engine::plan::{Verb, ensure_present};
use crate::engine::resource::Progress;
use crate::hypershift::aws::ids::service_id;
use crate::hypershift::aws::intent::{HoIntent, client_token, next_nonce};
use crate::hypershift::aws::load_balancer_name::{Vouched, claimed, is_name, vouched};
use crate::hypershift::aws::problem;
use crate::hypershift::aws::subnet_ids::{self, DesiredSubnets, SubnetSources};
use crate::hypershift::identity::Identity;
use crate::hypershift::intent::{self, OwnFields};
use crate::hypershift::problem::Problem;
use crate::runtime::event::{Event, What};

/// The most load balancers of before that are recorded, or read: a Service is recreated seldom, and the intent may be
/// forged.
pub(super) const MOST_FORMER: usize = 4;

/// What a decision for one custom resource is made from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Basis<'a> {
    /// The custom resource.
    pub(super) cr: &'a AWSEndpointService,
    /// What Kubernetes shows around it.
    pub(super) inputs: &'a EndpointServiceInputs,
    /// What AWS shows.
    pub(super) facts: &'a Facts,
    /// What the operator decided for all clusters.
    pub(super) settings: &'a Settings,
}

/// The load balancer of the custom resource, if its Service vouches for it and no other cluster has it.
pub(super) fn load_balancer(
    cr: &AWSEndpointService,
    inputs: &EndpointServiceInputs,
    settings: &Settings,
) -> Result<Vouched, Problem> {
    let spec = &cr.spec.network_load_balancer_name;
    match vouched(spec, inputs.service.as_ref(), settings.nlb_match, &settings.region) {
        Ok(_) if inputs.load_balancer_claimed => Err(claimed()),
        other => other,
    }
}

/// What to do for a custom resource that is not deleted.
pub(super) fn build(basis: Basis<'_>) -> Result<Decision, Needs> {
    let identity = match &basis.inputs.identity {
        Ok(identity) => identity,
        Err(problem) => return Ok(Decision::stuck(problem.clone())),
    };
    if let Some(problem) = &basis.inputs.paused {
        return Ok(Decision::paused(problem.clone()));
    }
    let mut decision = decide(basis, identity)?;
    decision.own_fields = own_fields(basis, &decision);
    decision.standing.extend(standing(basis));
    Ok(decision)
}

/// What is not as somebody may expect: subnets that are left out, who may connect, and a load balancer that works in
/// part only, if it was read.
fn standing(basis: Basis<'_>) -> Vec<(&'static str, Option<Event>)> {
    let Basis { cr, inputs, .. } = basis;
    let complaint = |all: &[String]| (!all.is_empty()).then(|| Event::new(What::Refused, all.join("; ")));
    let principals = inputs.principals.as_ref().map(|all| all.complaints.as_slice());
    let mut standing = vec![
        ("subnets", complaint(&subnets(cr, inputs).complaints)),
        ("principals", complaint(principals.unwrap_or_default())),
    ];
    if let Some(body) = read_load_balancer(basis) {
        let name = &cr.spec.network_load_balancer_name;
        let note = format!("load balancer {name} is active_impaired: it does not carry all traffic");
        let impaired = is_impaired(body).then(|| Event::new(What::Impaired, note));
        standing.push(("load balancer", impaired));
    }
    standing
}

/// The load balancer, if it was read: a path is made all the same if it is impaired.
fn read_load_balancer(basis: Basis<'_>) -> Option<&Value> {
    let balancer = load_balancer(basis.cr, basis.inputs, basis.settings).ok()?;
    let slot = Slot::load_balancer(&basis.settings.account, &balancer.name);
    basis.facts.reads.get(&slot)?.found()
}

fn decide(basis: Basis<'_>, identity: &Identity) -> Result<Decision, Needs> {
    let Basis {
        cr, inputs, settings, ..
    } = basis;
    let balancer = match load_balancer(cr, inputs, settings) {
        Ok(balancer) => balancer,
        Err(problem) => return Ok(Decision::stuck(problem)),
    };
    let principals = match &inputs.principals {
        Ok(principals) => principals.arns.clone(),
        Err(problem) => return Ok(Decision::stuck(problem.clone())),
    };
    let slot = Slot::endpoint_service(&settings.account, &balancer.name);
    let arn = match load_balancer_arn(basis, &slot, &balancer)? {
        Ok(arn) => arn,
        Err(decision) => return Ok(*decision),
    };
    let mut decision = Decision::default();
    let recorded = recorded(basis, identity, &balancer.name);
    let mut recorded = add_service_step(basis, identity, (&slot, arn), recorded, &mut decision)?;
    let about = Slot::allowed_principals(&slot);
    let ready = decision
        .step(Kind::EndpointService)
        .is_some_and(|step| step.ready().is_some());
    decision.steps.push(if ready {
        let desired = AllowedPrincipals {
            slot: about,
            arns: principals,
        };
        ensure_present(&desired, basis.facts.read(Kind::AllowedPrincipals, &desired.slot)?)
    } else {
        Step::needs(Kind::AllowedPrincipals, about, "the endpoint service")
    });
    service::add_former(basis, identity, &mut recorded, &mut decision)?;
    decision.intent = Some(intent::write(&recorded));
    Ok(decision)
}

/// The ARN of the load balancer, once it is active; or the decision that waits for that.
///
/// Of a service that was published it is known: AWS keeps a load balancer that is in use.
fn load_balancer_arn(
    basis: Basis<'_>,
    service: &Slot,
    balancer: &Vouched,
) -> Result<Result<String, Box<Decision>>, Needs> {
    let status = basis.cr.status.as_ref();
    if status.is_some_and(|status| status.endpoint_service_name.is_some()) {
        let found = basis.facts.read(Kind::EndpointService, service)?.found();
        if let Some(arn) = found.and_then(only_load_balancer).filter(|arn| balancer.may_be(arn)) {
            return Ok(Ok(arn));
        }
    }
    let name = &balancer.name;
    let slot = Slot::load_balancer(&basis.settings.account, name);
    let observed = basis.facts.read(Kind::LoadBalancer, &slot)?;
    let problem = match observed {
        Observed::Found(body) if !balancer.is_reached_by(dns_name(body)) => problem::load_balancer_gone(name),
        Observed::Found(body) if Aws::progress(body) == Progress::Ready => return Ok(Ok(text(body, "Id").to_owned())),
        Observed::Found(body) => problem::load_balancer_in_state(name, text(body, "State")),
        Observed::ReadFailed(error) => {
            Problem::unread(Reason::LoadBalancerNotActive, &format!("load balancer {name}"), error)
        }
        _ => problem::load_balancer_gone(name),
    };
    let mut step = Step {
        found: observed.found().cloned(),
        ..Step::needs(Kind::LoadBalancer, slot, "the cloud provider")
    };
    // The next read is due by the error, not when others may have done something.
    if let Observed::ReadFailed(error) = observed {
        step = step.unreadable(error);
    }
    Ok(Err(Box::new(Decision {
        steps: vec![step],
        ..Decision::stuck(problem)
    })))
}

/// What was recorded for this cluster and load balancer. Another load balancer of before stays recorded until its
/// endpoint service is gone.
fn recorded(basis: Basis<'_>, identity: &Identity, name: &str) -> HoIntent {
    let account = &basis.settings.account;
    let known: Option<HoIntent> = intent::read(basis.cr.annotations().get(HO_INTENT));
    let known = known.filter(|known| known.identity() == *identity).unwrap_or_default();
    let mut recorded = HoIntent {
        account: account.account.clone(),
        region: account.region.clone(),
        load_balancer: name.to_owned(),
        former_load_balancers: known.former_load_balancers,
        ..HoIntent::of(identity)
    };
    if known.load_balancer == name {
        recorded.endpoint_service_id = known.endpoint_service_id;
        recorded.nonce = known.nonce;
    } else if !known.load_balancer.is_empty() {
        recorded.former_load_balancers.push(known.load_balancer);
    }
    // Whoever may write the annotation must not have texts without end searched for.
    recorded
        .former_load_balancers
        .retain(|former| former != name && is_name(former));
    let more = recorded.former_load_balancers.len().saturating_sub(MOST_FORMER);
    recorded.former_load_balancers.drain(..more);
    recorded
}

/// Adds the step for the endpoint service; returns what is recorded of it.
fn add_service_step(
    basis: Basis<'_>,
    identity: &Identity,
    (slot, arn): (&Slot, String),
    mut recorded: HoIntent,
    decision: &mut Decision,
) -> Result<HoIntent, Needs> {
    let observed = basis.facts.read(Kind::EndpointService, slot)?;
    if *observed == Observed::Absent {
        begin_create(&mut recorded, shown_service_id(basis), basis.facts.is_token_spent(slot));
    }
    let uid = basis.cr.uid().unwrap_or_default();
    let desired = EndpointService {
        owned: OwnedEndpointService {
            slot: slot.clone(),
            owner_tags: service::owner_tags(basis, identity),
            vouched: true,
            management_tag: service::management_tag(basis),
        },
        load_balancer_arn: arn,
        client_token: client_token(&uid, Kind::EndpointService, &recorded.nonce),
    };
    let mut step = ensure_present(&desired, observed);
    if step.left() {
        recorded.endpoint_service_id = None;
    }
    if step.verb == Verb::Delete {
        service::disconnect_first(basis, &mut step, decision)?;
    }
    // Also of one that is never ready: with its client token AWS creates no other one.
    if let Some(body) = step.found.as_ref().filter(|_| !step.left()) {
        recorded.endpoint_service_id = Some(Aws::instance(body).to_owned());
    }
    decision.steps.push(step);
    Ok(recorded)
}

/// Records that a service is about to be created. The id of the one before, if one is known, makes its client token
/// another one: with the same token AWS may answer with the service that is gone.
fn begin_create(recorded: &mut HoIntent, shown: Option<String>, is_token_spent: bool) {
    let before = recorded.endpoint_service_id.take().or(shown);
    recorded.nonce = next_nonce(&recorded.nonce, before.as_deref(), is_token_spent);
}

/// The id of the endpoint service that the status shows.
fn shown_service_id(basis: Basis<'_>) -> Option<String> {
    let name = basis.cr.status.as_ref()?.endpoint_service_name.as_deref()?;
    service_id(name, &basis.settings.region).map(str::to_owned)
}

/// What the role keeps on the custom resource itself, as far as it differs.
fn own_fields(basis: Basis<'_>, decision: &Decision) -> OwnFields {
    let Basis { cr, inputs, .. } = basis;
    let mut fields = OwnFields::default();
    let mut annotate = |name: &str, value: String| {
        if cr.annotations().get(name) != Some(&value) {
            fields.annotations.insert(name.to_owned(), json!(value));
        }
    };
    if let Some(cluster) = &inputs.cluster {
        annotate(CLUSTER_ANNOTATION, cluster.clone());
    }
    let service = decision.step(Kind::EndpointService).and_then(Step::ready);
    if let Some(zones) = service
        .map(|body| texts(body, "ZoneIds"))
        .filter(|zones| !zones.is_empty())
    {
        annotate(SERVICE_ZONES, Vec::from_iter(zones).join(","));
    }
    let subnets = subnets(cr, inputs).ids;
    if subnets != cr.spec.subnet_ids {
        fields.spec = Map::from_iter([("subnetIDs".to_owned(), json!(subnets))]);
    }
    fields
}

/// The subnets of the cluster's workers.
pub(super) fn subnets(cr: &AWSEndpointService, inputs: &EndpointServiceInputs) -> DesiredSubnets {
    let cluster = inputs.identity.as_ref().map_or("", |identity| &identity.name);
    subnet_ids::desired(SubnetSources {
        cluster,
        pools: &inputs.node_pools,
        karpenter: &inputs.karpenter,
        current: &cr.spec.subnet_ids,
    })
}

#[cfg(test)]
mod tests;
