//! What custom resources claim.

use kube::ResourceExt;

use super::Claim;
use crate::api::markers::{self, SERVICES};
use crate::api::{AWSEndpointService, AzurePrivateLinkService};

/// A custom resource that claims something. Under a name that no Service of HyperShift has it claims nothing, because
/// no Service vouches for it.
pub trait Claiming: ResourceExt {
    /// What it claims.
    fn claims(&self) -> Vec<Claim>;
}

impl Claiming for AzurePrivateLinkService {
    fn claims(&self) -> Vec<Claim> {
        let named = SERVICES.contains(&self.name_any().as_str());
        let address = self.spec.load_balancer_ip.as_deref().filter(|_| named);
        address.and_then(Claim::address).into_iter().collect()
    }
}

impl Claiming for AWSEndpointService {
    fn claims(&self) -> Vec<Claim> {
        let named = markers::aws::SERVICES.contains(&self.name_any().as_str());
        let balancer = Some(self.spec.network_load_balancer_name.as_str()).filter(|name| named && !name.is_empty());
        balancer.map(Claim::load_balancer).into_iter().collect()
    }
}
