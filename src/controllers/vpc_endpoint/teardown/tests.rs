use rstest::rstest;

use serde_json::json;

use super::*;
use crate::api::Reason;
use crate::aws::api::error::AwsError;
use crate::aws::role_arn::RoleArn;
use crate::controllers::vpc_endpoint::samples::{
    ACCOUNT, DNS_NAME, ROLE, SERVICE, Sample, VPC, ZONE, endpoint, endpoint_slot, group_slot, records, records_slot,
};
use crate::engine::cloud::Key as _;
use crate::engine::failure::Class;
use crate::engine::plan::Verb;
use crate::hypershift::problem::Problem;

fn verbs(decision: &Decision) -> Vec<(Kind, Verb)> {
    decision
        .steps
        .iter()
        .map(|step| (step.kind, step.verb.clone()))
        .collect()
}

/// What the role recorded for the sample.
fn recorded(sample: &Sample) -> CpoIntent {
    CpoIntent {
        account: ACCOUNT.to_owned(),
        region: "us-east-1".to_owned(),
        vpc: VPC.to_owned(),
        endpoint_service_names: vec![SERVICE.to_owned()],
        zone_id: Some(ZONE.to_owned()),
        record_names: vec![
            "api.example.hypershift.local".into(),
            "*.apps.example.hypershift.local".into(),
        ],
        ..CpoIntent::of(&sample.guest().identity)
    }
}

/// The same without its control plane.
fn orphaned() -> Sample {
    let mut sample = Sample::ready();
    let intent = recorded(&sample);
    sample.records_intent(&intent);
    sample.inputs.guest = Err(Problem::new(Reason::HostedControlPlaneNotFound, "x"));
    sample
}

#[test]
fn records_and_endpoint_go_at_once_and_the_group_after() {
    let mut sample = Sample::ready();
    let decision = teardown(sample.basis()).unwrap();
    let expected = [
        (Kind::Records, Verb::Delete),
        (Kind::VpcEndpoint, Verb::Delete),
        (Kind::SecurityGroup, Verb::Wait),
    ];
    assert_eq!(verbs(&decision), expected);
    sample.observes(endpoint_slot(SERVICE), Observed::Absent);
    let decision = teardown(sample.basis()).unwrap();
    assert_eq!(verbs(&decision).last(), Some(&(Kind::SecurityGroup, Verb::Delete)));
}

#[test]
fn deletion_needs_no_control_plane() {
    let decision = teardown(orphaned().basis()).unwrap();
    assert_eq!(decision.steps.iter().filter(|step| step.writes()).count(), 2);
}

#[test]
fn deletion_needs_no_intent_where_the_status_shows_what_is_there() {
    let sample = Sample::ready();
    let decision = teardown(sample.basis()).unwrap();
    assert!(
        decision
            .steps
            .iter()
            .any(|step| step.kind == Kind::VpcEndpoint && step.writes())
    );
}

#[test]
fn records_are_deleted_also_when_the_endpoint_is_gone_already() {
    let mut sample = Sample::ready();
    sample.observes(endpoint_slot(SERVICE), Observed::Absent);
    sample
        .cr
        .annotations_mut()
        .insert(ENDPOINT_DNS_NAME.to_owned(), DNS_NAME.to_owned());
    let decision = teardown(sample.basis()).unwrap();
    assert!(verbs(&decision).contains(&(Kind::Records, Verb::Delete)));
}

#[rstest]
#[case::address("10.0.0.1")]
#[case::endpoint_of_another("vpce-0aaaaaaaaaaaaaaaa-b.vpce-svc-0.us-east-1.vpce.amazonaws.com")]
fn record_that_leads_elsewhere_stays(#[case] target: &str) {
    let mut sample = Sample::ready();
    sample.shows(records_slot(ZONE), records(target));
    let decision = teardown(sample.basis()).unwrap();
    assert!(
        decision
            .steps
            .iter()
            .any(|step| step.kind == Kind::Records && step.left())
    );
}

/// The policies name one zone, which may be another one by now.
#[rstest]
#[case::gone(&["Z2AAAAAAAAA"], &[])]
#[case::there(&["Z2AAAAAAAAA", ZONE], &[Verb::Wait])]
fn denied_zone_holds_a_deletion_only_while_it_exists(#[case] zones: &[&str], #[case] expected: &[Verb]) {
    let mut sample = Sample::ready();
    let denied = AwsError {
        status: 403,
        ..AwsError::own(Class::Denied, "AccessDenied")
    };
    sample.observes(records_slot(ZONE), Observed::ReadFailed(denied));
    let zones: Vec<_> = zones.iter().map(|id| (*id, "example.hypershift.local")).collect();
    sample.has_zones(&zones);
    let decision = teardown(sample.basis()).unwrap();
    let of_records = decision.steps.iter().filter(|step| step.kind == Kind::Records);
    assert!(of_records.map(|step| &step.verb).eq(expected), "{decision:?}");
}

