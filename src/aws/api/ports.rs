//! What the AWS layer needs from outside: where calls are counted.

use std::time::Duration;

use hyperlink_engine::failure::Class;

use crate::api::action::Action;
use crate::kinds::Kind;

/// One finished call, as the counters get it. Holds no id and no name, so that labels stay few.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObservedCall {
    /// What was called.
    pub action: Action,
    /// The HTTP status; 0 when no answer came.
    pub status: u16,
    /// The class of the error; none for success.
    pub class: Option<Class>,
    /// The time from sending to the end of the body.
    pub took: Duration,
}

/// Where calls are counted.
pub trait Counters: Send + Sync {
    /// Counts a call that has ended, also one that its caller gave up.
    fn call(&self, observed: ObservedCall);
    /// Counts a call that was not sent, because AWS throttles its action, or would.
    fn held_back(&self, action: Action);
    /// Counts a call that was not sent because its resource had no call budget left.
    fn call_budget_exhausted(&self, kind: Kind);
}
