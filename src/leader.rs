//! Leader election, the deadline and the gate.
