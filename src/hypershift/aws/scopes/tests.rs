use rstest::rstest;
use serde_json::{Value, json};

use super::*;

const ROLE: &str = "arn:aws:iam::444455556666:role/hyperlink/blue";
const RECORDS_ROLE: &str = "arn:aws:iam::777788889999:role/records";
const VPC: &str = "vpc-0123456789abcdef0";
const ZONE: &str = "Z0123456789ABCDEFGHIJ";

fn aws() -> Value {
    json!({"roleARN": ROLE, "vpcIDs": [VPC], "hostedZoneIDs": [ZONE]})
}

fn file(entries: &Value) -> AllowedScopes {
    AllowedScopes::parse(&json!({"hostedClusters": entries}).to_string()).unwrap()
}

/// What the entry of `clusters/blue` allows.
fn allowed(aws: &Value) -> AwsScopes {
    let file = file(&json!([{"namespace": "clusters", "names": ["blue"], "aws": aws}]));
    match file.on_aws("clusters-blue", Some("blue")) {
        Access::Allowed(scopes) => scopes,
        other => panic!("{other:?}"),
    }
}

fn message(refused: Result<(), Problem>) -> String {
    let problem = refused.unwrap_err();
    assert_eq!(problem.reason, Reason::ScopeNotAllowed);
    problem.message
}

#[test]
fn role_of_the_file_is_assumed_for_endpoint_and_records() {
    let scopes = allowed(&aws());
    let scope = scopes.endpoint_scope("us-east-1");
    assert_eq!(
        (scope.account.as_str(), scope.region.as_str()),
        ("444455556666", "us-east-1")
    );
    assert_eq!(scope.role.as_ref().map(RoleArn::as_str), Some(ROLE));
    assert_eq!(scopes.zone_scope("us-east-1"), scope);

    let mut two = aws();
    two["recordsRoleARN"] = json!(RECORDS_ROLE);
    let scope = allowed(&two).zone_scope("us-east-1");
    assert_eq!(scope.account, "777788889999");
    assert_eq!(scope.role.as_ref().map(RoleArn::as_str), Some(RECORDS_ROLE));
}

#[rstest]
#[case::no_entry("others-blue", None, "the namespace has no entry in the allowed scopes")]
#[case::cluster_of_another_name(
    "clusters-blue",
    Some("green"),
    "the HostedCluster is not that of the entry in the allowed scopes"
)]
#[case::entry_for_azure_alone(
    "clusters-green",
    Some("green"),
    "the entry in the allowed scopes has nothing on AWS: it lacks aws"
)]
#[case::cluster_of_another_namespace_may_be_there(
    "clusters-old-one",
    Some("old-one"),
    "the namespace has several entries in the allowed scopes"
)]
fn control_plane_without_an_entry_on_aws_is_refused(
    #[case] namespace: &str,
    #[case] cluster: Option<&str>,
    #[case] message: &str,
) {
    let file = file(&json!([{"namespace": "clusters", "names": ["blue"], "aws": aws()},
        {"namespace": "clusters", "names": ["green"], "scopes": []},
        {"namespace": "clusters", "names": ["old-one"], "aws": aws()},
        {"namespace": "clusters-old", "scopes": []}]));
    let expected = Access::Refused(Problem::new(Reason::ScopeNotAllowed, message));
    assert_eq!(file.on_aws(namespace, cluster), expected);
}

#[test]
fn cluster_of_the_entry_has_to_vouch_for_a_control_plane_on_aws() {
    let file = file(&json!([{"namespace": "clusters", "names": ["blue"], "aws": aws()},
        {"namespace": "clusters", "names": ["green"], "scopes": []}]));
    let named = |namespace| file.cluster_on_aws(namespace).map(|cluster| cluster.to_string());
    assert_eq!(named("clusters-blue").as_deref(), Some("clusters/blue"));
    assert_eq!((named("clusters-green"), named("others-blue")), (None, None));
}

#[test]
fn refusal_names_what_to_add() {
    let scopes = allowed(&aws());
    assert_eq!(
        message(scopes.check_vpc("the VPC", "vpc-00000001")),
        "the VPC is outside of the allowed scopes; vpcIDs lacks vpc-00000001"
    );
    assert_eq!(
        message(scopes.check_zone("the zone", "ZA")),
        "the zone is outside of the allowed scopes; hostedZoneIDs lacks ZA"
    );
    let other = RoleArn::parse(RECORDS_ROLE).unwrap();
    assert_eq!(
        message(scopes.check_endpoint_role("the role", &other)),
        format!("the role is outside of the allowed scopes; roleARN is not {RECORDS_ROLE}")
    );
    assert_eq!(
        message(scopes.check_records_role("the role", &other)),
        format!("the role is outside of the allowed scopes; recordsRoleARN is not {RECORDS_ROLE}")
    );
    assert_eq!(
        message(scopes.check_account("the intent", &Scope::own("111122223333", "us-east-1"))),
        "the intent is outside of the allowed scopes; no role is in account 111122223333"
    );
    assert!(scopes.check_vpc("x", VPC).is_ok() && scopes.check_zone("x", ZONE).is_ok());
}

#[test]
fn only_the_process_of_one_control_plane_finds_any_zone() {
    let refused = Access::Refused(Problem::new(Reason::ScopeNotAllowed, "x"));
    let accesses = [Access::AsNamed("1".into()), Access::Allowed(allowed(&aws())), refused];
    assert_eq!(
        accesses.each_ref().map(|access| access.allows_zone("ZA")),
        [true, false, false]
    );
    assert_eq!(accesses.map(|access| access.allows_zone(ZONE)), [true, true, false]);
}

#[test]
fn request_limits_are_those_of_the_entrys_account() {
    let file = file(&json!([{"namespace": "clusters", "names": ["blue"], "aws": aws()}]));
    assert_eq!(file.account_on_aws("clusters-blue").as_deref(), Some("444455556666"));
    assert_eq!(file.account_on_aws("clusters-green"), None);
}

#[rstest]
#[case::no_role("roleARN", Value::Null)]
#[case::user("roleARN", json!("arn:aws:iam::444455556666:user/blue"))]
#[case::no_records_role("recordsRoleARN", json!("blue"))]
#[case::vpc_outside_of_a_list("vpcIDs", json!("vpc-0123456789abcdef0"))]
#[case::vpc_of_another_form("vpcIDs", json!(["vpc-1", "*"]))]
#[case::zone_of_another_form("hostedZoneIDs", json!(["/hostedzone/Z1"]))]
#[case::unknown_key("externalID", json!("x"))]
fn damaged_entry_on_aws_is_not_taken(#[case] key: &str, #[case] value: Value) {
    let mut aws = aws();
    aws[key] = value;
    let file = json!({"hostedClusters": [{"namespace": "clusters", "aws": aws}]});
    let error = AllowedScopes::parse(&file.to_string()).unwrap_err().to_string();
    assert!(!error.is_empty() && !error.contains(char::is_control), "{error:?}");
}
