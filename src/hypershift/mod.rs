//! What HyperShift's objects mean, whichever cloud their clusters are on; and the words in which any custom resource
//! is reported on: conditions, problems, intents.

pub mod aws;
pub mod azure;
pub mod claims;
pub mod cluster_index;
pub mod conditions;
pub mod host_names;
pub mod identity;
pub mod intent;
pub mod names;
pub mod node_pools;
pub mod owner;
pub mod problem;
pub mod scopes;
pub mod shard;
