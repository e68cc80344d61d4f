use rstest::rstest;
use serde_json::json;

use super::*;
use crate::arm::error::ArmError;
use hyperlink_engine::failure::Class;

#[rstest]
#[case::resource_is_not_there(404, &["ResourceNotFound"], Class::Gone)]
#[case::group_is_not_there(404, &["ResourceGroupNotFound"], Class::Gone)]
#[case::zone_of_a_record_is_not_there(404, &["ParentResourceNotFound"], Class::Gone)]
#[case::provider_answers_not_found(404, &["NotFound"], Class::Gone)]
#[case::reference_to_a_missing_resource(400, &["InvalidResourceReference", "NotFound"], Class::Invalid)]
#[case::zone_still_has_links(409, &["CannotDeleteResource"], Class::Busy)]
#[case::etag_of_a_record_is_old(412, &["PreconditionFailed"], Class::Busy)]
#[case::etag_of_a_zone_is_old(200, &["PreconditionFailed"], Class::Busy)]
#[case::zones_of_one_name_on_one_vnet(200, &["BadRequest"], Class::Invalid)]
#[case::other_is_updating(429, &["RetryableError", "ReferencedResourceNotProvisioned"], Class::Busy)]
#[case::other_is_updating_old_form(400, &["ReferencedResourceNotProvisioned"], Class::Busy)]
#[case::target_is_locked_by_an_operation(429, &["RetryableErrorDueToAnotherOperation"], Class::Busy)]
#[case::subscription_is_disabled(409, &["ReadOnlyDisabledSubscription"], Class::Denied)]
#[case::second_write_into_a_vnet(409, &["AnotherOperationInProgress"], Class::Busy)]
#[case::newer_write_superseded_this_one(200, &["Canceled", "CanceledAndSupersededDueToAnotherOperation"], Class::Busy)]
#[case::superseded_with_a_flat_code(200, &["CanceledAndSupersededDueToAnotherOperation"], Class::Busy)]
#[case::link_service_has_connections(400, &["PrivateLinkServiceWithPrivateEndpointConnectionsCannotBeDeleted"], Class::Busy)]
#[case::load_balancer_has_a_link_service(400, &["CannotDeleteLoadBalancerWithPrivateLinkService"], Class::Busy)]
#[case::nat_subnet_has_policies(400, &["PrivateLinkServiceCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled"], Class::Invalid)]
#[case::guest_subnet_has_policies(400, &["PrivateEndpointCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled"], Class::Invalid)]
#[case::policies_on_an_endpoint_subnet(400, &["PrivateEndpointNetworkPoliciesCannotBeEnabledOnPrivateEndpointSubnet"], Class::Invalid)]
#[case::guest_subnet_is_delegated(400, &["PrivateEndpointCreationNotAllowedAsSubnetIsDelegated"], Class::Invalid)]
#[case::alias_is_too_new(400, &["InvalidPrivateLinkServiceId"], Class::Busy)]
#[case::subnet_is_full(400, &["SubnetIsFull"], Class::Invalid)]
#[case::subnet_is_in_use(400, &["InUseSubnetCannotBeDeleted"], Class::Busy)]
#[case::subnet_is_in_use_found_late(200, &["InUseSubnetCannotBeDeleted"], Class::Busy)]
#[case::prefix_overlaps(400, &["NetcfgSubnetRangesOverlap"], Class::Invalid)]
#[case::prefix_is_malformed(400, &["InvalidAddressPrefixFormat"], Class::Invalid)]
#[case::connection_is_decided_already(400, &["PrivateEndpointConnectionStatusNotPending"], Class::Invalid)]
#[case::decision_cannot_be_taken_back(400, &["OperationNotAllowed"], Class::Invalid)]
#[case::role_is_missing(403, &["AuthorizationFailed"], Class::Denied)]
#[case::role_on_a_linked_scope_is_missing(403, &["LinkedAuthorizationFailed"], Class::Denied)]
#[case::provider_is_not_registered(409, &["MissingSubscriptionRegistration"], Class::Invalid)]
#[case::provider_is_not_registered_sibling(409, &["SubscriptionNotRegistered"], Class::Invalid)]
#[case::budget_is_used_up(429, &["SubscriptionRequestsThrottled"], Class::Throttled)]
#[case::provider_was_silent(504, &["GatewayTimeout"], Class::Down)]
#[case::token_is_refused(401, &["ExpiredAuthenticationToken"], Class::Denied)]
#[case::scope_is_locked(409, &["ScopeLocked"], Class::Denied)]
#[case::unknown_code_of_429(429, &["Whatever"], Class::Throttled)]
#[case::unknown_code_of_409(409, &["Whatever"], Class::Busy)]
#[case::unknown_code_of_400(400, &["Whatever"], Class::Invalid)]
#[case::unknown_code_of_500(500, &[], Class::Down)]
#[case::page_of_a_proxy_instead_of_json(200, &[], Class::Invalid)]
#[case::redirect(302, &[], Class::Invalid)]
fn class_is_read_from_status_and_code(#[case] status: u16, #[case] codes: &[&str], #[case] class: Class) {
    assert_eq!(classify(status, codes), class);
}