#[test]
fn endpoint_and_group_of_another_cluster_stay() {
    let mut sample = Sample::ready();
    let foreign = json!({"hypershift.openshift.io/cluster-id": "another"});
    let mut body = endpoint("available");
    body["Tags"] = foreign.clone();
    sample.shows(endpoint_slot(SERVICE), body);
    let mut group = crate::controllers::vpc_endpoint::samples::group();
    group["Tags"] = foreign;
    sample.shows(group_slot(), group);
    sample.shows(records_slot(ZONE), records("foreign.example"));
    let decision = teardown(sample.basis()).unwrap();
    assert!(!decision.steps.iter().any(Step::writes), "{:?}", decision.steps);
}

#[test]
fn stripped_finalizer_ends_nothing_while_something_is_recorded() {
    let mut sample = orphaned();
    sample.cr.metadata.finalizers = None;
    assert_eq!(lifecycle(&sample.cr, &sample.inputs), Lifecycle::Build);
    sample.cr.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    assert_eq!(lifecycle(&sample.cr, &sample.inputs), Lifecycle::Teardown);
    sample.cr.annotations_mut().clear();
    assert_eq!(lifecycle(&sample.cr, &sample.inputs), Lifecycle::Nothing);
}

#[test]
fn path_of_a_cluster_that_is_public_now_is_deleted() {
    let mut sample = Sample::ready();
    sample.inputs.is_unwanted = true;
    assert_eq!(lifecycle(&sample.cr, &sample.inputs), Lifecycle::Teardown);
    sample.cr.metadata.finalizers = None;
    assert_eq!(
        lifecycle(&sample.cr, &sample.inputs),
        Lifecycle::Nothing,
        "it is not built"
    );
}

/// Somebody removed what was recorded and shown.
#[test]
fn group_is_deleted_though_nothing_is_recorded_or_shown() {
    let mut sample = Sample::ready();
    sample.cr.status = None;
    let decision = teardown(sample.basis()).unwrap();
    assert_eq!(verbs(&decision), [(Kind::SecurityGroup, Verb::Delete)]);
}

#[test]
fn records_are_recognised_by_the_id_of_the_endpoint_alone() {
    let mut sample = Sample::ready();
    sample.observes(endpoint_slot(SERVICE), Observed::Absent);
    let decision = teardown(sample.basis()).unwrap();
    assert!(verbs(&decision).contains(&(Kind::Records, Verb::Delete)));
}

#[test]
fn what_lies_where_the_guest_was_before_is_deleted_too() {
    let mut sample = Sample::ready();
    let intent = recorded(&sample);
    sample.records_intent(&intent);
    let guest = sample.inputs.guest.as_mut().unwrap();
    guest.vpc = "vpc-0aaaaaaaaaaaaaaaa".to_owned();
    let (account, vpc, group) = (
        guest.account.clone(),
        guest.vpc.clone(),
        "example-x7k2p-vpce-private-router",
    );
    sample.observes(Slot::vpc_endpoint(&account, &vpc, SERVICE), Observed::Absent);
    sample.observes(Slot::security_group(&account, &vpc, group), Observed::Absent);
    let decision = teardown(sample.basis()).unwrap();
    assert!(verbs(&decision).contains(&(Kind::VpcEndpoint, Verb::Delete)));
}

#[test]
fn forged_zone_in_the_status_is_not_read_beside_a_recorded_one() {
    let mut sample = Sample::ready();
    let intent = recorded(&sample);
    sample.records_intent(&intent);
    sample.cr.status.as_mut().unwrap().dns_zone_id = Some("ZAAAAAAAA".to_owned());
    let decision = teardown(sample.basis()).unwrap();
    assert_eq!(
        decision.steps.iter().filter(|step| step.kind == Kind::Records).count(),
        1
    );
}

#[rstest]
#[case::not_a_vpc(|intent: &mut CpoIntent| intent.vpc = "x&Action=y".into())]
#[case::not_an_account(|intent: &mut CpoIntent| intent.account = "1".into())]
#[case::not_a_region(|intent: &mut CpoIntent| intent.region = "moon".into())]
fn forged_place_of_the_resources_is_not_called(#[case] forge: fn(&mut CpoIntent)) {
    let mut sample = orphaned();
    let guest = Sample::ready();
    let mut intent = recorded(&guest);
    forge(&mut intent);
    sample.records_intent(&intent);
    let decision = teardown(sample.basis()).unwrap();
    assert!(decision.steps.is_empty());
}

#[test]
fn forged_intent_makes_no_more_reads_than_a_real_one() {
    let mut sample = Sample::ready();
    let name = |at: usize| format!("com.amazonaws.vpce.us-east-1.vpce-svc-{at:017x}");
    let forged = CpoIntent {
        endpoint_service_names: (0..10_000).map(name).collect(),
        ..recorded(&sample)
    };
    sample.records_intent(&forged);
    let services = remains(sample.basis()).services;
    assert!(services.len() <= MOST_FORMER + 2, "{}", services.len());
    assert!(services.contains(&name(9_999)), "the last ones count");
}

