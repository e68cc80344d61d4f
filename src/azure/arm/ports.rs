//! What the ARM layer needs from outside: where calls are counted.

use std::time::Duration;

use hyperlink_engine::failure::Class;

use crate::kinds::Kind;

/// What a call to ARM does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallVerb {
    /// Reads one resource.
    Get,
    /// Reads a page of a list.
    List,
    /// Creates or changes a resource.
    Put,
    /// Deletes a resource.
    Delete,
    /// Reads the state of a long-running operation.
    Poll,
}

impl CallVerb {
    /// Every verb, for tables and labels.
    pub const ALL: [Self; 5] = [Self::Get, Self::List, Self::Put, Self::Delete, Self::Poll];

    /// The value of the metric label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::List => "LIST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
            Self::Poll => "POLL",
        }
    }
}

/// One finished ARM call, as the counters get it. Holds no id and no name, so that labels stay few.
#[derive(Debug, Clone, Copy)]
pub struct ObservedCall {
    /// The kind of the resource that was addressed.
    pub kind: Kind,
    /// What the call does.
    pub verb: CallVerb,
    /// The HTTP status; 0 when no answer came.
    pub status: u16,
    /// The class of the error; none for success.
    pub class: Option<Class>,
    /// The time from sending to the end of the body.
    pub took: Duration,
}

/// Where calls and budgets are counted.
pub trait Counters: Send + Sync {
    /// Counts a call that has ended.
    fn call(&self, observed: ObservedCall);
    /// Notes what is left of a request budget by Azure's answer. `budget` is the header's name without the
    /// `x-ms-ratelimit-remaining-` prefix.
    fn budget(&self, budget: &'static str, remaining: u64);
    /// Counts a call that was not sent because its resource had no call budget left.
    fn call_budget_exhausted(&self, kind: Kind);
}
