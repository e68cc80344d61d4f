//! What the HO role reports: its condition and the name of the endpoint service, also after a failure. Pure.

use serde_json::{Map, Value, json};

use crate::api::{AWSEndpointService, ConditionType, Reason, Role};
use crate::aws::body::{text, texts};
use crate::aws::kinds::Kind;
use crate::aws::kinds::allowed_principals::is_unique_id;
use crate::controllers::abandon;
use crate::controllers::aws::{Decision, Outcome, Step};
use crate::controllers::report::{Report, fails, fails_unless_unread};
use crate::controllers::step_problem::blocking_problem;
use crate::engine::plan::Why;
use crate::hypershift::conditions::NewCondition;
use crate::hypershift::problem::Problem;

const KIND: ConditionType = ConditionType::AWSEndpointServiceAvailable;

/// The report of a reconcile that makes or repairs the endpoint service.
pub(super) fn after_build(cr: &AWSEndpointService, decision: &Decision, outcomes: &[Outcome]) -> Report {
    let (service, principals) = (
        decision.step(Kind::EndpointService),
        decision.step(Kind::AllowedPrincipals),
    );
    let ready = principals.is_some_and(|step| step.ready().is_some());
    // AWS may refuse one principal for ever. Those that it shows connect meanwhile.
    let admits = ready
        || principals
            .and_then(|step| step.found.as_ref())
            .is_some_and(admits_somebody);
    let mut fields = Map::new();
    if let Some(body) = service.and_then(Step::ready).filter(|_| admits) {
        fields.insert("endpointServiceName".into(), json!(text(body, "ServiceName")));
    } else if service.is_some_and(|step| matches!(step.why, Why::Absent | Why::Replace(_) | Why::NotOurs)) {
        fields.insert("endpointServiceName".into(), Value::Null);
    }
    let condition = match blocking_problem(decision, decision.steps.iter().zip(outcomes), failure) {
        None if ready => NewCondition::holds(KIND, "", None),
        None => {
            let waiting = Problem::new(Reason::Provisioning, "the endpoint service is being provisioned");
            fails(KIND, &waiting, None)
        }
        Some(problem) => fails_unless_unread(cr, KIND, &problem),
    };
    Report {
        conditions: vec![condition],
        fields,
    }
}

/// The report of a reconcile that deletes the endpoint service.
pub(super) fn after_teardown(cr: &AWSEndpointService, decision: &Decision, outcomes: &[Outcome]) -> Report {
    let problem = blocking_problem(decision, decision.steps.iter().zip(outcomes), |_| {
        Reason::DeletionFailed
    })
    .unwrap_or_else(|| Problem::new(Reason::Deleting, "deleted"));
    Report {
        conditions: vec![fails(KIND, &abandon::noted(cr, Role::Ho, problem), None)],
        fields: Map::new(),
    }
}

fn admits_somebody(principals: &Value) -> bool {
    let shown = texts(principals, "AllowedPrincipals");
    !shown.iter().all(|principal| is_unique_id(principal))
}

/// The reason for a step that fails.
fn failure(step: &Step) -> Reason {
    match step.kind {
        Kind::AllowedPrincipals => Reason::PrincipalsFailed,
        _ => Reason::EndpointServiceFailed,
    }
}

#[cfg(test)]
mod tests;
