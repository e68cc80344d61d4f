//! Kubernetes kinds: the custom resources in full, HyperShift's others as far as they are read.
//!
//! Data only: no I/O, no clock, no decisions about a cloud.

pub mod aws_endpoint_service;
pub mod capi;
pub mod cluster_ref;
pub mod condition;
pub mod crd;
pub mod hypershift;
mod led_role;
mod lenient;
pub mod markers;
pub mod other_writer;
pub mod pause;
pub mod platform;
pub mod private_link_service;
pub mod prune;
pub mod role;

pub use aws_endpoint_service::{AWSEndpointService, AWSEndpointServiceSpec, AWSEndpointServiceStatus, ResourceTag};
pub use cluster_ref::ClusterRef;
pub use condition::{ConditionType, Reason, Status};
pub use crd::{aws_crd, aws_crd_yaml, crd, crd_yaml};
pub use hypershift::{HostedCluster, HostedControlPlane, NodePool};
pub use led_role::LedRole;
pub use other_writer::other_writer;
pub use pause::Paused;
pub use platform::Platform;
pub use private_link_service::{AzurePrivateLinkService, AzurePrivateLinkServiceSpec, AzurePrivateLinkServiceStatus};
pub use role::Role;

use kube::ResourceExt;

/// Whether this finalizer delays the deletion of an object.
pub fn held_by(object: &impl ResourceExt, finalizer: &str) -> bool {
    object.finalizers().iter().any(|one| one == finalizer)
}
