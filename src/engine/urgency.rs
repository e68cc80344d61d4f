//! Whether somebody waits for what a reconcile does.

/// Whether somebody waits for what a reconcile does.
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
}

impl Urgency {
    /// Whether somebody does.
    pub fn is_awaited(self) -> bool {
        !matches!(self, Self::Routine { .. })
    }
}
