use rstest::rstest;

use super::*;

#[rstest]
#[case::endpoint_is_not_there(Verb::Read, 400, "InvalidVpcEndpointId.NotFound", Class::Gone)]
#[case::endpoint_service_is_not_there(Verb::Delete, 200, "InvalidVpcEndpointService.NotFound", Class::Gone)]
#[case::group_is_not_there(Verb::Read, 400, "InvalidGroup.NotFound", Class::Gone)]
#[case::subnet_is_not_there(Verb::Write, 400, "InvalidSubnetID.NotFound", Class::Gone)]
#[case::service_name_on_delete(Verb::Delete, 400, "InvalidServiceName", Class::Gone)]
#[case::service_name_on_create(Verb::Write, 400, "InvalidServiceName", Class::Invalid)]
#[case::zone_is_not_there(Verb::Write, 404, "NoSuchHostedZone", Class::Gone)]
#[case::load_balancer_is_not_there(Verb::Read, 400, "LoadBalancerNotFound", Class::Gone)]
#[case::group_is_in_use(Verb::Delete, 400, "DependencyViolation", Class::Busy)]
#[case::second_change_of_a_zone(Verb::Write, 400, "PriorRequestNotComplete", Class::Busy)]
#[case::service_has_connections(Verb::Delete, 200, "ExistingVpcEndpointConnections", Class::Busy)]
#[case::state_forbids_it_now(Verb::Write, 400, "IncorrectState", Class::Busy)]
#[case::other_operation(Verb::Write, 400, "OperationInProgress", Class::Busy)]
#[case::identity_provider_is_silent(Verb::Read, 400, "IDPCommunicationError", Class::Busy)]
#[case::bucket_of_ec2_is_empty(Verb::Read, 503, "RequestLimitExceeded", Class::Throttled)]
#[case::bucket_of_route53_is_empty(Verb::Read, 400, "Throttling", Class::Throttled)]
#[case::throttling_exception(Verb::Read, 400, "ThrottlingException", Class::Throttled)]
#[case::too_many_requests(Verb::Read, 429, "TooManyRequestsException", Class::Throttled)]
#[case::policy_of_ec2_is_missing(Verb::Write, 403, "UnauthorizedOperation", Class::Denied)]
#[case::policy_is_missing(Verb::Read, 403, "AccessDenied", Class::Denied)]
#[case::keys_are_refused(Verb::Read, 401, "AuthFailure", Class::Denied)]
#[case::key_is_unknown(Verb::Read, 403, "InvalidClientTokenId", Class::Denied)]
#[case::secret_is_wrong(Verb::Read, 403, "SignatureDoesNotMatch", Class::Denied)]
#[case::web_identity_is_refused(Verb::Read, 400, "InvalidIdentityToken", Class::Denied)]
#[case::region_is_off(Verb::Read, 401, "OptInRequired", Class::Denied)]
#[case::session_expired(Verb::Read, 400, "ExpiredToken", Class::Denied)]
#[case::request_expired(Verb::Read, 400, "RequestExpired", Class::Denied)]
#[case::parameter(Verb::Write, 400, "InvalidParameter", Class::Invalid)]
#[case::parameter_value(Verb::Write, 400, "InvalidParameterValue", Class::Invalid)]
#[case::parameter_is_missing(Verb::Write, 400, "MissingParameter", Class::Invalid)]
#[case::two_subnets_of_a_zone(Verb::Write, 400, "DuplicateSubnetsInSameZone", Class::Invalid)]
#[case::record_is_another(Verb::Write, 400, "InvalidChangeBatch", Class::Invalid)]
#[case::quota_of_endpoints(Verb::Write, 400, "VpcEndpointLimitExceeded", Class::Invalid)]
#[case::quota_in_a_403(Verb::Write, 403, "TagLimitExceeded", Class::Invalid)]
#[case::rule_exists(Verb::Write, 400, "InvalidPermission.Duplicate", Class::Invalid)]
#[case::internal(Verb::Read, 500, "InternalError", Class::Down)]
#[case::unavailable(Verb::Read, 503, "Unavailable", Class::Down)]
#[case::service_unavailable(Verb::Read, 503, "ServiceUnavailable", Class::Down)]
#[case::case_of_a_code_is_no_matter(Verb::Read, 400, "throttling", Class::Throttled)]
#[case::unknown_code_of_400(Verb::Read, 400, "Whatever", Class::Invalid)]
#[case::unknown_code_of_404(Verb::Read, 404, "Whatever", Class::Invalid)]
#[case::unknown_code_of_403(Verb::Read, 403, "Whatever", Class::Denied)]
#[case::unknown_code_of_502(Verb::Read, 502, "Whatever", Class::Down)]
#[case::page_of_a_proxy(Verb::Read, 404, "", Class::Invalid)]
#[case::redirect(Verb::Read, 301, "", Class::Invalid)]
#[case::no_answer(Verb::Read, 0, "", Class::Down)]
fn class_is_read_from_code_and_status(
    #[case] verb: Verb,
    #[case] status: u16,
    #[case] code: &str,
    #[case] class: Class,
) {
    assert_eq!(classify(verb, status, code), class);
}

