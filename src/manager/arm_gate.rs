//! The gate of a role's leader as ARM's client asks it.

use crate::azure::arm::ports::Gate;
use crate::runtime::leader;

/// Writes to Azure go out while the leader's gate is open.
pub(super) struct ArmGate(pub(super) leader::LeaderGate);

impl Gate for ArmGate {
    fn open(&self) -> bool {
        self.0.open()
    }
}
