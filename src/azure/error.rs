//! The one table that turns ARM's answers into classes. Looks at status and code, never at message text.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

/// What an error means for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// The resource, its parent or its group does not exist.
    Gone,
    /// A neighbour is being changed; seconds.
    Busy,
    /// A request budget is used up; as long as Azure says.
    Throttled,
    /// Not allowed, or not known who we are.
    Denied,
    /// Azure will not accept this request as it is.
    Invalid,
    /// No usable answer.
    Down,
}

impl Class {
    /// Every class, for tables and labels.
    pub const ALL: [Class; 6] = [
        Class::Gone,
        Class::Busy,
        Class::Throttled,
        Class::Denied,
        Class::Invalid,
        Class::Down,
    ];

    /// The metric label.
    pub fn label(self) -> &'static str {
        match self {
            Class::Gone => "gone",
            Class::Busy => "busy",
            Class::Throttled => "throttled",
            Class::Denied => "denied",
            Class::Invalid => "invalid",
            Class::Down => "down",
        }
    }
}

/// An ARM error. Prints as its code alone, which is stable; Azure's own text is for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArmError {
    /// What it means for the caller.
    pub class: Class,
    /// The HTTP status; 0 when no answer came, 200 for a failed operation.
    pub status: u16,
    /// ARM's code, the innermost one that says more than its wrapper.
    pub code: String,
    /// Azure's own sentence, escaped and cut; for the log only.
    pub text: String,
    /// How long Azure asks to wait.
    pub retry_after: Option<Duration>,
}

/// The longest piece of Azure's text that is kept, in characters.
const MAX_TEXT: usize = 300;
/// The longest code that is kept, in characters.
const MAX_CODE: usize = 80;

/// Codes that mean more than their status does: (code, class). Compared without case.
///
/// Sources: <https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/common-deployment-errors>,
/// <https://learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling> and the service's own answers.
const CODES: &[(&str, Class)] = &[
    ("ResourceNotFound", Class::Gone),
    ("ResourceGroupNotFound", Class::Gone),
    ("ParentResourceNotFound", Class::Gone),
    ("RetryableError", Class::Busy),
    ("RetryableErrorDueToAnotherOperation", Class::Busy),
    ("ReferencedResourceNotProvisioned", Class::Busy),
    ("AnotherOperationInProgress", Class::Busy),
    ("Canceled", Class::Busy),
    ("CanceledAndSupersededDueToAnotherOperation", Class::Busy),
    ("CannotDeleteResource", Class::Busy),
    ("PreconditionFailed", Class::Busy),
    (
        "PrivateLinkServiceWithPrivateEndpointConnectionsCannotBeDeleted",
        Class::Busy,
    ),
    ("CannotDeleteLoadBalancerWithPrivateLinkService", Class::Busy),
    ("InUseSubnetCannotBeDeleted", Class::Busy),
    // A link service that was just made is not known everywhere at once.
    ("InvalidPrivateLinkServiceId", Class::Busy),
    ("SubscriptionRequestsThrottled", Class::Throttled),
    ("TooManyRequests", Class::Throttled),
    ("AuthorizationFailed", Class::Denied),
    ("LinkedAuthorizationFailed", Class::Denied),
    ("ScopeLocked", Class::Denied),
    ("SubscriptionNotFound", Class::Denied),
    ("ReadOnlyDisabledSubscription", Class::Denied),
    ("InvalidResourceReference", Class::Invalid),
    ("BadRequest", Class::Invalid),
    (
        "PrivateLinkServiceCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled",
        Class::Invalid,
    ),
    (
        "PrivateEndpointCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled",
        Class::Invalid,
    ),
    (
        "PrivateEndpointNetworkPoliciesCannotBeEnabledOnPrivateEndpointSubnet",
        Class::Invalid,
    ),
    ("PrivateEndpointCreationNotAllowedAsSubnetIsDelegated", Class::Invalid),
    ("SubnetIsFull", Class::Invalid),
    ("NetcfgSubnetRangesOverlap", Class::Invalid),
    ("NetcfgInvalidSubnet", Class::Invalid),
    ("InvalidAddressPrefixFormat", Class::Invalid),
    ("PrivateEndpointConnectionStatusNotPending", Class::Invalid),
    ("OperationNotAllowed", Class::Invalid),
    ("MissingSubscriptionRegistration", Class::Invalid),
    ("SubscriptionNotRegistered", Class::Invalid),
    ("GatewayTimeout", Class::Down),
];