const OF_EC2: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Response><Errors><Error><Code>IncorrectState</Code>\
    <Message>not now</Message></Error></Errors><RequestID>r-1</RequestID></Response>";
const OF_STS: &str = "<ErrorResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><Error><Type>Sender</Type>\
    <Code>IncorrectState</Code><Message>not now</Message></Error><RequestId>r-1</RequestId></ErrorResponse>";

#[test]
fn error_reads_alike_from_every_service() {
    let of = |body: &str| AwsError::from_answer(Verb::Read, 400, body.as_bytes());
    let error = of(OF_EC2);
    assert_eq!((error.class, error.code.as_str()), (Class::Busy, "IncorrectState"));
    assert_eq!(error.text, "request r-1: not now");
    assert_eq!(of(OF_STS), error);
    let batch =
        of("<InvalidChangeBatch><Messages><Message>a</Message><Message>b</Message></Messages></InvalidChangeBatch>");
    assert_eq!(
        (batch.code.as_str(), batch.text.as_str()),
        ("InvalidChangeBatch", "a b")
    );
    assert!(batch.is_outdated());
}

#[rstest]
#[case::html("<html><body>Bad Gateway</body></html>")]
#[case::nothing("")]
#[case::cut("<Response><Errors><Error><Code>AccessDenied</Co")]
#[case::no_code("<Response><Errors><Error><Code> </Code></Error></Errors></Response>")]
fn body_without_a_code_is_an_error_by_its_status(#[case] body: &str) {
    let error = AwsError::from_answer(Verb::Read, 502, body.as_bytes());
    assert_eq!((error.code.as_str(), error.class), ("Http502", Class::Down));
}

#[test]
fn foreign_text_is_cut_and_kept_out_of_the_message() {
    let body = format!(
        "<ErrorResponse><Error><Code>AccessDenied</Code><Message>user arn:aws:iam::1:role/secret\nfake {}</Message>\
        </Error></ErrorResponse>",
        "x".repeat(999)
    );
    let error = AwsError::from_answer(Verb::Read, 403, body.as_bytes());
    assert!(!error.text.contains('\n') && error.text.chars().count() == MAX_TEXT);
    assert_eq!(error.to_string(), "AccessDenied: check the policies of the identity");
}

#[test]
fn denied_action_is_named_as_policies_name_it() {
    let denied = |code| AwsError::of_item(Verb::Write, code, "").of_action(Action::DescribeLoadBalancers);
    assert_eq!(
        denied("AccessDenied").to_string(),
        "AccessDenied: check the policies of the identity for elasticloadbalancing:DescribeLoadBalancers"
    );
    let other = denied("ExpiredToken").to_string();
    assert!(!other.contains("Describe"), "{other}");
}

#[rstest]
#[case("ExpiredToken", "AWS does not accept the session of the identity")]
#[case(
    "SignatureDoesNotMatch",
    "AWS does not accept the signature; check the clock and the key"
)]
#[case("VpcEndpointLimitExceeded", "a quota of the account is reached")]
#[case("DependencyViolation", "AWS is still changing it or what it depends on")]
fn message_tells_what_a_person_can_do(#[case] code: &str, #[case] advice: &str) {
    let error = AwsError::of_item(Verb::Read, code, "");
    assert_eq!(error.to_string(), format!("{code}: {advice}"));
}

#[test]
fn waits_grow_up_to_a_limit() {
    let waits = |class| [1, 2, 3, 9].map(|failures| AwsError::own(class, "X").delay(failures).as_secs());
    assert_eq!(waits(Class::Busy), [3, 6, 12, 30]);
    assert_eq!(waits(Class::Throttled), [30, 60, 120, 300]);
    assert_eq!(waits(Class::Denied), [60, 120, 240, 600]);
    assert_eq!(waits(Class::Down), [5, 10, 20, 120]);
    let denied = AwsError::of_item(Verb::Read, "UnauthorizedOperation", "");
    for error in [AwsError::own(Class::Throttled, "X"), denied] {
        let held = error.with_retry_after(Duration::from_secs(7));
        assert_eq!((held.delay(1).as_secs(), held.delay(u32::MAX).as_secs()), (7, 7));
    }
}

#[rstest]
#[case::held_back(AwsError::own(Class::Throttled, WAITING_FOR_THROTTLING), true)]
#[case::throttled_by_aws(AwsError::of_item(Verb::Read, "Throttling", ""), false)]
#[case::defect(AwsError::own(Class::Throttled, CALL_BUDGET_EXHAUSTED), false)]
#[case::no_answer(AwsError::own(Class::Down, "Timeout"), false)]
fn only_what_waits_for_aws_counts_as_unsent(#[case] error: AwsError, #[case] unsent: bool) {
    assert_eq!(error.is_unsent(), unsent);
}
