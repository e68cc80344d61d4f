//! How long role `ho` waits in a deletion for the guest's side, and what of that may be left. Pure.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;

use crate::api::markers::CPO_INTENT;
use crate::api::markers::aws::CPO_FINALIZER;
use crate::api::{AWSEndpointService, held_by};
use crate::hypershift::aws::intent::CpoIntent;
use crate::hypershift::intent;

/// The longest that role `ho` waits with a deletion while role `cpo` is at work.
///
/// Rule: X9 in `docs/compatibility.md`.
const GUEST_FIRST: Duration = Duration::from_secs(300);

/// The longest that role `ho` keeps a custom resource for role `cpo`, whose finalizer HyperShift has taken away: an
/// endpoint takes a minute or so to go, and its security group up to four more.
///
/// Rule: X3 in `docs/compatibility.md`.
const GUEST_LAST: Duration = Duration::from_secs(600);

/// How long to wait still before anything of the management side is deleted.
pub(super) fn wait_to_begin(cr: &AWSEndpointService, now: Timestamp) -> Option<Duration> {
    let is_at_work = held_by(cr, CPO_FINALIZER) || has_recorded(cr);
    remaining(cr, GUEST_FIRST, now).filter(|_| is_at_work)
}

/// How long to wait still before the custom resource is released, which is all that tells role `cpo` what to delete.
pub(super) fn wait_to_end(cr: &AWSEndpointService, now: Timestamp) -> Option<Duration> {
    remaining(cr, GUEST_LAST, now).filter(|_| may_be_left(cr))
}

fn remaining(cr: &AWSEndpointService, longest: Duration, now: Timestamp) -> Option<Duration> {
    let since = cr.metadata.deletion_timestamp.as_ref().map_or(now, |time| time.0);
    let waited = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    let remaining = longest.checked_sub(waited)?;
    (!remaining.is_zero()).then_some(remaining)
}

/// Whether the guest's side may be left when the custom resource goes: role `cpo` goes on by what it has recorded, but
/// nothing holds the custom resource for it.
fn may_be_left(cr: &AWSEndpointService) -> bool {
    !held_by(cr, CPO_FINALIZER) && has_recorded(cr)
}

fn has_recorded(cr: &AWSEndpointService) -> bool {
    cr.annotations().contains_key(CPO_INTENT)
}

/// What of the guest's side may be left, in words for an Event, with the ids that are recorded.
pub(super) fn left(cr: &AWSEndpointService) -> Option<String> {
    let recorded: CpoIntent = intent::read(cr.annotations().get(CPO_INTENT)).unwrap_or_default();
    let parts = [
        ("endpoint", recorded.endpoint_id()),
        ("security group", recorded.security_group_id()),
        ("records in hosted zone", recorded.zone_id()),
        ("VPC", recorded.vpc()),
    ];
    let named = parts.iter().filter_map(|(what, id)| Some(format!("{what} {}", (*id)?)));
    let named: Vec<String> = named.collect();
    let what = if named.is_empty() {
        "no id is recorded".to_owned()
    } else {
        named.join(", ")
    };
    may_be_left(cr).then(|| format!("the guest's side may be left, as role cpo has not deleted it: {what}"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    const INTENT: &str = r#"{"vpc": "vpc-00000001", "endpointID": "vpce-00000001", "securityGroupID": "sg-x",
        "dnsZoneID": "Z1"}"#;

    fn deleted(finalizers: &[&str], recorded: Option<&str>) -> AWSEndpointService {
        serde_json::from_value(json!({
            "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AWSEndpointService",
            "metadata": {"name": "private-router", "deletionTimestamp": "2026-01-01T00:00:00Z",
                "finalizers": finalizers, "annotations": {CPO_INTENT: recorded.unwrap_or_default()}},
            "spec": {"networkLoadBalancerName": "a1"},
        }))
        .map(|mut cr: AWSEndpointService| {
            if recorded.is_none() {
                cr.annotations_mut().clear();
            }
            cr
        })
        .unwrap()
    }

    #[rstest]
    #[case::held(&[CPO_FINALIZER], Some(INTENT), Some(290), None)]
    #[case::stripped(&[], Some(INTENT), Some(290), Some(590))]
    #[case::done(&[], None, None, None)]
    fn guests_side_is_waited_for_while_it_is_there(
        #[case] finalizers: &[&str],
        #[case] recorded: Option<&str>,
        #[case] begin: Option<u64>,
        #[case] end: Option<u64>,
    ) {
        let cr = deleted(finalizers, recorded);
        let now = "2026-01-01T00:00:10Z".parse().unwrap();
        let waits = [wait_to_begin(&cr, now), wait_to_end(&cr, now)];
        assert_eq!(waits, [begin, end].map(|seconds| seconds.map(Duration::from_secs)));
        let late = "2026-01-01T00:10:00Z".parse().unwrap();
        assert_eq!([wait_to_begin(&cr, late), wait_to_end(&cr, late)], [None, None]);
    }

    #[rstest]
    #[case::held(&[CPO_FINALIZER], Some(INTENT), None)]
    #[case::done(&[], None, None)]
    #[case::stripped(&[], Some(INTENT), Some("endpoint vpce-00000001, records in hosted zone Z1, VPC vpc-00000001"))]
    #[case::unreadable(&[], Some("{"), Some("no id is recorded"))]
    fn what_may_be_left_is_named_by_ids_of_the_right_form(
        #[case] finalizers: &[&str],
        #[case] recorded: Option<&str>,
        #[case] expected: Option<&str>,
    ) {
        let left = left(&deleted(finalizers, recorded));
        assert_eq!(left.is_some(), expected.is_some(), "{left:?}");
        assert!(left.unwrap_or_default().ends_with(expected.unwrap_or_default()));
    }
}
