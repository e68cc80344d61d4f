//! What HyperShift's objects mean for clusters on AWS.

pub mod identity;
pub mod ids;
pub mod intent;
pub mod load_balancer_name;
pub mod names;
pub mod principals;
pub mod problem;
pub mod scopes;
pub mod subnet_ids;
