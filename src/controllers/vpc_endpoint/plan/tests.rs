use rstest::rstest;
use serde_json::Value;

use super::*;
use crate::api::Status;
use crate::api::markers::aws::SERVICE_ZONES;
use crate::aws::api::error::AwsError;
use crate::controllers::aws::lists::ListNeed;
use crate::controllers::facts::Need;
use crate::controllers::vpc_endpoint::samples::{
    CLUSTER_ID, DNS_NAME, ENDPOINT, GROUP, SERVICE, Sample, VPC, ZONE, account, endpoint, endpoint_slot, group,
    group_slot, records, records_slot,
};
use crate::controllers::vpc_endpoint::status::after_build;
use crate::engine::failure::Class;
use crate::engine::plan::{Outcome, Verb, Why};

mod former;

const OTHER_SERVICE: &str = "com.amazonaws.vpce.us-east-1.vpce-svc-0fedcba9876543210";

fn writes(decision: &Decision) -> Vec<Kind> {
    decision
        .steps
        .iter()
        .filter(|step| step.writes())
        .map(|step| step.kind)
        .collect()
}

fn reason(decision: &Decision) -> Option<Reason> {
    decision.problem.as_ref().map(|problem| problem.reason)
}

fn intent_of(decision: &Decision) -> CpoIntent {
    serde_json::from_str(decision.intent.as_deref().unwrap()).unwrap()
}

fn put(decision: &Decision, kind: Kind) -> Value {
    match &decision.step(kind).unwrap().verb {
        Verb::Put(body) => body.clone(),
        other => panic!("{other:?}"),
    }
}

/// A guest with its security group and one zone, and no endpoint.
fn prepared() -> Sample {
    let mut sample = Sample::new();
    let zones = "use1-az1,use1-az2".to_owned();
    sample.cr.annotations_mut().insert(SERVICE_ZONES.to_owned(), zones);
    sample.shows(group_slot(), group());
    sample.has_zones(&[(ZONE, "example.hypershift.local")]);
    sample.observes(endpoint_slot(SERVICE), Observed::Absent);
    let subnets = ["subnet-0000000a", "subnet-0000000b"];
    sample.has_subnets(&[(subnets[0], "use1-az1"), (subnets[1], "use1-az2")], &subnets);
    sample
}

#[test]
fn group_and_zone_are_prepared_before_there_is_a_service() {
    let mut sample = prepared();
    sample.cr.status = None;
    sample.observes(group_slot(), Observed::Absent);
    let decision = build(sample.basis()).unwrap();
    assert_eq!(writes(&decision), [Kind::SecurityGroup]);
    assert_eq!(reason(&decision), Some(Reason::Provisioning));
    assert_eq!(intent_of(&decision).zone_id.as_deref(), Some(ZONE));
    let body = put(&decision, Kind::SecurityGroup);
    assert_eq!(body["Rules"][0]["Range"], "10.0.0.0/16");
}

#[test]
fn endpoint_is_created_with_a_subnet_in_each_zone() {
    let decision = build(prepared().basis()).unwrap();
    let body = put(&decision, Kind::VpcEndpoint);
    assert_eq!(body["SubnetIds"], json!(["subnet-0000000a", "subnet-0000000b"]));
    assert_eq!((&body["VpcId"], &body["ServiceName"]), (&json!(VPC), &json!(SERVICE)));
    assert_eq!(body["GroupIds"], json!([GROUP]));
    assert_eq!(body["Tags"]["AWSEndpointService"], "private-router");
    assert_eq!(intent_of(&decision).endpoint_service_names, [SERVICE]);
    assert_eq!(decision.step(Kind::Records).unwrap().why, Why::Needs("the endpoint"));
}

#[test]
fn endpoint_of_an_earlier_service_is_deleted_first() {
    let mut sample = prepared();
    let recorded = CpoIntent {
        endpoint_service_names: vec![OTHER_SERVICE.to_owned()],
        ..CpoIntent::of(&sample.guest().identity)
    };
    sample.records_intent(&recorded);
    let mut old = endpoint("available");
    old["ServiceName"] = json!(OTHER_SERVICE);
    sample.shows(endpoint_slot(OTHER_SERVICE), old);
    let decision = build(sample.basis()).unwrap();
    let verbs: Vec<&Verb> = decision
        .steps
        .iter()
        .filter(|s| s.kind == Kind::VpcEndpoint)
        .map(|s| &s.verb)
        .collect();
    assert_eq!(verbs, [&Verb::Delete, &Verb::Wait]);
    sample.observes(endpoint_slot(OTHER_SERVICE), Observed::Absent);
    assert_eq!(writes(&build(sample.basis()).unwrap()), [Kind::VpcEndpoint]);
}

