//! The one table that maps AWS's errors to classes. Uses codes, and the status where there is no known code; never
//! message text.

mod document;

use std::fmt;
use std::time::Duration;

use hyperlink_engine::failure::{CALL_BUDGET_EXHAUSTED, Class, Failure, NOT_READ_YET};
use hyperlink_engine::text::clean;

use self::document::ErrorBody;
use crate::api::action::{Action, Verb};
use crate::wire::xml::Element;

/// An AWS error. `Display` shows its code and advice, which are stable; AWS's own text is for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwsError {
    /// What the error means for the caller.
    pub class: Class,
    /// The HTTP status; 0 when no answer came, 200 for an item of an answer.
    pub status: u16,
    /// AWS's code.
    pub code: String,
    /// The action that AWS refused; none of what no answer says.
    pub action: Option<Action>,
    /// AWS's own sentence and its id of the request, escaped and cut; for the log only.
    pub text: String,
    /// How long to wait: how long the action is held back.
    pub retry_after: Option<Duration>,
    /// Of a read: whether reads have failed for so long that nothing is known of the resource any more.
    pub lasting: bool,
    /// Whether `retry_after` was calculated by this process, and so is exact.
    pub exact: bool,
}

/// What is to be done about an action that the policies do not allow.
const POLICIES: &str = "check the policies of the identity";

/// The longest part of AWS's text that is kept, in characters.
const MAX_TEXT: usize = 300;
/// The longest code that is kept, in characters.
const MAX_CODE: usize = 80;

/// The code of a call that was not sent because AWS throttles its action, or would.
pub const WAITING_FOR_THROTTLING: &str = "WaitingForThrottling";

/// The code of a call that was not sent because too many of its action are not answered.
pub const TOO_MANY_UNANSWERED: &str = "TooManyUnanswered";

/// The code of an answer that is not the one of the action.
pub const UNEXPECTED_ANSWER: &str = "UnexpectedAnswer";

/// The code of a call for which there is no session.
pub const NO_SESSION: &str = "NoSession";

/// The code of a call to an account in which the identity has no role.
pub const NO_ROLE: &str = "NoRoleForAccount";

/// The code of a call to another region than that of the process.
pub const OTHER_REGION: &str = "OtherRegion";

/// The codes of a list or an answer that is longer than Hyperlink reads.
const OWN_BOUNDS: [&str; 2] = ["ListTooLong", "AnswerTooLarge"];

/// Codes and their classes. Compared without case.
///
/// Sources: <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html>,
/// <https://docs.aws.amazon.com/Route53/latest/APIReference/CommonErrors.html>,
/// <https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html> and the services' answers.
const CODES: &[(&str, Class)] = &[
    ("NoSuchHostedZone", Class::Gone),
    ("LoadBalancerNotFound", Class::Gone),
    ("DependencyViolation", Class::Busy),
    ("PriorRequestNotComplete", Class::Busy),
    ("ExistingVpcEndpointConnections", Class::Busy),
    ("IncorrectState", Class::Busy),
    ("OperationInProgress", Class::Busy),
    ("IDPCommunicationError", Class::Busy),
    ("RequestLimitExceeded", Class::Throttled),
    ("Throttling", Class::Throttled),
    ("ThrottlingException", Class::Throttled),
    ("TooManyRequestsException", Class::Throttled),
    ("UnauthorizedOperation", Class::Denied),
    ("AccessDenied", Class::Denied),
    ("AccessDeniedException", Class::Denied),
    ("AuthFailure", Class::Denied),
    ("InvalidClientTokenId", Class::Denied),
    ("UnrecognizedClientException", Class::Denied),
    ("SignatureDoesNotMatch", Class::Denied),
    ("IncompleteSignature", Class::Denied),
    ("MissingAuthenticationToken", Class::Denied),
    ("InvalidIdentityToken", Class::Denied),
    ("IDPRejectedClaim", Class::Denied),
    ("OptInRequired", Class::Denied),
    ("Blocked", Class::Denied),
    ("PendingVerification", Class::Denied),
    ("ExpiredToken", Class::Denied),
    ("ExpiredTokenException", Class::Denied),
    ("RequestExpired", Class::Denied),
    ("RequestTimeTooSkewed", Class::Denied),
    ("RequestInTheFuture", Class::Denied),
    ("DuplicateSubnetsInSameZone", Class::Invalid),
    ("InvalidChangeBatch", Class::Invalid),
    ("MissingParameter", Class::Invalid),
    ("InternalError", Class::Down),
    ("InternalFailure", Class::Down),
    ("Unavailable", Class::Down),
    ("ServiceUnavailable", Class::Down),
];

