use rstest::rstest;
use serde_json::Value;

use super::*;
use crate::api::Status;
use crate::api::markers::ABANDON;
use crate::azure::arm::error::ArmError;
use crate::controllers::private_endpoint::dns::NEEDS_ADDRESS;
use crate::controllers::private_endpoint::plan::desired_resources;
use crate::controllers::samples::{ALIAS, cr, identity};
use crate::engine::plan::Verb;
use crate::hypershift::conditions;

mod recorded;

fn resource() -> AzurePrivateLinkService {
    let time = "2026-01-01T00:00:00Z";
    let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "AzureSuccess", "message": "", "lastTransitionTime": time});
    let theirs = json!([
        condition("AzureInternalLoadBalancerAvailable"),
        condition("AzurePLSCreated")
    ]);
    cr(
        json!({"privateLinkServiceAlias": ALIAS, "conditions": theirs}),
        json!({}),
    )
}

fn endpoint_body(state: &str, address: Option<&str>) -> Value {
    let nic = json!([{"properties": {"ipConfigurations": [{"properties": {"privateIPAddress": address}}]}}]);
    let connection = json!([{"properties": {"privateLinkServiceConnectionState": {"status": state}}}]);
    json!({"properties": {"networkInterfaces": nic, "manualPrivateLinkServiceConnections": connection}})
}

/// Steps of a cluster on which everything is as desired.
fn ready() -> (Decision, Names) {
    let desired = desired_resources(&resource(), &identity(), &[]).unwrap();
    let keep = |kind, id: &crate::azure::arm::id::ResourceId, body| Step {
        kind,
        key: id.clone(),
        verb: Verb::Keep,
        why: Why::UpToDate,
        found: Some(body),
    };
    let mut steps = vec![keep(
        Kind::PrivateEndpoint,
        &desired.endpoint.id,
        endpoint_body("Approved", Some("10.0.0.5")),
    )];
    for zone in &desired.zones {
        steps.push(keep(Kind::PrivateDnsZone, &zone.zone.id, json!({})));
        steps.push(keep(Kind::VirtualNetworkLink, &zone.link.id, json!({})));
        steps.extend(
            zone.records
                .iter()
                .map(|record| keep(Kind::RecordSet, &record.id, json!({}))),
        );
    }
    (
        Decision {
            steps,
            ..Decision::default()
        },
        Names {
            zones: desired.zones,
            internal_zone: Some("example.hypershift.local".into()),
            shadowing: None,
            other_controller: None,
        },
    )
}

fn report(change: impl FnOnce(&mut Vec<Step>, &mut Vec<Outcome>)) -> Report {
    let (mut decision, names) = ready();
    let mut outcomes = vec![Outcome::Nothing; decision.steps.len()];
    change(&mut decision.steps, &mut outcomes);
    after_build(&resource(), &decision, &names, &outcomes)
}

/// Reasons of the endpoint, the names and the whole; success is one of them.
fn reasons(report: &Report) -> Vec<&'static str> {
    report.conditions.iter().map(|c| c.reason.as_str()).collect()
}

#[test]
fn ready_steps_make_the_whole_available() {
    let report = report(|_, _| {});
    assert!(
        report.conditions.iter().all(|c| c.status == Status::True),
        "{:?}",
        report.conditions
    );
    let generations: Vec<_> = report.conditions.iter().map(|c| c.observed_generation).collect();
    assert_eq!(generations, [Some(1); 3]);
    let fields: Vec<&str> = report.fields.keys().map(String::as_str).collect();
    assert_eq!(
        fields,
        [
            "baseDomainDNSZoneID",
            "dnsZoneName",
            "privateDNSZoneID",
            "privateEndpointID",
            "privateEndpointIP"
        ]
    );
}

fn denied() -> ArmError {
    ArmError::own(Class::Denied, "AuthorizationFailed")
}

