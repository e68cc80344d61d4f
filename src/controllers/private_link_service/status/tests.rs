use rstest::rstest;

use super::*;
use crate::api::Status;
use crate::api::markers::ABANDON;
use crate::azure::arm::error::ArmError;
use crate::azure::kinds::load_balancer::Frontend;
use crate::controllers::samples::{ALIAS, cr, id, management};
use crate::engine::failure::Class;
use crate::engine::plan::Verb;

const SERVICE: &str = "privateLinkServices/pls-id";
const SUBNET: &str = "virtualNetworks/v/subnets/infra-pls-nat";

fn frontend() -> Frontend {
    Frontend {
        load_balancer: id(&management("loadBalancers/lb")),
        id: management("loadBalancers/lb/frontendIPConfigurations/f"),
        name: "f".into(),
        address: "10.224.0.4".parse().unwrap(),
        subnet: id(&management("virtualNetworks/v/subnets/lb")),
    }
}

fn step(kind: Kind, path: &str, verb: Verb, why: Why, found: Option<Value>) -> Step {
    Step {
        kind,
        key: id(&management(path)),
        verb,
        why,
        found,
    }
}

fn service(verb: Verb, why: Why, found: Option<Value>) -> Decision {
    let steps = vec![step(Kind::PrivateLinkService, SERVICE, verb, why, found)];
    Decision {
        steps,
        ..Decision::default()
    }
}

fn up_to_date(alias: Option<&str>) -> Decision {
    service(Verb::Keep, Why::UpToDate, Some(json!({"properties": {"alias": alias}})))
}

fn build(decision: &Decision, found: &FoundFrontend, outcomes: &[Outcome]) -> Report {
    after_build(&cr(Value::Null, json!({})), decision, found, outcomes)
}

/// Status and reason of the load balancer's condition and of the service's.
fn conditions_of(report: &Report) -> [(Status, Reason); 2] {
    let all: Vec<_> = report.conditions.iter().map(|c| (c.status, c.reason)).collect();
    all.try_into().unwrap()
}

#[rstest]
#[case::request_limit(Class::Throttled, true, true)]
#[case::denied(Class::Denied, false, true)]
#[case::denied_for_long(Class::Denied, true, false)]
#[case::one_answer_was_of_no_use(Class::Down, false, true)]
fn failed_list_of_load_balancers_changes_conditions_only_later(
    #[case] class: Class,
    #[case] lasting: bool,
    #[case] stands: bool,
) {
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": "AzureSuccess", "message": "stands",
        "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let stored = json!([
        condition("AzureInternalLoadBalancerAvailable"),
        condition("AzurePLSCreated")
    ]);
    let error = ArmError {
        lasting,
        ..ArmError::own(class, "X")
    };
    let problem = Problem::unread(Reason::ILBLookupFailed, "load balancers", &error);
    let decision = Decision::stuck(problem.clone());
    let report = after_build(
        &cr(json!({"conditions": stored}), json!({})),
        &decision,
        &Err(problem),
        &[],
    );
    let reason = if stands {
        Reason::AzureSuccess
    } else {
        Reason::ILBLookupFailed
    };
    assert_eq!(conditions_of(&report).map(|(_, reason)| reason), [reason; 2]);
}

#[test]
fn service_is_ready_only_with_its_alias() {
    let ready = build(&up_to_date(Some(ALIAS)), &Ok(frontend()), &[Outcome::Nothing]);
    assert_eq!(
        conditions_of(&ready).map(|(status, _)| status),
        [Status::True, Status::True]
    );
    assert_eq!(
        Value::Object(ready.fields),
        json!({"internalLoadBalancerID": management("loadBalancers/lb"),
            "privateLinkServiceID": management(SERVICE), "privateLinkServiceAlias": ALIAS})
    );
    let generations: Vec<_> = ready.conditions.iter().map(|c| c.observed_generation).collect();
    assert_eq!(generations, [Some(1); 2]);
    let early = build(&up_to_date(None), &Ok(frontend()), &[Outcome::Nothing]);
    assert_eq!(conditions_of(&early)[1], (Status::False, Reason::Provisioning));
}

