//! ARM as Hyperlink uses it. Knows no Kubernetes and nothing of the rest of this crate.

pub mod auth;
pub mod error;
pub mod https;
pub mod ports;
pub mod resource;
pub mod transport;
