//! AWS: its query and REST-XML services, as Hyperlink calls them. Knows no Kubernetes.

pub mod api;
pub mod credentials;
pub mod ec2;
pub mod elbv2;
pub mod endpoints;
#[cfg(test)]
mod hostile;
pub mod region;
pub mod route53;
mod sts;
mod wire;
