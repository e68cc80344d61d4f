//! The sums on AWS, as HyperShift's operator writes them.

use super::*;

const SERVICE: &str = "AWSEndpointServiceAvailable";
const ENDPOINT: &str = "AWSEndpointAvailable";

fn aws_cr(name: &str, named: Option<&str>, conditions: &[Value]) -> AWSEndpointService {
    let annotations = named.map(|named| json!({CLUSTER_ANNOTATION: named}));
    serde_json::from_value(json!({
        "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AWSEndpointService",
        "metadata": {"name": name, "namespace": "clusters-example", "annotations": annotations},
        "spec": {"networkLoadBalancerName": "a"}, "status": {"conditions": conditions}}))
    .unwrap()
}

fn own(name: &str, conditions: &[Value]) -> AWSEndpointService {
    aws_cr(name, Some("clusters/example"), conditions)
}

/// Status, reason and message of both conditions.
fn sums(found: &[AWSEndpointService]) -> [Option<(String, String, String)>; 2] {
    let there = hosted(&[]);
    let desired = desired_conditions(&there, &cluster(), found, NOW).unwrap();
    let patch = desired.patch(&there, &desired.conditions);
    [SERVICE, ENDPOINT].map(|kind| summary(&patch, kind))
}

fn missing() -> Option<(String, String, String)> {
    parts("Unknown", "StatusUnknown", "AWSEndpointService conditions not found")
}

fn well() -> Option<(String, String, String)> {
    parts("True", "AWSSuccess", "All is well")
}

#[test]
fn cluster_without_custom_resources_has_both_conditions() {
    assert_eq!(sums(&[]), [missing(), missing()]);
}

#[rstest]
#[case::new(&[], &[], [missing(), missing()])]
#[case::both_hold(
    &[condition(SERVICE, "True", ""), condition(ENDPOINT, "True", "")],
    &[condition(SERVICE, "True", ""), condition(ENDPOINT, "True", "")],
    [well(), well()]
)]
#[case::guest_has_not_begun(&[condition(SERVICE, "True", "")], &[], [well(), missing()])]
#[case::one_fails(
    &[condition(SERVICE, "True", ""), condition(ENDPOINT, "False", "UnauthorizedOperation")],
    &[condition(SERVICE, "True", ""), condition(ENDPOINT, "True", "")],
    [well(), parts("False", "AWSError", "UnauthorizedOperation")]
)]
#[case::both_fail(
    &[condition(SERVICE, "False", "a"), condition(ENDPOINT, "True", "")],
    &[condition(SERVICE, "False", "b"), condition(ENDPOINT, "Unknown", "c")],
    [parts("False", "AWSError", "b; a"), well()]
)]
fn conditions_of_two_endpoint_services_are_summed_up(
    #[case] router: &[Value],
    #[case] api_server: &[Value],
    #[case] expected: [Option<(String, String, String)>; 2],
) {
    let found = [own("private-router", router), own("kube-apiserver-private", api_server)];
    assert_eq!(sums(&found), expected);
}

#[test]
fn endpoint_service_that_names_no_cluster_counts_on_aws() {
    let failing = [condition(SERVICE, "False", "a")];
    let unnamed = aws_cr("private-router", None, &failing);
    assert_eq!(sums(&[unnamed])[0], parts("False", "AWSError", "a"));
    let of_another = aws_cr("private-router", Some("other/one"), &failing);
    assert_eq!(desired_conditions(&hosted(&[]), &cluster(), &[of_another], NOW), None);
}

#[test]
fn failed_list_touches_the_condition_of_the_endpoint_alone() {
    let stored = [
        condition("Available", "True", "theirs"),
        condition(SERVICE, "True", "a"),
        condition(ENDPOINT, "True", "b"),
    ];
    let there = hosted(&stored);
    let desired = unlisted_condition::<AWSEndpointService>(&there, "clusters-example", "no answer", NOW);
    let patch = written(&there, &desired).unwrap();
    let message = "error listing awsendpointservices in namespace clusters-example: no answer";
    assert_eq!(summary(&patch, ENDPOINT), parts("Unknown", "NotFound", message));
    let all = patch["status"]["conditions"].as_array().unwrap();
    assert_eq!((all.len(), &all[..2]), (3, &stored[..2]));
    assert_eq!(patch["metadata"]["resourceVersion"], "7");
    assert_eq!(written(&hosted(all), &desired), None);
}
