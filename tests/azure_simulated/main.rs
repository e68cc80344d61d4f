//! The whole ARM layer on the simulated Azure, behind the transport trait: reads, plans, execution, errors, paging,
//! budgets.
//!
//! Time is paused: waits pass in simulated time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests; the exemption for tests leaves out their helpers"
)]

mod answers;
mod budgets;
mod cluster;
mod contradictions;
mod counts;
mod creates;
mod crowds;
mod deletions;
mod desired;
mod drift;
mod failures;
mod fleet;
mod front_ends;
mod frontends;
mod gate;
mod headers;
mod hot_loops;
mod inventory;
mod life;
mod races;
mod refusals;
mod rest;
mod restarts;
mod seed;
mod side_by_side;
mod sim;
mod starts;
mod transport;
mod waits;
mod whole;
mod worst;
