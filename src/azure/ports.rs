//! What the ARM layer needs from outside, as traits: the gate and the counters.

use std::time::Duration;

use super::error::Class;
use super::resource::Kind;

/// Asked right before each mutating call is sent; leadership shuts it.
pub trait Gate: Send + Sync {
    /// Whether writes may still go out.
    fn open(&self) -> bool;
}

/// What a call to ARM is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallVerb {
    /// Reads one resource.
    Get,
    /// Reads a page of a list.
    List,
    /// Makes or changes a resource.
    Put,
    /// Removes a resource.
    Delete,
    /// Reads how a long-running operation stands.
    Poll,
}

impl CallVerb {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Get, Self::List, Self::Put, Self::Delete, Self::Poll];

    /// For labels.
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

/// One finished ARM call, as the counters see it. Holds no id and no name: labels stay few.
#[derive(Debug, Clone, Copy)]
pub struct ObservedCall {
    /// The kind of the resource that was addressed.
    pub kind: Kind,
    /// What it was for.
    pub verb: CallVerb,
    /// The HTTP status; 0 when no answer came.
    pub status: u16,
    /// The error class; none for success.
    pub class: Option<Class>,
    /// From sending to the end of the body.
    pub took: Duration,
}

/// Where calls and budgets are counted.
pub trait Counters: Send + Sync {
    /// A call has ended.
    fn call(&self, observed: ObservedCall);
    /// Azure told what is left of a budget; `budget` is the header's name without the `x-ms-ratelimit-remaining-` prefix.
    fn budget(&self, budget: &'static str, remaining: u64);
    /// A call was not sent because its resource had no call budget left.
    fn call_budget_exhausted(&self, kind: Kind);
}
