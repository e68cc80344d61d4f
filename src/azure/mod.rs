//! Azure Resource Manager (ARM) as Hyperlink uses it. Knows no Kubernetes and nothing of the rest of this crate.

pub mod auth;
pub mod call_budget;
pub mod client;
mod deletion;
pub mod error;
pub mod execute;
mod failed_reads;
mod frontends;
pub mod https;
pub mod id;
pub mod inventory;
pub mod kinds;
mod lists;
mod message;
pub mod observation_cache;
pub mod operation;
pub mod owner_tags;
pub mod plan;
pub mod ports;
pub mod read;
pub mod read_only;
pub mod resource;
pub mod scope;
pub mod throttle;
pub mod transport;
pub mod write_queue;
