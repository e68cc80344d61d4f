//! The connection of a Private Endpoint to a Private Link Service: only deleted. The service's body shows it.

use std::time::Duration;

use super::{KindSpec, NETWORK, NETWORK_API, Rules};

/// What generic code has to know of connections.
pub const SPEC: KindSpec = KindSpec {
    label: "private_endpoint_connection",
    provider: NETWORK,
    path: &["privateLinkServices", "privateEndpointConnections"],
    api_version: NETWORK_API,
    service: NETWORK,
    rules: Rules {
        // The time between two reads of a connection in progress if Azure gives no time. A change or a delete takes
        // about 10 s.
        // Source: recorded traffic of Azure, as in `e2e/armsim/src/network/connection.rs`.
        pace: Duration::from_secs(4),
        shown_by_parent: true,
        ..Rules::DEFAULT
    },
    ..KindSpec::DEFAULT
};