#[test]
fn take_over_of_hypershifts_own_endpoint_writes_nothing_to_aws() {
    let sample = Sample::ready();
    let decision = build(sample.basis()).unwrap();
    assert!(decision.problem.is_none(), "{:?}", decision.problem);
    assert_eq!(writes(&decision), []);
    let recorded = intent_of(&decision);
    assert_eq!(recorded.endpoint_id.as_deref(), Some(ENDPOINT));
    assert_eq!(recorded.zone_id.as_deref(), Some(ZONE), "no list of zones is read");
    assert!(sample.facts.lists.subnet_zones.is_empty(), "no subnet is read");
    assert_eq!(
        json!(decision.own_fields.annotations),
        json!({ENDPOINT_DNS_NAME: DNS_NAME})
    );
}

#[rstest]
fn records_follow_once_the_endpoint_has_a_name(#[values("pending", "available")] state: &str) {
    let mut sample = Sample::ready();
    sample.shows(endpoint_slot(SERVICE), endpoint(state));
    sample.has_zones(&[(ZONE, "example.hypershift.local")]);
    sample.observes(records_slot(ZONE), Observed::Absent);
    let decision = build(sample.basis()).unwrap();
    assert_eq!(put(&decision, Kind::Records)["Records"], records(DNS_NAME)["Records"]);
}

#[rstest]
#[case::pending("pending", None, Verb::Wait)]
#[case::not_accepted("pendingAcceptance", Some(Reason::EndpointNotAccepted), Verb::Wait)]
#[case::rejected("rejected", Some(Reason::EndpointRejected), Verb::Delete)]
#[case::expired("expired", Some(Reason::EndpointRejected), Verb::Delete)]
#[case::failed("Failed", Some(Reason::EndpointFailed), Verb::Delete)]
#[case::unknown_state("somethingNew", None, Verb::Wait)]
fn state_of_the_endpoint_decides(#[case] state: &str, #[case] expected: Option<Reason>, #[case] verb: Verb) {
    let mut sample = Sample::ready();
    sample.shows(endpoint_slot(SERVICE), endpoint(state));
    let decision = build(sample.basis()).unwrap();
    assert_eq!(reason(&decision), expected);
    assert_eq!(decision.step(Kind::VpcEndpoint).unwrap().verb, verb);
    let outcomes = vec![Outcome::Nothing; decision.steps.len()];
    let report = after_build(&sample.cr, &decision, &outcomes);
    assert_eq!(report.conditions[0].status, Status::False, "{report:?}");
}

#[test]
fn foreign_endpoint_to_the_service_is_left() {
    let mut sample = Sample::ready();
    let mut foreign = endpoint("available");
    foreign["Tags"]["hypershift.openshift.io/cluster-id"] = json!("another");
    sample.shows(endpoint_slot(SERVICE), foreign);
    let decision = build(sample.basis()).unwrap();
    assert_eq!(decision.step(Kind::VpcEndpoint).unwrap().why, Why::NotOurs);
    assert!(decision.own_fields.annotations.is_empty());
}

#[rstest]
#[case::none(&[], Reason::HostedZoneNotFound)]
#[case::of_another(&[("Z1AAAAAAAAA", "other.hypershift.local")], Reason::HostedZoneNotFound)]
#[case::two(&[("Z1AAAAAAAAA", "example.hypershift.local"), ("Z2AAAAAAAAA", "example.hypershift.local")], Reason::AmbiguousHostedZone)]
fn zone_that_is_not_known_is_one_clear_problem(#[case] zones: &[(&str, &str)], #[case] expected: Reason) {
    let mut sample = Sample::ready();
    sample.cr.status.as_mut().unwrap().dns_zone_id = None;
    sample.has_zones(zones);
    for (zone, _) in zones {
        sample.observes(records_slot(zone), Observed::Absent);
    }
    let decision = build(sample.basis()).unwrap();
    assert_eq!(reason(&decision), Some(expected));
    assert!(decision.step(Kind::VpcEndpoint).is_some(), "all else goes on");
}

#[test]
fn zone_that_holds_the_records_is_the_clusters() {
    let mut sample = Sample::ready();
    sample.cr.status.as_mut().unwrap().dns_zone_id = None;
    sample.has_zones(&[
        ("Z1AAAAAAAAA", "example.hypershift.local"),
        ("Z2AAAAAAAAA", "example.hypershift.local"),
    ]);
    sample.observes(records_slot("Z1AAAAAAAAA"), Observed::Absent);
    sample.shows(records_slot("Z2AAAAAAAAA"), records(DNS_NAME));
    let decision = build(sample.basis()).unwrap();
    assert_eq!(reason(&decision), None);
    assert_eq!(intent_of(&decision).zone_id.as_deref(), Some("Z2AAAAAAAAA"));
}

