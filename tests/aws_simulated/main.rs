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
mod desired;
mod faults;
mod life;
mod lost;
mod models;
mod nameless;
mod principals;
mod records;
mod replaced;
mod sim;
mod stale;
mod strangers;
mod tags;
mod whole;
