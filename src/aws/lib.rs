//! AWS: its query and REST-XML services, as Hyperlink calls them. Knows no Kubernetes.

pub mod endpoints;
pub mod region;
mod wire;
