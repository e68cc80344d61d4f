//! The one table that maps ARM's answers to classes. Uses status and code, never message text.

use std::fmt;
use std::time::Duration;

use hyperlink_engine::failure::{CALL_BUDGET_EXHAUSTED, Class, Failure, NOT_READ_YET};
use hyperlink_engine::text::clean;
use serde_json::Value;

/// An ARM error. `Display` shows its code and advice, which are stable; Azure's own text is for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArmError {
    /// What the error means for the caller.
    pub class: Class,
    /// The HTTP status; 0 when no answer came, 200 for a failed operation.
    pub status: u16,
    /// ARM's code: the innermost one, which says more than its wrapper.
    pub code: String,
    /// Azure's own sentence, escaped and cut; for the log only.
    pub text: String,
    /// How long Azure asks to wait.
    pub retry_after: Option<Duration>,
    /// Of a read: whether reads have failed for so long that nothing is known of the resource any more.
    pub lasting: bool,
    /// Whether `retry_after` was calculated by this process, and so is exact, and not asked for by Azure.
    pub exact: bool,
}

/// The longest wait that Azure may ask for after a refusal that is not about throttling. In that case Azure counts no
/// requests, and the cause is usually gone long before.
///
/// Rule: A3 in `docs/compatibility.md`.
const LONGEST_ASKED: Duration = Duration::from_secs(600);
/// The longest part of Azure's text that is kept, in characters.
const MAX_TEXT: usize = 300;
/// The longest code that is kept, in characters.
const MAX_CODE: usize = 80;

/// Codes that mean more than their status does: (code, class). Compared without case.
///
/// Sources: <https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/common-deployment-errors>,
/// <https://learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling> and the
/// service's own answers.
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
    // A Private Link Service that was just created is not known everywhere at once.
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
    // An inner code has the reason, so the innermost known one decides.
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

/// The code of a call that was not sent because earlier ones to its subscription have not come back.
pub const TOO_MANY_UNANSWERED: &str = "TooManyUnanswered";

/// The codes of a list or an answer that is longer, in rows, bytes or time, than Hyperlink reads.
const OWN_BOUNDS: [&str; 3] = ["ListTooLong", "ListTooSlow", "AnswerTooLarge"];

/// The code for a credential with which no token can be obtained.
const TOKEN_REFUSED: &str = "TokenRefused";
/// How long a call whose credential was refused a token waits for the next try. Nothing was sent, and no event reports
/// a new token file or a renewed secret, so it is short.
const TOKEN_WAIT: Duration = Duration::from_secs(30);

/// Why a request got no usable answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoAnswer {
    /// The request was not sent: the address is not on the ARM host.
    ForeignHost,
    /// The request was not sent: this process only reads.
    ReadOnly,
    /// The answer is too long to be read.
    TooLarge,
    /// No answer came in time.
    Timeout,
    /// The connection failed.
    Connection,
    /// The request was not sent: the token endpoint does not answer.
    TokenEndpointDown,
    /// The request was not sent: the credential gets no token.
    TokenRefused,
}

impl ArmError {
    /// Makes an error of an answer that is not a success. Takes wrapped and unwrapped bodies, and bodies that are not
    /// JSON.
    pub fn from_answer(status: u16, body: &[u8], retry_after: Option<Duration>) -> Self {
        let body: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
        Self::from_json(status, &body, retry_after)
    }

