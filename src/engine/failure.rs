//! Why a call did not succeed, as far as the engine has to know.

use std::fmt::{Debug, Display};
use std::time::Duration;

/// The code of an error in place of a read that comes later.
pub const NOT_READ_YET: &str = "NotReadYet";

/// The code of the error for a call that was not sent because its resource has no call budget left.
pub const CALL_BUDGET_EXHAUSTED: &str = "CallBudgetExhausted";

/// What an error means for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// The resource, or what it is in, does not exist.
    Gone,
    /// An operation on this or another resource stands in the way. It lasts seconds.
    Busy,
    /// A request budget is exhausted, for as long as the cloud says.
    Throttled,
    /// The cloud does not allow the request, or does not know the identity.
    Denied,
    /// The cloud does not accept this request as it is.
    Invalid,
    /// The cloud gave no usable answer.
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

    /// Whether the cloud only asks to wait, which is no failure.
    pub fn is_back_pressure(self) -> bool {
        matches!(self, Class::Throttled | Class::Busy)
    }

    /// Whether a later try may succeed though nobody does anything.
    pub fn is_transient(self) -> bool {
        self.is_back_pressure() || self == Class::Down
    }

    /// The value of the metric label.
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

/// A cloud's error. `Display` shows a person what it means; the cloud's own text is for the log.
pub trait Failure: Clone + Debug + Display + PartialEq + Send + Sync + 'static {
    /// An error that the engine found itself.
    fn own(class: Class, code: &'static str) -> Self;
    /// Whether the request was not sent, because it had to wait for a budget of the cloud's.
    fn is_unsent(&self) -> bool;
    /// Whether the request was not sent, because its caller has called too often. That shows nothing of the resource,
    /// and keeps no other caller from it.
    fn is_of_caller(&self) -> bool;
    /// Whether reads have failed for so long that nothing is known of the resource any more.
    fn is_lasting(&self) -> bool;
    /// Whether somebody has locked the resource, so that the cloud refuses the write.
    fn is_lock(&self) -> bool;
    /// Whether the cloud refuses a write because somebody else has written since the read.
    fn is_outdated(&self) -> bool;
    /// The error that the cloud gives for a missing resource.
    fn missing() -> Self;
    /// What the error means.
    fn class(&self) -> Class;
    /// The HTTP status; 0 when no answer came.
    fn status(&self) -> u16;
    /// The cloud's code.
    fn code(&self) -> &str;
    /// The cloud's own sentence; for the log only.
    fn text(&self) -> &str;
    /// How long to wait before the next try, after `failures` of them in a row (1 for the first).
    fn delay(&self, failures: u32) -> Duration;
    /// This error with another wait, which is exact.
    #[must_use]
    fn with_retry_after(self, wait: Duration) -> Self;
    /// This error of a read; `lasting`: reads have failed for so long that nothing is known of the resource any more.
    #[must_use]
    fn with_lasting(self, lasting: bool) -> Self;
}
