//! Azure's quotas of Private Link Services, and how much of them is used. Pure.

use std::collections::HashMap;
use std::hash::Hash;

use crate::arm::id::{ResourceId, SubscriptionId};

/// What limits the number of Private Link Services, unless Azure's support has raised it
/// (<https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits>).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quota {
    /// Those that forward to one load balancer.
    PerLoadBalancer,
    /// Those in one subscription.
    PerSubscription,
}

impl Quota {
    /// How many services Azure allows.
    pub const fn limit(self) -> usize {
        match self {
            Self::PerLoadBalancer => 8,
            Self::PerSubscription => 800,
        }
    }
}

/// A Private Link Service that counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedService {
    /// The service's ARM id.
    pub id: ResourceId,
    /// The load balancer that it forwards to, if that is known.
    pub load_balancer: Option<ResourceId>,
}

/// How many Private Link Services there are, by what limits their number.
#[derive(Debug)]
pub struct QuotaUse<'a> {
    on_load_balancers: HashMap<&'a ResourceId, usize>,
    in_subscriptions: HashMap<&'a SubscriptionId, usize>,
}

impl<'a> QuotaUse<'a> {
    /// Counts services, each once.
    pub fn by(services: impl Iterator<Item = &'a CountedService>) -> Self {
        let services: HashMap<_, _> = services.map(|service| (&service.id, service)).collect();
        let load_balancers = services.values().filter_map(|service| service.load_balancer.as_ref());
        Self {
            on_load_balancers: counts(load_balancers),
            in_subscriptions: counts(services.keys().map(|id| id.subscription())),
        }
    }

    /// The quotas without room for another service that forwards to this load balancer, and how much of each is used.
    pub fn used_up(&self, load_balancer: &ResourceId) -> Vec<(Quota, usize)> {
        let used = |count: Option<&usize>| count.copied().unwrap_or_default();
        let mut quotas = vec![
            (Quota::PerLoadBalancer, used(self.on_load_balancers.get(load_balancer))),
            (
                Quota::PerSubscription,
                used(self.in_subscriptions.get(load_balancer.subscription())),
            ),
        ];
        quotas.retain(|(quota, used)| *used >= quota.limit());
        quotas
    }

    /// How much of the quota is used where most of it is.
    pub fn most(&self, quota: Quota) -> usize {
        let used = match quota {
            Quota::PerLoadBalancer => self.on_load_balancers.values().max(),
            Quota::PerSubscription => self.in_subscriptions.values().max(),
        };
        used.copied().unwrap_or_default()
    }
}

fn counts<K: Hash + Eq>(keys: impl Iterator<Item = K>) -> HashMap<K, usize> {
    let mut counts = HashMap::<K, usize>::new();
    keys.for_each(|key| *counts.entry(key).or_default() += 1);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(subscription: &str, kind: &str, name: &str) -> ResourceId {
        let id = format!("/subscriptions/{subscription}/resourceGroups/g/providers/Microsoft.Network/{kind}/{name}");
        ResourceId::parse(&id).unwrap()
    }

    fn on(load_balancer: &str, name: usize) -> CountedService {
        CountedService {
            id: id("s", "privateLinkServices", &name.to_string()),
            load_balancer: Some(id("s", "loadBalancers", load_balancer)),
        }
    }

    #[test]
    fn ninth_service_does_not_fit_on_a_load_balancer() {
        let full = id("s", "loadBalancers", "full");
        let mut services: Vec<_> = (0..7).map(|n| on("FULL", n)).chain([on("other", 7)]).collect();
        assert_eq!(QuotaUse::by(services.iter()).used_up(&full), []);
        services.push(on("full", 0));
        assert_eq!(
            QuotaUse::by(services.iter()).used_up(&full),
            [],
            "it is one of the others"
        );
        services.push(on("full", 8));
        let quotas = QuotaUse::by(services.iter());
        assert_eq!(quotas.used_up(&full), [(Quota::PerLoadBalancer, 8)]);
        assert_eq!(quotas.used_up(&id("s", "loadBalancers", "other")), []);
        let most = [Quota::PerLoadBalancer, Quota::PerSubscription].map(|quota| quotas.most(quota));
        assert_eq!(most, [8, 9]);
    }

    #[test]
    fn service_801_does_not_fit_in_a_subscription() {
        let services: Vec<_> = (0..800).map(|n| on(&n.to_string(), n)).collect();
        let empty = id("S", "loadBalancers", "empty");
        assert_eq!(QuotaUse::by(services[1..].iter()).used_up(&empty), []);
        let quotas = QuotaUse::by(services.iter());
        assert_eq!(quotas.used_up(&empty), [(Quota::PerSubscription, 800)]);
        assert_eq!(quotas.used_up(&id("another", "loadBalancers", "empty")), []);
    }
}