/// The class of an answer with this status and these codes, outermost first.
pub fn classify(status: u16, codes: &[&str]) -> Class {
    // An inner code tells the reason, so the innermost known one decides.
    let known = codes
        .iter()
        .rev()
        .find_map(|code| CODES.iter().find(|(name, _)| name.eq_ignore_ascii_case(code)));
    match (known, status) {
        (Some((_, class)), _) => *class,
        (None, 404 | 410) => Class::Gone,
        (None, 401 | 403) => Class::Denied,
        (None, 429) => Class::Throttled,
        (None, 409 | 412 | 423) => Class::Busy,
        (None, 0 | 408 | 500..) => Class::Down,
        (None, _) => Class::Invalid,
    }
}

/// The code where no token can be had with the credential.
const TOKEN_REFUSED: &str = "TokenRefused";
/// Nothing was sent and nothing wakes anybody when a token file comes or a secret is renewed, so it is soon tried again.
const TOKEN_WAIT: Duration = Duration::from_secs(30);

/// Why a request got no usable answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoAnswer {
    /// It was not sent: the address is not on the ARM host.
    ForeignHost,
    /// It was not sent: this process only reads.
    ReadOnly,
    /// The answer is too long to be read.
    TooLarge,
    /// None came in time.
    Timeout,
    /// The connection failed.
    Connection,
    /// It was not sent: the token endpoint does not answer.
    TokenEndpointDown,
    /// It was not sent: we get no token with what we have.
    TokenRefused,
}

impl ArmError {
    /// From an answer that is not a success. Takes wrapped and unwrapped bodies, and bodies that are no JSON.
    pub fn from_answer(status: u16, body: &[u8], retry_after: Option<Duration>) -> Self {
        let body: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
        Self::from_json(status, &body, retry_after)
    }

    /// From the JSON of an error answer or of a failed operation.
    pub fn from_json(status: u16, body: &Value, retry_after: Option<Duration>) -> Self {
        let error = body.get("error").filter(|e| e.is_object()).unwrap_or(body);
        let details = error
            .get("details")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let layers: Vec<&Value> = std::iter::once(error).chain(details).collect();
        let codes: Vec<&str> = layers
            .iter()
            .filter_map(|layer| layer.get("code").and_then(Value::as_str))
            .collect();
        let text: Vec<&str> = layers
            .iter()
            .filter_map(|layer| layer.get("message").and_then(Value::as_str))
            .collect();
        Self {
            class: classify(status, &codes),
            status,
            code: codes
                .last()
                .map_or_else(|| format!("Http{status}"), |code| clean(code, MAX_CODE)),
            text: clean(&text.join(" "), MAX_TEXT),
            retry_after,
        }
    }

    /// From a request that got no usable answer; `text` says more.
    pub fn unanswered(why: NoAnswer, text: &str) -> Self {
        let (class, code) = match why {
            NoAnswer::ForeignHost => (Class::Invalid, "ForeignHost"),
            NoAnswer::ReadOnly => (Class::Invalid, "ReadOnly"),
            NoAnswer::TooLarge => (Class::Down, "AnswerTooLarge"),
            NoAnswer::Timeout => (Class::Down, "Timeout"),
            NoAnswer::Connection => (Class::Down, "ConnectionFailed"),
            NoAnswer::TokenEndpointDown => (Class::Down, "NoToken"),
            NoAnswer::TokenRefused => (Class::Denied, TOKEN_REFUSED),
        };
        Self {
            class,
            status: 0,
            code: code.to_owned(),
            text: clean(text, MAX_TEXT),
            retry_after: (why == NoAnswer::TokenRefused).then_some(TOKEN_WAIT),
        }
    }

