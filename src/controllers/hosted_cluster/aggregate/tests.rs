use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use rstest::rstest;

use super::*;
use crate::controllers::samples;

const NOW: Timestamp = Timestamp::constant(2_000, 0);

fn cluster() -> ClusterRef {
    "clusters/example".parse().unwrap()
}

fn condition(kind: &str, status: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": "X", "message": message, "lastTransitionTime": "1970-01-01T00:00:01Z"})
}

fn cr(name: &str, conditions: &[Value]) -> AzurePrivateLinkService {
    let mut cr = samples::cr(
        json!({"conditions": conditions}),
        json!({CLUSTER_ANNOTATION: "clusters/example"}),
    );
    cr.metadata.name = Some(name.to_owned());
    cr
}

fn hosted(conditions: &[Value]) -> Value {
    json!({"metadata": {"resourceVersion": "7", "generation": 3}, "status": {"conditions": conditions}})
}

/// The patch of a process that has published nothing yet.
fn first(hosted: &Value, found: &[AzurePrivateLinkService], now: Timestamp) -> Option<Value> {
    written(hosted, &desired_conditions(hosted, &cluster(), found, now)?)
}

fn written(hosted: &Value, desired: &DesiredConditions) -> Option<Value> {
    let published = PublishedConditions::default();
    desired
        .to_be_written(&desired.shown(hosted), &published, Instant::now())
        .then(|| desired.patch(hosted, &desired.conditions))
}

/// Status, reason and message of the condition after the patch.
fn summary(patch: &Value, kind: &str) -> Option<(String, String, String)> {
    let all = patch.pointer("/status/conditions")?.as_array()?;
    let found = all.iter().find(|condition| condition["type"] == kind)?;
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    Some((text("status"), text("reason"), text("message")))
}

fn parts(status: &str, reason: &str, message: &str) -> Option<(String, String, String)> {
    Some((status.to_owned(), reason.to_owned(), message.to_owned()))
}

const KIND: &str = "AzurePLSCreated";

#[rstest]
#[case::nobody_reports_it(&[], &[], parts("Unknown", "StatusUnknown", "AzurePrivateLinkService conditions not found"))]
#[case::both_hold(&[condition(KIND, "True", "a")], &[condition(KIND, "True", "b")], parts("True", "AzureSuccess", "All is well"))]
#[case::one_lacks_it(&[condition(KIND, "True", "a")], &[], parts("True", "AzureSuccess", "All is well"))]
#[case::one_is_unknown(&[condition(KIND, "Unknown", "a")], &[condition(KIND, "True", "b")], parts("True", "AzureSuccess", "All is well"))]
#[case::one_fails(&[condition(KIND, "True", "a")], &[condition(KIND, "False", "b")], parts("False", "AzureError", "b"))]
#[case::both_fail(&[condition(KIND, "False", "a")], &[condition(KIND, "False", "b")], parts("False", "AzureError", "b; a"))]
fn conditions_of_two_custom_resources_are_summed_up(
    #[case] router: &[Value],
    #[case] oauth: &[Value],
    #[case] expected: Option<(String, String, String)>,
) {
    let found = [cr("private-router", router), cr("oauth-openshift", oauth)];
    let patch = first(&hosted(&[]), &found, NOW).unwrap();
    assert_eq!(summary(&patch, KIND), expected);
}

#[rstest]
#[case::as_before("True", "1970-01-01T00:00:01Z")]
#[case::otherwise("False", "1970-01-01T00:33:20Z")]
fn time_is_that_of_the_last_change_of_the_status(#[case] before: &str, #[case] since: &str) {
    let stored = [condition(KIND, before, "a")];
    let patch = first(
        &hosted(&stored),
        &[cr("private-router", &[condition(KIND, "True", "b")])],
        NOW,
    )
    .unwrap();
    let all = patch["status"]["conditions"].as_array().unwrap();
    let summary = all.iter().find(|one| one["type"] == KIND).unwrap();
    assert_eq!(
        (&summary["lastTransitionTime"], &summary["observedGeneration"]),
        (&json!(since), &json!(3))
    );
}

#[test]
fn nothing_is_written_when_only_time_differs() {
    let found = [cr("private-router", &[condition(KIND, "True", "a")])];
    let written = first(&hosted(&[]), &found, NOW).unwrap();
    let stored = written["status"]["conditions"].as_array().unwrap();
    assert_eq!(stored.len(), 5);
    assert_eq!(first(&hosted(stored), &found, Timestamp::constant(3_000, 0)), None);
}