/// The sample before a process for many control planes, whose AWS shows what the role of the file sees.
fn among_many(recorded: &CpoIntent, has_control_plane: bool) -> Sample {
    let mut sample = Sample::ready().among_many();
    let account = Scope::of_role(RoleArn::parse(ROLE).unwrap(), "us-east-1");
    sample.shows(Slot::vpc_endpoint(&account, VPC, SERVICE), endpoint("available"));
    let names: Vec<&str> = recorded.record_names.iter().map(String::as_str).collect();
    sample.shows(Slot::records(&account, ZONE, &names), records(DNS_NAME));
    sample.records_intent(recorded);
    if !has_control_plane {
        sample.inputs.guest = Err(Problem::new(Reason::HostedControlPlaneNotFound, "x"));
    }
    sample
}

#[rstest]
#[case::with_its_control_plane(true)]
#[case::after_its_control_plane(false)]
fn role_of_the_file_deletes_for_one_of_many(#[case] has_control_plane: bool) {
    let intent = recorded(&Sample::ready());
    let decision = teardown(among_many(&intent, has_control_plane).basis()).unwrap();
    assert_eq!(
        decision.steps.iter().filter(|step| step.writes()).count(),
        2,
        "{decision:?}"
    );
    let role = |step: &Step| step.key.scope().role.clone();
    assert!(
        decision
            .steps
            .iter()
            .all(|step| role(step).is_some_and(|role| role.as_str() == ROLE))
    );
}

#[rstest]
#[case::forged_control_plane(true)]
#[case::forged_intent(false)]
fn ids_of_the_hosted_cluster_count_whatever_is_forged(#[case] has_control_plane: bool) {
    let real = Sample::ready().guest().identity.clone();
    let mut intent = recorded(&Sample::ready());
    intent.cluster_id = "forged".to_owned();
    intent.infra_id = "forged".to_owned();
    let mut sample = among_many(&intent, has_control_plane);
    if let Ok(guest) = &mut sample.inputs.guest {
        guest.identity = intent.identity();
    }
    let group = |sample: &Sample| {
        let decision = teardown(sample.basis()).unwrap();
        let step = decision.steps.iter().find(|step| step.kind == Kind::SecurityGroup);
        step.unwrap().key.name().to_owned()
    };
    assert_eq!(group(&sample), "forged-vpce-private-router", "without a HostedCluster");
    sample.inputs.vouched.identity = Some(real);
    assert_eq!(group(&sample), "example-x7k2p-vpce-private-router");
}

#[test]
fn deletion_continues_for_whom_nobody_vouches() {
    let mut sample = among_many(&recorded(&Sample::ready()), true);
    sample.inputs.vouched.refusal = Some(Problem::new(Reason::HostedClusterNotFound, "x"));
    let decision = teardown(sample.basis()).unwrap();
    assert_eq!(decision.steps.iter().filter(|step| step.writes()).count(), 2);
}

#[rstest]
#[case::account(|intent: &mut CpoIntent| intent.account = "999900001111".into(), "no role is in account 999900001111")]
#[case::zone_account(|intent: &mut CpoIntent| intent.zone_account = "999900001111".into(), "no role is in account 999900001111")]
#[case::vpc(|intent: &mut CpoIntent| intent.vpc = "vpc-00000009".into(), "vpcIDs lacks vpc-00000009")]
#[case::zone(|intent: &mut CpoIntent| intent.zone_id = Some("ZOTHER".into()), "hostedZoneIDs lacks ZOTHER")]
fn forged_intent_deletes_nothing_outside_of_the_file(#[case] forge: fn(&mut CpoIntent), #[case] lack: &str) {
    for has_control_plane in [true, false] {
        let mut intent = recorded(&Sample::ready());
        forge(&mut intent);
        let decision = teardown(among_many(&intent, has_control_plane).basis()).unwrap();
        let problem = decision.problem.unwrap();
        assert!(decision.steps.is_empty(), "{:?}", decision.steps);
        let expected = format!("what was recorded is outside of the allowed scopes; {lack}");
        assert_eq!((problem.reason, problem.message), (Reason::ScopeNotAllowed, expected));
    }
}

#[rstest]
#[case::no_entry(|inputs: &mut VpcEndpointInputs| inputs.access = Access::Refused(Problem::new(Reason::ScopeNotAllowed, "x")))]
#[case::vpc_of_another(|inputs: &mut VpcEndpointInputs| inputs.guest = Err(Problem::new(Reason::ScopeNotAllowed, "x")))]
fn nothing_is_deleted_for_whom_the_file_refuses(#[case] refuse: fn(&mut VpcEndpointInputs)) {
    let mut sample = among_many(&recorded(&Sample::ready()), true);
    refuse(&mut sample.inputs);
    let decision = teardown(sample.basis()).unwrap();
    assert!(decision.steps.is_empty());
    assert_eq!(
        decision.problem.map(|problem| problem.reason),
        Some(Reason::ScopeNotAllowed)
    );
}

mod former_zones;
mod unnamed;
