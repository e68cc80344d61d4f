//! HO: the load balancer's side of a private path.

pub mod frontend;
pub mod nat_subnet;
pub mod plan;
pub mod status;
