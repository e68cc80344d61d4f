//! What HyperShift's objects mean for clusters on AWS.

pub mod ids;
pub mod intent;
pub mod load_balancer_name;
pub mod names;
pub mod principals;
pub mod subnet_ids;
