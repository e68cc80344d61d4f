//! Whether somebody waits for what a reconcile does.

/// Whether somebody waits for what a reconcile does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// Somebody does: something is new, changed, deleted or broken.
    Awaited,
    /// Nobody does: what was as desired is verified, for one of so many objects of this process.
    Routine {
        /// How many objects this process serves.
        served: usize,
    },
}