#[rstest]
#[case::zone_of_the_cluster(1, "DNSZoneCreationFailed")]
#[case::link_of_the_cluster(2, "VNetLinkCreationFailed")]
#[case::record_of_the_cluster(3, "ARecordCreationFailed")]
#[case::zone_of_the_base_domain(5, "BaseDomainDNSZoneCreationFailed")]
#[case::link_of_the_base_domain(6, "BaseDomainVNetLinkCreationFailed")]
#[case::record_of_the_base_domain(7, "BaseDomainARecordCreationFailed")]
fn reason_names_the_step_that_failed(#[case] at: usize, #[case] reason: &str) {
    let report = report(|_, outcomes| outcomes[at] = Outcome::Failed(denied()));
    assert_eq!(reasons(&report), ["AzureSuccess", reason, reason]);
}

#[test]
fn failed_read_and_failed_write_of_the_endpoint_differ() {
    let read = report(|steps, _| (steps[0].verb, steps[0].why) = (Verb::Wait, Why::Unread(denied())));
    assert_eq!(reasons(&read)[0], "PrivateEndpointGetFailed");
    let waits = report(|steps, _| (steps[0].verb, steps[0].why) = (Verb::Wait, Why::Error(denied())));
    assert_eq!(
        reasons(&waits)[0],
        "PrivateEndpointCreationFailed",
        "a write that is not tried again yet"
    );
    let write = report(|steps, outcomes| (steps[0].why, outcomes[0]) = (Why::Absent, Outcome::Failed(denied())));
    assert_eq!(reasons(&write)[0], "PrivateEndpointCreationFailed");
}

/// The report of such steps on a custom resource whose conditions are True.
fn report_on_success(change: impl FnOnce(&mut Vec<Step>)) -> Report {
    let (mut decision, names) = ready();
    let mut cr = resource();
    let kinds = [
        ConditionType::AzurePrivateEndpointAvailable,
        ConditionType::AzurePrivateDNSAvailable,
    ];
    let standing = kinds.map(|kind| NewCondition::holds(kind, "stands", Some(1)));
    let stored = conditions::merge(&[], standing.to_vec(), jiff::Timestamp::UNIX_EPOCH);
    cr.status.as_mut().unwrap().conditions.extend(stored);
    change(&mut decision.steps);
    let outcomes = vec![Outcome::Nothing; decision.steps.len()];
    after_build(&cr, &decision, &names, &outcomes)
}

#[test]
fn failed_read_of_the_endpoint_changes_conditions_only_later() {
    let unread = |class, lasting| {
        report_on_success(|steps| {
            let error = ArmError {
                lasting,
                ..ArmError::own(class, "X")
            };
            (steps[0].verb, steps[0].why, steps[0].found) = (Verb::Wait, Why::Unread(error), None);
            for step in steps.iter_mut().filter(|step| step.kind == Kind::RecordSet) {
                *step = Step::waits(step.kind, step.key.clone(), NEEDS_ADDRESS);
            }
        })
    };
    for unchanged in [
        unread(Class::Throttled, true),
        unread(Class::Denied, false),
        unread(Class::Down, false),
    ] {
        assert_eq!(reasons(&unchanged), ["AzureSuccess"; 3]);
        let messages: Vec<_> = unchanged.conditions.iter().map(|c| c.message.as_str()).collect();
        assert_eq!(messages[..2], ["stands", "stands"]);
    }
    let get_failed = Reason::PrivateEndpointGetFailed.as_str();
    let lasting = unread(Class::Down, true);
    assert_eq!(reasons(&lasting), [get_failed, "WaitingForPrivateEndpoint", get_failed]);
    assert!(
        lasting.conditions[0]
            .message
            .contains(" cannot be read, nothing is known of it now: X: ")
    );
}

