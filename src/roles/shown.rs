//! What metrics show of each custom resource, on any platform.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::api::{ConditionType, Reason, Status};
use crate::controllers::context::Context;
use crate::controllers::reconciler::ServedResource;
use crate::hypershift::conditions;
use crate::metrics::{ObservedCondition, ObservedObject};

/// Makes metrics show the custom resources that are served, each as `observed` says.
pub(super) fn show_objects<R: ServedResource>(
    cx: &Context<R>,
    observed: impl Fn(&R, Timestamp) -> ObservedObject + Send + Sync + 'static,
) {
    let resources = Arc::clone(&cx.resources);
    cx.runtime.metrics.list_objects_with(R::PLATFORM, move || {
        let now = Timestamp::now();
        let shown = resources.shown();
        shown.iter().map(|cr| observed(cr, now)).collect()
    });
}

/// What is shown of a custom resource on any platform.
pub(super) fn observed_object<R: ServedResource>(cr: &R, now: Timestamp) -> ObservedObject {
    let metadata = cr.meta();
    ObservedObject {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
        deleting_for: metadata.deletion_timestamp.as_ref().map(|since| age(since, now)),
        conditions: ConditionType::of(R::PLATFORM)
            .iter()
            .map(|kind| condition(cr, *kind, now))
            .collect(),
        link_service: None,
        awaits_service_on: None,
        zones: Vec::new(),
    }
}

/// A condition that nobody has written yet is as old as the object.
fn condition<R: ServedResource>(cr: &R, kind: ConditionType, now: Timestamp) -> ObservedCondition {
    let found = conditions::get(cr.conditions(), kind);
    let mut statuses = [Status::True, Status::False].into_iter();
    let since = found
        .map(|found| &found.last_transition_time)
        .or(cr.meta().creation_timestamp.as_ref());
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
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;
    use crate::api::{AWSEndpointService, AzurePrivateLinkService};
    use crate::controllers::custom_resource::CustomResource;

    fn cr<R: ServedResource>(spec: Value, deleted: Option<&str>, condition: &str) -> R {
        let metadata = json!({"name": "private-router", "namespace": "clusters-one",
            "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": deleted});
        let condition = json!({"type": condition, "status": "False", "reason": "NotOurs",
            "message": "m", "lastTransitionTime": "2026-01-01T00:01:00Z"});
        serde_json::from_value(json!({"apiVersion": R::api_version(&()), "kind": R::kind(&()),
            "metadata": metadata, "spec": spec, "status": {"conditions": [condition]}}))
        .unwrap()
    }

    fn on_azure(deleted: Option<&str>) -> AzurePrivateLinkService {
        let spec = json!({"subscriptionID": "s", "resourceGroupName": "g", "location": "eastus",
            "guestSubnetID": "x", "guestVNetID": "y"});
        cr(spec, deleted, "AzurePLSCreated")
    }

    fn on_aws() -> AWSEndpointService {
        cr(
            json!({"networkLoadBalancerName": "a1"}),
            None,
            "AWSEndpointServiceAvailable",
        )
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// The status, reason and age in seconds of each condition.
    fn conditions<R: ServedResource>(cr: &R) -> Vec<(ConditionType, Option<Status>, Option<Reason>, u64)> {
        let observed = observed_object(cr, at("2026-01-01T00:02:00Z"));
        assert_eq!(
            (&*observed.namespace, &*observed.name),
            ("clusters-one", "private-router")
        );
        assert_eq!(observed.deleting_for, None);
        let all = observed.conditions.into_iter();
        all.map(|one| (one.kind, one.status, one.reason, one.age.as_secs()))
            .collect()
    }

    #[test]
    fn condition_is_as_old_as_its_status_or_else_as_the_object() {
        let foreign = |kind| (kind, Some(Status::False), Some(Reason::NotOurs), 60);
        let missing = |kind| (kind, None, None, 120);
        let azure = conditions(&on_azure(None));
        assert_eq!(azure.len(), AzurePrivateLinkService::CONDITIONS.len());
        assert_eq!(azure[1], foreign(ConditionType::AzurePLSCreated));
        assert_eq!(azure[4], missing(ConditionType::AzurePrivateLinkServiceAvailable));
        let aws = [
            foreign(ConditionType::AWSEndpointServiceAvailable),
            missing(ConditionType::AWSEndpointAvailable),
        ];
        assert_eq!(conditions(&on_aws()), aws);
    }

    #[test]
    fn every_summary_and_no_other_condition_beside_it_is_decisive() {
        fn decisive<R: CustomResource>() -> BTreeSet<ConditionType> {
            let written = R::PARTS
                .iter()
                .flat_map(|part| part.conditions.iter().chain(&part.summary));
            let written: BTreeSet<_> = written.copied().collect();
            assert_eq!(written, ConditionType::of(R::PLATFORM).iter().copied().collect());
            written.into_iter().filter(|kind| kind.is_decisive()).collect()
        }
        let summary = AzurePrivateLinkService::summary_kind().unwrap();
        assert_eq!(decisive::<AzurePrivateLinkService>(), BTreeSet::from([summary]));
        assert_eq!(AWSEndpointService::summary_kind(), None);
        assert_eq!(
            decisive::<AWSEndpointService>(),
            BTreeSet::from(AWSEndpointService::CONDITIONS)
        );
    }

    #[test]
    fn time_that_lies_ahead_is_no_age() {
        let cr = on_azure(Some("2026-01-01T00:03:00Z"));
        let deleting_for = |now: &str| observed_object(&cr, at(now)).deleting_for;
        assert_eq!(deleting_for("2026-01-01T00:02:00Z"), Some(Duration::ZERO));
        assert_eq!(deleting_for("2026-01-01T00:03:30Z"), Some(Duration::from_secs(30)));
    }
}
