use jiff::Timestamp;
use rstest::rstest;
use serde_json::json;

use super::*;
use crate::azure::arm::error::ArmError;
use crate::azure::arm::id::ResourceId;
use crate::azure::kinds::Kind;
use crate::azure::plan::{Outcome, Step, Why};
use crate::controllers::azure::Decision;
use crate::controllers::report::fails;
use crate::controllers::samples;
use crate::engine::plan::Verb;
use crate::hypershift::conditions::merge;
use crate::hypershift::problem::Problem;

use ConditionType::{AzureInternalLoadBalancerAvailable, AzurePLSCreated, AzurePrivateDNSAvailable};

const SUMMARY: Option<ConditionType> = Some(ConditionType::AzurePrivateLinkServiceAvailable);

fn step(kind: Kind, path: &str, verb: Verb, why: Why) -> Step {
    Step {
        kind,
        key: samples::id(&samples::guest(path)),
        found: (verb == Verb::Keep).then(|| json!({})),
        verb,
        why,
    }
}

fn condition_of(problem: &Problem) -> NewCondition {
    fails(AzurePLSCreated, problem, Some(1))
}

fn arm(status: u16, code: &str) -> Problem {
    let body = json!({"error": {"code": code, "message": "the client 'abc' with id 7"}});
    Problem::error(
        Reason::PLSCreationFailed,
        "private_link_service pls",
        &ArmError::from_json(status, &body, None),
    )
}

/// The reasons of the Events of a process that finds `stored` and then reports the conditions of `reported` in turn.
fn life(stored: &[NewCondition], reported: &[NewCondition]) -> Vec<&'static str> {
    let mut standing = ProblemsByTopic::new();
    let mut stored = merge(&[], stored.to_vec(), Timestamp::UNIX_EPOCH);
    let mut all = Vec::new();
    for condition in reported {
        let events = troubles(&mut standing, SUMMARY, &stored, std::slice::from_ref(condition));
        all.extend(events.iter().map(|event| event.what.reason()));
        stored = merge(&stored, vec![condition.clone()], Timestamp::UNIX_EPOCH);
    }
    all
}

#[rstest]
#[case::created(&Why::Absent, "Created", " is created")]
#[case::repaired(&Why::Differs(vec!["ttl", "aRecords"]), "Repaired", " is repaired: ttl, aRecords")]
#[case::failed_and_put_again(&Why::Failed, "Repaired", " is repaired: provisioningState")]
#[case::replaced(&Why::Replace(vec!["alias"]), "Replaced", " is replaced: alias")]
fn change_of_a_resource_is_published_with_its_id(#[case] why: &Why, #[case] reason: &str, #[case] end: &str) {
    let endpoint = step(Kind::PrivateEndpoint, "privateEndpoints/pe", Verb::Keep, Why::UpToDate);
    let event = changed(&endpoint, &Change::of(why).unwrap());
    assert_eq!((event.what.reason(), event.what.warns()), (reason, false));
    assert_eq!(event.note, format!("private_endpoint {}{end}", endpoint.key));
}

#[rstest]
#[case::foreign(Problem::new(Reason::NotOurs, "x"), Some("Refused"))]
#[case::more_than_azure_takes(Problem::new(Reason::PLSCreationFailed, "x"), Some("Refused"))]
#[case::annotation_is_wrong(Problem::new(Reason::InvalidSpec, "x"), Some("Refused"))]
#[case::azure_does_not_accept(arm(400, "BadRequest"), Some("Refused"))]
#[case::lock(Problem { reason: Reason::ScopeLocked, ..arm(409, "ScopeLocked") }, Some("Refused"))]
#[case::no_rights(arm(403, "AuthorizationFailed"), Some("Denied"))]
#[case::request_limit(arm(429, "TooManyRequests"), Some("Throttled"))]
#[case::azure_is_down(arm(503, "ServiceUnavailable"), None)]
#[case::sibling_is_changed(arm(409, "AnotherOperationInProgress"), None)]
#[case::azure_is_at_work(Problem::new(Reason::Provisioning, "x"), None)]
fn only_a_problem_that_time_does_not_solve_has_an_event(#[case] problem: Problem, #[case] event: Option<&str>) {
    assert_eq!(life(&[], &[condition_of(&problem)]), Vec::from_iter(event));
}

