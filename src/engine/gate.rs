//! Whether writes may go out at this moment.

/// Is asked right before each write is sent. Loss of leadership shuts it.
pub trait Gate: Send + Sync {
    /// Whether writes may still go out.
    fn open(&self) -> bool;
}

/// The gate of a process that must change nothing.
pub struct NeverOpen;

impl Gate for NeverOpen {
    fn open(&self) -> bool {
        false
    }
}
