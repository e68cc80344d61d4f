use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::controllers::vpc_endpoint::samples::{ACCOUNT, ROLE, Sample, VPC, ZONE, allowed, control_plane, own};

const OTHER: &str = "arn:aws:iam::999900001111:role/other";

fn guest(aws: &Value, access: &Access) -> Result<Guest, Problem> {
    Guest::of(&control_plane(aws), access, &Region::parse("us-east-1").unwrap())
}

fn shared(endpoint: &str, records: &str, zone: &str) -> Value {
    json!({"sharedVPC": {"localZoneID": zone, "rolesRef": {"controlPlaneARN": endpoint, "ingressARN": records}}})
}

fn role(arn: &str) -> Scope {
    Scope::of_role(RoleArn::parse(arn).unwrap(), "us-east-1")
}

#[test]
fn role_of_the_file_is_assumed_whatever_the_control_plane_names() {
    let plain = guest(&json!({"rolesRef": {"controlPlaneOperatorARN": OTHER}}), &allowed()).unwrap();
    assert_eq!((plain.account, plain.zone_account), (role(ROLE), role(ROLE)));
    let same = guest(&shared(ROLE, ROLE, ZONE), &allowed()).unwrap();
    assert_eq!(same.account, role(ROLE));
}

#[rstest]
#[case::vpc(
    json!({"cloudProviderConfig": {"vpc": "vpc-00000009"}}),
    "platform.aws.cloudProviderConfig.vpc is outside of the allowed scopes; vpcIDs lacks vpc-00000009"
)]
#[case::role_for_the_endpoint(
    shared(OTHER, ROLE, ZONE),
    "platform.aws.sharedVPC.rolesRef.controlPlaneARN is outside of the allowed scopes; roleARN is not \
     arn:aws:iam::999900001111:role/other"
)]
#[case::role_for_the_records(
    shared(ROLE, OTHER, ZONE),
    "platform.aws.sharedVPC.rolesRef.ingressARN is outside of the allowed scopes; recordsRoleARN is not \
     arn:aws:iam::999900001111:role/other"
)]
#[case::zone(
    shared(ROLE, ROLE, "ZOTHER"),
    "platform.aws.sharedVPC.localZoneID is outside of the allowed scopes; hostedZoneIDs lacks ZOTHER"
)]
fn what_the_file_does_not_allow_is_refused(#[case] named: Value, #[case] message: &str) {
    let expected = Problem::new(Reason::ScopeNotAllowed, message);
    assert_eq!(guest(&named, &allowed()), Err(expected));
    assert!(
        guest(&named, &own()).is_ok(),
        "a process for one control plane takes it"
    );
}

#[test]
fn process_for_one_control_plane_assumes_the_roles_of_a_shared_vpc() {
    let plain = guest(&json!({}), &own()).unwrap();
    assert_eq!(plain.account, Scope::own(ACCOUNT, "us-east-1"));
    let in_shared = guest(&shared(ROLE, OTHER, ZONE), &own()).unwrap();
    assert_eq!((in_shared.account, in_shared.zone_account), (role(ROLE), role(OTHER)));
}

/// An intent for the endpoint in the account of a role.
fn recorded(account: &str, arn: &str) -> CpoIntent {
    CpoIntent {
        account: account.to_owned(),
        region: "us-east-1".to_owned(),
        vpc: VPC.to_owned(),
        endpoint_role: Some(arn.to_owned()),
        ..CpoIntent::default()
    }
}

#[test]
fn recorded_role_is_assumed_only_where_no_guest_names_one() {
    let before = recorded("444455556666", "arn:aws:iam::444455556666:role/before");
    let mut sample = Sample::new();
    let called = |sample: &Sample, recorded: &CpoIntent| sample.inputs.recorded_scope(recorded).unwrap();
    assert_eq!(called(&sample, &before), Scope::own(ACCOUNT, "us-east-1"));
    let elsewhere = recorded("999900001111", OTHER);
    assert_eq!(called(&sample, &elsewhere), role(OTHER));
    sample.inputs.guest = guest(&shared(ROLE, ROLE, ZONE), &own());
    assert_eq!(called(&sample, &before), role(ROLE));
    sample.inputs.guest = Err(Problem::new(Reason::HostedControlPlaneNotFound, "x"));
    assert_eq!(
        called(&sample, &before).role.as_ref().map(RoleArn::as_str),
        before.endpoint_role.as_deref()
    );
    let in_another = recorded(ACCOUNT, OTHER);
    assert_eq!(called(&sample, &in_another).role, None, "no role of another account");
}

#[test]
fn recorded_role_is_never_assumed_before_many() {
    let mut sample = Sample::new().among_many();
    for guest in [
        sample.inputs.guest.clone(),
        Err(Problem::new(Reason::HostedControlPlaneNotFound, "x")),
    ] {
        sample.inputs.guest = guest;
        let forged = recorded("999900001111", OTHER);
        assert_eq!(sample.inputs.recorded_scope(&forged).unwrap().role, None);
        let replaced = recorded(ACCOUNT, "arn:aws:iam::444455556666:role/before");
        assert_eq!(sample.inputs.recorded_scope(&replaced), Some(role(ROLE)));
        assert_eq!(sample.inputs.recorded_zone_scope(&replaced), Some(role(ROLE)));
    }
}