/// Each of them waits for a person.
#[rstest]
fn problem_that_only_a_person_can_solve_is_refused(
    #[values(
        Reason::AzureError,
        Reason::NATSubnetCreationFailed,
        Reason::HostedClusterNotFound,
        Reason::HostedControlPlaneNotFound,
        Reason::DuplicateIdentity,
        Reason::HostNameClaimed,
        Reason::CloudMismatch,
        Reason::ScopeNotAllowed,
        Reason::AmbiguousLoadBalancer,
        Reason::ReplacementBlocked,
        Reason::EndpointNotConnected,
        Reason::ConfigurationChanged,
        Reason::VNetLinkedToOtherZone
    )]
    reason: Reason,
) {
    assert_eq!(life(&[], &[condition_of(&Problem::new(reason, "x"))]), ["Refused"]);
}

#[test]
fn summary_adds_no_event_to_that_of_the_failing_part() {
    let problem = Problem::new(Reason::NotOurs, "x");
    let whole = Problem::new(Reason::NotOurs, "AzurePLSCreated: x");
    let own = [
        condition_of(&problem),
        fails(ConditionType::AzurePrivateLinkServiceAvailable, &whole, Some(1)),
    ];
    assert_eq!(troubles(&mut ProblemsByTopic::new(), SUMMARY, &[], &own).len(), 1);
}

#[test]
fn refusal_is_published_once_while_it_lasts() {
    let refusal = condition_of(&Problem::new(Reason::NotOurs, "x"));
    assert_eq!(life(&[], &[refusal.clone(), refusal.clone(), refusal]), ["Refused"]);
}

#[test]
fn refusal_stored_by_an_earlier_process_is_not_repeated() {
    let refusal = condition_of(&Problem::new(Reason::NotOurs, "x"));
    assert_eq!(
        life(std::slice::from_ref(&refusal), std::slice::from_ref(&refusal)),
        Vec::<&str>::new()
    );
}

#[test]
fn another_try_in_between_is_not_the_end_of_a_denial() {
    let (denied, tried) = (
        condition_of(&arm(403, "AuthorizationFailed")),
        Problem::new(Reason::Provisioning, "x"),
    );
    assert_eq!(life(&[], &[denied.clone(), condition_of(&tried), denied]), ["Denied"]);
}

#[test]
fn denial_after_all_was_well_is_published_again() {
    let denied = condition_of(&arm(403, "AuthorizationFailed"));
    let well = NewCondition::holds(AzurePLSCreated, "fine", Some(1));
    assert_eq!(life(&[], &[denied.clone(), well, denied]), ["Denied", "Denied"]);
}

#[test]
fn another_problem_is_published_besides_the_first() {
    let (throttled, denied) = (
        condition_of(&arm(429, "TooManyRequests")),
        condition_of(&arm(403, "AuthorizationFailed")),
    );
    assert_eq!(life(&[], &[throttled, denied]), ["Throttled", "Denied"]);
}

#[test]
fn throttling_of_one_call_after_another_is_published_once() {
    let throttled = |subject: &str| {
        let body = json!({"error": {"code": "TooManyRequests", "message": "later"}});
        let error = ArmError::from_json(429, &body, None);
        condition_of(&Problem::error(Reason::PLSCreationFailed, subject, &error))
    };
    let (subnet, service) = (throttled("subnet pls-nat"), throttled("private_link_service pls"));
    assert_ne!(subnet.message, service.message);
    assert_eq!(life(&[], &[subnet.clone(), service, subnet]), ["Throttled"]);
}

#[test]
fn one_problem_in_two_conditions_is_published_once() {
    let problem = Problem::new(Reason::IdentityMismatch, "x");
    let own = [AzureInternalLoadBalancerAvailable, AzurePLSCreated].map(|kind| fails(kind, &problem, Some(1)));
    assert_eq!(troubles(&mut ProblemsByTopic::new(), SUMMARY, &[], &own).len(), 1);
}

#[test]
fn refusal_of_the_other_role_is_not_published_again() {
    let problem = Problem::new(Reason::IdentityMismatch, "x");
    let theirs = merge(&[], vec![condition_of(&problem)], Timestamp::UNIX_EPOCH);
    let own = [fails(AzurePrivateDNSAvailable, &problem, Some(1))];
    assert_eq!(troubles(&mut ProblemsByTopic::new(), SUMMARY, &theirs, &own), []);
}