    /// Makes an error of the JSON of an error answer or of a failed operation.
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
            .filter(|code| !clean(code, MAX_CODE).is_empty())
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
            lasting: false,
            exact: false,
        }
    }

    /// Makes an error of a request that got no usable answer; `text` gives details for the log.
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
            lasting: false,
            exact: true,
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
            lasting: false,
            exact: true,
        }
    }

    /// The error that Azure gives for a missing resource, for one that is missing in Azure's answers about other
    /// resources.
    pub fn missing() -> Self {
        const CODE: &str = "ResourceNotFound";
        Self::own(Class::Gone, CODE)
    }

    /// How long to wait before the next try, after `failures` of them in a row (1 for the first).
    ///
    /// An exact `retry_after` is used as it is. Else the wait is the back-off, or what Azure asks for if that is
    /// longer. Unless Azure throttles, at most ten minutes of what it asks for count.
    pub fn delay(&self, failures: u32) -> Duration {
        let (first, most) = match self.class {
            Class::Gone | Class::Busy => (3, 30),
            // Azure counts requests, so it knows best when it will take the next one.
            Class::Throttled if self.retry_after.is_some() => (1, 300),
            Class::Throttled => (30, 300),
            Class::Denied => (60, 600),
            Class::Invalid => (30, 300),
            Class::Down => (5, 120),
        };
        let doubled = 1_u64
            .checked_shl(failures.saturating_sub(1))
            .map_or(most, |factor| factor.saturating_mul(first).min(most));
        let own = Duration::from_secs(doubled);
        match self.retry_after {
            Some(exactly) if self.exact => exactly.max(Duration::from_secs(1)),
            asked if self.class == Class::Throttled => own.max(asked.unwrap_or_default()),
            asked => own.max(asked.unwrap_or_default().min(LONGEST_ASKED)),
        }
    }

    /// One short, stable sentence on what a person can do.
    pub fn advice(&self) -> &'static str {
        match self.class {
            Class::Gone => "it does not exist",
            Class::Busy | Class::Down if self.code == TOO_MANY_UNANSWERED => "Azure has not answered earlier requests",
            Class::Busy => "another operation is under way",
            Class::Throttled if self.code == CALL_BUDGET_EXHAUSTED => "called too often, a defect of Hyperlink",
            Class::Throttled if self.code == NOT_READ_YET => "it is read later",
            Class::Throttled => "Azure's request limit is reached",
            Class::Denied if self.code.eq_ignore_ascii_case("ScopeLocked") => "a lock forbids it",
            Class::Denied if self.code.eq_ignore_ascii_case("ReadOnlyDisabledSubscription") => {
                "the subscription is disabled"
            }
            Class::Denied if self.code == TOKEN_REFUSED => "the identity gets no token; /readyz says why",
            Class::Denied if self.status == 401 => "Azure does not accept the token of the identity",
            Class::Denied => "check the role assignments of the identity",
            Class::Invalid | Class::Down if self.status == 0 && OWN_BOUNDS.contains(&self.code.as_str()) => {
                "it is longer than Hyperlink reads"
            }
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

impl Failure for ArmError {
    fn own(class: Class, code: &'static str) -> Self {
        Self::own(class, code)
    }

    fn is_unsent(&self) -> bool {
        self.class == Class::Throttled && self.status == 0 && self.code != CALL_BUDGET_EXHAUSTED
    }

    /// All callers share the call budget of a resource.
    fn is_of_caller(&self) -> bool {
        false
    }

    fn is_lasting(&self) -> bool {
        self.lasting
    }

    fn is_lock(&self) -> bool {
        self.code.eq_ignore_ascii_case("ScopeLocked")
    }

    fn is_outdated(&self) -> bool {
        self.status == 412
    }

    fn missing() -> Self {
        Self::missing()
    }

    fn class(&self) -> Class {
        self.class
    }

    fn status(&self) -> u16 {
        self.status
    }

    fn code(&self) -> &str {
        &self.code
    }

    fn text(&self) -> &str {
        &self.text
    }

    fn delay(&self, failures: u32) -> Duration {
        self.delay(failures)
    }

    fn with_retry_after(self, wait: Duration) -> Self {
        Self {
            retry_after: Some(wait),
            exact: true,
            ..self
        }
    }

    fn with_lasting(self, lasting: bool) -> Self {
        Self { lasting, ..self }
    }
}

#[cfg(test)]
mod tests;
