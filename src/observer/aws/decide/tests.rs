use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use rstest::rstest;
use serde_json::Value;

use super::*;
use crate::api::hypershift::{EndpointAccess, PlatformType};

const HOST: &str = "a1b2c3-0123abcd.elb.us-east-1.amazonaws.com";

fn region() -> Region {
    Region::parse("us-east-1").unwrap()
}

fn now() -> Timestamp {
    "2026-08-22T10:00:00Z".parse().unwrap()
}

fn service() -> Service {
    serde_json::from_value(
        json!({"metadata": {"name": "private-router", "namespace": "clusters-example",
        "ownerReferences": [{"apiVersion": "v", "kind": "HostedControlPlane", "name": "example", "uid": "hcp"}]},
        "status": {"loadBalancer": {"ingress": [{"hostname": HOST}]}}}),
    )
    .unwrap()
}

fn control_plane() -> HostedControlPlane {
    serde_json::from_value(
        json!({"metadata": {"name": "example", "namespace": "clusters-example", "uid": "hcp",
        "annotations": {"hypershift.openshift.io/cluster": "clusters/example"}},
        "spec": {"platform": {"type": "AWS", "aws": {"region": "us-east-1", "endpointAccess": "Private",
            "resourceTags": [{"key": "kubernetes.io/cluster/example-x7k2p", "value": "owned"}]}}}}),
    )
    .unwrap()
}

fn aws(control_plane: &mut HostedControlPlane) -> &mut AwsPlatform {
    control_plane.spec.platform.aws.as_mut().unwrap()
}

fn changed(change: impl FnOnce(&mut Service, &mut HostedControlPlane)) -> Verdict {
    let (mut service, mut control_plane) = (service(), control_plane());
    change(&mut service, &mut control_plane);
    decide(Some(&service), &control_plane, &region(), now())
}

fn ingress(points: Value) -> Verdict {
    changed(|s, _| s.status = serde_json::from_value(json!({"loadBalancer": {"ingress": points}})).unwrap())
}

fn paused(until: &str) -> Verdict {
    changed(|_, c| c.spec.paused_until = Some(until.into()))
}

fn desired_of(verdict: Verdict) -> DesiredResource {
    match verdict {
        Verdict::Desired(desired) => *desired,
        other => panic!("{other:?}"),
    }
}

fn desired() -> DesiredResource {
    desired_of(changed(|_, _| {}))
}

#[rstest]
#[case::router("private-router")]
#[case::api_server("kube-apiserver-private")]
fn custom_resource_has_neither_owner_nor_annotation(#[case] name: &str) {
    let made = desired_of(changed(|s, _| s.metadata.name = Some(name.into())));
    let expected = json!({"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AWSEndpointService",
        "metadata": {"name": name, "namespace": "clusters-example"},
        "spec": {"networkLoadBalancerName": "a1b2c3",
            "resourceTags": [{"key": "kubernetes.io/cluster/example-x7k2p", "value": "owned"}]}});
    assert_eq!(json!(made.resource), expected);
    assert_eq!(made.complaints, [""; 0]);
}

const NO_HOST: &str = "the Service has no host name of a load balancer of the region yet";

