//! The gate that every write asks right before it is sent.
//!
//! Open only while this process leads, by this machine's monotonic clock alone. A process that was paused past its
//! deadline finds the gate shut at its first question, even if its own tasks have not noticed yet. A virtual machine
//! that is suspended stops that clock, too: there the gate stays open for the time that was left, until the next
//! renewal finds another holder. The gate must not lock, wait or do I/O.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Whether writes may be sent now. Cloning gives another handle on the same gate.
#[derive(Debug, Clone)]
pub struct LeaderGate(Arc<GateState>);

#[derive(Debug)]
struct GateState {
    base: Instant,
    /// Nanoseconds after `base` at which the gate shuts; 0 means shut.
    until: AtomicU64,
    /// Set at loss and at a clean stop; nothing opens the gate again.
    over: AtomicBool,
}

impl LeaderGate {
    /// A gate that is shut until this process leads. `now` is only its origin of time.
    pub(super) fn shut_from(now: Instant) -> Self {
        Self(Arc::new(GateState {
            base: now,
            until: AtomicU64::new(0),
            over: AtomicBool::new(false),
        }))
    }

    /// Whether writes may go out.
    #[must_use]
    pub fn open(&self) -> bool {
        self.deadline().is_some()
    }

    /// When the gate shuts unless the lease is renewed before; `None` while it is shut.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline_by(Instant::now)
    }

    /// Reads the clock last, so that a pause before that reading counts.
    fn deadline_by(&self, clock: impl FnOnce() -> Instant) -> Option<Instant> {
        let deadline = self.until()?;
        (clock() < deadline).then_some(deadline)
    }

    /// When the gate shuts, whatever time it is now; `None` if it is shut for good.
    pub(super) fn until(&self) -> Option<Instant> {
        let over = self.0.over.load(Ordering::SeqCst);
        let until = self.0.base + Duration::from_nanos(self.0.until.load(Ordering::SeqCst));
        (!over).then_some(until)
    }

    /// Opens the gate, or keeps it open, until `deadline`. Without effect after [`LeaderGate::close`].
    pub(super) fn open_until(&self, deadline: Instant) {
        let until = deadline.saturating_duration_since(self.0.base).as_nanos();
        self.0
            .until
            .store(u64::try_from(until).unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    /// Shuts the gate while it is uncertain whether this process leads; a proven renewal opens it again.
    pub(super) fn suspend(&self) {
        self.0.until.store(0, Ordering::SeqCst);
    }

    /// Shuts the gate for good.
    pub(super) fn close(&self) {
        self.0.over.store(true, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl LeaderGate {
        fn open_at(&self, now: Instant) -> bool {
            self.deadline_by(|| now).is_some()
        }
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn gate_is_shut_before_leading() {
        let start = Instant::now();
        let gate = LeaderGate::shut_from(start);
        assert!(!gate.open_at(start));
        assert!(!gate.open_at(start + SECOND));
        assert_eq!(gate.deadline(), None);
    }

    #[test]
    fn gate_shuts_at_the_deadline_by_itself() {
        let start = Instant::now();
        let gate = LeaderGate::shut_from(start);
        gate.open_until(start + SECOND);
        assert!(gate.open_at(start + SECOND - Duration::from_nanos(1)));
        assert!(!gate.open_at(start + SECOND));
        assert_eq!(gate.deadline_by(|| start), Some(start + SECOND));
    }

    #[test]
    fn suspended_gate_opens_after_a_proven_renewal() {
        let start = Instant::now();
        let gate = LeaderGate::shut_from(start);
        gate.open_until(start + SECOND);
        gate.suspend();
        assert!(!gate.open_at(start));
        gate.open_until(start + SECOND);
        assert!(gate.open_at(start));
    }

    #[test]
    fn closed_gate_stays_shut_even_if_a_renewal_lands_late() {
        let start = Instant::now();
        let gate = LeaderGate::shut_from(start);
        gate.open_until(start + SECOND);
        gate.clone().close();
        gate.open_until(start + SECOND);
        assert!(!gate.open_at(start));
    }
}