#[test]
fn zone_that_came_back_under_another_id_is_found() {
    let mut sample = Sample::ready();
    let gone = AwsError::own(Class::Gone, "NoSuchHostedZone");
    sample.observes(records_slot(ZONE), Observed::WriteFailed(gone));
    let needs = build(sample.basis()).unwrap_err();
    assert_eq!(needs, [Need::List(ListNeed::HostedZones(account()))]);
    sample.has_zones(&[("Z2AAAAAAAAA", "example.hypershift.local")]);
    sample.observes(records_slot("Z2AAAAAAAAA"), Observed::Absent);
    assert_eq!(writes(&build(sample.basis()).unwrap()), [Kind::Records]);
}

#[test]
fn same_endpoint_is_asked_for_until_one_is_known_to_be_gone() {
    let token = |sample: &Sample| put(&build(sample.basis()).unwrap(), Kind::VpcEndpoint)["ClientToken"].clone();
    let mut sample = prepared();
    let first = token(&sample);
    assert_eq!(token(&sample), first);
    sample.cr.status.as_mut().unwrap().endpoint_id = Some(ENDPOINT.to_owned());
    let second = token(&sample);
    assert_ne!(second, first);
    let recorded = intent_of(&build(sample.basis()).unwrap());
    sample.cr.status.as_mut().unwrap().endpoint_id = None;
    sample.records_intent(&recorded);
    assert_eq!(token(&sample), second, "the intent keeps it");
}

#[test]
fn custom_resource_without_records_needs_no_zone() {
    let mut sample = Sample::ready();
    sample.cr.metadata.name = Some("kube-apiserver-private".to_owned());
    let name = "example-x7k2p-vpce-kube-apiserver-private";
    let mut body = group();
    body["GroupName"] = json!(name);
    body["Tags"]["Name"] = json!(name);
    body["Rules"][0]["FromPort"] = json!(6443);
    body["Rules"][0]["ToPort"] = json!(6443);
    sample.shows(Slot::security_group(&account(), VPC, name), body);
    let mut own = endpoint("available");
    own["Tags"]["AWSEndpointService"] = json!("kube-apiserver-private");
    sample.shows(endpoint_slot(SERVICE), own);
    let decision = build(sample.basis()).unwrap();
    assert!(decision.problem.is_none() && decision.step(Kind::Records).is_none());
    assert_eq!(writes(&decision), []);
}

#[rstest]
#[case::not_a_name("x")]
#[case::service_of_aws("com.amazonaws.us-east-1.s3")]
#[case::other_region("com.amazonaws.vpce.eu-west-1.vpce-svc-0123456789abcdef0")]
fn forged_service_name_is_not_connected_to(#[case] name: &str) {
    let mut sample = prepared();
    sample.cr.status.as_mut().unwrap().endpoint_service_name = Some(name.to_owned());
    let decision = build(sample.basis()).unwrap();
    assert_eq!(reason(&decision), Some(Reason::Provisioning));
    assert!(decision.step(Kind::VpcEndpoint).is_none());
}

/// Whoever may write the annotation must not have what others have in the VPC deleted.
#[rstest]
#[case::of_aws("com.amazonaws.us-east-1.s3", "AWSEndpointService")]
#[case::of_a_vendor(OTHER_SERVICE, "Name")]
fn forged_former_service_has_no_endpoint_deleted(#[case] service: &str, #[case] tag: &str) {
    let mut sample = Sample::ready();
    let mut intent = intent_of(&build(sample.basis()).unwrap());
    intent.endpoint_service_names.insert(0, service.to_owned());
    sample.records_intent(&intent);
    let mut theirs = endpoint("available");
    theirs["ServiceName"] = json!(service);
    theirs["Tags"] = json!({tag: "private-router"});
    sample.shows(endpoint_slot(service), theirs);
    let decision = build(sample.basis()).unwrap();
    assert!(writes(&decision).is_empty(), "{decision:?}");
}

#[test]
fn recorded_intent_of_another_cluster_does_not_count() {
    let mut sample = prepared();
    let forged = CpoIntent {
        cluster_id: "another".to_owned(),
        endpoint_service_names: vec![OTHER_SERVICE.to_owned()],
        ..CpoIntent::of(&sample.guest().identity)
    };
    sample.records_intent(&forged);
    let decision = build(sample.basis()).unwrap();
    assert_eq!(intent_of(&decision).cluster_id, CLUSTER_ID);
    assert_eq!(writes(&decision), [Kind::VpcEndpoint]);
}