#[rstest]
#[case::content_that_waits_for_it(Why::Needs("its zone"), "AzureSuccess")]
#[case::zone_of_others(Why::NotOurs, "NotOurs")]
fn throttled_read_of_a_zone_hides_no_other_problem(#[case] why: Why, #[case] reason: &str) {
    let report = report_on_success(|steps| {
        let error = ArmError::own(Class::Throttled, "X");
        (steps[1].verb, steps[1].why, steps[1].found) = (Verb::Wait, Why::Unread(error), None);
        (steps[5].verb, steps[5].why, steps[5].found) = (Verb::Wait, why, None);
    });
    assert_eq!(reasons(&report), ["AzureSuccess", reason, reason]);
}

#[test]
fn recreated_endpoint_makes_its_names_unavailable() {
    let report = report_on_success(|steps| {
        (steps[0].verb, steps[0].why, steps[0].found) = (Verb::Wait, Why::InProgress, None);
        for step in steps.iter_mut().filter(|step| step.kind == Kind::RecordSet) {
            *step = Step::waits(step.kind, step.key.clone(), NEEDS_ADDRESS);
        }
    });
    assert_eq!(
        reasons(&report),
        ["Provisioning", "WaitingForPrivateEndpoint", "Provisioning"]
    );
}

#[rstest]
#[case::pending("Pending", Some("10.0.0.5"), "PrivateEndpointConnectionNotApproved")]
#[case::no_address_yet("Approved", None, "WaitingForPrivateEndpoint")]
#[case::state_unknown("", Some("10.0.0.5"), "PrivateEndpointConnectionNotApproved")]
fn endpoint_needs_an_approved_connection_and_an_address(
    #[case] state: &str,
    #[case] address: Option<&str>,
    #[case] reason: &str,
) {
    let report = report(|steps, _| steps[0].found = Some(endpoint_body(state, address)));
    assert_eq!(reasons(&report)[0], reason);
    assert_eq!(reasons(&report)[2], reason, "the whole says the same");
}

#[test]
fn address_once_known_is_not_overwritten_by_none() {
    let report = report(|steps, _| steps[0].found = Some(endpoint_body("Approved", None)));
    assert!(!report.fields.contains_key("privateEndpointIP"));
}

#[test]
fn zone_of_the_same_name_elsewhere_is_named_as_such() {
    let overlap = ArmError::own(Class::Invalid, "BadRequest");
    let report = report(|steps, _| (steps[2].verb, steps[2].why) = (Verb::Wait, Why::Error(overlap)));
    assert_eq!(reasons(&report)[1], "VNetLinkedToOtherZone");
}

#[rstest]
#[case::zone(1, "BadRequest", "DNSZoneCreationFailed")]
#[case::link_for_another_reason(2, "InvalidParameter", "VNetLinkCreationFailed")]
fn other_refusals_as_invalid_tell_of_no_other_zone(
    #[case] at: usize,
    #[case] code: &'static str,
    #[case] reason: &str,
) {
    let invalid = ArmError::own(Class::Invalid, code);
    let report = report(|steps, _| (steps[at].verb, steps[at].why) = (Verb::Wait, Why::Error(invalid)));
    assert_eq!(reasons(&report)[1], reason);
}

#[test]
fn waiting_conditions_name_what_they_wait_for() {
    let report = report(|steps, _| {
        for at in [0, 3] {
            steps[at] = Step::waits(steps[at].kind, steps[at].key.clone(), NEEDS_ADDRESS);
        }
    });
    let (service, endpoint) = ("WaitingForPrivateLinkService", "WaitingForPrivateEndpoint");
    assert_eq!(reasons(&report), [service, endpoint, service]);
}

#[rstest]
#[case::link_for_its_zone(2, Why::Needs("its zone"), "Provisioning")]
#[case::record_for_its_zone(3, Why::Needs("its zone"), "Provisioning")]
#[case::link_for_that_of_a_sibling(6, Why::Needs("the link of private-router"), "Provisioning")]
#[case::record_for_the_endpoint(7, NEEDS_ADDRESS, "WaitingForPrivateEndpoint")]
fn names_wait_for_the_endpoint_only_where_they_do(#[case] at: usize, #[case] why: Why, #[case] reason: &str) {
    let report = report(|steps, _| steps[at] = Step::waits(steps[at].kind, steps[at].key.clone(), why));
    assert_eq!(reasons(&report)[1], reason);
}

