//! Whether Azure's quotas have room for a Private Link Service that does not exist yet, by what the custom resources
//! of the management cluster report. Pure.

use kube::ResourceExt;

use crate::api::AzurePrivateLinkService;
use crate::api::markers::SERVICES;
use crate::azure::arm::id::ResourceId;
use crate::azure::kinds::load_balancer::Frontend;
use crate::azure::kinds::private_link_service::quota::{CountedService, Quota, QuotaUse};
use crate::controllers::preview::Fact;

/// The service that the custom resource's status shows. Whoever may write in a namespace can create any number of
/// custom resources with a forged status; for one of another name nothing is created in Azure.
pub fn counted_service(cr: &AzurePrivateLinkService) -> Option<CountedService> {
    let status = cr
        .status
        .as_ref()
        .filter(|_| SERVICES.contains(&cr.name_any().as_str()))?;
    let id = |text: &Option<String>| ResourceId::parse(text.as_deref()?).ok();
    Some(CountedService {
        id: id(&status.private_link_service_id)?,
        load_balancer: id(&status.internal_load_balancer_id),
    })
}

/// The quotas that are used up where the custom resource will have its service; none once it has one.
pub(super) fn used_up<'a>(
    cr: &AzurePrivateLinkService,
    frontend: &Frontend,
    all: impl Iterator<Item = &'a AzurePrivateLinkService>,
) -> Vec<Fact> {
    if counted_service(cr).is_some() {
        return Vec::new();
    }
    let services: Vec<_> = all.filter_map(counted_service).collect();
    let used_up = QuotaUse::by(services.iter()).used_up(&frontend.load_balancer);
    let facts = used_up.into_iter().map(|(quota, used)| Fact {
        kind: "quota",
        id: match quota {
            Quota::PerLoadBalancer => frontend.load_balancer.to_string(),
            Quota::PerSubscription => format!("/subscriptions/{}", frontend.load_balancer.subscription()),
        },
        state: format!(
            "{used} Private Link Services, and Azure's limit is {}: one more fits only if support raised it",
            quota.limit()
        ),
    });
    facts.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NET: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network";

    fn cr(name: &str, balancer: &str, service: Option<usize>) -> AzurePrivateLinkService {
        let service = service.map(|service| format!("{NET}/privateLinkServices/{service}"));
        serde_json::from_value(json!({
            "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AzurePrivateLinkService",
            "metadata": {"name": name, "namespace": "clusters-one"},
            "spec": {"subscriptionID": "s", "resourceGroupName": "g", "location": "eastus", "guestSubnetID": "x",
                "guestVNetID": "y"},
            "status": {"internalLoadBalancerID": format!("{NET}/loadBalancers/{balancer}"),
                "privateLinkServiceID": service}}))
        .unwrap()
    }

    fn frontend(balancer: &str) -> Frontend {
        let id = ResourceId::parse(&format!("{NET}/loadBalancers/{balancer}")).unwrap();
        Frontend {
            id: format!("{id}/frontendIPConfigurations/f"),
            load_balancer: id,
            name: "f".into(),
            address: "10.0.0.4".parse().unwrap(),
            subnet: ResourceId::parse(&format!("{NET}/virtualNetworks/v/subnets/a")).unwrap(),
        }
    }

    fn ids(cr: &AzurePrivateLinkService, balancer: &str, all: &[AzurePrivateLinkService]) -> Vec<String> {
        let found = used_up(cr, &frontend(balancer), all.iter());
        found
            .into_iter()
            .map(|fact| format!("{} {}", fact.id, fact.state))
            .collect()
    }

    #[test]
    fn full_load_balancer_is_named_to_who_has_no_service() {
        let new = cr("private-router", "full", None);
        let mut all: Vec<_> = (0..8).map(|n| cr("private-router", "full", Some(n))).collect();
        let [fact] = &ids(&new, "full", &all)[..] else {
            panic!("one quota is used up");
        };
        assert!(
            fact.starts_with(&format!("{NET}/loadBalancers/full 8 Private Link Services")),
            "{fact}"
        );
        assert_eq!(ids(&new, "other", &all), [""; 0]);
        assert_eq!(ids(&all[0], "full", &all), [""; 0], "it has one");
        all[0] = cr("private-router", "full", None);
        assert_eq!(ids(&new, "full", &all), [""; 0], "there is room for one");
    }

    #[test]
    fn full_subscription_is_named() {
        let all: Vec<_> = (0..800)
            .map(|n| cr("private-router", &n.to_string(), Some(n)))
            .collect();
        let [fact] = &ids(&cr("private-router", "empty", None), "empty", &all)[..] else {
            panic!("one quota is used up");
        };
        assert!(fact.starts_with("/subscriptions/s 800 Private Link Services"), "{fact}");
    }

    #[test]
    fn forged_status_does_not_count() {
        let forged: Vec<_> = (0..8).map(|n| cr("forged", "full", Some(n))).collect();
        assert_eq!(ids(&cr("private-router", "full", None), "full", &forged), [""; 0]);
    }
}
