//! The REST layer of Azure Resource Manager: ids, errors, tokens, and one call at a time.

pub mod auth;
mod call;
mod calls;
pub mod client;
pub mod error;
pub mod https;
pub mod id;
mod message;
pub mod operation;
pub mod ports;
pub mod read_only;
pub mod resource_list;
pub mod scope;
pub mod throttle;
pub mod transport;
