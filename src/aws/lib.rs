//! AWS: its query and REST-XML services, as Hyperlink calls them. Knows no Kubernetes.

pub mod api;
pub mod credentials;
pub mod endpoints;
pub mod region;
mod sts;
mod wire;
