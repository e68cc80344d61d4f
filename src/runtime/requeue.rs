//! When an object is reconciled again, and why. Data only.

use std::time::Duration;

/// The next reconcile of an object. Of several, the earliest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requeue {
    /// How long until then.
    pub after: Duration,
    /// Why then, in one word: for logs, for the dry run, and as a metric's label.
    pub why: &'static str,
}

impl Requeue {
    /// The interval at which everything is compared has passed.
    pub const RESYNC: &str = "resync";
    /// Something in the cloud is due to be read.
    pub const READ_DUE: &str = "read_due";
    /// A list that could not be read is due to be read.
    pub const LIST_DUE: &str = "list_due";
    /// Something that no event announces is polled.
    pub const POLL: &str = "poll";
    /// Another writer of the status is to be answered.
    pub const OTHER_WRITER: &str = "other_writer";
    /// Somebody else changed the object first.
    pub const CONFLICT: &str = "conflict";
    /// The reconcile failed.
    pub const FAILED: &str = "failed";
    /// The reconcile panicked.
    pub const PANICKED: &str = "panicked";

    /// A reconcile after this long, for this reason.
    pub fn new(after: Duration, why: &'static str) -> Self {
        Self { after, why }
    }

    /// The earliest of several; of equal ones the first.
    pub fn earliest(all: impl IntoIterator<Item = Self>) -> Option<Self> {
        all.into_iter().min_by_key(|requeue| requeue.after)
    }

    /// The earlier one of this and another one, if there is another one.
    #[must_use]
    pub fn or_earlier(self, other: Option<Self>) -> Self {
        match other {
            Some(other) if other.after < self.after => other,
            _ => self,
        }
    }
}
