use rstest::rstest;
use serde_json::Value;

use super::*;
use crate::api::Status;
use crate::azure::error::ArmError;
use crate::azure::plan::Verb;
use crate::controllers::endpoint::plan::wanted;
use crate::controllers::samples::{ALIAS, cr, identity};

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

/// Steps of a cluster on which everything is as wanted.
fn settled() -> (Decision, Vec<WantedZone>) {
    let want = wanted(&resource(), &identity()).unwrap();
    let keep = |kind, id: &crate::azure::id::ResourceId, body| Step {
        kind,
        id: id.clone(),
        verb: Verb::Keep,
        why: Why::AsWanted,
        found: Some(body),
    };
    let mut steps = vec![keep(
        Kind::Endpoint,
        &want.endpoint.id,
        endpoint_body("Approved", Some("10.0.0.5")),
    )];
    for zone in &want.zones {
        steps.push(keep(Kind::Zone, &zone.zone.id, json!({})));
        steps.push(keep(Kind::ZoneLink, &zone.link.id, json!({})));
        steps.extend(
            zone.records
                .iter()
                .map(|record| keep(Kind::Record, &record.id, json!({}))),
        );
    }
    (
        Decision {
            steps,
            ..Decision::default()
        },
        want.zones,
    )
}

fn report(change: impl FnOnce(&mut Vec<Step>, &mut Vec<Done>)) -> Report {
    let (mut decision, zones) = settled();
    let mut done = vec![Done::Nothing; decision.steps.len()];
    change(&mut decision.steps, &mut done);
    after_build(&resource(), &decision, &zones, &done, Some("example"))
}

/// Reasons of the endpoint, the names and the whole; success is one of them.
fn reasons(report: &Report) -> Vec<&'static str> {
    report.conditions.iter().map(|c| c.reason.as_str()).collect()
}

#[test]
fn settled_steps_make_the_whole_available() {
    let report = report(|_, _| {});
    assert!(
        report.conditions.iter().all(|c| c.status == Status::True),
        "{:?}",
        report.conditions
    );
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
    let report = report(|_, done| done[at] = Done::Failed(denied()));
    assert_eq!(reasons(&report), ["AzureSuccess", reason, reason]);
}

#[test]
fn failed_read_and_failed_write_of_the_endpoint_differ() {
    let read = report(|steps, _| (steps[0].verb, steps[0].why) = (Verb::Wait, Why::Error(denied())));
    assert_eq!(reasons(&read)[0], "PrivateEndpointGetFailed");
    let write = report(|steps, done| (steps[0].why, done[0]) = (Why::Absent, Done::Failed(denied())));
    assert_eq!(reasons(&write)[0], "PrivateEndpointCreationFailed");
}

#[rstest]
#[case::pending("Pending", Some("10.0.0.5"), "PrivateEndpointConnectionNotApproved")]
#[case::no_address_yet("Approved", None, "WaitingForPrivateEndpoint")]
#[case::state_unknown("", Some("10.0.0.5"), "PrivateEndpointConnectionNotApproved")]
fn endpoint_counts_only_with_an_approved_connection_and_an_address(
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

#[test]
fn foreign_endpoint_is_never_recorded() {
    let report = report(|steps, _| (steps[0].verb, steps[0].why) = (Verb::Refuse, Why::NotOurs));
    assert_eq!(reasons(&report)[0], "NotOurs");
    assert_eq!(report.fields["privateEndpointID"], Value::Null);
}

#[test]
fn custom_resource_that_goes_and_is_not_allowed_says_so() {
    let decision = Decision::stuck(Problem::new(Reason::ScopeNotAllowed, "no entry"));
    let report = after_teardown(&resource(), &decision, &[]);
    assert_eq!(reasons(&report), ["ScopeNotAllowed"; 3]);
    assert!(report.fields.is_empty(), "what was seen stays");
}