/// Codes that a session gets that has expired or is not known any more.
const REFUSED_SESSION: [&str; 6] = [
    "ExpiredToken",
    "ExpiredTokenException",
    "RequestExpired",
    "InvalidClientTokenId",
    "UnrecognizedClientException",
    "AuthFailure",
];

/// Codes that a request can get whose time AWS does not accept.
const REFUSED_TIME: [&str; 5] = [
    "RequestTimeTooSkewed",
    "RequestExpired",
    "RequestInTheFuture",
    "SignatureDoesNotMatch",
    "AuthFailure",
];

/// The class of an error of an action that does this.
pub fn classify(verb: Verb, status: u16, code: &str) -> Class {
    if let Some((_, class)) = CODES.iter().find(|(known, _)| known.eq_ignore_ascii_case(code)) {
        return *class;
    }
    if code.ends_with(".NotFound") || (verb == Verb::Delete && code == "InvalidServiceName") {
        return Class::Gone;
    }
    // Quotas: with more of them only a person can help.
    if code.ends_with("LimitExceeded") {
        return Class::Invalid;
    }
    match status {
        429 => Class::Throttled,
        401 | 403 => Class::Denied,
        0 | 408 | 500.. => Class::Down,
        _ => Class::Invalid,
    }
}

impl AwsError {
    /// Makes an error of an answer that is not a success, in the form of any of the services, or in none.
    pub(crate) fn from_answer(verb: Verb, status: u16, body: &[u8]) -> Self {
        let root = Element::parse(body).ok();
        let found = root.as_ref().and_then(ErrorBody::find);
        let found = found.unwrap_or_default();
        Self::new(verb, status, &found.code, &found.text)
    }

    /// The error that an answer holds in place of a result, though its status is that of a success.
    pub(crate) fn in_answer(verb: Verb, status: u16, root: &Element) -> Option<Self> {
        let found = ErrorBody::find(root)?;
        Some(Self::new(verb, status, &found.code, &found.text))
    }

    /// Makes an error of one item of an answer: the others may have succeeded.
    pub(crate) fn of_item(verb: Verb, code: &str, text: &str) -> Self {
        Self::new(verb, 200, code, text)
    }

    fn new(verb: Verb, status: u16, code: &str, text: &str) -> Self {
        let code = clean(code, MAX_CODE);
        Self {
            class: classify(verb, status, &code),
            status,
            code: if code.is_empty() { format!("Http{status}") } else { code },
            action: None,
            text: clean(text, MAX_TEXT),
            retry_after: None,
            lasting: false,
            exact: false,
        }
    }

    /// An error that this process found itself.
    pub fn own(class: Class, code: &'static str) -> Self {
        Self {
            class,
            status: 0,
            code: code.to_owned(),
            action: None,
            text: String::new(),
            retry_after: None,
            lasting: false,
            exact: true,
        }
    }

    /// This error as the answer to an action.
    pub(crate) fn of_action(self, action: Action) -> Self {
        let action = Some(action);
        Self { action, ..self }
    }

    /// This error with a text for the log.
    pub(crate) fn with_text(self, text: &str) -> Self {
        let text = clean(text, MAX_TEXT);
        Self { text, ..self }
    }

    /// The error for a resource that is missing in AWS's answers about others.
    pub fn missing() -> Self {
        Self::own(Class::Gone, "NotFound")
    }

    /// Whether AWS takes a client token no more: it was used with other parameters, or what it made is gone.
    pub fn refuses_token(&self) -> bool {
        self.code == "IdempotentParameterMismatch"
    }

    /// Whether AWS refuses a second subnet in one zone.
    pub(crate) fn refuses_two_of_a_zone(&self) -> bool {
        self.code == "DuplicateSubnetsInSameZone"
    }

    /// Whether AWS may refuse an endpoint because of one of its subnets: another one has its zone, the endpoint service
    /// lacks the zone, or it is not known. The second code stands for much else.
    pub(crate) fn may_refuse_a_subnet(&self) -> bool {
        let codes = [
            "DuplicateSubnetsInSameZone",
            "InvalidParameter",
            "InvalidSubnetID.NotFound",
        ];
        codes.iter().any(|code| code.eq_ignore_ascii_case(&self.code))
    }

