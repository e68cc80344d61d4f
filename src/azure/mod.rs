//! ARM as Hyperlink uses it. Knows no Kubernetes and nothing of the rest of this crate.

pub mod auth;
pub mod client;
pub mod endpoint;
pub mod error;
pub mod execute;
pub mod https;
pub mod id;
pub mod inventory;
pub mod link_service;
pub mod load_balancer;
pub mod look;
pub mod mark;
pub mod memory;
pub mod plan;
pub mod ports;
pub mod read_only;
pub mod record;
pub mod resource;
pub mod scope;
pub mod subnet;
pub mod throttle;
pub mod transport;
pub mod turns;
pub mod zone;
pub mod zone_link;