#[test]
fn conditions_of_others_stay_and_the_write_is_guarded() {
    let other = condition("Available", "True", "theirs");
    let patch = first(&hosted(std::slice::from_ref(&other)), &[cr("private-router", &[])], NOW).unwrap();
    assert_eq!(patch["status"]["conditions"][0], other);
    assert_eq!(patch["metadata"]["resourceVersion"], "7");
}

#[test]
fn stale_conditions_go_with_the_last_custom_resource() {
    let stored = [condition("Available", "True", "theirs"), condition(KIND, "True", "a")];
    let patched = first(&hosted(&stored), &[], NOW).unwrap();
    assert_eq!(patched["status"]["conditions"], json!([stored[0]]));
    assert_eq!(first(&hosted(&stored[..1]), &[], NOW), None);
}

#[test]
fn custom_resource_of_another_cluster_does_not_count() {
    let mut stranger = cr("private-router", &[condition(KIND, "False", "x")]);
    stranger.metadata.annotations = Some([(CLUSTER_ANNOTATION.to_owned(), "other/one".to_owned())].into());
    assert_eq!(first(&hosted(&[]), &[stranger], NOW), None);
}

/// Ten minutes in which somebody writes `theirs` again after each write of ours, and we reconcile every second. Returns
/// the seconds in which we wrote.
fn beside(theirs: &[Value], found: &[AzurePrivateLinkService]) -> Vec<u64> {
    let (began, there) = (Instant::now(), hosted(theirs));
    let mut published = PublishedConditions::default();
    let desired = desired_conditions(&there, &cluster(), found, NOW).unwrap();
    let mut shown = desired.shown(&there);
    let writes = (0..600).filter(|second| {
        let now = began + Duration::from_secs(*second);
        let later = Time(NOW + Duration::from_secs(*second));
        shown
            .iter_mut()
            .for_each(|one| one.last_transition_time = later.clone());
        let due = desired.to_be_written(&shown, &published, now);
        if due {
            published.written(&shown, &desired.conditions, now);
        }
        due
    });
    writes.collect()
}

#[rstest]
#[case::messages_in_another_order("False", "a; b", &[0])]
#[case::another_status("True", "All is well", &[0, 1, 61, 181, 421])]
fn hypershift_that_sums_up_otherwise_is_not_answered_every_time(
    #[case] status: &str,
    #[case] message: &str,
    #[case] writes: &[u64],
) {
    let failing =
        |message: &str| AzurePrivateLinkService::CONDITIONS.map(|kind| condition(kind.as_str(), "False", message));
    let found = [
        cr("private-router", &failing("a")),
        cr("oauth-openshift", &failing("b")),
    ];
    let theirs = AzurePrivateLinkService::CONDITIONS.map(|kind| condition(kind.as_str(), status, message));
    assert_eq!(beside(&theirs, &found), writes);
}

#[test]
fn conditions_stay_while_only_unnamed_custom_resources_are_left() {
    let mut unnamed = cr("private-router", &[]);
    unnamed.metadata.annotations = None;
    let there = hosted(&[condition(KIND, "True", "a")]);
    assert_eq!(desired_conditions(&there, &cluster(), &[unnamed], NOW), None);
}

#[rstest]
#[case::private_link(json!({"type": "Azure", "azure": {"private": {"type": "PrivateLink"}}}), (true, false))]
#[case::public_now(json!({"type": "Azure", "azure": {}}), (true, false))]
#[case::swift(json!({"type": "Azure", "azure": {"private": {"type": "Swift"}}}), (false, false))]
#[case::private_on_aws(json!({"type": "AWS", "aws": {"endpointAccess": "Private"}}), (false, true))]
#[case::public_on_aws(json!({"type": "AWS", "aws": {"endpointAccess": "Public"}}), (false, true))]
#[case::another_platform(json!({"type": "None"}), (false, false))]
fn each_cloud_sums_up_its_own_clusters_azure_without_swift(#[case] platform: Value, #[case] expected: (bool, bool)) {
    let spec: ClusterSpec = serde_json::from_value(json!({"platform": platform})).unwrap();
    let concerns = (
        AzurePrivateLinkService::concerns(&spec),
        AWSEndpointService::concerns(&spec),
    );
    assert_eq!(concerns, expected);
}

mod aws;
