use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::api::{AzurePrivateLinkServiceSpec, HostedControlPlane, Reason};
use crate::hypershift::conditions::{NewCondition, merge};
use crate::observer::external_services::{ServiceStep, step};

const API: External = ALL[0];
const OAUTH: External = ALL[1];
const AT: Target = Target::At(IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 5)));

fn control_plane(change: impl FnOnce(&mut Value)) -> HostedControlPlane {
    let route = |service: &str, host: &str| json!({"service": service, "servicePublishingStrategy": {"type": "Route", "route": {"hostname": host}}});
    let mut object = json!({"metadata": {"name": "example", "namespace": "clusters-example", "uid": "hcp"}, "spec": {
        "services": [route("APIServer", "api.example.com"), route("OAuthServer", "oauth.example.com")],
        "platform": {"type": "Azure", "azure": {"topology": "Private", "private": {"type": "PrivateLink"}}}}});
    change(&mut object);
    serde_json::from_value(object).unwrap()
}

fn host_of(change: impl FnOnce(&mut Value)) -> Result<Host, String> {
    host(API, &control_plane(change).spec)
}

fn named(host: &str) -> Host {
    Host::Named(host.to_owned())
}

fn strategy(value: Value) -> impl FnOnce(&mut Value) {
    move |hcp| hcp["spec"]["services"][0]["servicePublishingStrategy"] = value
}

fn topology(value: &str) -> impl FnOnce(&mut Value) {
    move |hcp| hcp["spec"]["platform"]["azure"]["topology"] = json!(value)
}

#[rstest]
#[case::private(host_of(|_| {}), Ok(named("api.example.com")))]
#[case::with_a_public_side(host_of(topology("PublicAndPrivate")), Ok(Host::None))]
#[case::public(host_of(topology("Public")), Ok(Host::None))]
#[case::of_a_topology_that_is_new(host_of(topology("Moon")), Ok(Host::NotOurs))]
#[case::swift(host_of(|hcp| hcp["spec"]["platform"]["azure"]["private"]["type"] = json!("Swift")), Ok(Host::NotOurs))]
#[case::not_azure(host_of(|hcp| hcp["spec"]["platform"]["type"] = json!("AWS")), Ok(Host::NotOurs))]
#[case::without_a_host_name(host_of(strategy(json!({"type": "Route"}))), Ok(Host::None))]
#[case::of_an_empty_name(host_of(strategy(json!({"type": "Route", "route": {"hostname": ""}}))), Ok(Host::None))]
#[case::by_a_load_balancer(host_of(strategy(json!({"type": "LoadBalancer", "loadBalancer": {"hostname": "api.example.com"}}))), Ok(Host::None))]
#[case::by_a_load_balancer_though_a_route_is_named(host_of(strategy(json!({"type": "LoadBalancer", "route": {"hostname": "api.example.com"}}))), Ok(Host::None))]
#[case::of_unicode(host_of(strategy(json!({"type": "Route", "route": {"hostname": "äpi.example.com"}}))), Err("the host name of APIServer is not a DNS name: it is not published".into()))]
fn host_names_of_routes_are_published_without_a_public_side(
    #[case] found: Result<Host, String>,
    #[case] expected: Result<Host, String>,
) {
    assert_eq!(found, expected);
}

fn cr(status: Status, address: Option<&str>) -> AzurePrivateLinkService {
    let kind = ConditionType::AzurePrivateEndpointAvailable;
    let condition = NewCondition {
        status,
        ..NewCondition::holds(kind, "x", None)
    };
    let mut cr = AzurePrivateLinkService::new("private-router", AzurePrivateLinkServiceSpec::default());
    cr.status = Some(crate::api::AzurePrivateLinkServiceStatus {
        private_endpoint_ip: address.map(str::to_owned),
        conditions: merge(&[], vec![condition], jiff::Timestamp::UNIX_EPOCH),
        ..Default::default()
    });
    cr
}

#[test]
fn names_lead_to_the_address_of_an_available_endpoint() {
    assert_eq!(target(Some(&cr(Status::True, Some("10.0.0.5")))), AT);
    assert_eq!(target(Some(&cr(Status::False, Some("10.0.0.5")))), Target::Unsure);
    assert_eq!(target(Some(&cr(Status::True, None))), Target::Unsure);
    assert_eq!(target(None), Target::Gone);
    let mut deleting = cr(Status::True, Some("10.0.0.5"));
    deleting.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
        jiff::Timestamp::UNIX_EPOCH,
    ));
    assert_eq!(target(Some(&deleting)), Target::Gone);
}

