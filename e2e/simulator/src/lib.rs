//! What the simulated clouds (`armsim`, `awssim`) have in common: simulated time, chance that can be repeated, fault
//! rules, the test certificate authority, and connections that can break. It is for what has no meaning of either
//! cloud: what a call does, and which errors there are, belongs to the cloud's own crate.

pub mod clock;
pub mod connections;
pub mod fault;
pub mod random;
pub mod seed;
pub mod tls;
pub mod wire;
