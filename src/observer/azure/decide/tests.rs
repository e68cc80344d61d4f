use std::time::Duration;

use rstest::rstest;

use super::*;
use crate::runtime::requeue::Requeue;

const VNET: &str = "/subscriptions/11111111-1111-4111-8111-111111111111/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/v";

fn service() -> Service {
    serde_json::from_value(
        json!({"metadata": {"name": "private-router", "namespace": "clusters-example",
        "annotations": {INTERNAL_LOAD_BALANCER_ANNOTATION: "true"},
        "ownerReferences": [{"apiVersion": "v", "kind": "HostedControlPlane", "name": "example", "uid": "hcp"}]},
        "status": {"loadBalancer": {"ingress": [{"hostname": "x"}, {"ip": "10.1.0.4"}]}}}),
    )
    .unwrap()
}

fn control_plane() -> HostedControlPlane {
    serde_json::from_value(json!({"metadata": {"name": "example", "namespace": "clusters-example", "uid": "hcp",
        "annotations": {CLUSTER_ANNOTATION: "clusters/example"}},
        "spec": {"clusterID": "id", "infraID": "infra", "dns": {"baseDomain": "example.com"},
            "services": [{"service": "OAuthServer", "servicePublishingStrategy":
                {"type": "Route", "route": {"hostname": "oauth-example.apps.example.com"}}}],
            "platform": {"type": "Azure", "azure": {"location": "East US", "resourceGroup": "guest",
                "subscriptionID": "11111111-1111-4111-8111-111111111111", "vnetID": VNET, "subnetID": format!("{VNET}/subnets/default"),
                "topology": "Private", "private": {"type": "PrivateLink"}}}}}))
    .unwrap()
}

fn now() -> Timestamp {
    "2026-08-22T10:00:00Z".parse().unwrap()
}

fn verdict(service: &Service, control_plane: &HostedControlPlane) -> Verdict {
    decide(Some(service), control_plane, "AzurePublicCloud", now())
}

fn desired() -> DesiredResource {
    match verdict(&service(), &control_plane()) {
        Verdict::Desired(desired) => *desired,
        other => panic!("{other:?}"),
    }
}

fn azure(control_plane: &mut HostedControlPlane) -> &mut AzurePlatform {
    control_plane.spec.platform.azure.as_mut().unwrap()
}

fn changed(change: impl FnOnce(&mut Service, &mut HostedControlPlane)) -> Verdict {
    let (mut service, mut control_plane) = (service(), control_plane());
    change(&mut service, &mut control_plane);
    verdict(&service, &control_plane)
}

fn paused(until: &str) -> Verdict {
    changed(|_, c| c.spec.paused_until = Some(until.into()))
}

fn ingress(points: Value) -> Verdict {
    changed(|s, _| s.status = serde_json::from_value(json!({"loadBalancer": {"ingress": points}})).unwrap())
}

#[test]
fn custom_resource_is_named_after_its_service_and_has_an_owner() {
    let mut service = service();
    service.metadata.name = Some("oauth-openshift".into());
    let Verdict::Desired(desired) = verdict(&service, &control_plane()) else {
        panic!()
    };
    let metadata = json!(desired.resource.metadata);
    assert_eq!(
        metadata,
        json!({"name": "oauth-openshift", "namespace": "clusters-example", "annotations": {CLUSTER_ANNOTATION: "clusters/example"},
            "ownerReferences": [{"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedControlPlane", "name": "example",
                "uid": "hcp", "controller": true, "blockOwnerDeletion": true}]})
    );
    assert_eq!(desired.resource.spec.load_balancer_ip.as_deref(), Some("10.1.0.4"));
}

