//! What HyperShift's objects mean for clusters on Azure.

pub mod identity;
pub mod intent;
pub mod management_scopes;
pub mod names;
pub mod scopes;
pub mod summary;