    /// An error that this process found itself.
    pub fn own(class: Class, code: &'static str) -> Self {
        Self {
            class,
            status: 0,
            code: code.to_owned(),
            text: String::new(),
            retry_after: None,
        }
    }

    /// How long to wait before the next try, after `failures` of them in a row (1 for the first).
    ///
    /// What Azure asks for is never undercut.
    pub fn delay(&self, failures: u32) -> Duration {
        let (first, most) = match self.class {
            Class::Gone | Class::Busy => (3, 30),
            Class::Throttled => (30, 300),
            Class::Denied => (60, 600),
            Class::Invalid => (30, 300),
            Class::Down => (5, 120),
        };
        let doubled = 1_u64
            .checked_shl(failures.saturating_sub(1))
            .map_or(most, |factor| factor.saturating_mul(first).min(most));
        let own = Duration::from_secs(doubled);
        self.retry_after.map_or(own, |asked| asked.max(Duration::from_secs(1)))
    }

    /// One short sentence on what a person can do; stable.
    pub fn advice(&self) -> &'static str {
        match self.class {
            Class::Gone => "it does not exist",
            Class::Busy => "another operation is under way",
            Class::Throttled => "Azure's request limit is reached",
            Class::Denied if self.code.eq_ignore_ascii_case("ScopeLocked") => "a lock forbids it",
            Class::Denied if self.code.eq_ignore_ascii_case("ReadOnlyDisabledSubscription") => {
                "the subscription is disabled"
            }
            Class::Denied if self.code == TOKEN_REFUSED => "the identity gets no token; /readyz says why",
            Class::Denied => "check the role assignments of the identity",
            Class::Invalid => "Azure does not accept the request",
            Class::Down => "Azure gives no usable answer",
        }
    }
}

impl fmt::Display for ArmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.advice())
    }
}

impl std::error::Error for ArmError {}

/// Foreign text, made harmless for logs: no control characters, limited length.
fn clean(text: &str, most: usize) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(most)
        .collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::resource_is_not_there(404, &["ResourceNotFound"], Class::Gone)]
    #[case::group_is_not_there(404, &["ResourceGroupNotFound"], Class::Gone)]
    #[case::zone_of_a_record_is_not_there(404, &["ParentResourceNotFound"], Class::Gone)]
    #[case::provider_says_not_found(404, &["NotFound"], Class::Gone)]
    #[case::reference_to_a_missing_resource(400, &["InvalidResourceReference", "NotFound"], Class::Invalid)]
    #[case::zone_still_has_links(409, &["CannotDeleteResource"], Class::Busy)]
    #[case::etag_of_a_record_is_old(412, &["PreconditionFailed"], Class::Busy)]
    #[case::etag_of_a_zone_is_old(200, &["PreconditionFailed"], Class::Busy)]
    #[case::zones_of_one_name_on_one_vnet(200, &["BadRequest"], Class::Invalid)]
    #[case::neighbour_is_updating(429, &["RetryableError", "ReferencedResourceNotProvisioned"], Class::Busy)]
    #[case::neighbour_is_updating_old_form(400, &["ReferencedResourceNotProvisioned"], Class::Busy)]
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
    fn detail_tells_the_reason() {
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
    fn body_that_is_no_json_is_an_error_by_its_status() {
        assert_eq!(ArmError::from_answer(502, b"<html>", None).code, "Http502");
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
        let no_token = ArmError::unanswered(NoAnswer::TokenRefused, "x");
        assert_eq!((no_token.delay(1), no_token.delay(9)), (TOKEN_WAIT, TOKEN_WAIT));
    }
}
