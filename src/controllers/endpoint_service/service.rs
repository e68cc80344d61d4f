//! Whether an endpoint service is the cluster's, and how it goes: connections first. Pure.

use serde_json::Value;

use super::plan::Basis;
use super::settings::Settings;
use crate::aws::body::texts;
use crate::aws::kinds::Kind;
use crate::aws::kinds::endpoint_connections::EndpointConnections;
use crate::aws::kinds::endpoint_service::OwnedEndpointService;
use crate::aws::owner_tags::OwnerTags;
use crate::aws::slot::Slot;
use crate::controllers::aws::{Decision, Needs, Step};
use crate::engine::plan::{Verb, Why, ensure_absent};
use crate::hypershift::aws::intent::HoIntent;
use crate::hypershift::aws::load_balancer_name::{NlbMatch, is_named_after, vouched};
use crate::hypershift::aws::names;
use crate::hypershift::identity::Identity;

/// The ARN of the load balancer that an endpoint service has, if it has one only.
pub(super) fn only_load_balancer(service: &Value) -> Option<String> {
    let mut arns = texts(service, "NetworkLoadBalancerArns").into_iter();
    arns.next().filter(|_| arns.next().is_none())
}

/// The tags of the cluster's endpoint service.
pub(super) fn owner_tags(basis: Basis<'_>, identity: &Identity) -> OwnerTags {
    let infrastructure = basis.settings.infrastructure.as_deref();
    names::endpoint_service_tags(&identity.cluster_id, infrastructure, &basis.cr.spec.resource_tags)
}

/// The step that deletes the endpoint service of a load balancer. It is the cluster's if the Service vouches for the
/// load balancer, or if it has the cluster's tag. Adds the step that rejects connections, which come first.
pub(super) fn remove(
    basis: Basis<'_>,
    identity: &Identity,
    load_balancer: &str,
    decision: &mut Decision,
) -> Result<Step, Needs> {
    let owned = OwnedEndpointService {
        slot: Slot::endpoint_service(&basis.settings.account, load_balancer),
        owner_tags: owner_tags(basis, identity),
        vouched: is_vouched(basis, load_balancer),
    };
    let observed = basis.facts.read(Kind::EndpointService, &owned.slot)?;
    let mut step = ensure_absent(&owned, observed);
    if step.verb == Verb::Delete {
        disconnect_first(basis, &mut step, decision)?;
    }
    Ok(step)
}

/// Whether the Service vouches for a load balancer. Its owner, which the name by its UID does not need, may be gone.
fn is_vouched(basis: Basis<'_>, load_balancer: &str) -> bool {
    let Settings { nlb_match, region, .. } = basis.settings;
    let service = basis.inputs.service.as_ref();
    service.is_some_and(|service| match nlb_match {
        NlbMatch::Uid => is_named_after(load_balancer, service),
        NlbMatch::Hostname => vouched(load_balancer, Some(service), *nlb_match, region).is_ok(),
    })
}

/// Makes the deletion of an endpoint service wait for its connections; adds the step that rejects them.
pub(super) fn disconnect_first(basis: Basis<'_>, step: &mut Step, decision: &mut Decision) -> Result<(), Needs> {
    let connections = EndpointConnections {
        slot: Slot::endpoint_connections(&step.key),
    };
    let observed = basis.facts.read(Kind::EndpointConnections, &connections.slot)?;
    let reject = ensure_absent(&connections, observed);
    if !reject.gone() {
        step.verb = Verb::Wait;
        step.why = Why::Needs("its connections to go");
    }
    decision.steps.push(reject);
    Ok(())
}

/// Adds the steps that delete the endpoint services of load balancers that the Service had before.
pub(super) fn add_former(
    basis: Basis<'_>,
    identity: &Identity,
    recorded: &HoIntent,
    decision: &mut Decision,
) -> Result<(), Needs> {
    for load_balancer in &recorded.former_load_balancers {
        let step = remove(basis, identity, load_balancer, decision)?;
        decision.steps.push(step);
    }
    Ok(())
}