#[rstest]
#[case::not_internal(changed(|s, _| s.metadata.annotations = None), "ignore")]
#[case::internal_in_other_words(changed(|s, _| { s.annotations_mut().insert(INTERNAL_LOAD_BALANCER_ANNOTATION.into(), "True".into()); }), "ignore")]
#[case::public(changed(|_, c| azure(c).topology = Some(Topology::Public)), "ignore")]
#[case::no_topology(changed(|_, c| azure(c).topology = None), "ignore")]
#[case::swift(changed(|_, c| azure(c).private.as_mut().unwrap().kind = Some(PrivateType::Other)), "ignore")]
#[case::not_azure(changed(|_, c| c.spec.platform.kind = Some(crate::api::hypershift::PlatformType::Other)), "ignore")]
#[case::control_plane_is_deleting(changed(|_, c| c.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()))), "ignore")]
#[case::service_is_deleting(changed(|s, _| s.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()))), "the Service is being deleted")]
#[case::no_service(decide(None, &control_plane(), "AzurePublicCloud", now()), "there is no Service")]
#[case::foreign_service(changed(|s, _| s.metadata.owner_references = None), "the HostedControlPlane does not own the Service")]
#[case::no_status(changed(|s, _| s.status = None), "the Service has no address yet")]
#[case::no_point(ingress(json!([])), "the Service has no address yet")]
#[case::host_name_only(ingress(json!([{"hostname": "lb.example.com"}])), "the Service has a host name instead of an address")]
#[case::empty_address(ingress(json!([{"ip": ""}])), "the Service has no address yet")]
#[case::paused(paused("true"), "the cluster is paused")]
#[case::other_cloud(changed(|_, c| azure(c).cloud = Some("AzureChinaCloud".into())), "CloudMismatch: the cluster is in AzureChinaCloud, this process serves AzurePublicCloud")]
#[case::bad_id(changed(|_, c| azure(c).vnet_id = Some("x".into())), "platform.azure.vnetID: not an ARM resource id")]
fn a_control_plane_that_is_not_ready_makes_nothing(#[case] verdict: Verdict, #[case] expected: &str) {
    match verdict {
        Verdict::Ignore(_) => assert_eq!(expected, "ignore"),
        Verdict::Wait(why, again) => assert_eq!((why, again), (expected, None)),
        Verdict::Unfit(wrong) => assert_eq!(wrong, expected),
        Verdict::Desired(desired) => panic!("{desired:?}"),
    }
}

#[rstest]
#[case::one_twice(json!([{"ip": "10.1.0.4"}, {"ip": "10.1.0.4"}]), None)]
#[case::one_with_a_name(json!([{"ip": "10.1.0.4", "hostname": "x"}, {"hostname": "y"}]), None)]
#[case::two(json!([{"ip": "10.1.0.4"}, {"ip": "10.1.0.3"}]), Some("the Service has 2 addresses: only 10.1.0.4 is used"))]
fn first_of_two_addresses_is_used_and_a_complaint_made(#[case] points: Value, #[case] complaint: Option<&str>) {
    let Verdict::Desired(desired) = ingress(points) else {
        panic!()
    };
    assert_eq!(desired.derived.spec.load_balancer_ip.as_deref(), Some("10.1.0.4"));
    assert_eq!(desired.derived.complaints, Vec::from_iter(complaint.map(str::to_owned)));
}

#[test]
fn cluster_with_a_public_side_too_has_a_private_path() {
    let both = changed(|_, c| azure(c).topology = Some(Topology::PublicAndPrivate));
    assert!(matches!(both, Verdict::Desired(_)), "{both:?}");
}

#[rstest]
#[case::over("2026-08-22T10:00:00Z")]
#[case::a_false_word("F")]
#[case::garbage("for ever")]
fn a_cluster_that_is_not_paused_is_served(#[case] until: &str) {
    assert!(matches!(paused(until), Verdict::Desired(_)));
}

#[test]
fn end_of_a_pause_is_reconciled() {
    let again = Some(Requeue::new(Duration::from_secs(90), "Provisioning"));
    assert_eq!(
        paused("2026-08-22T10:01:30Z"),
        Verdict::Wait("the cluster is paused", again)
    );
}

#[rstest]
#[case::by_the_router("Route", false)]
#[case::by_a_load_balancer("LoadBalancer", true)]
#[case::in_a_way_that_is_new("Pigeon", false)]
fn oauth_has_its_own_path_while_a_load_balancer_publishes_it(#[case] kind: &str, #[case] own: bool) {
    let strategy = json!({"service": "OAuthServer", "servicePublishingStrategy": {"type": kind}});
    let other = json!({"service": "APIServer", "servicePublishingStrategy": {"type": "LoadBalancer"}});
    let spec: ClusterSpec = serde_json::from_value(json!({"services": [other, strategy]})).unwrap();
    assert_eq!(published("oauth-openshift", &spec), own);
    assert!(published("private-router", &spec));
}

fn patched(current: &AzurePrivateLinkService, desired: &DesiredResource) -> Value {
    match change(current, desired) {
        SpecChange::Patch(patch) => patch,
        other => panic!("{other:?}"),
    }
}