#[test]
fn guest_in_another_vpc_gets_no_second_endpoint() {
    let mut sample = Sample::ready();
    let intent = super::recorded(sample.basis(), sample.guest());
    sample.records_intent(&intent);
    sample.inputs.guest.as_mut().unwrap().vpc = "vpc-0aaaaaaaaaaaaaaaa".to_owned();
    let decision = build(sample.basis()).unwrap();
    assert!(decision.steps.is_empty());
    assert_eq!(
        decision.problem.map(|problem| problem.reason),
        Some(Reason::ConfigurationChanged)
    );
}

#[test]
fn forged_list_of_services_makes_few_reads() {
    let mut sample = Sample::ready();
    let name = |at: usize| format!("com.amazonaws.vpce.us-east-1.vpce-svc-{at:017x}");
    let mut forged = super::recorded(sample.basis(), sample.guest());
    forged.endpoint_service_names = (0..10_000).map(name).collect();
    sample.records_intent(&forged);
    let kept = super::recorded(sample.basis(), sample.guest()).endpoint_service_names;
    assert_eq!(kept.len(), MOST_FORMER + 1);
}

/// The API server was published by the router, and is by a load balancer of its own.
fn rerouted() -> (Sample, Slot) {
    let mut sample = Sample::ready();
    sample.inputs.guest.as_mut().unwrap().api_server_is_routed = false;
    let slot = |name: &str| Slot::records(&account(), ZONE, &[name]);
    let shown = records(DNS_NAME)["Records"].clone();
    let body = |name: &str| json!({"Records": {name: shown[name]}});
    let (apps, api) = ("*.apps.example.hypershift.local", "api.example.hypershift.local");
    sample.shows(slot(apps), body(apps));
    sample.shows(slot(api), body(api));
    (sample, slot(api))
}

#[test]
fn control_plane_for_which_nobody_vouches_gets_nothing() {
    let mut sample = prepared();
    sample.inputs.vouched.refusal = Some(Problem::new(Reason::IdentityMismatch, "x"));
    let decision = build(sample.basis()).unwrap();
    assert_eq!(reason(&decision), Some(Reason::IdentityMismatch));
    assert!(decision.steps.is_empty() && decision.intent.is_none(), "{decision:?}");
    sample.inputs.paused = Some(Problem::new(Reason::Provisioning, "the cluster is paused"));
    assert!(build(sample.basis()).unwrap().paused);
}

#[test]
fn undesired_record_is_deleted_and_then_forgotten() {
    let (mut sample, api) = rerouted();
    let decision = build(sample.basis()).unwrap();
    let deleted: Vec<&Slot> = decision
        .steps
        .iter()
        .filter(|step| step.writes())
        .map(|step| &step.key)
        .collect();
    assert_eq!(deleted, [&api]);
    assert_eq!(intent_of(&decision).record_names.len(), 2);
    sample.observes(api.clone(), Observed::Absent);
    let decision = build(sample.basis()).unwrap();
    assert_eq!(writes(&decision), []);
    assert_eq!(intent_of(&decision).record_names.len(), 2, "one read may be behind");
    sample.lacks(api);
    let decision = build(sample.basis()).unwrap();
    assert_eq!(writes(&decision), []);
    assert_eq!(intent_of(&decision).record_names, ["*.apps.example.hypershift.local"]);
    assert!(decision.forgets, "it is recorded again, though nothing is written");
}

#[test]
fn undesired_record_that_leads_elsewhere_stays() {
    let (mut sample, api) = rerouted();
    let other = json!({"Type": "CNAME", "TTL": 300, "Values": ["foreign.example"]});
    sample.shows(api, json!({"Records": {"api.example.hypershift.local": other}}));
    let decision = build(sample.basis()).unwrap();
    assert_eq!(writes(&decision), []);
    assert_eq!(intent_of(&decision).record_names, ["*.apps.example.hypershift.local"]);
    let outcomes = vec![Outcome::Nothing; decision.steps.len()];
    let report = after_build(&sample.cr, &decision, &outcomes);
    assert_eq!(report.conditions[0].reason, Reason::AWSSuccess, "{report:?}");
}

#[test]
fn undesired_record_to_an_endpoint_of_before_is_deleted() {
    let (mut sample, api) = rerouted();
    let before = "vpce-0aaaaaaaaaaaaaaaa-b.vpce-svc-0123456789abcdef0.us-east-1.vpce.amazonaws.com";
    let record = json!({"Type": "CNAME", "TTL": 300, "Values": [before]});
    sample.shows(
        api.clone(),
        json!({"Records": {"api.example.hypershift.local": record}}),
    );
    let decision = build(sample.basis()).unwrap();
    assert!(decision.steps.iter().any(|step| step.writes() && step.key == api));
}