#[test]
fn lost_load_balancer_is_reported_and_known_fields_stay() {
    let problem = Problem::new(Reason::WaitingForLoadBalancer, "x");
    let report = build(&Decision::stuck(problem.clone()), &Err(problem), &[]);
    assert_eq!(
        conditions_of(&report),
        [(Status::False, Reason::WaitingForLoadBalancer); 2]
    );
    assert!(report.fields.is_empty());
}

#[rstest]
#[case::it_is_gone(Verb::Put(Value::Null), Why::Absent, true)]
#[case::it_is_replaced(Verb::Delete, Why::Replace(vec!["x"]), true)]
#[case::it_is_foreign(Verb::Refuse, Why::NotOurs, true)]
#[case::it_is_changed(Verb::Put(Value::Null), Why::Differs(vec!["x"]), false)]
#[case::it_could_not_be_read(Verb::Wait, Why::Unread(ArmError::own(Class::Down, "Timeout")), false)]
fn dead_alias_is_taken_from_the_status_when(#[case] verb: Verb, #[case] why: Why, #[case] cleared: bool) {
    let report = build(&service(verb, why, None), &Ok(frontend()), &[Outcome::Nothing]);
    let fields = ["privateLinkServiceID", "privateLinkServiceAlias"].map(|field| report.fields.get(field).cloned());
    assert_eq!(
        fields,
        if cleared {
            [Some(Value::Null), Some(Value::Null)]
        } else {
            [None, None]
        }
    );
}

#[rstest]
#[case::subnet(
    step(Kind::Subnet, SUBNET, Verb::Put(Value::Null), Why::Absent, None),
    Reason::NATSubnetCreationFailed
)]
#[case::creation(
    step(Kind::PrivateLinkService, SERVICE, Verb::Put(Value::Null), Why::Absent, None),
    Reason::PLSCreationFailed
)]
#[case::update(step(Kind::PrivateLinkService, SERVICE, Verb::Put(Value::Null), Why::Differs(vec!["x"]), None), Reason::PLSUpdateFailed)]
fn failed_step_decides_the_reason(#[case] step: Step, #[case] reason: Reason) {
    let decision = Decision {
        steps: vec![step],
        ..Decision::default()
    };
    let failed = Outcome::Failed(ArmError::own(Class::Invalid, "BadRequest"));
    let report = build(&decision, &Ok(frontend()), &[failed]);
    assert_eq!(conditions_of(&report)[1], (Status::False, reason));
}

#[test]
fn failed_update_is_reported_until_it_is_tried_again() {
    let denied = Why::Error(ArmError::own(Class::Denied, "AuthorizationFailed"));
    let waits = service(Verb::Wait, denied, None);
    let known = cr(json!({"privateLinkServiceID": management(SERVICE)}), json!({}));
    for (cr, reason) in [
        (known, Reason::PLSUpdateFailed),
        (cr(Value::Null, json!({})), Reason::PLSCreationFailed),
    ] {
        let report = after_build(&cr, &waits, &Ok(frontend()), &[Outcome::Nothing]);
        assert_eq!(conditions_of(&report)[1], (Status::False, reason));
    }
}

#[test]
fn blocked_replacement_is_reported_though_the_old_one_is_ready() {
    let decision = Decision {
        problem: Some(Problem::new(Reason::ReplacementBlocked, "x")),
        ..up_to_date(Some(ALIAS))
    };
    let report = build(&decision, &Ok(frontend()), &[Outcome::Nothing]);
    assert_eq!(conditions_of(&report)[1], (Status::False, Reason::ReplacementBlocked));
}

#[test]
fn invalid_abandon_annotation_is_reported_during_deletion() {
    let annotated = cr(Value::Null, json!({ABANDON: "other/ho/ticket"}));
    let decision = service(Verb::Delete, Why::Unwanted, Some(Value::Null));
    let denied = Outcome::Failed(ArmError::own(Class::Denied, "AuthorizationFailed"));
    let report = after_teardown(&annotated, &decision, &[denied]);
    assert!(report.fields.is_empty(), "what was seen stays");
    for condition in &report.conditions {
        assert_eq!(
            (condition.status, condition.reason),
            (Status::False, Reason::DeletionFailed)
        );
        assert!(condition.message.contains("does not count"), "{}", condition.message);
    }
}
