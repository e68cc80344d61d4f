//! What the operator decided for all clusters, as role `ho` needs it.

use super::frontend::FrontendMatch;
use super::nat_prefix::NatSubnetRules;
use crate::azure::arm::id::{ResourceId, SubscriptionId, same};
use crate::azure::arm::scope::AzureScope;

/// What the operator decided for all clusters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The Azure cloud that this process serves, as HostedClusters spell it.
    pub cloud: &'static str,
    /// The UID of the management cluster's namespace kube-system, with which each Private Link Service is stamped.
    pub management_cluster: String,
    /// Where Private Link Services are made.
    pub subscription: SubscriptionId,
    /// The resource group in it.
    pub resource_group: String,
    /// How NAT subnets are chosen.
    pub nat: NatSubnetRules,
    /// The NAT subnet that clusters in its network share, where none is given.
    pub nat_subnet: Option<ResourceId>,
    /// How frontends are recognised.
    pub frontend_match: FrontendMatch,
    /// Further scopes in which this process may manage what was made there. The groups among them are searched for load
    /// balancers before the whole subscription.
    pub also_manage: Vec<AzureScope>,
}

impl Settings {
    /// Whether this process may touch a Private Link Service with this id.
    pub fn allows(&self, id: &ResourceId) -> bool {
        let own = *id.subscription() == self.subscription && same(id.group(), &self.resource_group);
        own || self.also_manages(id)
    }

    /// Whether this process may remove a NAT subnet with this id: its network may be in any group of the subscription.
    pub fn allows_subnet(&self, id: &ResourceId) -> bool {
        *id.subscription() == self.subscription || self.also_manages(id)
    }

    fn also_manages(&self, id: &ResourceId) -> bool {
        self.also_manage.iter().any(|scope| scope.covers(id))
    }

    /// Further groups of the own subscription.
    pub(super) fn further_groups(&self) -> impl Iterator<Item = &str> {
        self.also_manage.iter().filter_map(|scope| match scope {
            AzureScope::Group(subscription, group) if *subscription == self.subscription => {
                Some(group.as_str()).filter(|group| !same(group, &self.resource_group))
            }
            _ => None,
        })
    }
}
