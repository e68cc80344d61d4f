//! Azure Resource Manager (ARM) as Hyperlink uses it. Knows no Kubernetes and nothing of the rest of this crate.

pub mod arm;
pub mod auth;
pub mod body;
mod calls;
pub mod client;
pub mod error;
pub mod frontends;
pub mod https;
pub mod id;
pub mod kinds;
mod message;
pub mod observations;
pub mod operation;
pub mod owner_tags;
pub mod plan;
pub mod ports;
pub mod read_only;
mod resource_list;
pub mod scope;
pub mod throttle;
pub mod transport;
