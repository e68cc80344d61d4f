//! What the HO role reports: its two conditions and its status fields, also after a failure. Pure.

use serde_json::{Map, Value, json};

use super::plan::FoundFrontend;
use crate::api::{AzurePrivateLinkService, ConditionType, Reason, Role};
use crate::azure::kinds::Kind;
use crate::azure::kinds::private_link_service::alias;
use crate::azure::plan::{Outcome, Step, Why};
use crate::controllers::abandon;
use crate::controllers::azure::Decision;
use crate::controllers::report::{Report, fails, fails_unless_unread};
use crate::controllers::step_problem::blocking_problem;
use crate::hypershift::conditions::NewCondition;
use crate::hypershift::problem::Problem;

/// The report of a reconcile that makes or repairs the service.
pub fn after_build(
    cr: &AzurePrivateLinkService,
    decision: &Decision,
    found: &FoundFrontend,
    outcomes: &[Outcome],
) -> Report {
    let generation = cr.metadata.generation;
    let balancer = match found {
        Ok(_) => NewCondition::holds(
            ConditionType::AzureInternalLoadBalancerAvailable,
            "Internal Load Balancer found",
            generation,
        ),
        Err(problem) => fails_unless_unread(cr, ConditionType::AzureInternalLoadBalancerAvailable, problem),
    };
    let mut fields = Map::new();
    if let Ok(frontend) = found {
        fields.insert(
            "internalLoadBalancerID".into(),
            json!(frontend.load_balancer.to_string()),
        );
    }
    let service = decision.step(Kind::PrivateLinkService);
    if let Some(body) = service.and_then(|step| step.ready()) {
        fields.insert("privateLinkServiceID".into(), json!(service.map(|s| s.key.to_string())));
        fields.insert("privateLinkServiceAlias".into(), json!(alias(body)));
    } else if service.is_some_and(|step| matches!(step.why, Why::Absent | Why::Replace(_) | Why::NotOurs)) {
        fields.insert("privateLinkServiceID".into(), Value::Null);
        fields.insert("privateLinkServiceAlias".into(), Value::Null);
    }
    let known = cr
        .status
        .as_ref()
        .is_some_and(|status| status.private_link_service_id.is_some());
    let created = match blocking_problem(decision, decision.steps.iter().zip(outcomes), |step| {
        build_failure(step, known)
    }) {
        None if service.is_some_and(|s| s.ready().is_some_and(|body| alias(body).is_some())) => NewCondition::holds(
            ConditionType::AzurePLSCreated,
            "Azure Private Link Service is ready",
            generation,
        ),
        None => {
            let waiting = Problem::new(Reason::Provisioning, "the Private Link Service is being provisioned");
            fails(ConditionType::AzurePLSCreated, &waiting, generation)
        }
        Some(problem) => fails_unless_unread(cr, ConditionType::AzurePLSCreated, &problem),
    };
    Report {
        conditions: vec![balancer, created],
        fields,
    }
}

/// The report of a reconcile that deletes the service.
pub fn after_teardown(cr: &AzurePrivateLinkService, decision: &Decision, outcomes: &[Outcome]) -> Report {
    let generation = cr.metadata.generation;
    let problem = blocking_problem(decision, decision.steps.iter().zip(outcomes), |_| {
        Reason::DeletionFailed
    })
    .unwrap_or_else(|| Problem::new(Reason::Deleting, "deleted"));
    let problem = abandon::noted(cr, Role::Ho, problem);
    Report {
        conditions: vec![
            fails(ConditionType::AzureInternalLoadBalancerAvailable, &problem, generation),
            fails(ConditionType::AzurePLSCreated, &problem, generation),
        ],
        fields: Map::new(),
    }
}

/// The reason for a step that fails; a service that is `known` existed before.
fn build_failure(step: &Step, known: bool) -> Reason {
    match (step.kind, &step.why) {
        (Kind::Subnet, _) => Reason::NATSubnetCreationFailed,
        (_, Why::Differs(_) | Why::Replace(_)) => Reason::PLSUpdateFailed,
        (_, why) if known && why.error().is_some() => Reason::PLSUpdateFailed,
        _ => Reason::PLSCreationFailed,
    }
}

#[cfg(test)]
mod tests;
