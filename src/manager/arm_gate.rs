//! The gates of a role's leader as ARM's client asks it.

use crate::azure::arm::ports::Gate;
use crate::runtime::leader;

/// Writes to Azure go out while the leader's gates are open.
pub(super) struct ArmGate(pub(super) leader::LeaderGates);

impl Gate for ArmGate {
    fn open(&self) -> bool {
        self.0.open()
    }
}
