//! What metrics show of each AzurePrivateLinkService: in addition what of Azure's quotas it uses.

use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;

use crate::api::AzurePrivateLinkService;
use crate::api::markers::SERVICES;
use crate::azure::arm::id::ResourceId;
use crate::controllers::azure::access::Context;
use crate::controllers::private_link_service::quota::counted_service;
use crate::metrics::ObservedObject;
use crate::roles::shown;

/// Makes metrics show the custom resources that are served.
pub(super) fn show_objects(cx: &Context) {
    let observations = Arc::clone(&cx.cloud.observations);
    shown::show_objects(cx, move |cr, now| {
        observed_object(cr, &|id: &ResourceId| observations.is_there(id), now)
    });
}

/// Of what the status names only that is shown which `is_there`: whoever may write in a namespace can forge a status.
fn observed_object(
    cr: &AzurePrivateLinkService,
    is_there: &impl Fn(&ResourceId) -> bool,
    now: Timestamp,
) -> ObservedObject {
    let status = cr.status.as_ref();
    // As in `counted_service`.
    let named = status.filter(|_| SERVICES.contains(&cr.name_any().as_str()));
    let id = |text: &Option<String>| text.as_deref().and_then(|text| ResourceId::parse(text).ok());
    ObservedObject {
        link_service: counted_service(cr).filter(|service| is_there(&service.id)),
        awaits_service_on: named
            .filter(|status| status.private_link_service_id.is_none())
            .and_then(|status| id(&status.internal_load_balancer_id)),
        zones: named
            .into_iter()
            .flat_map(|status| [id(&status.private_dns_zone_id), id(&status.base_domain_dns_zone_id)])
            .flatten()
            .filter(is_there)
            .collect(),
        ..shown::observed_object(cr, now)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn cr(name: &str, status: Value) -> AzurePrivateLinkService {
        serde_json::from_value(json!({"apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "AzurePrivateLinkService", "metadata": {"name": name, "namespace": "clusters-one"},
            "spec": {"subscriptionID": "s", "resourceGroupName": "g", "location": "eastus", "guestSubnetID": "x",
                "guestVNetID": "y"},
            "status": status}))
        .unwrap()
    }

    #[test]
    fn load_balancer_counts_once_there_is_a_service_on_it() {
        let id = |kind: &str| format!("/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/{kind}/x");
        let mut status =
            json!({"internalLoadBalancerID": id("loadBalancers"), "privateDNSZoneID": id("privateDnsZones")});
        let now = Timestamp::UNIX_EPOCH;
        let shown = |cr: AzurePrivateLinkService| observed_object(&cr, &|_| true, now);
        let before = shown(cr("private-router", status.clone()));
        assert_eq!((before.link_service, before.zones.len()), (None, 1));
        status["privateLinkServiceID"] = id("privateLinkServices").into();
        status["baseDomainDNSZoneID"] = "not an id".into();
        let after = shown(cr("private-router", status.clone()));
        assert!(
            after
                .link_service
                .is_some_and(|service| service.load_balancer.is_some())
        );
        assert_eq!(after.zones.len(), 1);
        let forged = observed_object(&cr("private-router", status.clone()), &|_| false, now);
        assert_eq!((forged.link_service, forged.zones.len()), (None, 0));
        let junk = shown(cr("junk", status));
        assert_eq!((junk.link_service, junk.zones.len()), (None, 0), "its status is forged");
    }
}