#[test]
fn immutable_values_are_carried_over_and_the_rest_follows() {
    let (current, mut next) = (desired().resource, desired());
    assert_eq!(change(&current, &next), SpecChange::None);
    next.derived.spec.base_domain = Some("other.example.com".into());
    next.derived.spec.location = "westus".into();
    assert_eq!(change(&current, &next), SpecChange::None);
    next.derived.spec.load_balancer_ip = Some("10.1.0.5".into());
    next.derived.spec.nat_subnet_id = Some("nat".into());
    assert_eq!(
        patched(&current, &next)["spec"],
        json!({"loadBalancerIP": "10.1.0.5", "natSubnetID": "nat"})
    );
}

#[test]
fn values_once_set_are_never_taken_away() {
    let (mut current, mut next) = (desired().resource, desired());
    current.spec.nat_subnet_id = Some("nat".into());
    next.derived.spec.base_domain = None;
    assert_eq!(change(&current, &next), SpecChange::None);
}

#[test]
fn base_domain_that_comes_later_is_taken() {
    let (mut current, next) = (desired().resource, desired());
    current.spec.base_domain = None;
    assert_eq!(
        patched(&current, &next)["spec"],
        json!({"baseDomain": "apps.example.com"})
    );
}

/// As HyperShift's observer writes it: in the control plane's own spelling.
#[test]
fn another_spelling_is_no_difference() {
    let (mut current, mut next) = (desired().resource, desired());
    let subscription = "aaaaaaaa-0000-4000-8000-000000000001".to_owned();
    let other = "aaaaaaaa-0000-4000-8000-000000000002".to_owned();
    current.spec.additional_allowed_subscriptions = Some(vec![other.to_uppercase(), subscription.to_uppercase()]);
    next.derived.subscriptions = vec![subscription, other];
    current.spec.base_domain = Some("Apps.example.com".into());
    current.spec.guest_vnet_id = VNET.to_uppercase();
    current.spec.load_balancer_ip = Some("FD00:0::4".into());
    next.derived.spec.load_balancer_ip = Some("fd00::4".into());
    assert_eq!(change(&current, &next), SpecChange::None);
}

fn list(now: &[&str], subscriptions: &[String]) -> Option<Value> {
    let (mut current, mut next) = (desired().resource, desired());
    current.spec.additional_allowed_subscriptions =
        (!now.is_empty()).then(|| now.iter().map(|s| (*s).to_owned()).collect());
    next.derived.subscriptions = subscriptions.to_vec();
    match change(&current, &next) {
        SpecChange::Patch(patch) => Some(patch["spec"]["additionalAllowedSubscriptions"].clone()),
        _ => None,
    }
}

#[test]
fn subscriptions_are_allowed_and_revoked() {
    assert_eq!(list(&["a"], &[]), Some(Value::Null));
    assert_eq!(list(&["a", "b"], &["b".into()]), Some(json!(["b"])));
    assert_eq!(list(&[], &["b".into()]), Some(json!(["b"])));
    assert_eq!(list(&["b"], &["b".into()]), None);
}

#[test]
fn of_too_many_subscriptions_only_revoked_ones_are_removed() {
    let many: Vec<String> = (0..=MOST_SUBSCRIPTIONS).map(|n| n.to_string()).collect();
    assert_eq!(list(&[], &many), None);
    assert_eq!(list(&["1", "2"], &many), None);
    assert_eq!(list(&["1", "revoked", "2"], &many), Some(json!(["1", "2"])));
    assert_eq!(list(&["revoked"], &many), Some(Value::Null));
}

#[test]
fn lost_annotation_is_restored() {
    let (mut current, next) = (desired().resource, desired());
    current.metadata.annotations = None;
    current.metadata.resource_version = Some("7".into());
    let metadata = json!({"resourceVersion": "7", "annotations": {CLUSTER_ANNOTATION: "clusters/example"}});
    assert_eq!(patched(&current, &next)["metadata"], metadata);
}

#[rstest]
#[case::made_by_hand(json!([]))]
#[case::of_another_controller(json!([{"apiVersion": "v", "kind": "HostedControlPlane", "name": "example", "uid": "other", "controller": true}]))]
#[case::not_controlled(json!([{"apiVersion": "v", "kind": "HostedControlPlane", "name": "example", "uid": "hcp"}]))]
fn custom_resource_of_another_owner_is_left_alone(#[case] owners: Value) {
    let (mut current, mut next) = (desired().resource, desired());
    current.metadata.owner_references = serde_json::from_value(owners).unwrap();
    next.derived.spec.load_balancer_ip = Some("10.1.0.5".into());
    assert_eq!(change(&current, &next), SpecChange::Foreign);
}
