//! What the laws need: a simulated Azure, steps, the bodies that they send, a run of them, and the laws.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "test support, not all of it used by every program"
)]

#[path = "../spec_support/mod.rs"]
pub mod spec_support;

pub mod back;
pub mod body;
pub mod call;
pub mod cloud;
pub mod operations;
pub mod run;
pub mod step;
pub mod structure;
pub mod view;
pub mod written;
