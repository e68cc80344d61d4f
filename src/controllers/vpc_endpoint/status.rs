//! What the CPO role reports: its condition and its status fields, also after a failure. Pure.

use serde_json::{Map, Value, json};

use crate::api::{AWSEndpointService, ConditionType, Reason, Role};
use crate::aws::body::{state, texts};
use crate::aws::cloud::Aws;
use crate::aws::kinds::Kind;
use crate::aws::kinds::vpc_endpoint::dns_name;
use crate::controllers::abandon;
use crate::controllers::aws::{Decision, Outcome, Step};
use crate::controllers::report::{Report, fails, fails_unless_unread};
use crate::controllers::step_problem::blocking_problem;
use crate::engine::cloud::Cloud;
use crate::engine::plan::Why;
use crate::hypershift::conditions::NewCondition;
use crate::hypershift::problem::Problem;

const KIND: ConditionType = ConditionType::AWSEndpointAvailable;

/// The report of a reconcile that makes or repairs the guest's side.
pub(super) fn after_build(cr: &AWSEndpointService, decision: &Decision, outcomes: &[Outcome]) -> Report {
    let mut fields = Map::new();
    add_id(&mut fields, "securityGroupID", decision, Kind::SecurityGroup);
    add_id(&mut fields, "endpointID", decision, Kind::VpcEndpoint);
    let records = decision.step(Kind::Records);
    if let Some(step) = records.filter(|step| step.ready().is_some()) {
        let names: Vec<&str> = step.key.record_names().collect();
        fields.insert("dnsNames".into(), json!(names));
        fields.insert("dnsZoneID".into(), json!(step.key.container()));
    }
    let endpoint = decision.steps.iter().rfind(|step| step.kind == Kind::VpcEndpoint);
    let named = endpoint.is_some_and(|step| carries(step) || step.ready().and_then(dns_name).is_some());
    let ready = named && records.is_none_or(|step| step.ready().is_some());
    let shows_names = cr.status.as_ref().is_some_and(|status| !status.dns_names.is_empty());
    if ready && records.is_none() && decision.problem.is_none() && shows_names {
        // HyperShift would delete these records with the custom resource.
        fields.insert("dnsNames".into(), Value::Null);
    }
    // Nothing is wrong with the path where an endpoint too many stays, or where a record that is not desired any more
    // leads elsewhere, which is another's, or is in a zone of before.
    let is_anothers = |step: &Step| {
        let other = records.filter(|own| own.key != step.key && step.kind == Kind::Records);
        step.kind == Kind::FurtherEndpoint
            || other.is_some_and(|own| step.left() || own.key.container() != step.key.container())
    };
    let steps = decision
        .steps
        .iter()
        .zip(outcomes)
        .filter(|(step, outcome)| !is_anothers(step) && (!carries(step) || is_failure(outcome)));
    let condition = match blocking_problem(decision, steps, failure) {
        None if ready => NewCondition::holds(KIND, "", None),
        None => fails(
            KIND,
            &Problem::new(Reason::Provisioning, "the endpoint is being provisioned"),
            None,
        ),
        Some(mut problem) => {
            // What a write that is put off leaves as it was, is as it was.
            problem.unread |= problem.reason == Reason::EndpointFailed && endpoint.is_some_and(is_put_off);
            fails_unless_unread(cr, KIND, &problem)
        }
    };
    Report {
        conditions: vec![condition],
        fields,
    }
}

/// Whether a path is as it should be, but for further subnets or tags that its endpoint is to have.
fn carries(step: &Step) -> bool {
    let Why::Differs(fields) = &step.why else {
        return false;
    };
    let is_available = |body: &Value| state(body) == "available" && !texts(body, "SubnetIds").is_empty();
    let body = step.found.as_ref().filter(|body| is_available(body));
    let is_endpoint = step.kind == Kind::VpcEndpoint && body.and_then(dns_name).is_some();
    is_endpoint && fields.iter().all(|field| ["SubnetIds", "Tags"].contains(field))
}

/// Whether a write waits because AWS was busy, throttling or down.
fn is_put_off(step: &Step) -> bool {
    matches!(&step.why, Why::Error(error) if error.class.is_transient())
}

fn is_failure(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed(error) if !error.class.is_transient())
}

/// Adds the id of a resource: as it is once it is there, ready or not, null once it is known not to be there.
fn add_id(fields: &mut Map<String, Value>, field: &str, decision: &Decision, kind: Kind) {
    let Some(step) = decision.steps.iter().rfind(|step| step.kind == kind) else {
        return;
    };
    if matches!(step.why, Why::Absent | Why::Replace(_) | Why::NotOurs) {
        fields.insert(field.into(), Value::Null);
    } else if let Some(body) = step.found.as_ref().filter(|_| !step.left()) {
        fields.insert(field.into(), json!(Aws::instance(body)));
    }
}

/// The report of a reconcile that deletes the guest's side.
pub(super) fn after_teardown(cr: &AWSEndpointService, decision: &Decision, outcomes: &[Outcome]) -> Report {
    let problem = blocking_problem(decision, decision.steps.iter().zip(outcomes), |_| {
        Reason::DeletionFailed
    })
    .unwrap_or_else(|| Problem::new(Reason::Deleting, "deleted"));
    Report {
        conditions: vec![fails(KIND, &abandon::noted(cr, Role::Cpo, problem), None)],
        fields: Map::new(),
    }
}

/// The reason for a step that fails.
fn failure(step: &Step) -> Reason {
    match step.kind {
        Kind::SecurityGroup => Reason::SecurityGroupFailed,
        Kind::Records => Reason::RecordsFailed,
        _ => Reason::EndpointFailed,
    }
}

#[cfg(test)]
mod tests;
