//! Whether an endpoint service is the cluster's, and how it goes: connections first. Pure.

use std::collections::BTreeSet;

use serde_json::Value;

use super::plan::{self, Basis};
use crate::aws::body::texts;
use crate::aws::cloud::Observed;
use crate::aws::kinds::Kind;
use crate::aws::kinds::allowed_principals::AllowedPrincipals;
use crate::aws::kinds::endpoint_connections::EndpointConnections;
use crate::aws::kinds::endpoint_service::{OwnedEndpointService, slot_of};
use crate::aws::owner_tags::OwnerTags;
use crate::aws::slot::Slot;
use crate::controllers::aws::{Decision, Needs, Step};
use crate::controllers::event;
use crate::engine::cloud::Key;
use crate::engine::failure::Class;
use crate::engine::plan::{Verb, Why, ensure_absent, ensure_present};
use crate::engine::resource::Owned;
use crate::hypershift::aws::intent::HoIntent;
use crate::hypershift::aws::load_balancer_name::{NlbMatch, is_named_after};
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

/// The key of the tag that endpoint services of the management cluster have, if it has one.
pub(super) fn management_tag(basis: Basis<'_>) -> Option<String> {
    let infrastructure = basis.settings.infrastructure.as_deref()?;
    Some(names::cluster_tag(infrastructure))
}

/// The step that deletes the endpoint service in this slot. It is the cluster's if the Service vouches for the load
/// balancer, or if it has the cluster's tag. Adds the steps that end connections, which come first.
pub(super) fn remove(
    basis: Basis<'_>,
    identity: &Identity,
    slot: Slot,
    decision: &mut Decision,
) -> Result<Step, Needs> {
    let owned = OwnedEndpointService {
        vouched: is_vouched(basis, slot.name()),
        ..unvouched(basis, identity, slot)
    };
    let observed = basis.facts.read(Kind::EndpointService, &owned.slot)?;
    let mut step = ensure_absent(&owned, observed);
    if step.verb == Verb::Delete {
        withdraw_first(basis, &step, decision)?;
        disconnect_first(basis, &mut step, decision)?;
    }
    Ok(step)
}

/// An endpoint service of which only the tags prove that it is the cluster's.
fn unvouched(basis: Basis<'_>, identity: &Identity, slot: Slot) -> OwnedEndpointService {
    OwnedEndpointService {
        slot,
        owner_tags: owner_tags(basis, identity),
        vouched: false,
        management_tag: management_tag(basis),
    }
}

/// The load balancer of an endpoint service whose tags prove that it is the cluster's.
pub(super) fn owned_by_tag(basis: Basis<'_>, identity: &Identity, service: &Value) -> Option<String> {
    let slot = slot_of(service).filter(|slot| slot.scope() == &basis.settings.account)?;
    let owned = unvouched(basis, identity, slot);
    owned.is_owned(service).then(|| owned.slot.name().to_owned())
}

/// Whether the Service vouches for a load balancer. Its owner, which the name by its UID does not need, may be gone. By
/// host name it vouches only for what the custom resource may have: nobody else's.
fn is_vouched(basis: Basis<'_>, load_balancer: &str) -> bool {
    let Basis {
        cr, inputs, settings, ..
    } = basis;
    match settings.nlb_match {
        NlbMatch::Uid => {
            let service = inputs.service.as_ref();
            service.is_some_and(|service| is_named_after(load_balancer, service))
        }
        NlbMatch::Hostname => plan::load_balancer(cr, inputs, settings).is_ok_and(|own| own.name == load_balancer),
    }
}

/// Adds the step that lets nobody connect any more, where connections are to be rejected: else new ones may come for as
/// long as somebody likes.
fn withdraw_first(basis: Basis<'_>, service: &Step, decision: &mut Decision) -> Result<(), Needs> {
    let connections = Slot::endpoint_connections(&service.key);
    let observed = basis.facts.fresh_read(Kind::EndpointConnections, &connections)?;
    if observed.found().is_none() {
        return Ok(());
    }
    let nobody = AllowedPrincipals {
        slot: Slot::allowed_principals(&service.key),
        arns: BTreeSet::new(),
    };
    let mut withdraw = ensure_present(&nobody, basis.facts.read(Kind::AllowedPrincipals, &nobody.slot)?);
    if withdraw.writes() {
        // It repairs nothing.
        withdraw.why = Why::Unwanted;
    }
    decision.steps.push(withdraw);
    Ok(())
}

/// Makes the deletion of an endpoint service wait for its connections; adds the step that rejects them. They are read
/// just now: AWS shows new ones late, and refuses the deletion then.
pub(super) fn disconnect_first(basis: Basis<'_>, step: &mut Step, decision: &mut Decision) -> Result<(), Needs> {
    let connections = EndpointConnections {
        slot: Slot::endpoint_connections(&step.key),
    };
    let observed = basis.facts.fresh_read(Kind::EndpointConnections, &connections.slot)?;
    let reject = ensure_absent(&connections, observed);
    // Where nobody may read them, AWS alone tells whether there are any.
    let is_denied = matches!(observed, Observed::ReadFailed(error) if error.class == Class::Denied);
    if !reject.gone() && !is_denied {
        step.verb = Verb::Wait;
        step.why = Why::Needs("its connections to go");
    }
    decision.steps.push(reject);
    Ok(())
}

/// Adds the steps that delete the endpoint services of load balancers that the Service had before. A load balancer
/// whose endpoint service is surely gone, or another's, is forgotten: it would be read for ever.
pub(super) fn add_former(
    basis: Basis<'_>,
    identity: &Identity,
    recorded: &mut HoIntent,
    decision: &mut Decision,
) -> Result<(), Needs> {
    let mut stays = Vec::new();
    for load_balancer in recorded.former_load_balancers.clone() {
        let slot = Slot::endpoint_service(&basis.settings.account, &load_balancer);
        let step = remove(basis, identity, slot, decision)?;
        if step.left() {
            stays.push(format!(
                "the endpoint service of load balancer {load_balancer} stays: nothing proves that it is this cluster's"
            ));
        } else if !(step.gone() && basis.facts.surely_gone.contains(&step.key)) {
            decision.steps.push(step);
            continue;
        }
        recorded.former_load_balancers.retain(|former| *former != load_balancer);
        decision.forgets = true;
    }
    if let Some(event) = event::left_out(&stays) {
        decision.standing.push(("former load balancers", Some(event)));
    }
    Ok(())
}
