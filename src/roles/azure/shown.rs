//! What metrics show of each AzurePrivateLinkService.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use crate::api::markers::SERVICES;
use crate::api::{AzurePrivateLinkService, ConditionType, Reason, Status};
use crate::azure::arm::id::ResourceId;
use crate::controllers::azure::access::Context;
use crate::controllers::private_link_service::quota::counted_service;
use crate::hypershift::conditions;
use crate::metrics::{ObservedCondition, ObservedObject};

/// Makes metrics show the custom resources that are served.
pub(super) fn show_objects(cx: &Context) {
    let resources = Arc::clone(&cx.resources);
    let observations = Arc::clone(&cx.cloud.observations);
    cx.runtime.metrics.list_objects_with(move || {
        let now = Timestamp::now();
        let is_there = |id: &ResourceId| observations.is_there(id);
        let shown = resources.shown();
        shown.iter().map(|cr| observed_object(cr, &is_there, now)).collect()
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
        namespace: cr.namespace().unwrap_or_default(),
        name: cr.name_any(),
        deleting_for: cr.metadata.deletion_timestamp.as_ref().map(|since| age(since, now)),
        conditions: AzurePrivateLinkService::CONDITIONS
            .map(|kind| condition(cr, kind, now))
            .into(),
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
    }
}

/// A condition that nobody has written yet is as old as the object.
fn condition(cr: &AzurePrivateLinkService, kind: ConditionType, now: Timestamp) -> ObservedCondition {
    let found = cr
        .status
        .as_ref()
        .and_then(|status| conditions::get(&status.conditions, kind));
    let mut statuses = [Status::True, Status::False].into_iter();
    let since = found
        .map(|found| &found.last_transition_time)
        .or(cr.metadata.creation_timestamp.as_ref());
    ObservedCondition {
        kind,
        status: found.and_then(|found| statuses.find(|status| status.as_str() == found.status)),
        reason: found.and_then(|found| Reason::parse(&found.reason)),
        age: since.map(|since| age(since, now)).unwrap_or_default(),
    }
}

/// The time since `since`; zero if it lies ahead, as by another clock.
fn age(since: &Time, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(since.0)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn cr(metadata: Value, status: Value) -> AzurePrivateLinkService {
        let mut cr = json!({"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AzurePrivateLinkService",
            "metadata": {"name": "private-router", "namespace": "clusters-one", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"subscriptionID": "s", "resourceGroupName": "g", "location": "eastus", "guestSubnetID": "x", "guestVNetID": "y"},
            "status": status});
        for (name, value) in metadata.as_object().unwrap() {
            cr["metadata"][name] = value.clone();
        }
        serde_json::from_value(cr).unwrap()
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn condition_is_as_old_as_its_status_or_else_as_the_object() {
        let cr = cr(
            json!({}),
            json!({"conditions": [{"type": "AzurePLSCreated", "status": "False", "reason": "NotOurs",
            "message": "m", "lastTransitionTime": "2026-01-01T00:01:00Z"}]}),
        );
        let observed = observed_object(&cr, &|_| true, at("2026-01-01T00:02:00Z"));
        let of = |kind| {
            *observed
                .conditions
                .iter()
                .find(|condition| condition.kind == kind)
                .unwrap()
        };
        let created = of(ConditionType::AzurePLSCreated);
        assert_eq!(
            (created.status, created.reason),
            (Some(Status::False), Some(Reason::NotOurs))
        );
        assert_eq!(created.age, Duration::from_secs(60));
        let whole = of(ConditionType::AzurePrivateLinkServiceAvailable);
        assert_eq!((whole.status, whole.reason), (None, None));
        assert_eq!(whole.age, Duration::from_secs(120));
        assert_eq!(observed.deleting_for, None);
    }

    #[test]
    fn time_that_lies_ahead_is_no_age() {
        let cr = cr(json!({"deletionTimestamp": "2026-01-01T00:03:00Z"}), Value::Null);
        assert_eq!(
            observed_object(&cr, &|_| true, at("2026-01-01T00:02:00Z")).deleting_for,
            Some(Duration::ZERO)
        );
        assert_eq!(
            observed_object(&cr, &|_| true, at("2026-01-01T00:03:30Z")).deleting_for,
            Some(Duration::from_secs(30))
        );
    }

    #[test]
    fn load_balancer_counts_once_there_is_a_service_on_it() {
        let id = |kind: &str| format!("/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/{kind}/x");
        let mut status =
            json!({"internalLoadBalancerID": id("loadBalancers"), "privateDNSZoneID": id("privateDnsZones")});
        let now = at("2026-01-01T00:02:00Z");
        let shown = |cr: AzurePrivateLinkService| observed_object(&cr, &|_| true, now);
        let before = shown(cr(json!({}), status.clone()));
        assert_eq!((before.link_service, before.zones.len()), (None, 1));
        status["privateLinkServiceID"] = id("privateLinkServices").into();
        status["baseDomainDNSZoneID"] = "not an id".into();
        let after = shown(cr(json!({}), status.clone()));
        assert!(
            after
                .link_service
                .is_some_and(|service| service.load_balancer.is_some())
        );
        assert_eq!(after.zones.len(), 1);
        let forged = observed_object(&cr(json!({}), status.clone()), &|_| false, now);
        assert_eq!((forged.link_service, forged.zones.len()), (None, 0));
        let junk = shown(cr(json!({"name": "junk"}), status));
        assert_eq!((junk.link_service, junk.zones.len()), (None, 0), "its status is forged");
    }
}
