//! Whether somebody waits for what a reconcile does.

/// Whether somebody waits for what a reconcile does, or for one of its reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// Somebody does: something is changed, deleted or broken.
    Awaited,
    /// Somebody does: something is new, and nothing was ever made for it.
    New,
    /// Nobody does: what was as desired is verified, for one of so many objects of this process.
    Routine {
        /// How many objects this process serves.
        served: usize,
    },
    /// Nobody does, whoever waits for the reconcile: what is known to be ready is verified meanwhile.
    Verification,
}

impl Urgency {
    /// Whether somebody does.
    pub fn is_awaited(self) -> bool {
        !matches!(self, Self::Routine { .. } | Self::Verification)
    }
}