#[test]
fn endpoint_of_somebody_else_that_is_as_desired_is_adopted() {
    let endpoint = step(Kind::PrivateEndpoint, "privateEndpoints/pe", Verb::Keep, Why::UpToDate);
    let event = adopted(&[endpoint]).unwrap();
    assert_eq!((event.what, event.what.warns()), (What::Adopted, false));
    assert!(event.note.contains("privateEndpoints/pe"), "{}", event.note);
}

#[test]
fn subnet_of_a_sibling_is_not_adopted() {
    let subnet = step(Kind::Subnet, "virtualNetworks/v/subnets/nat", Verb::Keep, Why::UpToDate);
    let service = step(
        Kind::PrivateLinkService,
        "privateLinkServices/p",
        Verb::Put(json!({})),
        Why::Absent,
    );
    assert_eq!(adopted(&[subnet, service]), None);
}

fn ends(decision: &Decision) -> Vec<(&'static str, String)> {
    let events = released(decision);
    let reasons = events.into_iter().map(|event| (event.what.reason(), event.note));
    reasons.collect()
}

fn of(steps: Vec<Step>) -> Decision {
    Decision {
        steps,
        ..Decision::default()
    }
}

#[test]
fn end_lists_what_is_left_and_never_denies_it() {
    let path = ["privateDnsZones/a.b", "privateLinkServices/pls-id"];
    let steps = vec![
        step(
            Kind::PrivateDnsZone,
            path[0],
            Verb::Refuse,
            Why::InUse("links of others"),
        ),
        step(Kind::PrivateLinkService, path[1], Verb::Refuse, Why::NotOurs),
    ];
    let [zone, service] = path.map(|path| samples::id(&samples::guest(path)));
    let expected = [
        (
            "Released",
            format!("private_dns_zone {zone} stays: used by links of others"),
        ),
        (
            "Released",
            format!("private_link_service {service} stays: nothing proves that it is this cluster's"),
        ),
    ];
    assert_eq!(ends(&of(steps)), expected);
}

#[test]
fn end_names_what_the_other_custom_resource_uses() {
    let mut decision = of(vec![Step {
        found: None,
        ..step(Kind::PrivateEndpoint, "privateEndpoints/pe", Verb::Keep, Why::UpToDate)
    }]);
    let gone = "nothing of ours is left in Azure";
    assert_eq!(ends(&decision), [("Gone", gone.to_owned())]);
    decision.shared = true;
    let but = format!("{gone} but what the cluster's other custom resource uses");
    assert_eq!(ends(&decision), [("Gone", but)]);
}

#[test]
fn end_names_a_part_whose_id_is_not_known() {
    let mut decision = of(vec![Step {
        found: None,
        ..step(
            Kind::PrivateLinkService,
            "privateLinkServices/p",
            Verb::Keep,
            Why::UpToDate,
        )
    }]);
    decision.not_found = Some("subnet infra-pls-nat".to_owned());
    let note = "subnet infra-pls-nat may be left: nothing tells where it is".to_owned();
    assert_eq!(ends(&decision), [("Released", note)]);
}

#[test]
fn end_does_not_deny_what_was_not_read() {
    let events = released(&Decision::default());
    let [event] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert_eq!((event.what.reason(), event.what.warns()), ("Released", true));
    assert!(event.note.ends_with("nothing was looked at in Azure"), "{}", event.note);
}

#[test]
fn resource_that_was_called_too_often_is_named() {
    let id =
        ResourceId::parse("/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/privateDnsZones/z").unwrap();
    let exhausted = ArmError::own(Class::Throttled, CALL_BUDGET_EXHAUSTED);
    let step = |verb, why| Step {
        kind: Kind::PrivateDnsZone,
        key: id.clone(),
        verb,
        why,
        found: None,
    };
    let unread = step(Verb::Wait, Why::Unread(exhausted.clone()));
    let unsent = step(Verb::Delete, Why::Unwanted);
    let named = [
        call_budget_exhausted(&[unread], &[Outcome::Nothing]),
        call_budget_exhausted(std::slice::from_ref(&unsent), &[Outcome::Failed(exhausted)]),
    ];
    for event in named {
        let event = event.unwrap();
        assert!(event.what.warns() && event.note.contains(&id.to_string()), "{event:?}");
    }
    let throttled = Outcome::Failed(ArmError::own(Class::Throttled, "TooManyRequests"));
    assert_eq!(call_budget_exhausted(&[unsent], &[throttled]), None);
}
