//! Whether Azure's quotas have room for a Private Link Service that does not exist yet, by what the custom resources
//! of the management cluster report. Pure.

use crate::api::AzurePrivateLinkService;
use crate::azure::arm::id::{ResourceId, same};
use crate::azure::kinds::load_balancer::Frontend;
use crate::azure::kinds::private_link_service::{PER_LOAD_BALANCER, PER_SUBSCRIPTION};
use crate::controllers::preview::Fact;

/// The quotas that are used up where the custom resource will have its service; none once it has one.
pub(super) fn used_up<'a>(
    cr: &AzurePrivateLinkService,
    frontend: &Frontend,
    all: impl Iterator<Item = &'a AzurePrivateLinkService>,
) -> Vec<Fact> {
    if service(cr).is_some() {
        return Vec::new();
    }
    let (mut on_balancer, mut in_subscription) = (0, 0);
    for service in all.filter_map(service) {
        on_balancer += usize::from(service.is_on(&frontend.load_balancer));
        in_subscription += usize::from(service.id.subscription() == frontend.load_balancer.subscription());
    }
    let subscription = format!("/subscriptions/{}", frontend.load_balancer.subscription());
    let quotas = [
        (on_balancer, PER_LOAD_BALANCER, frontend.load_balancer.to_string()),
        (in_subscription, PER_SUBSCRIPTION, subscription),
    ];
    let used_up = quotas.into_iter().filter(|(used, limit, _)| used >= limit);
    used_up
        .map(|(used, limit, id)| Fact {
            kind: "quota",
            id,
            state: format!(
                "{used} Private Link Services, and Azure's limit is {limit}: one more fits only if support raised it"
            ),
        })
        .collect()
}

/// A service as the status shows it.
struct ShownService<'a> {
    id: ResourceId,
    load_balancer: Option<&'a str>,
}

impl ShownService<'_> {
    fn is_on(&self, load_balancer: &ResourceId) -> bool {
        let own = self.load_balancer;
        own.is_some_and(|own| same(own, &load_balancer.to_string()))
    }
}

fn service(cr: &AzurePrivateLinkService) -> Option<ShownService<'_>> {
    let status = cr.status.as_ref()?;
    Some(ShownService {
        id: ResourceId::parse(status.private_link_service_id.as_deref()?).ok()?,
        load_balancer: status.internal_load_balancer_id.as_deref(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NET: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network";

    fn cr(name: &str, balancer: &str, service: Option<&str>) -> AzurePrivateLinkService {
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
    fn ninth_service_does_not_fit_on_a_load_balancer() {
        let new = cr("new", "full", None);
        let mut all: Vec<_> = (0..7)
            .map(|n| cr(&n.to_string(), "FULL", Some(&n.to_string())))
            .collect();
        all.extend([
            new.clone(),
            cr("waits", "full", None),
            cr("elsewhere", "other", Some("x")),
        ]);
        assert_eq!(ids(&new, "full", &all), [""; 0], "there is room for one");
        all.push(cr("8", "full", Some("8")));
        let [fact] = &ids(&new, "full", &all)[..] else {
            panic!("one quota is used up");
        };
        assert!(
            fact.starts_with(&format!("{NET}/loadBalancers/full 8 Private Link Services")),
            "{fact}"
        );
        assert_eq!(ids(&new, "other", &all), [""; 0]);
        assert_eq!(ids(&all[0], "full", &all), [""; 0], "it has one");
    }

    #[test]
    fn service_801_does_not_fit_in_a_subscription() {
        let new = cr("new", "empty", None);
        let all: Vec<_> = (0..800)
            .map(|n| cr("o", &n.to_string(), Some(&n.to_string())))
            .collect();
        assert_eq!(ids(&new, "empty", &all[1..]), [""; 0]);
        let [fact] = &ids(&new, "empty", &all)[..] else {
            panic!("one quota is used up");
        };
        assert!(fact.starts_with("/subscriptions/s 800 Private Link Services"), "{fact}");
    }
}
