//! AWS: its query and REST-XML services, as Hyperlink calls them. Knows no Kubernetes.

pub mod api;
pub mod body;
pub mod calls;
pub mod client_token;
pub mod cloud;
pub mod credentials;
pub mod ec2;
pub mod elbv2;
pub mod endpoints;
#[cfg(test)]
mod hostile;
pub mod kinds;
pub mod owner_tags;
pub mod region;
pub mod role_arn;
pub mod route53;
pub mod slot;
pub mod sts;
mod wire;
