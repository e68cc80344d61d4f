//! What the simulated clouds (`armsim`, `awssim`) have in common: the process with its two addresses and its state
//! file, the form of control calls, seeds and fault rules, simulated time, chance that can be repeated, the test
//! certificate authority, connections that can break, and the part of a cloud provider that serves a cluster's Services.
//! It is for what has no meaning of either cloud: what a call does, and which errors there are, belongs to the cloud's
//! own crate.

pub mod clock;
pub mod cloud_controller;
pub mod connections;
pub mod control;
pub mod fault;
pub mod page;
pub mod process;
pub mod python;
pub mod random;
pub mod seed;
pub mod server;
pub mod tls;
pub mod wire;
