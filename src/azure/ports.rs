//! What the ARM layer needs from outside, as traits: the gate and the counters.

use std::time::Duration;

use super::error::Class;
use super::resource::Kind;

/// Asked right before each mutating call is sent; leadership shuts it.
pub trait Gate: Send + Sync {
    /// Whether writes may still go out.
    fn open(&self) -> bool;
}

/// The verbs of ARM calls, for labels.
pub const VERBS: [&str; 4] = ["GET", "LIST", "PUT", "DELETE"];

/// One finished ARM call, as the counters see it. Holds no id and no name: labels stay few.
#[derive(Debug, Clone, Copy)]
pub struct CallSeen {
    /// The kind of the resource that was addressed.
    pub kind: Kind,
    /// One of [`VERBS`]; `LIST` for a list call.
    pub verb: &'static str,
    /// The HTTP status; 0 when no answer came.
    pub status: u16,
    /// The error class; none for success.
    pub class: Option<Class>,
    /// From sending to the end of the body.
    pub took: Duration,
}

/// Where calls, budgets and long-running operations are counted.
pub trait Counters: Send + Sync {
    /// A call has ended.
    fn call(&self, seen: CallSeen);
    /// Azure told what is left of a budget; `budget` is the header's name without the `x-ms-ratelimit-remaining-` prefix.
    fn budget(&self, budget: &'static str, remaining: u64);
    /// Long-running operations that this process has started and not yet seen end, and the age of the oldest.
    fn operations(&self, kind: Kind, in_flight: usize, oldest: Duration);
}