#[test]
fn wrapped_and_unwrapped_bodies_read_alike() {
    let unwrapped = br#"{"code":"PreconditionFailed","message":"x"}"#;
    let wrapped = br#"{"error":{"code":"PreconditionFailed","message":"x"}}"#;
    assert_eq!(
        ArmError::from_answer(412, unwrapped, None),
        ArmError::from_answer(412, wrapped, None)
    );
}

#[test]
fn detail_has_the_reason() {
    let body = json!({"error": {"code": "RetryableError", "message": "A retryable error occurred.",
        "details": [{"code": "ReferencedResourceNotProvisioned", "message": "busy"}]}});
    let error = ArmError::from_json(429, &body, None);
    assert_eq!(
        (error.class, error.code.as_str()),
        (Class::Busy, "ReferencedResourceNotProvisioned")
    );
}

#[test]
fn foreign_text_is_cut_and_kept_out_of_the_message() {
    let body = json!({"error": {"code": "AuthorizationFailed", "message": format!("client 'secret-id'\nfake line {}", "x".repeat(999))}});
    let error = ArmError::from_json(403, &body, None);
    assert!(!error.text.contains('\n') && error.text.chars().count() == MAX_TEXT);
    assert_eq!(
        error.to_string(),
        "AuthorizationFailed: check the role assignments of the identity"
    );
}

#[test]
fn token_that_azure_refuses_is_not_a_missing_role() {
    let error = ArmError::from_answer(401, br#"{"error":{"code":"ExpiredAuthenticationToken"}}"#, None);
    let message = "ExpiredAuthenticationToken: Azure does not accept the token of the identity";
    assert_eq!(error.to_string(), message);
}

#[rstest]
#[case::of_rows(ArmError::own(Class::Invalid, "ListTooLong"))]
#[case::of_time(ArmError::own(Class::Down, "ListTooSlow"))]
#[case::of_bytes(ArmError::unanswered(NoAnswer::TooLarge, ""))]
fn bound_of_our_own_is_no_refusal_of_azures(#[case] error: ArmError) {
    assert_eq!(error.advice(), "it is longer than Hyperlink reads");
}

#[test]
fn body_that_is_no_json_is_an_error_by_its_status() {
    assert_eq!(ArmError::from_answer(502, b"<html>", None).code, "Http502");
}

#[rstest]
#[case::empty(json!([""]), "Http400")]
#[case::blank(json!([" \n"]), "Http400")]
#[case::control_characters(json!(["\u{7}"]), "Http400")]
#[case::empty_below_one_with_a_code(json!(["BadRequest", ""]), "BadRequest")]
fn code_without_a_letter_is_ignored(#[case] codes: serde_json::Value, #[case] expected: &str) {
    let details: Vec<_> = codes
        .as_array()
        .unwrap()
        .iter()
        .map(|code| json!({"code": code}))
        .collect();
    assert_eq!(
        ArmError::from_json(400, &json!({"details": details}), None).code,
        expected
    );
}

#[test]
fn waits_grow_and_never_undercut_what_azure_asks() {
    let busy = ArmError::own(Class::Busy, "X");
    assert_eq!(
        (1..6).map(|n| busy.delay(n).as_secs()).collect::<Vec<_>>(),
        [3, 6, 12, 24, 30]
    );
    let asked = ArmError {
        retry_after: Some(Duration::from_secs(90)),
        ..ArmError::own(Class::Throttled, "X")
    };
    assert_eq!(asked.delay(1).as_secs(), 90);
    assert_eq!(busy.delay(u32::MAX).as_secs(), 30);
    let hasty = |class| ArmError {
        exact: false,
        retry_after: Some(Duration::from_secs(1)),
        ..ArmError::own(class, "X")
    };
    let waits = |class| [1, 2, 5].map(|n| hasty(class).delay(n).as_secs());
    assert_eq!((waits(Class::Busy), waits(Class::Throttled)), ([3, 6, 30], [1, 2, 16]));
    let day = |class| ArmError {
        exact: false,
        retry_after: Some(Duration::from_secs(86_400)),
        ..ArmError::own(class, "X")
    };
    let waits = [Class::Busy, Class::Down, Class::Denied, Class::Throttled].map(|class| day(class).delay(1).as_secs());
    assert_eq!(
        waits,
        [600, 600, 600, 86_400],
        "nobody counts but where it is throttling"
    );
    let no_token = ArmError::unanswered(NoAnswer::TokenRefused, "x");
    assert_eq!((no_token.delay(1), no_token.delay(9)), (TOKEN_WAIT, TOKEN_WAIT));
}