#[test]
fn problem_of_the_custom_resource_outranks_its_steps() {
    let (mut decision, names) = ready();
    decision.problem = Some(Problem::new(Reason::DuplicateIdentity, "x"));
    let outcomes = vec![Outcome::Nothing; decision.steps.len()];
    let report = after_build(&resource(), &decision, &names, &outcomes);
    assert_eq!(reasons(&report), ["DuplicateIdentity"; 3]);
}

#[rstest]
#[case::endpoint(0, ["DeletionFailed", "Deleting"])]
#[case::zone(1, ["Deleting", "DeletionFailed"])]
fn each_condition_reports_its_own_failed_deletion(#[case] at: usize, #[case] expected: [&str; 2]) {
    let (mut decision, _) = ready();
    let mut outcomes = vec![Outcome::Ready; decision.steps.len()];
    for step in &mut decision.steps {
        (step.verb, step.why) = (Verb::Delete, Why::Unwanted);
    }
    outcomes[at] = Outcome::Failed(denied());
    let annotated = cr(Value::Null, json!({ABANDON: "other/cpo/ticket"}));
    let report = after_teardown(&annotated, &decision, &outcomes);
    assert_eq!(reasons(&report)[..2], expected);
    for condition in &report.conditions[..2] {
        assert!(condition.message.contains("does not count"), "{}", condition.message);
    }
}

#[test]
fn deleted_custom_resource_that_is_not_allowed_reports_it() {
    let decision = Decision::stuck(Problem::new(Reason::ScopeNotAllowed, "no entry"));
    let report = after_teardown(&resource(), &decision, &[]);
    assert_eq!(reasons(&report), ["ScopeNotAllowed"; 3]);
    assert!(report.fields.is_empty(), "what was seen stays");
}

#[rstest]
#[case::beside_names_that_are_right(Outcome::Nothing, "OtherControllerActive", Status::True)]
#[case::beside_names_that_are_not(Outcome::Failed(denied()), "ARecordCreationFailed", Status::False)]
fn second_writer_is_reported(#[case] record: Outcome, #[case] reason: &str, #[case] status: Status) {
    let (decision, mut names) = ready();
    names.shadowing = Some("apps.example.com".into());
    names.other_controller = Some("hypershift-controlplane-manager".into());
    let mut outcomes = vec![Outcome::Nothing; decision.steps.len()];
    outcomes[3] = record;
    let report = after_build(&resource(), &decision, &names, &outcomes);
    assert_eq!(
        (report.conditions[1].reason.as_str(), report.conditions[1].status),
        (reason, status)
    );
}

#[test]
fn failed_step_is_reported_before_a_throttled_read() {
    let (mut decision, _) = ready();
    for step in &mut decision.steps {
        (step.verb, step.why, step.found) = (Verb::Keep, Why::UpToDate, None);
    }
    let unread = Why::Unread(ArmError::own(Class::Throttled, "X"));
    (decision.steps[1].verb, decision.steps[1].why) = (Verb::Wait, unread);
    (decision.steps[2].verb, decision.steps[2].why) = (Verb::Wait, Why::Error(denied()));
    let outcomes = vec![Outcome::Nothing; decision.steps.len()];
    let report = after_teardown(&resource(), &decision, &outcomes);
    let dns = report
        .conditions
        .iter()
        .find(|c| c.kind == ConditionType::AzurePrivateDNSAvailable);
    let message = dns.map(|condition| condition.message.as_str()).unwrap_or_default();
    assert!(message.contains("AuthorizationFailed"), "{message}");
}
