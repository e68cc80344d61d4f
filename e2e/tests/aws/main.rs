//! Clusters on AWS, on a real API server and the simulated AWS: the environment itself, and both roles.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod access;
mod aggregate;
mod beside;
mod both;
mod changes;
mod cpo;
mod environment;
mod heal;
mod ho;
mod identities;
mod inherited;
mod killed;
mod lives;
mod many;
mod metrics;
mod odd_orders;
mod plan;
mod platforms;
mod principals;
mod subnets;
mod take_over;
mod throttled;
mod values;

use std::time::Duration;

/// The longest time that a test waits for anything.
const SOON: Duration = Duration::from_secs(90);
