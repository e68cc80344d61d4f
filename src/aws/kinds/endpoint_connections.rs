//! The connections that keep an endpoint service from being deleted until they are rejected: all of them, as one
//! resource. It is there while there is such a connection; to delete it is to reject them. Those that are `rejected`
//! already are listed for long, and those that are `deleting` end by themselves: AWS refuses to delete the service while
//! it minds one.
//!
//! Body: `EndpointIds`.

use std::time::Duration;

use hyperlink_engine::resource::Owned;
use serde_json::Value;

use super::{Kind, Rules};
use crate::cloud::Aws;
use crate::slot::Slot;

/// What the engine has to know of endpoint connections.
pub const RULES: Rules = Rules {
    // The time between two reads while connections are being rejected.
    pace: Duration::from_secs(5),
    create_if_new: true,
    ..Rules::DEFAULT
};

/// Whether a connection in this state has to be rejected.
pub fn is_rejectable(state: &str) -> bool {
    let states = ["pendingAcceptance", "pending", "available"];
    states.iter().any(|known| known.eq_ignore_ascii_case(state))
}

/// The connections of an endpoint service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointConnections {
    /// The slot in the endpoint service's.
    pub slot: Slot,
}

impl Owned<Aws> for EndpointConnections {
    fn kind(&self) -> Kind {
        Kind::EndpointConnections
    }

    fn key(&self) -> &Slot {
        &self.slot
    }

    /// They are in an endpoint service that is proven to be owned.
    fn is_owned(&self, _: &Value) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_live_connections_are_rejected_whatever_their_case() {
        let states = [
            "PendingAcceptance",
            "pending",
            "Available",
            "rejected",
            "deleting",
            "partial",
            "new",
            "Deleted",
        ];
        let rejected = states.into_iter().filter(|state| is_rejectable(state));
        assert!(rejected.eq(["PendingAcceptance", "pending", "Available"]));
    }
}
