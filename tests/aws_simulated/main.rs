//! The whole AWS layer on the simulated AWS, behind the transport trait: a path is created, repaired and deleted by the
//! engine's own rules.
//!
//! Time is paused: waits pass in simulated time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests; the exemption for tests leaves out their helpers"
)]

mod budgets;
mod connections;
mod desired;
mod faults;
mod in_use;
mod life;
mod load_balancers;
mod lost;
mod models;
mod nameless;
mod odd_xml;
mod principals;
mod process;
mod records;
mod replaced;
mod sim;
mod stale;
mod strangers;
mod tags;
mod whole;