#[rstest]
#[case::public(changed(|_, c| aws(c).endpoint_access = Some(EndpointAccess::Public)), "ignore")]
#[case::no_access(changed(|_, c| aws(c).endpoint_access = None), "ignore")]
#[case::new_access(changed(|_, c| aws(c).endpoint_access = Some(EndpointAccess::Other)), "ignore")]
#[case::not_aws(changed(|_, c| c.spec.platform.kind = Some(PlatformType::Azure)), "ignore")]
#[case::platform_without_details(changed(|_, c| c.spec.platform.aws = None), "ignore")]
#[case::control_plane_is_deleting(changed(|_, c| c.metadata.deletion_timestamp = Some(Time(now()))), "ignore")]
#[case::paused(paused("true"), "the cluster is paused")]
#[case::no_service(decide(None, &control_plane(), &region(), now()), "there is no Service")]
#[case::service_is_deleting(
    changed(|s, _| s.metadata.deletion_timestamp = Some(Time(now()))),
    "the Service is being deleted"
)]
#[case::foreign_service(
    changed(|s, _| s.metadata.owner_references = None),
    "the HostedControlPlane does not own the Service"
)]
#[case::no_status(changed(|s, _| s.status = None), NO_HOST)]
#[case::no_ingress(ingress(json!([])), NO_HOST)]
#[case::address_only(ingress(json!([{"ip": "10.1.0.4"}])), NO_HOST)]
#[case::empty_name(ingress(json!([{"hostname": ""}])), NO_HOST)]
#[case::other_region(ingress(json!([{"hostname": "a1-01.elb.us-west-2.amazonaws.com"}])), NO_HOST)]
#[case::classic_load_balancer(ingress(json!([{"hostname": "a1-01.us-east-1.elb.amazonaws.com"}])), NO_HOST)]
#[case::forged_domain(ingress(json!([{"hostname": format!("{HOST}.example.com")}])), NO_HOST)]
#[case::junk(ingress(json!([{"hostname": "a&b-1.elb.us-east-1.amazonaws.com"}])), NO_HOST)]
fn control_plane_that_is_not_ready_makes_nothing(#[case] verdict: Verdict, #[case] expected: &str) {
    match verdict {
        Verdict::Ignore(_) => assert_eq!(expected, "ignore"),
        Verdict::Wait(why, again) => assert_eq!((why, again), (expected, None)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn first_host_name_of_a_load_balancer_of_the_region_counts() {
    let points = json!([{"ip": "10.1.0.4"}, {"hostname": "proxy.example.com"},
        {"hostname": "k8s-x-7f-01.elb.us-east-1.amazonaws.com"}, {"hostname": HOST}]);
    let made = desired_of(ingress(points));
    assert_eq!(made.resource.spec.network_load_balancer_name, "k8s-x-7f");
}

#[test]
fn cluster_with_a_public_side_too_has_a_private_path() {
    desired_of(changed(|_, c| {
        aws(c).endpoint_access = Some(EndpointAccess::PublicAndPrivate);
    }));
}

#[test]
fn end_of_a_pause_is_reconciled() {
    let Verdict::Wait(why, Some(again)) = paused("2026-08-22T10:01:30Z") else {
        panic!()
    };
    assert_eq!(
        (why, again.after),
        ("the cluster is paused", std::time::Duration::from_secs(90))
    );
}

#[test]
fn pause_that_cannot_be_read_is_reported_and_does_not_count() {
    let made = desired_of(paused("tomorrow"));
    assert!(made.complaints[0].starts_with("pausedUntil is neither"), "{made:?}");
}

fn tag(key: &str, value: &str) -> ResourceTag {
    ResourceTag {
        key: key.to_owned(),
        value: value.to_owned(),
    }
}

#[rstest]
#[case::empty_key("", "v", false)]
#[case::empty_value("k", "", false)]
#[case::key_of_the_longest(&"k".repeat(128), "v", true)]
#[case::key_too_long(&"k".repeat(129), "v", false)]
#[case::value_of_the_longest("k", &"v".repeat(256), true)]
#[case::value_too_long("k", &"v".repeat(257), false)]
#[case::all_signs("_.:/=+-@aZ0", "_.:/=+-@aZ0", true)]
#[case::space("cost center", "v", false)]
#[case::line("k", "v\n", false)]
#[case::unicode("k", "ü", false)]
#[case::parameter("k", "v&Action=DeleteVpc", false)]
fn tag_that_the_definition_refuses_is_left_out(#[case] key: &str, #[case] value: &str, #[case] fits: bool) {
    let (usable, complaint) = tags(&[tag("team", "x"), tag(key, value)]);
    let expected = [tag("team", "x"), tag(key, value)];
    assert_eq!(usable, expected[..if fits { 2 } else { 1 }]);
    let left_out = "platform.aws.resourceTags: 1 that AWSEndpointServices cannot have are left out";
    assert_eq!(complaint.as_deref(), (!fits).then_some(left_out));
}

#[test]
fn tags_beyond_the_most_are_left_out() {
    let many: Vec<ResourceTag> = (0..30).map(|n| tag(&format!("k{n}"), "v")).collect();
    let (usable, complaint) = tags(&many);
    assert_eq!(usable, many[..MOST_TAGS]);
    assert!(complaint.unwrap().contains(": 5 that"));
}

#[test]
fn bad_tag_keeps_no_other_from_being_copied() {
    let made = desired_of(changed(|_, c| aws(c).resource_tags.push(tag("a b", "v"))));
    assert_eq!(made.resource.spec.resource_tags.len(), 1);
    assert_eq!(made.complaints.len(), 1);
}

/// As role `ho` and HyperShift leave it.
fn current() -> AWSEndpointService {
    serde_json::from_value(
        json!({"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AWSEndpointService",
        "metadata": {"name": "private-router", "namespace": "clusters-example", "resourceVersion": "7",
            "annotations": {"hypershift.openshift.io/cluster": "clusters/example"}},
        "spec": {"networkLoadBalancerName": "a1b2c3", "subnetIDs": ["subnet-0123456789abcdef0"],
            "resourceTags": [{"key": "kubernetes.io/cluster/example-x7k2p", "value": "owned"}]}}),
    )
    .unwrap()
}

fn patched(change_current: impl FnOnce(&mut AWSEndpointService), desired: &DesiredResource) -> Value {
    let mut current = current();
    change_current(&mut current);
    match change(&current, desired) {
        SpecChange::Patch(patch) => patch,
        other => panic!("{other:?}"),
    }
}

#[test]
fn custom_resource_of_hypershift_needs_no_change() {
    let mut current = current();
    assert_eq!(change(&current, &desired()), SpecChange::None);
    current.spec.network_load_balancer_name = "A1B2C3".into();
    assert_eq!(change(&current, &desired()), SpecChange::None);
}

#[test]
fn only_what_differs_is_changed() {
    let metadata = json!({"resourceVersion": "7"});
    let other_name = patched(|cr| cr.spec.network_load_balancer_name = "old".into(), &desired());
    assert_eq!(
        other_name,
        json!({"metadata": metadata, "spec": {"networkLoadBalancerName": "a1b2c3"}})
    );
    let tags = json!([{"key": "kubernetes.io/cluster/example-x7k2p", "value": "owned"}]);
    let other_tags = patched(|cr| cr.spec.resource_tags = vec![tag("x", "y")], &desired());
    assert_eq!(
        other_tags,
        json!({"metadata": metadata, "spec": {"resourceTags": tags}})
    );
    let without_tags = desired_of(changed(|_, c| aws(c).resource_tags.clear()));
    let removed = patched(|_| {}, &without_tags);
    assert_eq!(removed, json!({"metadata": metadata, "spec": {"resourceTags": null}}));
}

fn admitted(planes: usize, change: impl FnOnce(&mut HostedControlPlane)) -> Admission {
    let mut found = control_plane();
    change(&mut found);
    let problem = (planes > 1).then(|| SEVERAL.to_owned());
    admission(&found.spec, problem, &region())
}

fn refused(text: &str) -> Admission {
    Admission::Refused(text.to_owned())
}

fn in_region(name: Option<&str>) -> impl FnOnce(&mut HostedControlPlane) {
    let name = name.map(str::to_owned);
    move |found| aws(found).region = name
}

fn public(found: &mut HostedControlPlane) {
    aws(found).endpoint_access = Some(EndpointAccess::Public);
}

const SEVERAL: &str = "the namespace has several HostedControlPlanes";
const STRANGE: &str = "CloudMismatch: platform.aws.region is no known region, this process serves us-east-1";

#[rstest]
#[case::only_one(admitted(1, |_| {}), Admission::Admitted)]
#[case::public(admitted(1, public), Admission::Admitted)]
#[case::one_of_two(admitted(2, |_| {}), refused(SEVERAL))]
#[case::public_one_of_two(admitted(2, public), Admission::Ignored)]
#[case::not_aws(admitted(2, |found| found.spec.platform.kind = None), Admission::Ignored)]
#[case::other_region(
    admitted(1, in_region(Some("us-west-2"))),
    refused("CloudMismatch: the cluster is in us-west-2, this process serves us-east-1")
)]
#[case::no_region(admitted(1, in_region(None)), refused(STRANGE))]
#[case::no_name_of_a_region(admitted(1, in_region(Some("us-east-1\nx"))), refused(STRANGE))]
#[case::public_in_another_region(
    admitted(1, |found| { public(found); in_region(Some("us-west-2"))(found); }),
    Admission::Ignored
)]
fn one_control_plane_of_the_region_is_served(#[case] found: Admission, #[case] expected: Admission) {
    assert_eq!(found, expected);
}