#[rstest]
#[case::host_name_of_another("HostNameClaimed", Target::Refused)]
#[case::ids_of_another("DuplicateIdentity", Target::Refused)]
#[case::azure_that_gives_no_answer("AzureError", AT)]
#[case::management_side_that_misses_the_control_plane("HostedControlPlaneNotFound", AT)]
fn names_lead_nowhere_for_a_cluster_that_names_what_another_has(#[case] reason: &str, #[case] expected: Target) {
    let mut cr = cr(Status::True, Some("10.0.0.5"));
    let refused = NewCondition::fails(
        ConditionType::AzurePLSCreated,
        Reason::parse(reason).unwrap(),
        "x",
        None,
    );
    let refused = merge(&[], vec![refused], jiff::Timestamp::UNIX_EPOCH);
    cr.status.as_mut().unwrap().conditions.extend(refused);
    assert_eq!(target(Some(&cr)), expected);
}

fn made(host: &str) -> Service {
    let hcp = control_plane(|_| {});
    match step(API, &named(host), AT, None, &hcp) {
        ServiceStep::Create(service) => *service,
        other => panic!("{other:?}"),
    }
}

#[test]
fn service_has_the_form_that_hypershift_gives_it() {
    let expected = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "kube-apiserver-private-external",
        "namespace": "clusters-example", "labels": {"hypershift.openshift.io/azure-pls-external-private-svc": "true"},
        "annotations": {"external-dns.alpha.kubernetes.io/hostname": "api.example.com"},
        "ownerReferences": [{"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedControlPlane", "name": "example",
            "uid": "hcp", "controller": true, "blockOwnerDeletion": true}]},
        "spec": {"type": "ExternalName", "externalName": "10.0.0.5"}});
    assert_eq!(json!(made("api.example.com")), expected);
    assert_eq!(OAUTH.name, "oauth-private-external");
}

fn changed(change: impl FnOnce(&mut Service)) -> Service {
    let mut service = made("api.example.com");
    change(&mut service);
    service
}

#[rstest]
#[case::up_to_date(named("api.example.com"), AT, "keep")]
#[case::other_host(named("new.example.com"), AT, "patch")]
#[case::other_address(named("api.example.com"), Target::At([10, 0, 0, 9].into()), "patch")]
#[case::host_is_gone(Host::None, AT, "delete")]
#[case::host_is_gone_while_the_endpoint_is_not_available(Host::None, Target::Unsure, "delete")]
#[case::endpoint_is_not_available(named("api.example.com"), Target::Unsure, "keep")]
#[case::other_host_while_the_endpoint_is_not_available(named("new.example.com"), Target::Unsure, "delete")]
#[case::custom_resource_is_gone(named("api.example.com"), Target::Gone, "delete")]
#[case::another_cluster_has_the_host(named("api.example.com"), Target::Refused, "delete")]
#[case::not_for_us_to_decide(Host::NotOurs, Target::Gone, "keep")]
fn service_follows_host_name_and_endpoint(#[case] host: Host, #[case] target: Target, #[case] expected: &str) {
    let hcp = control_plane(|_| {});
    let word = |step| match step {
        ServiceStep::Keep => "keep",
        ServiceStep::Create(_) => "create",
        ServiceStep::Patch(_) => "patch",
        ServiceStep::Delete => "delete",
        ServiceStep::Refuse => "refuse",
    };
    let found = made("api.example.com");
    assert_eq!(word(step(API, &host, target, Some(&found), &hcp)), expected);
    // A Service of others is never changed, and refused only where it is in the way.
    let in_the_way = matches!((&host, target), (Host::Named(_), Target::At(_)));
    for foreign in [
        changed(|s| s.metadata.labels = None),
        changed(|s| s.metadata.owner_references = None),
    ] {
        let expected = if in_the_way { "refuse" } else { "keep" };
        assert_eq!(word(step(API, &host, target, Some(&foreign), &hcp)), expected);
    }
    let expected = if in_the_way { "create" } else { "keep" };
    assert_eq!(word(step(API, &host, target, None, &hcp)), expected);
}

#[test]
fn service_of_another_type_is_restored_and_a_deleted_one_left() {
    let (hcp, host) = (control_plane(|_| {}), named("api.example.com"));
    let other = changed(|s| s.spec.as_mut().unwrap().type_ = Some("ClusterIP".into()));
    assert!(matches!(
        step(API, &host, AT, Some(&other), &hcp),
        ServiceStep::Patch(_)
    ));
    let deleting = changed(|s| {
        let time = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH);
        s.metadata.deletion_timestamp = Some(time);
    });
    assert_eq!(step(API, &Host::None, AT, Some(&deleting), &hcp), ServiceStep::Keep);
}

#[test]
fn what_others_put_on_the_service_stays() {
    let hcp = control_plane(|_| {});
    let found = changed(|s| {
        s.labels_mut().insert("theirs".into(), "x".into());
        s.metadata.resource_version = Some("7".into());
        s.spec.as_mut().unwrap().external_name = Some("10.0.0.250".into());
    });
    let ServiceStep::Patch(patch) = step(API, &named("api.example.com"), AT, Some(&found), &hcp) else {
        panic!()
    };
    assert_eq!(
        patch,
        json!({"metadata": {"resourceVersion": "7", "annotations": {"external-dns.alpha.kubernetes.io/hostname": "api.example.com"}},
            "spec": {"type": "ExternalName", "externalName": "10.0.0.5"}})
    );
}