    /// Whether AWS says that the session has expired or is not known.
    pub(crate) fn refuses_session(&self) -> bool {
        REFUSED_SESSION.iter().any(|code| code.eq_ignore_ascii_case(&self.code))
    }

    /// Whether AWS answered that policies do not allow the action, and not that it knows no such session.
    pub fn is_of_policies(&self) -> bool {
        self.class == Class::Denied && self.status != 0 && !self.refuses_session() && !self.refuses_time()
    }

    /// Whether AWS may not have accepted the time of the request.
    pub(crate) fn refuses_time(&self) -> bool {
        REFUSED_TIME.iter().any(|code| code.eq_ignore_ascii_case(&self.code))
    }

    /// How long to wait before the next try, after `failures` of them in a row (1 for the first). An exact
    /// `retry_after` is used as it is.
    pub fn delay(&self, failures: u32) -> Duration {
        if let Some(exactly) = self.retry_after.filter(|_| self.exact) {
            return exactly.max(Duration::from_secs(1));
        }
        let (first, most) = match self.class {
            // A network interface stays for minutes after its endpoint.
            Class::Busy if self.code == "DependencyViolation" => (10, 30),
            Class::Gone | Class::Busy => (3, 30),
            Class::Throttled | Class::Invalid => (30, 300),
            Class::Denied => (60, 600),
            Class::Down => (5, 120),
        };
        let doubled = 1_u64
            .checked_shl(failures.saturating_sub(1))
            .map_or(most, |factor| factor.saturating_mul(first).min(most));
        Duration::from_secs(doubled).max(self.retry_after.unwrap_or_default())
    }

    /// One short, stable sentence on what a person can do.
    pub fn advice(&self) -> &'static str {
        match self.class {
            Class::Gone => "it does not exist",
            Class::Busy | Class::Down if self.code == TOO_MANY_UNANSWERED => "AWS has not answered earlier requests",
            Class::Busy => "AWS is still changing it or what it depends on",
            Class::Throttled if self.code == CALL_BUDGET_EXHAUSTED => {
                "called too often: somebody changes it without end, or a defect of Hyperlink"
            }
            Class::Throttled if self.code == NOT_READ_YET => "it is read later",
            Class::Throttled => "AWS's request limit is reached",
            Class::Denied if self.code == NO_SESSION => "the identity gets no session; /readyz says why",
            Class::Denied if [NO_ROLE, OTHER_REGION].contains(&self.code.as_str()) => {
                "not called: the identity has no role in that account, or serves another region"
            }
            Class::Denied if self.refuses_session() => "AWS does not accept the session of the identity",
            Class::Denied if self.refuses_time() => "AWS does not accept the signature; check the clock and the key",
            Class::Denied if self.code == "OptInRequired" => "enable the region for the account",
            Class::Denied => POLICIES,
            Class::Invalid if self.code.ends_with("LimitExceeded") => "a quota of the account is reached",
            Class::Invalid | Class::Down if self.status == 0 && OWN_BOUNDS.contains(&self.code.as_str()) => {
                "it is longer than Hyperlink reads"
            }
            Class::Invalid => "AWS does not accept the request",
            Class::Down => "AWS gives no usable answer",
        }
    }
}

impl fmt::Display for AwsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.action.filter(|_| self.advice() == POLICIES) {
            Some(action) => {
                let (service, action) = (action.service().label(), action.name());
                write!(
                    f,
                    "{}: check the policies of the identity for {service}:{action}",
                    self.code
                )
            }
            None => write!(f, "{}: {}", self.code, self.advice()),
        }
    }
}

impl std::error::Error for AwsError {}

impl Failure for AwsError {
    fn own(class: Class, code: &'static str) -> Self {
        Self::own(class, code)
    }

    fn is_unsent(&self) -> bool {
        self.class == Class::Throttled && self.status == 0 && self.code != CALL_BUDGET_EXHAUSTED
    }

    fn is_of_caller(&self) -> bool {
        self.code == CALL_BUDGET_EXHAUSTED
    }

    fn is_lasting(&self) -> bool {
        self.lasting
    }

    /// AWS has no locks on resources of these kinds.
    fn is_lock(&self) -> bool {
        false
    }

    /// Writes have no precondition, but a batch of changes to records holds only for the records as they were read.
    fn is_outdated(&self) -> bool {
        self.code == "InvalidChangeBatch"
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
